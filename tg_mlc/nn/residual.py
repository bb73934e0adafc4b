"""Messages of residuals: what given labels say of the others beyond their base logits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected
from typing_extensions import Self

from tg_mlc._options import check_number
from tg_mlc.ops.patterns import adjacency_of, to_list
from tg_mlc.ops.runtime import in_transform, is_recorded

#: Maximum number of neighbours of a label in a sparse label graph, by largest correlation.
MAX_NEIGHBOURS = 64

# Added to the mean square of residuals, because labels may be predicted perfectly.
_LEAST_VARIANCE = 1e-4
# Number of samples with zero residuals that are added to each label, to shrink correlations.
_PRIOR_SAMPLES = 3.0
# A message changes neither the odds for nor the odds against a label by more than this factor.
_MAX_FACTOR = 64.0
# Base logits may be infinite, and single precision rounds probabilities nearer to 1 up.
_LEAST_PROBABILITY = 1e-7
_NUMBERS = 2**24  # Maximum size of a temporary tensor.
_MAX_STEPS, _TOLERANCE = 64, 1e-6  # Limits of conjugate gradients.


class ResidualMessages(nn.Module):
    r"""Messages from given labels to the other labels of a sample: the conditional mean of
    Gaussian residuals of base logits, as in kriging.

    With base logits :math:`b` of :math:`L` labels, :math:`p_i = \operatorname{sigmoid}(b_i)`,
    standard deviations :math:`\sigma_i` of the residuals :math:`y_i - p_i` of training samples,
    their standardised residuals :math:`\mathbf{Z}` (0 where a target is unknown) of :math:`n_i`
    known targets, and the set :math:`\mathcal{G}` of given labels,

    .. math::
        C_{ij} &= \frac{\mathbf{Z}_i^{\top} \mathbf{Z}_j}{\sqrt{(n_i + 3)(n_j + 3)}} \\
        \mathbf{w} &= (\mathbf{C}_{\mathcal{G} \mathcal{G}} + \lambda \mathbf{I})^{-1}
        \Big( \frac{y_j - p_j}{\sigma_j} \Big)_{j \in \mathcal{G}} \\
        z_i &= \operatorname{logit} \Big( p_i + \sigma_i \sum_{j \in \mathcal{G}} C_{ij} w_j \Big)
        \quad \text{or} \quad b_i + \frac{1}{\sigma_i} \sum_{j \in \mathcal{G}} C_{ij} w_j

    where the probability is limited to :math:`[p_i / 64, \, 1 - (1 - p_i) / 64]`. The second line
    removes what given labels repeat of each other. With any number of unknown targets,
    :math:`\mathbf{C}` is positive semidefinite, so each system has a solution. On a sparse label
    graph each label reads only its given neighbours, with all correlations among them. Given
    labels, and samples without given labels, keep their base logits.

    .. code-block:: python

        messages = ResidualMessages(label_graph).start_from_residuals(held_out_logits, y_train)
        logits = messages(base_logits, given)

    Args:
        label_graph (LabelGraph or Data): The labels and their edges, used in both directions. Of
            more than 64 neighbours, a label reads those with the largest correlations.

    Shapes:
        - **input:** base logits and given labels :math:`(B, L)`: 0, 1, or NaN for unknown
        - **output:** logits :math:`(B, L)`

    Raises:
        ValueError: If a number is not allowed, or the shapes differ.
    """

    takes_given_labels = True
    deviation: Tensor
    noise: Tensor
    adds_logits: Tensor

    def __init__(self, label_graph: Data) -> None:
        super().__init__()
        self.label_graph, self.num_labels = label_graph, int(label_graph.num_nodes or 0)
        edge_index, _ = remove_self_loops(to_list(adjacency_of(label_graph)))
        edge_index = to_undirected(edge_index, num_nodes=self.num_labels)
        self.num_edges = edge_index.size(1)
        self.register_buffer("deviation", torch.ones(self.num_labels))
        self.register_buffer("noise", torch.ones(()))
        self.register_buffer("adds_logits", torch.tensor(False))
        self.pairs: AllPairs | Neighbourhoods
        if self.num_edges == self.num_labels * (self.num_labels - 1):
            self.pairs = AllPairs(self.num_labels)
        else:
            self.pairs = Neighbourhoods(edge_index, self.num_labels)

    @torch.no_grad()
    def start_from_residuals(
        self, base_logits: Tensor, y: Tensor, noise: float = 0.3, adds_logits: bool = False
    ) -> Self:
        r"""Computes deviations and correlations of training samples.

        Args:
            base_logits (Tensor): Held-out logits :math:`(N, L)`.
            y (Tensor): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
            noise (float, optional): :math:`\lambda`, the variance of a residual that says nothing
                of other labels. (default: :obj:`0.3`)
            adds_logits (bool, optional): If set to :obj:`True`, messages are added to logits,
                else to probabilities. (default: :obj:`False`)
        """
        y = self._checked(base_logits, y, "y")
        known = ~y.isnan()
        residual = torch.where(known, y - base_logits.sigmoid(), 0.0)
        count = known.sum(dim=0)
        variance = residual.square().sum(dim=0) / count.clamp(min=1)
        self.deviation.copy_((variance + _LEAST_VARIANCE).sqrt())
        self.pairs.fit(residual / self.deviation / (count + _PRIOR_SAMPLES).sqrt())
        return self.damp(noise, adds_logits)

    @torch.no_grad()
    def damp(self, noise: float, adds_logits: bool = False) -> Self:
        """Sets the two options of :meth:`start_from_residuals` alone."""
        check_number("noise", noise)
        if noise == 0:
            raise ValueError("Expected 'noise' to be a number above 0 (got 0)")
        self.noise.fill_(noise)
        self.adds_logits.fill_(adds_logits)
        return self

    def forward(self, base_logits: Tensor, given: Tensor | None = None) -> Tensor:
        """Returns the logits of all labels, after messages from given labels."""
        if given is None:
            return base_logits
        given = self._checked(base_logits, given, "given")
        z = self.residuals(base_logits, given)
        message = self.pairs(z, ~given.isnan(), self.noise)
        return torch.where(given.isnan(), self.add(base_logits, message), base_logits)

    def leave_one_out(self, base_logits: Tensor, y: Tensor) -> Tensor:
        """Returns the logit of each label given all other known labels of its sample."""
        y = self._checked(base_logits, y, "y")
        message = self.pairs.leave_one_out(self.residuals(base_logits, y), ~y.isnan(), self.noise)
        return self.add(base_logits, message)

    def contributions(self, base_logits: Tensor, y: Tensor, label: Tensor) -> Tensor:
        r"""Returns what each known label adds to one label of each sample in :meth:`leave_one_out`,
        in probability, or in logits with :obj:`adds_logits`.

        A message is linear in residuals: that of label :math:`j` adds :math:`a_j z_j` with
        :math:`\mathbf{a} = (\mathbf{C}_{\mathcal{G} \mathcal{G}} + \lambda \mathbf{I})^{-1}
        \mathbf{C}_{\mathcal{G} i}`. It adds nothing if its value is no surprise.

        Args:
            base_logits (Tensor): Base logits :math:`(B, L)`.
            y (Tensor): Labels :math:`(B, L)`: 0, 1, or NaN for unknown.
            label (Tensor): The index of the label of each sample :math:`(B)`.
        """
        y = self._checked(base_logits, y, "y")
        is_given = ~y.isnan()
        is_given[torch.arange(len(y)), label] = False
        z = self.residuals(base_logits, y)
        weight = self.pairs.weights(is_given, label, self.noise)
        scale = torch.where(self.adds_logits, 1 / self.deviation, self.deviation)
        return weight * z * scale[label].unsqueeze(-1)

    def residuals(self, base_logits: Tensor, y: Tensor) -> Tensor:
        """Returns standardised residuals, 0 for unknown labels."""
        return torch.where(y.isnan(), 0.0, y - base_logits.sigmoid()) / self.deviation

    def add(self, logits: Tensor, message: Tensor, labels: Tensor | None = None) -> Tensor:
        """Returns logits changed by messages in units of standard deviations.

        Args:
            logits, message (Tensor): Logits and messages of all labels in the last dimension.
            labels (Tensor, optional): The labels of logits and messages, if not all in order.
                (default: :obj:`None`)
        """
        deviation = self.deviation if labels is None else self.deviation[labels]
        p = logits.sigmoid().clamp(_LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
        changed = p + deviation * message
        changed = torch.minimum(changed, 1 - (1 - p) / _MAX_FACTOR)
        changed = torch.maximum(changed, p / _MAX_FACTOR).logit(eps=_LEAST_PROBABILITY)
        changed = torch.where(self.adds_logits, logits + message / deviation, changed)
        # Labels without a message keep their exact logits, without rounding of probabilities.
        return torch.where(message == 0, logits, changed)

    def _checked(self, base_logits: Tensor, labels: Tensor, name: str) -> Tensor:
        """Returns labels in the dtype of logits. Raises ValueError for other values or shapes."""
        shape = base_logits.shape
        if shape != labels.shape or len(shape) != 2 or shape[1] != self.num_labels:
            expected = f"'base_logits' and '{name}' of shape [B, {self.num_labels}]"
            got = f"{list(base_logits.shape)} and {list(labels.shape)}"
            raise ValueError(f"Expected {expected} (got {got})")
        # A recorded or transformed program cannot read values.
        if not (is_recorded() or in_transform()):
            is_wrong = ~((labels == 0) | (labels == 1) | labels.isnan())
            if is_wrong.any():
                got = f"{labels[is_wrong][0].item():g}"
                raise ValueError(f"Expected '{name}' to hold 0, 1, or NaN for unknown (got {got})")
        return labels.to(base_logits.dtype)

    def __repr__(self) -> str:
        sizes = f"num_labels={self.num_labels}, num_edges={self.num_edges}"
        return f"{type(self).__name__}({sizes})"


class Systems(NamedTuple):
    """Linear systems of samples. Samples with equal given labels share one factorisation."""

    rows: Tensor  #: samples :math:`(R)`
    labels: Tensor  #: given labels of each sample :math:`(R, S)`, padded with label 0
    is_given: Tensor  #: :math:`(R, S)`, false for padding
    factor: Tensor  #: Cholesky factors :math:`(P, S, S)` of distinct sets of given labels
    pattern: Tensor  #: the factor of each sample :math:`(R)`


class AllPairs(nn.Module):
    """Correlations of all pairs of labels, and exact solutions for each set of given labels."""

    correlation: Tensor

    def __init__(self, num_labels: int) -> None:
        super().__init__()
        self.register_buffer("correlation", torch.zeros(num_labels, num_labels))

    def fit(self, z: Tensor) -> None:
        """Computes correlations of scaled residuals :math:`(N, L)`."""
        self.correlation.copy_(z.t() @ z)

    def forward(self, z: Tensor, is_given: Tensor, noise: Tensor) -> Tensor:
        """Returns the messages :math:`(B, L)` of residuals of given labels."""
        if is_recorded():  # The sizes of the systems depend on values.
            mask = is_given.to(z.dtype)

            def matrix(w: Tensor) -> Tensor:
                return mask * ((mask * w) @ self.correlation) + noise * w

            return conjugate_gradients(matrix, z) @ self.correlation
        if not len(z):
            return z
        weights, order = [], []
        for system in self.systems(is_given, noise):
            right = z[system.rows[:, None], system.labels] * system.is_given
            factor = system.factor[system.pattern]
            weight = torch.cholesky_solve(right.unsqueeze(-1), factor).squeeze(-1)
            zeros = z.new_zeros(len(right), z.size(1))
            weights.append(zeros.scatter_add(1, system.labels, weight * system.is_given))
            order.append(system.rows)
        weight = torch.cat(weights)[torch.cat(order).argsort()]
        return weight @ self.correlation

    def leave_one_out(self, z: Tensor, is_known: Tensor, noise: Tensor) -> Tensor:
        r"""Returns the message to each label from all other known labels :math:`(B, L)`, from one
        inverse :math:`\mathbf{A}^{-1}` per sample: :math:`z_i - (\mathbf{A}^{-1} \mathbf{z})_i /
        (\mathbf{A}^{-1})_{ii}` for known labels (Rasmussen and Williams 2006, equation 5.12).
        """
        messages = torch.empty_like(z)
        for system in self.systems(is_known, noise):
            right = z[system.rows[:, None], system.labels] * system.is_given
            inverse = torch.cholesky_inverse(system.factor)
            diagonal = inverse.diagonal(dim1=1, dim2=2)[system.pattern]
            weight = (inverse[system.pattern] @ right.unsqueeze(-1)).squeeze(-1) * system.is_given
            zeros = z.new_zeros(len(right), z.size(1))
            message = zeros.scatter_add(1, system.labels, weight) @ self.correlation
            row, column = system.is_given.nonzero(as_tuple=True)
            known_messages = (right - weight / diagonal)[row, column]
            message[row, system.labels[row, column]] = known_messages
            messages[system.rows] = message
        return messages

    def weights(self, is_given: Tensor, label: Tensor, noise: Tensor) -> Tensor:
        """Returns the weights :math:`(B, L)` of residuals in the message to one label of each
        sample, 0 for labels that are not given.
        """
        weights = self.correlation.new_zeros(is_given.shape)
        for system in self.systems(is_given, noise):
            column = self.correlation[system.labels, label[system.rows, None]] * system.is_given
            factor = system.factor[system.pattern]
            weight = torch.cholesky_solve(column.unsqueeze(-1), factor).squeeze(-1)
            zeros = weights.new_zeros(len(column), weights.size(1))
            weights[system.rows] = zeros.scatter_add(1, system.labels, weight * system.is_given)
        return weights

    def covariance(self, is_given: Tensor, noise: Tensor) -> Tensor:
        r"""Returns the covariances :math:`(B, L, L)` of residuals that given labels leave:
        :math:`\mathbf{C} - \mathbf{C}_{\cdot \mathcal{G}} (\mathbf{C}_{\mathcal{G} \mathcal{G}} +
        \lambda \mathbf{I})^{-1} \mathbf{C}_{\mathcal{G} \cdot}`.
        """
        covariance = self.correlation.new_empty(len(is_given), *self.correlation.shape)
        for system in self.systems(is_given, noise):
            columns = self.correlation[system.labels] * system.is_given.unsqueeze(-1)
            factor = system.factor[system.pattern]
            solved = torch.linalg.solve_triangular(factor, columns, upper=False)
            covariance[system.rows] = self.correlation - solved.mT @ solved
        return covariance

    def systems(self, is_given: Tensor, noise: Tensor) -> Iterator[Systems]:
        """Factorises the equations of all samples, some samples at a time."""
        patterns, pattern = torch.unique(is_given, dim=0, return_inverse=True)
        count = patterns.sum(dim=1)
        # The largest systems come first; samples of one pattern follow each other.
        by_size = count.argsort(descending=True, stable=True)
        rank = torch.empty_like(by_size)
        rank[by_size] = torch.arange(len(by_size), device=by_size.device)
        order, start = rank[pattern].argsort(), 0
        while start < len(order):
            size = max(1, int(count[pattern[order[start]]]))
            rows = order[start : start + max(1, _NUMBERS // size**2)]
            distinct, index = pattern[rows].unique_consecutive(return_inverse=True)
            # Given labels come first.
            mask, labels = patterns[distinct].sort(dim=1, descending=True, stable=True)
            mask, labels = mask[:, :size], labels[:, :size].masked_fill(~mask[:, :size], 0)
            matrix = self.correlation[labels[:, :, None], labels[:, None, :]]
            matrix = matrix * (mask[:, :, None] & mask[:, None, :])
            matrix.diagonal(dim1=1, dim2=2).add_(torch.where(mask, noise, 1.0))
            yield Systems(rows, labels[index], mask[index], torch.linalg.cholesky(matrix), index)
            start += len(rows)


class Neighbourhoods(nn.Module):
    """Correlations of each label with its neighbours, and of its neighbours with each other."""

    edge_index: Tensor
    neighbour: Tensor
    is_neighbour: Tensor
    block: Tensor
    correlation: Tensor

    def __init__(self, edge_index: Tensor, num_labels: int) -> None:
        super().__init__()
        self.register_buffer("edge_index", edge_index, persistent=False)
        degree = edge_index[1].bincount(minlength=num_labels)
        size = min(MAX_NEIGHBOURS, int(degree.max()) if num_labels else 0)
        self.register_buffer("neighbour", torch.zeros(num_labels, size, dtype=torch.long))
        self.register_buffer("is_neighbour", torch.zeros(num_labels, size, dtype=torch.bool))
        self.register_buffer("correlation", torch.zeros(num_labels, size))
        self.register_buffer("block", torch.zeros(num_labels, size, size))

    def fit(self, z: Tensor) -> None:
        """Computes correlations of scaled residuals :math:`(N, L)` in every neighbourhood."""
        num_labels, size = self.neighbour.shape
        source, target = self.edge_index
        correlation = z.new_empty(len(source))
        step = max(1, _NUMBERS // max(1, len(z)))
        for start in range(0, len(source), step):
            ends = source[start : start + step], target[start : start + step]
            correlation[start : start + step] = (z[:, ends[0]] * z[:, ends[1]]).sum(dim=0)
        # Edges by label, the largest correlations first.
        order = correlation.abs().argsort(descending=True, stable=True)
        order = order[target[order].argsort(stable=True)]
        source, target, correlation = source[order], target[order], correlation[order]
        degree = target.bincount(minlength=num_labels)
        position = torch.arange(len(target), device=z.device) - (degree.cumsum(0) - degree)[target]
        is_used = position < size
        index = target[is_used], position[is_used]
        self.is_neighbour.zero_()[index] = True
        self.neighbour.zero_()[index] = source[is_used]
        self.correlation.zero_()[index] = correlation[is_used]
        step = max(1, _NUMBERS // max(1, len(z) * size))
        for start in range(0, num_labels, step):
            chunk = slice(start, start + step)
            columns = z.t()[self.neighbour[chunk]] * self.is_neighbour[chunk].unsqueeze(-1)
            self.block[chunk] = columns @ columns.mT

    def forward(self, z: Tensor, is_given: Tensor, noise: Tensor) -> Tensor:
        """Returns the messages :math:`(B, L)` of residuals of given neighbours."""
        if is_recorded():
            return self._messages(z, is_given, noise)
        step = max(1, _NUMBERS // max(1, self.neighbour.numel()))
        chunks = zip(torch.split(z, step), torch.split(is_given, step), strict=True)
        return torch.cat([self._messages(*chunk, noise) for chunk in chunks])

    #: No label is its own neighbour, so messages leave it out anyway.
    leave_one_out = forward

    def weights(self, is_given: Tensor, label: Tensor, noise: Tensor) -> Tensor:
        """Returns the weights :math:`(B, L)` of residuals in the message to one label of each
        sample, 0 for labels that are not given or not its neighbours.
        """
        neighbour = self.neighbour[label]  # [B, K]
        mask = (is_given.gather(1, neighbour) & self.is_neighbour[label]).to(self.block.dtype)
        matrix = mask.unsqueeze(-1) * self.block[label] * mask.unsqueeze(-2)
        matrix.diagonal(dim1=1, dim2=2).add_(noise)
        weight = torch.linalg.solve(matrix, mask * self.correlation[label])
        weights: Tensor = weight.new_zeros(is_given.shape)
        return weights.scatter_add(1, neighbour, weight * mask)

    def _messages(self, z: Tensor, is_given: Tensor, noise: Tensor) -> Tensor:
        mask = (is_given[:, self.neighbour] & self.is_neighbour).to(z.dtype).permute(1, 2, 0)

        def matrix(w: Tensor) -> Tensor:
            return mask * (self.block @ (mask * w)) + noise * w

        right = mask * z[:, self.neighbour].permute(1, 2, 0)  # [L, K, B]
        weight = conjugate_gradients(matrix, right)
        return (weight * self.correlation.unsqueeze(-1)).sum(dim=1).t()


def conjugate_gradients(matrix: Callable[[Tensor], Tensor], right: Tensor) -> Tensor:
    """Solves positive definite systems by conjugate gradients. The unknowns of a system lie along
    dimension 1 of the right-hand sides ``right``, which have two or three dimensions.
    """
    solution, residual = torch.zeros_like(right), right
    square = (residual * residual).sum(dim=1, keepdim=True)
    direction, limit = residual, _TOLERANCE**2 * square
    # In exact arithmetic, as many steps as unknowns suffice.
    for _ in range(min(_MAX_STEPS, right.size(1) + 4)):
        product = matrix(direction)
        curvature = (direction * product).sum(dim=1, keepdim=True)
        step = square / curvature.clamp(min=1e-30)
        solution, residual = solution + step * direction, residual - step * product
        new_square = (residual * residual).sum(dim=1, keepdim=True)
        if not is_recorded() and bool((new_square <= limit).all()):
            break
        direction, square = residual + new_square / square.clamp(min=1e-30) * direction, new_square
    return solution
