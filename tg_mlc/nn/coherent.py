"""Coherent predictions where labels form a hierarchy."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc.graphs.hierarchy import coherent, coherent_loss, pairs_of


class CoherentHead(nn.Module):
    r"""The constraint layer from the `"Coherent Hierarchical Multi-Label Classification Networks"
    <https://arxiv.org/abs/2010.10151>`_ paper, by which a label never scores more than one above it.

    .. math::
        p_i^{\prime} = \max_{j \in \mathcal{D}_i} p_j

    over the label itself and all below it, :math:`\mathcal{D}_i`, along the edges of the hierarchy's transitive
    closure: time and memory grow with their number, not with :math:`L^2`. Logits will do as well as probabilities.

    .. code-block:: python

        head = CoherentHead(tree(parents, label_names))
        loss = head.loss(logits, y)
        probabilities = head(logits.sigmoid())

    Args:
        label_graph (LabelGraph): A label graph that keeps the parents of labels, as :func:`~tg_mlc.graphs.tree` makes
            it, whatever its edges.

    Shapes:
        - **input:** scores :math:`(B, L)`
        - **output:** coherent scores :math:`(B, L)`

    Raises:
        ValueError: If :obj:`label_graph` keeps no parents, they form a cycle, or scores are of another shape.
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
        r"""The paper's loss: the cross-entropy of coherent logits, of labels that apply by the maximum over those
        below that apply too, so that no other one is taught to be likely.

        Args:
            logits (Tensor): Logits :math:`(B, L)` before the constraint.
            y (Tensor): Targets :math:`(B, L)`: 0, 1, or NaN for unknown, which counts neither as a term nor in maxima.
        """
        self._check("logits", logits)
        return coherent_loss(logits, y, self.pairs)

    def _check(self, name: str, scores: Tensor) -> None:
        if scores.dim() != 2 or scores.size(1) != self.num_labels:
            raise ValueError(
                f"Expected '{name}' of shape [B, {self.num_labels}] (got {list(scores.shape)})"
            )

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(num_labels={self.num_labels}, num_pairs={self.pairs.size(1)})"
