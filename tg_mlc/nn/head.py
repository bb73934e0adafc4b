"""Heads: label states to logits, and scores to hierarchically coherent scores."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc.graphs.hierarchy import coherent, coherent_loss, pairs_of
from tg_mlc.nn.label import LabelMessagePassing
from tg_mlc.ops.patterns import shape_error


@torch.no_grad()
def start_from_frequencies(bias: Tensor, y: Tensor, frequency_strength: float = 1.0) -> None:
    """Sets the bias :math:`(L)` of logits from label frequencies."""
    logits = torch.logit(y.nanmean(dim=0).nan_to_num(0.5), eps=1e-3)
    bias.copy_(torch.lerp(logits.mean(), logits, frequency_strength))


class LabelHead(nn.Module):
    r"""The readout from the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper: one dot product per label.

    .. math::
        y_i = \mathbf{W}^o_i \mathbf{u}_i^{\top} + b_i

    The paper ties :math:`\mathbf{W}^o` to the label embedding. Label states contain this embedding,
    so logits would start large. By default, as in the authors' code, the weight is not tied.

    Args:
        labels (LabelMessagePassing): The layer that gives the label states.
        tied (bool, optional): If set to :obj:`True`, :math:`\mathbf{W}^o` is the label embedding,
            initialised again with variance :math:`1 / d`. (default: :obj:`False`)
        bias (bool, optional): If set to :obj:`True`, adds :math:`b_i`. (default: :obj:`False`)

    Shapes:
        - **input:** label states :math:`(*, L, d)`
        - **output:** logits :math:`(*, L)`

    Raises:
        TypeError: If :obj:`labels` is not a :class:`~tg_mlc.nn.LabelMessagePassing`.
        ValueError: If the label states are not of shape :math:`(*, L, d)`.
    """

    def __init__(self, labels: LabelMessagePassing, tied: bool = False, bias: bool = False) -> None:
        super().__init__()
        if not isinstance(labels, LabelMessagePassing):
            raise TypeError(
                f"Expected 'labels' to be a LabelMessagePassing (got {type(labels).__name__})"
            )
        self.tied = tied
        # A tuple hides the layer from the list of submodules. If two modules shared the parameter,
        # 'to_empty' and 'load_state_dict(assign=True)' would replace it by two different ones, and
        # a new embedding of the layer would not reach the head.
        self._labels: tuple[LabelMessagePassing, ...] = (labels,) if tied else ()
        self.own_weight = None if tied else nn.Parameter(torch.empty_like(labels.embedding.weight))
        self.bias = nn.Parameter(torch.empty(labels.num_labels)) if bias else None
        self.reset_parameters()

    @property
    def weight(self) -> Tensor:
        r"""The weight :math:`\mathbf{W}^o`."""
        return self._labels[0].embedding.weight if self.own_weight is None else self.own_weight

    def reset_parameters(self) -> None:
        """Draws weights with variance :math:`1 / d`, which gives logits unit variance."""
        nn.init.normal_(self.weight, std=self.weight.size(1) ** -0.5)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def start_from_frequencies(self, y: Tensor, frequency_strength: float = 1.0) -> None:
        r"""Sets the bias to logits of label frequencies, optionally shrunk towards their mean.

        .. math::
            b_i = \bar{b} + \tau (\operatorname{logit} \pi_i - \bar{b}), \qquad
            \bar{b} = \frac{1}{L} \sum_j \operatorname{logit} \pi_j

        With few epochs, rare labels that start at their frequency (:math:`\tau = 1`) are hardly
        ever predicted. A smaller :math:`\tau` raises their initial bias.

        Args:
            y (torch.Tensor): The training labels :math:`(N, L)`: 0, 1, or NaN for unknown.
            frequency_strength (float, optional): :math:`\tau`. (default: :obj:`1.0`)

        Raises:
            ValueError: If there is no bias.
        """
        if self.bias is None:
            raise ValueError("Expected a readout with 'bias=True' (got one without a bias)")
        start_from_frequencies(self.bias, y, frequency_strength)

    def forward(self, u: Tensor, label: Tensor | None = None) -> Tensor:
        """Returns logits :math:`(*, L)` of label states, or logits :math:`(M)` of a shortlist."""
        weight, bias = self.weight, cast("Tensor | None", self.bias)
        if label is not None:
            weight, bias = weight[label], None if bias is None else bias[label]
        elif u.shape[-2:] != weight.shape:
            raise shape_error("'u'", f"[*, {weight.size(0)}, {weight.size(1)}]", u)
        logits = (u * weight).sum(dim=-1)
        return logits if bias is None else logits + bias

    def __repr__(self) -> str:
        num_labels, channels = self.weight.shape
        return f"{self.__class__.__name__}({channels}, num_labels={num_labels}, tied={self.tied})"


class CoherentHead(nn.Module):
    r"""The constraint layer from the `"Coherent Hierarchical Multi-Label Classification Networks"
    <https://arxiv.org/abs/2010.10151>`_ paper: no label scores higher than its parents.

    .. math::
        p_i^{\prime} = \max_{j \in \mathcal{D}_i} p_j

    where :math:`\mathcal{D}_i` contains label :math:`i` and all of its descendants. Time and memory
    grow with the number of pairs of ancestor and descendant. Scores are probabilities or logits.

    .. code-block:: python

        head = CoherentHead(tree(parents, label_names))
        loss = head.loss(logits, y)
        probabilities = head(logits.sigmoid())

    Args:
        label_graph (LabelGraph): A label graph with parents (see :func:`~tg_mlc.graphs.tree`).

    Shapes:
        - **input:** scores :math:`(B, L)`
        - **output:** coherent scores :math:`(B, L)`

    Raises:
        ValueError: If parents are missing or form a cycle, or scores have another shape.
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
        r"""Returns the paper's loss, the cross-entropy of coherent logits. For a present label, the
        maximum is taken only over present descendants.

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
