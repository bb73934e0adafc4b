"""Coherent predictions where labels form a hierarchy."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc.graphs.hierarchy import coherent, coherent_loss, pairs_of
from tg_mlc.ops.patterns import shape_error


class CoherentHead(nn.Module):
    r"""The constraint layer from the `"Coherent Hierarchical Multi-Label Classification Networks"
    <https://arxiv.org/abs/2010.10151>`_ paper, by which a label never scores more than one above
    it.

    .. math::
        p_i^{\prime} = \max_{j \in \mathcal{D}_i} p_j

    over the label and all labels below it, :math:`\mathcal{D}_i`, along the transitive closure of
    the hierarchy: time and memory grow with its edges. Scores are probabilities or logits.

    .. code-block:: python

        head = CoherentHead(tree(parents, label_names))
        loss = head.loss(logits, y)
        probabilities = head(logits.sigmoid())

    Args:
        label_graph (LabelGraph): A label graph with parents, as of :func:`~tg_mlc.graphs.tree`.

    Shapes:
        - **input:** scores :math:`(B, L)`
        - **output:** coherent scores :math:`(B, L)`

    Raises:
        ValueError: If parents are missing or form a cycle, or scores are of another shape.
    """

    pairs: Tensor

    def __init__(self, label_graph: Data) -> None:
        super().__init__()
        self.num_labels = int(label_graph.num_nodes or 0)
        self.register_buffer("pairs", pairs_of(label_graph), persistent=False)

    def forward(self, scores: Tensor) -> Tensor:
        """Makes scores coherent."""
        self._check("scores", scores)
        return coherent(scores, self.pairs)

    def loss(self, logits: Tensor, y: Tensor) -> Tensor:
        r"""The paper's loss: the cross-entropy of coherent logits. For labels that apply, the
        maximum is over labels below that apply, too.

        Args:
            logits (Tensor): Logits :math:`(B, L)` before the constraint.
            y (Tensor): Targets :math:`(B, L)`: 0, 1, or NaN for unknown, which is ignored.
        """
        self._check("logits", logits)
        return coherent_loss(logits, y, self.pairs)

    def _check(self, name: str, scores: Tensor) -> None:
        if scores.dim() != 2 or scores.size(1) != self.num_labels:
            raise shape_error(f"'{name}'", f"[B, {self.num_labels}]", scores)

    def __repr__(self) -> str:
        sizes = f"num_labels={self.num_labels}, num_pairs={self.pairs.size(1)}"
        return f"{self.__class__.__name__}({sizes})"
