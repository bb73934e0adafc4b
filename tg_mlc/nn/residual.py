"""Messages of residuals: what given labels say of the others beyond their base logits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected
from typing_extensions import Self

from tg_mlc._options import check_count, check_number
from tg_mlc.nn.label import LabelToLabelConv
from tg_mlc.ops import Edges, Shared
from tg_mlc.ops.patterns import adjacency_of, to_list

#: Density above which messages are matrix products.
DENSE = 0.1
# Added to the mean square of residuals, because labels may be predicted perfectly.
_LEAST_VARIANCE = 1e-4
# Joint observations of two labels that count as evidence against a correlation.
_PRIOR_PAIRS = 1.0
# The least curvature keeps conjugate gradients finite where a sparse graph has cut off
# correlations, so that their matrix is not positive definite.
_LEAST_CURVATURE = 0.01
_PRODUCTS = 2**22  # Products of residuals along edges at a time.


class ResidualMessages(nn.Module):
    r"""Messages from given labels to the other labels of a sample, from residuals of base logits.

    Values of given labels inform others as far as they differ from predictions. With base logits
    :math:`\mathbf{b}` of the :math:`L` labels, standard deviations :math:`\sigma_i` of their
    residuals :math:`y_i - p_i`, :math:`p_i = \operatorname{sigmoid}(b_i)`, and :math:`\mathcal{G}`
    the set of given labels,

    .. math::
        r_i &= \frac{y_i - p_i}{\sigma_i}, \quad i \in \mathcal{G} \\
        \lambda_i w_i + w_i + \sum_{j \in \mathcal{N}(i) \cap \mathcal{G}} \frac{u_{ij} + u_{ji}}{2}
        \, w_j &= r_i, \quad i \in \mathcal{G} \\
        z_i &= (1 + a) \, b_i + c_i + \frac{e^g}{\sigma_i^e} \sum_{j \in \mathcal{N}(i) \cap
        \mathcal{G}} v_{ij} w_j + \sum_{j \in \mathcal{N}(i) \cap \mathcal{G}} m_{ij}

    The second line, solved by conjugate gradients, removes what given labels repeat of each other;
    the third is the message to the others. :meth:`start_from_residuals` sets
    :math:`u_{ij} = v_{ij}` to the correlations of residuals along the edges and :math:`a, c, g, m`
    to 0: the conditional mean of Gaussian residuals, which needs no training. Training under random
    masks refines all of them. With :obj:`channels`, labels with states for unknown, absent and
    present also attend to each other (:class:`~tg_mlc.nn.LabelToLabelConv`); the readout starts
    from zero. A sample without given labels keeps its base logits.

    .. code-block:: python

        messages = ResidualMessages(label_graph).start_from_residuals(held_out_logits, y_train)
        logits = messages(base_logits, given)

    Args:
        label_graph (LabelGraph or Data): The labels and their edges, used in both directions.
        channels (int, optional): Size of attending label states; 0 for none. (default: :obj:`0`)
        heads (int, optional): Number of attention heads. (default: :obj:`4`)
        num_rounds (int, optional): Number of steps of conjugate gradients. (default: :obj:`8`)
        dropout (float, optional): Dropout of attending labels. (default: :obj:`0.1`)

    Shapes:
        - **input:** base logits and given labels :math:`(B, L)`
        - **output:** logits :math:`(B, L)`

    Raises:
        ValueError: If a number is not allowed, or the shapes differ.
    """

    takes_given_labels = True
    edge_index: Tensor
    correlation: Tensor
    deviation: Tensor
    opposite: Tensor  # the place of the opposite of each edge

    def __init__(
        self,
        label_graph: Data,
        channels: int = 0,
        heads: int = 4,
        num_rounds: int = 8,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        check_number("channels", channels)
        check_count("num_rounds", num_rounds)
        self.num_labels, self.num_rounds = int(label_graph.num_nodes or 0), num_rounds
        edge_index, _ = remove_self_loops(to_list(adjacency_of(label_graph)))
        edge_index = to_undirected(edge_index, num_nodes=self.num_labels)
        source, target = edge_index
        num_edges = source.numel()
        opposite = (target * self.num_labels + source).argsort()
        self.register_buffer("edge_index", edge_index, persistent=False)
        self.register_buffer("opposite", opposite, persistent=False)
        self.register_buffer("correlation", torch.zeros(num_edges))
        self.register_buffer("deviation", torch.ones(self.num_labels))
        self.among_given = nn.Parameter(torch.zeros(num_edges))
        self.to_others = nn.Parameter(torch.zeros(num_edges))
        self.presence = nn.Parameter(torch.zeros(num_edges))
        self.log_damping = nn.Parameter(torch.zeros(self.num_labels))
        self.power = nn.Parameter(torch.ones(()))
        self.log_scale = nn.Parameter(torch.zeros(()))
        self.base_scale = nn.Parameter(torch.zeros(()))
        self.bias = nn.Parameter(torch.zeros(self.num_labels))
        self.attention = None
        if channels:
            self.attention = _StateAttention(label_graph, channels, heads, dropout)

    @torch.no_grad()
    def start_from_residuals(
        self, base_logits: Tensor, y: Tensor, damping: float = 0.3, power: float = 1.0
    ) -> Self:
        r"""Sets the closed form by training samples.

        Args:
            base_logits (Tensor): Held-out logits :math:`(N, L)`.
            y (Tensor): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
            damping (float, optional): :math:`\lambda`. (default: :obj:`0.3`)
            power (float, optional): :math:`e`. (default: :obj:`1.0`)
        """
        self._check(base_logits, y, "y")
        known = ~y.isnan()
        residual = torch.where(known, y - base_logits.sigmoid(), 0.0)
        variance = residual.square().sum(dim=0) / known.sum(dim=0).clamp(min=1)
        self.deviation.copy_((variance + _LEAST_VARIANCE).sqrt())
        residual, observed = residual / self.deviation, known.to(residual.dtype)
        if self._is_dense:
            source, target = self.edge_index
            products, pairs = residual.t() @ residual, observed.t() @ observed
            self.correlation.copy_((products / (pairs + _PRIOR_PAIRS))[source, target])
        size = max(1, _PRODUCTS // max(1, len(y)))
        for first in range(0, 0 if self._is_dense else self.edge_index.size(1), size):
            source, target = self.edge_index[:, first : first + size]
            products = (residual[:, source] * residual[:, target]).sum(dim=0)
            pairs = (observed[:, source] * observed[:, target]).sum(dim=0)
            self.correlation[first : first + size] = products / (pairs + _PRIOR_PAIRS)
        self.among_given.copy_(self.correlation)
        self.to_others.copy_(self.correlation)
        for zero in (self.presence, self.log_scale, self.base_scale, self.bias):
            zero.zero_()
        return self.damp(damping, power)

    @torch.no_grad()
    def damp(self, damping: float, power: float) -> Self:
        r"""Sets :math:`\lambda` and :math:`e` alone."""
        self.log_damping.fill_(damping).log_()
        self.power.fill_(power)
        return self

    def forward(self, base_logits: Tensor, given: Tensor | None = None) -> Tensor:
        """Returns logits, those of labels that are given without their own values."""
        if given is None:
            return base_logits
        self._check(base_logits, given, "given")
        known, p = ~given.isnan(), base_logits.sigmoid()
        mask = known.to(base_logits.dtype)
        residual = torch.where(known, given - p, 0.0) / self.deviation
        among = self._along((self.among_given + self.among_given[self.opposite]) / 2)
        damping = 1 + self.log_damping.exp()

        def matrix(w: Tensor) -> Tensor:
            return mask * among(mask * w) + damping * w

        weight = conjugate_gradients(matrix, residual, self.num_rounds)
        message = self._along(self.to_others)(mask * weight) * self.log_scale.exp()
        message = message / self.deviation**self.power
        logits = (1 + self.base_scale) * base_logits + self.bias + message
        logits = logits + self._along(self.presence)(mask)
        if self.attention is not None:
            # The state of a given label holds its value.
            logits = logits + torch.where(known, 0.0, self.attention(base_logits, residual, given))
        return torch.where(known.any(dim=1, keepdim=True), logits, base_logits)

    @property
    def _is_dense(self) -> bool:
        return self.edge_index.size(1) > DENSE * self.num_labels**2

    def penalty(self) -> Tensor:
        """The squared distance from the closed form, which a loss may add."""
        edges = (self.among_given - self.correlation, self.to_others - self.correlation)
        scales = (self.bias, self.base_scale, self.log_damping - self.log_damping.mean())
        squares = [difference.square().sum() for difference in (*edges, *scales)]
        return sum(squares, start=10 * self.presence.square().sum())

    def _along(self, edge_weight: Tensor) -> Callable[[Tensor], Tensor]:
        """Sends numbers :math:`(B, L)` of labels along all edges to their sums at the targets."""
        source, target = self.edge_index
        if self._is_dense:
            matrix = edge_weight.new_zeros(self.num_labels, self.num_labels)
            matrix = matrix.index_put((source, target), edge_weight)
            return lambda x: x @ matrix

        def send(x: Tensor) -> Tensor:
            sums = x.new_zeros(self.num_labels, x.size(0))
            return sums.index_add(0, target, x.t()[source] * edge_weight.unsqueeze(-1)).t()

        return send

    def _check(self, base_logits: Tensor, labels: Tensor, name: str) -> None:
        shape = base_logits.shape
        if shape != labels.shape or len(shape) != 2 or shape[1] != self.num_labels:
            expected = f"'base_logits' and '{name}' of shape [B, {self.num_labels}]"
            got = f"{list(base_logits.shape)} and {list(labels.shape)}"
            raise ValueError(f"Expected {expected} (got {got})")

    def __repr__(self) -> str:
        sizes = f"num_labels={self.num_labels}, num_edges={self.edge_index.size(1)}"
        return f"{type(self).__name__}({sizes})"


class _StateAttention(nn.Module):
    """Attention among labels with states for unknown, absent, present; at first, it adds 0."""

    def __init__(self, label_graph: Data, channels: int, heads: int, dropout: float) -> None:
        super().__init__()
        num_labels = int(label_graph.num_nodes or 0)
        self.edges = Edges(adjacency_of(label_graph), num_labels, num_labels).prepare()
        self.label = nn.Embedding(num_labels, channels)
        self.state = nn.Embedding(3, channels)
        self.numbers = nn.Linear(2, channels)
        self.conv = LabelToLabelConv(channels, heads=heads, dropout=dropout, attention_dropout=0.0)
        self.readout = nn.Parameter(torch.zeros(num_labels, channels))

    def forward(self, base_logits: Tensor, residual: Tensor, given: Tensor) -> Tensor:
        state = self.state(given.nan_to_num(-1.0).long() + 1)
        x = self.label.weight + state + self.numbers(torch.stack([base_logits, residual], dim=-1))
        if self.edges.device != x.device:
            self.edges = self.edges.to(x.device).prepare()
        x = self.conv(x.flatten(0, 1), Shared(self.edges, given.size(0))).view_as(x)
        logits: Tensor = (x * self.readout).sum(dim=-1)
        return logits


def conjugate_gradients(
    matrix: Callable[[Tensor], Tensor], right: Tensor, num_rounds: int
) -> Tensor:
    """Solves a symmetric system for each row of ``right`` :math:`(B, L)` by conjugate gradients."""
    solution, rest = torch.zeros_like(right), right
    direction, squares = rest, (rest * rest).sum(dim=1, keepdim=True)
    for _ in range(num_rounds):
        image = matrix(direction)
        length = (direction * direction).sum(dim=1, keepdim=True)
        curvature = (direction * image).sum(dim=1, keepdim=True)
        curvature = torch.maximum(curvature, _LEAST_CURVATURE * length)
        step = squares / curvature.clamp(min=1e-12)
        solution, rest = solution + step * direction, rest - step * image
        now = (rest * rest).sum(dim=1, keepdim=True)
        direction, squares = rest + now / squares.clamp(min=1e-12) * direction, now
    return solution
