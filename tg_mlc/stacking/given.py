"""Given labels of the default: messages of residuals of held-out logits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch_geometric.utils import to_undirected
from typing_extensions import Self

from tg_mlc._names import register
from tg_mlc._options import check_choice
from tg_mlc.baselines.baseline import float_tensor, read_array
from tg_mlc.data.given import MAX_GIVEN, draw_given
from tg_mlc.data.splits import stratified_folds
from tg_mlc.graphs import LabelGraph, fully_connected
from tg_mlc.nn import ResidualMessages
from tg_mlc.nn.given_messages import LabelAutoencoder, LabelNeighbours
from tg_mlc.stacking.combination import LogitStacking
from tg_mlc.stacking.dependencies import sure_dependencies

#: The labels that will be given: present and absent labels, or only present labels.
GivenMasks = Literal["both", "present"]

#: With more labels, messages follow the :obj:`TOP_K` largest correlations of each label.
MAX_DENSE, TOP_K = 1000, 32
#: Maximum number of labels for :class:`LabelNeighbours`; :class:`LabelAutoencoder` takes more.
MAX_COMPARED = 300
#: Maximum number of training samples that :class:`LabelNeighbours` stores.
MAX_NEIGHBOURS = 4096

_FOLDS = 3
# Numbers of held-out masks: several per sample in small data sets, fewer with many labels.
_MIN_MASKED, _MAX_MASKED, _MAX_REPEATS, _LEAST_MASKED = 2000, 4000, 5, 500
_MAX_ENTRIES = 2**20
_NOISE = (0.03, 0.1, 0.3, 1.0, 3.0)
_PENALTIES = (0.1, 0.3, 1.0)
_AGREEMENTS, _LIKENESSES = (4.0, 8.0, 16.0), (4.0, 8.0)
_ROWS = 256  # Rows per prediction.
_COLUMNS = 512  # Columns of correlations per product.
_NUMBERS = 2**24  # Maximum number of messages in memory.


PARTS: dict[str, Callable[[LabelGraph], Any]] = {
    "closed form": ResidualMessages,
    "neighbours": LabelNeighbours,
    "autoencoder": LabelAutoencoder,
}


class GivenLabelStacking:
    r"""Logits of labels after others are given, by parts that change base logits.

    The parts are :class:`~tg_mlc.nn.ResidualMessages` and, on a complete graph,
    :class:`~tg_mlc.nn.given_messages.LabelNeighbours` (up to 300 labels) or
    :class:`~tg_mlc.nn.given_messages.LabelAutoencoder` (301 to 1,000 labels). Base logits
    :math:`b` and the logits :math:`z_p` of parts are combined with weights of each label:

    .. math::
        z = c + w_0 b + \sum_p w_p z_p

    :class:`~tg_mlc.stacking.combination.LogitStacking` fits the weights to held-out samples under
    masks. Neighbours or an autoencoder without weight are dropped. Given labels, and rows without
    given labels, keep their base logits.

    Args:
        masks (str, optional): One of :obj:`GivenMasks`. (default: :obj:`"both"`)
        names (Sequence[str], optional): The parts, among :obj:`PARTS`. (default: all)

    Attributes:
        parts (dict[str, torch.nn.Module]): The parts by name.
        combination (LogitStacking): The weights of the base logits and the parts.
        label_graph (LabelGraph): The edges of messages.
        dependencies (LabelGraph): Pairs of labels that surely depend on each other beyond the
            inputs, each once, weighted by the correlation of residuals.
        masked (tuple[numpy.ndarray, numpy.ndarray]): Held-out logits under masks, and the targets
            that remain, for a calibration; :obj:`None` in a loaded object.
        report (dict): Losses, weights, chosen options and seconds.
    """

    masked: tuple[np.ndarray, np.ndarray] | None = None
    parts: dict[str, nn.Module]
    combination: LogitStacking
    label_graph: LabelGraph
    dependencies: LabelGraph
    report: dict[str, Any]

    def __init__(self, masks: GivenMasks = "both", names: Sequence[str] | None = None) -> None:
        check_choice("given_masks", masks, get_args(GivenMasks))
        for name in names or ():
            check_choice("names", name, PARTS)
        self.masks = masks
        self.names = tuple(PARTS) if names is None else tuple(names)

    def fit(
        self,
        base_logits: np.ndarray,
        y: np.ndarray,
        seed: int = 0,
        label_graph: LabelGraph | None = None,
    ) -> Self:
        """Fits to training samples.

        Args:
            base_logits (numpy.ndarray): Held-out logits :math:`(N, L)`.
            y (numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
            seed (int, optional): Seed of folds and masks. (default: :obj:`0`)
            label_graph (LabelGraph, optional): The edges of messages. (default: all, or the 32
                largest correlations of residuals per label with more than 1,000 labels)
        """
        start, num_labels = time.monotonic(), y.shape[1]
        if label_graph is None and num_labels <= MAX_DENSE:
            label_graph = fully_connected(num_labels)
        elif label_graph is None:
            label_graph = largest_correlations(y - expit(base_logits), TOP_K)
        self.label_graph = label_graph
        fitting = _Fitting(base_logits, y, label_graph, self.masks, seed)
        self.dependencies = sure_dependencies(fitting.base_logits, fitting.y, label_graph)
        self._fit_parts(fitting)
        base, remaining = fitting.base_logits[fitting.rows], fitting.rest.numpy()
        logits = torch.stack([base, *fitting.held_out.values()], dim=-1).double().numpy()
        self.combination = LogitStacking().fit(logits, remaining)
        weight, bias = np.asarray(self.combination.weight), np.asarray(self.combination.bias)
        # Masks may leave a label without targets of both classes: it keeps its base logits.
        is_base_only = _has_both(y) & ~_has_both(remaining)
        weight[is_base_only], bias[is_base_only] = np.eye(1, weight.shape[1]), 0.0
        self.masked = np.einsum("nlc,lc->nl", logits, weight) + bias, remaining
        names = ["base", *fitting.parts]
        # Suggestions and audits need the closed form even if its weight is zero.
        used = [
            index
            for index, name in enumerate(names)
            if name in ("base", "closed form") or (weight[:, index] > 0).any()
        ]
        # Weights of a loaded model have this memory layout, which decides the order of sums.
        self.combination.weight = np.ascontiguousarray(weight[:, used])
        self.parts = {names[index]: fitting.parts[names[index]] for index in used[1:]}
        mean_weight = dict(zip(names, weight.mean(axis=0).tolist(), strict=True))
        self.report = {
            "masks": self.masks,
            "losses": {name: fitting.loss(logits) for name, logits in fitting.held_out.items()},
            "weights": mean_weight,
            **fitting.options,
            "seconds": time.monotonic() - start,
        }
        return self

    def _fit_parts(self, fitting: _Fitting) -> None:
        num_labels = self.label_graph.num_labels
        grids: dict[str, tuple[Callable[..., Any], dict[str, tuple[float, ...]]]] = {
            "closed form": (ResidualMessages.damp, {"noise": _NOISE, "adds_logits": (False, True)})
        }
        if self.label_graph.num_edges == num_labels**2:
            if num_labels <= MAX_COMPARED:
                grid = {"agreement": _AGREEMENTS, "likeness": _LIKENESSES}
                grids["neighbours"] = LabelNeighbours.sharpen, grid
            elif num_labels <= MAX_DENSE:
                grids["autoencoder"] = LabelAutoencoder.damp, {"penalty": _PENALTIES}
        for name, (set_options, grid) in grids.items():
            if name in self.names:
                fitting.choose(name, set_options, **grid)

    @torch.inference_mode()
    def decision_function(self, base_logits: np.ndarray, given: np.ndarray) -> np.ndarray:
        """Returns logits :math:`(N, L)` from base logits and given labels (NaN for unknown). The
        logit of a given label does not depend on its value.
        """
        logits = np.array(base_logits, dtype=float)
        rows = np.flatnonzero(~np.isnan(given).all(axis=1))
        row_size = 4 * self.label_graph.num_labels
        if isinstance(neighbours := self.parts.get("neighbours"), LabelNeighbours):
            row_size = max(row_size, 4 * len(neighbours.y))
        size = max(64, _NUMBERS // row_size)
        for start in range(0, len(rows), size):
            chunk = rows[start : start + size]
            base, known = (float_tensor(matrix[chunk]) for matrix in (base_logits, given))
            parts = [part(base, known) for part in self.parts.values()]
            columns = torch.stack([torch.from_numpy(logits[chunk]), *parts], dim=-1)
            changed = self.combination.decision_function(columns.numpy())
            logits[chunk] = np.where(known.isnan(), changed, logits[chunk])
        return logits

    def module(self) -> nn.Module:
        """Returns the :meth:`decision_function` as a module of tensor operators."""
        return _GivenLabelModule(self)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of :meth:`decision_function` as tensors and plain data."""
        # Edges of a complete graph would take more space than the weights.
        is_complete = self.label_graph.num_edges == self.label_graph.num_labels**2
        return {
            "masks": self.masks,
            "edges": None if is_complete else self.label_graph.edge_index,
            "parts": {name: dict(part.state_dict()) for name, part in self.parts.items()},
            "combination": self.combination.state_dict(),
            "dependencies": {key: self.dependencies[key] for key in ("edge_index", "edge_weight")},
            "report": self.report,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Makes an object of its state."""
        stacking = cls(state["masks"])
        stacking.combination = LogitStacking().load_state_dict(state["combination"])
        num_labels, edges = len(np.asarray(stacking.combination.bias)), state["edges"]
        stacking.report = state["report"]
        read_array(state["combination"], "weight", num_labels, 1 + len(state["parts"]))
        graph = fully_connected(num_labels)
        if edges is not None:
            graph = LabelGraph(edges, num_nodes=num_labels)
        stacking.label_graph = graph
        stacking.dependencies = LabelGraph(
            **state["dependencies"], num_nodes=num_labels, kind="dependencies"
        )
        stacking.parts = {name: PARTS[name](graph).eval() for name in state["parts"]}
        for name, part in stacking.parts.items():
            weights = state["parts"][name]
            if isinstance(part, LabelNeighbours):
                # The part holds as many samples as it was fitted to.
                sizes = [len(weights[key]) for key in ("base_logits", "y")]
                part.start_from_samples(*(torch.zeros(size, num_labels) for size in sizes))
            part.load_state_dict(weights)
        return stacking


register("given labels", GivenLabelStacking)


class _GivenLabelModule(nn.Module):
    """From base logits and given labels :math:`(N, L)` to logits :math:`(N, L)`."""

    def __init__(self, stacking: GivenLabelStacking) -> None:
        super().__init__()
        self.parts = nn.ModuleList(deepcopy([*stacking.parts.values()]))
        self.combination = stacking.combination.module()

    def forward(self, base_logits: Tensor, given: Tensor) -> Tensor:
        parts = [part(base_logits, given) for part in self.parts]
        changed = self.combination(torch.stack([base_logits, *parts], dim=-1))
        is_changed = given.isnan() & (~given.isnan()).any(dim=1, keepdim=True)
        return torch.where(is_changed, changed, base_logits)


class _Fitting:
    """The parts, and their held-out logits under masks."""

    def __init__(
        self, base_logits: Any, y: Any, label_graph: LabelGraph, masks: GivenMasks, seed: int
    ) -> None:
        self.base_logits = torch.from_numpy(base_logits).float()
        self.y = torch.from_numpy(y).float()
        self.label_graph, self.masks = label_graph, masks
        self.generator = torch.Generator().manual_seed(seed)
        max_masked = int(np.clip(_MAX_ENTRIES // y.shape[1], _LEAST_MASKED, _MAX_MASKED))
        repeats = min(-(-min(_MIN_MASKED, max_masked) // len(y)), _MAX_REPEATS)
        self.rows = torch.randperm(len(y), generator=self.generator)[:max_masked].repeat(repeats)
        self.given, self.rest = self._draw(self.rows)
        fold = torch.from_numpy(stratified_folds(y, min(_FOLDS, len(y)), seed))
        # For each fold, the rows to fit to, and a mask of the held-out entries of 'rows'.
        self.folds = [
            ((fold != index).nonzero()[:, 0], fold[self.rows] == index)
            for index in range(int(fold.max()) + 1)
        ]
        self.parts: dict[str, nn.Module] = {}
        self.held_out: dict[str, Tensor] = {}
        self.options: dict[str, dict[str, float]] = {}  # Options of closed forms.

    def _draw(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Draws given labels of some samples. Returns them and the remaining targets."""
        present_only = self.masks == "present"
        return draw_given(self.y[rows], MAX_GIVEN, self.generator, present_only=present_only)

    def choose(self, name: str, set_options: Callable[..., Any], **grid: tuple[float, ...]) -> None:
        """Chooses the options of a part by held-out loss, and fits it to all samples."""
        settings = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        logits = torch.empty(len(settings), *self.rest.shape)
        for rows, held_out in self.folds:
            part = self._start(name, rows)
            for index, options in enumerate(settings):
                logits[index, held_out] = self._predict(set_options(part, **options), held_out)
        losses = [self.loss(setting_logits) for setting_logits in logits]
        best = losses.index(min(losses))
        self.options[name], self.held_out[name] = settings[best], logits[best]
        part = self._start(name, torch.arange(len(self.y)))
        self.parts[name] = set_options(part, **settings[best])

    def loss(self, logits: Tensor) -> float:
        """Returns the cross-entropy of held-out logits of labels that are not given."""
        known = ~self.rest.isnan()
        if not known.any():
            return 0.0
        return binary_cross_entropy_with_logits(logits[known], self.rest[known]).item()

    def _start(self, name: str, rows: Tensor) -> Any:
        part, y = PARTS[name](self.label_graph), self.y[rows]
        if isinstance(part, ResidualMessages):
            part.start_from_residuals(self.base_logits[rows], y)
        if isinstance(part, LabelAutoencoder):
            part.start_from_labels(y)
        if isinstance(part, LabelNeighbours):
            number = min(len(rows), MAX_NEIGHBOURS)
            stored = rows[torch.linspace(0, len(rows) - 1, number).long()]
            part.start_from_samples(self.base_logits[stored], self.y[stored])
        return part.eval()

    @torch.no_grad()
    def _predict(self, part: nn.Module, held_out: Tensor) -> Tensor:
        chunks = torch.split(held_out.nonzero()[:, 0], _ROWS)
        rows = [(self.base_logits[self.rows[chunk]], self.given[chunk]) for chunk in chunks]
        return torch.cat([part(*inputs) for inputs in rows])


def largest_correlations(residual: np.ndarray, top_k: int) -> LabelGraph:
    """Returns the symmetric label graph of the largest absolute correlations of residuals
    :math:`(N, L)` (NaN for unknown), at least :obj:`top_k` per label.
    """
    values = torch.from_numpy(np.nan_to_num(residual)).float()
    values, num_labels = values / values.norm(dim=0).clamp(min=1e-6), values.size(1)
    sources = []
    for columns in torch.split(torch.arange(num_labels), _COLUMNS):
        sizes = (values[:, columns].t() @ values).abs()
        sizes[torch.arange(len(columns)), columns] = -1.0  # A label is not its own neighbour.
        sources.append(sizes.topk(min(top_k, num_labels - 1)).indices)
    source = torch.cat(sources)
    target = torch.arange(num_labels).unsqueeze(-1).expand_as(source)
    edges = torch.stack([source.flatten(), target.flatten()])
    edge_index = to_undirected(edges, num_nodes=num_labels)
    return LabelGraph(edge_index, num_nodes=num_labels, kind="residual_correlation")


def _has_both(y: np.ndarray) -> np.ndarray:
    return np.asarray((y == 0).any(axis=0) & (y == 1).any(axis=0))
