"""Labels that are given to the default: messages of residuals over its held-out logits, chosen by
held-out masks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch_geometric.utils import to_undirected
from typing_extensions import Self

from tg_mlc._names import register
from tg_mlc._options import check_choice
from tg_mlc.baselines.baseline import read_array
from tg_mlc.data.given import MAX_GIVEN, draw_given
from tg_mlc.data.splits import stratified_folds
from tg_mlc.graphs import LabelGraph, fully_connected
from tg_mlc.nn import ResidualMessages
from tg_mlc.nn.given_messages import LabelAutoencoder, LabelNeighbours, LinearMessages
from tg_mlc.stacking.combination import LogitStacking

#: The kinds of labels that will be given: present and absent ones, or present ones only, as side
#: effects are reported.
GivenMasks = Literal["both", "present"]

#: With more labels, messages go along the edges of the largest correlations, :obj:`TOP_K` for each
#: label.
MAX_DENSE, TOP_K = 1000, 32
#: With more labels, they do not attend to each other.
MAX_ATTENDING = 300
#: Training samples that :class:`LabelNeighbours` keeps, at most.
MAX_NEIGHBOURS = 4096

_FOLDS = 3
# Held-out masks: several for each of few samples, fewer where labels are many.
_MIN_MASKED, _MAX_MASKED, _MAX_REPEATS, _LEAST_MASKED = 2000, 4000, 5, 500
_MAX_ENTRIES = 2**20
_DAMPING, _POWERS = (0.1, 0.3, 1.0, 3.0), (0.5, 1.0)
_PENALTIES = (0.1, 0.3, 1.0)
_AGREEMENTS, _LIKENESSES = (4.0, 8.0, 16.0), (4.0, 8.0)
_EPOCHS, _MIN_EPOCHS, _BATCH_SIZE, _EMA_DECAY = 20, 4, 64, 0.98
_PENALTY = 10.0
_PREDICTED = 256  # rows at a time
_TIMED = 3  # batches
_CHANNELS = 32
_COLUMNS = 512  # of a matrix of correlations at a time
_NUMBERS = 2**24  # of messages at a time


PARTS: dict[str, Callable[[LabelGraph], Any]] = {
    "closed form": ResidualMessages,
    "neighbours": LabelNeighbours,
    "autoencoder": LabelAutoencoder,
    "trained": ResidualMessages,
    "linear": LinearMessages,
    "attention": partial(ResidualMessages, channels=_CHANNELS),
}


class GivenLabelStacking:
    r"""Logits of labels once the values of others are given, by parts that start from base logits.

    The parts are the base logits themselves, :class:`~tg_mlc.nn.ResidualMessages` in closed form,
    trained, and with attention among labels, :class:`LinearMessages`, and where messages run along
    all pairs, of up to 300 labels :class:`LabelNeighbours`, and of 301 to 1,000
    :class:`LabelAutoencoder`. Each part :math:`z_p` counts twice: with its change of the base
    logits :math:`b`, a sum over the given labels :math:`\mathcal{G}`, and with the mean of the
    same, because many given labels repeat each other:

    .. math::
        z = c + w_0 b + \sum_p \Big( w_p z_p + w'_p \big( b + \frac{k}{|\mathcal{G}|} (z_p - b) \big) \Big)

    Weights of at least zero (:class:`~tg_mlc.stacking.combination.LogitStacking`) combine what they
    predict of samples that they were not fitted to, under masks like those to come, which give
    :math:`k` labels on average, or 1 if fewer; a part without weight is dropped. Rows without given
    labels keep their base logits.

    Args:
        masks (str, optional): :obj:`"both"`, or :obj:`"present"` if only labels that apply will be
            given. (default: :obj:`"both"`)
        names (Sequence[str], optional): The parts that are tried, among :obj:`PARTS`. (default:
            :obj:`None`, all)

    Attributes:
        parts (dict[str, torch.nn.Module]): The parts by name.
        usual (float): The number of labels that masks give on average; :obj:`None` if no part
            counts as a mean.
        combination (LogitStacking): The weights of the base logits, the parts, and the parts as
            means.
        label_graph (LabelGraph): The edges of messages.
        masked (tuple[numpy.ndarray, numpy.ndarray]): Held-out logits under masks, and the targets
            that these leave, which a calibration can be fitted to; :obj:`None` in a loaded one.
        report (dict): Losses, weights, epochs and seconds.
    """

    masked: tuple[np.ndarray, np.ndarray] | None = None
    parts: dict[str, nn.Module]
    usual: float | None
    combination: LogitStacking
    label_graph: LabelGraph
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
        seconds: float,
        seed: int = 0,
        label_graph: LabelGraph | None = None,
    ) -> Self:
        """Fits to training samples.

        Args:
            base_logits (numpy.ndarray): Logits :math:`(N, L)` of models that were fitted without
                the samples.
            y (numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
            seconds (float): The time for parts that are trained.
            seed (int, optional): Seed of folds, masks and weights. (default: :obj:`0`)
            label_graph (LabelGraph, optional): The edges of messages. (default: :obj:`None`, all,
                of more than 1,000 labels the 32 largest correlations of residuals of each)
        """
        start, num_labels = time.monotonic(), y.shape[1]
        if label_graph is None:
            few = num_labels <= MAX_DENSE
            label_graph = (
                fully_connected(num_labels)
                if few
                else largest_correlations(y - expit(base_logits), TOP_K)
            )
        self.label_graph = label_graph
        fitting = _Fitting(base_logits, y, label_graph, self.masks, seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if "closed form" in self.names:
                fitting.closed_form(
                    "closed form", ResidualMessages.damp, damping=_DAMPING, power=_POWERS
                )
            if label_graph.num_edges == num_labels**2:
                if "neighbours" in self.names and num_labels <= MAX_ATTENDING:
                    options = {"agreement": _AGREEMENTS, "likeness": _LIKENESSES}
                    fitting.closed_form("neighbours", LabelNeighbours.sharpen, **options)
                if "autoencoder" in self.names and MAX_ATTENDING < num_labels <= MAX_DENSE:
                    fitting.closed_form("autoencoder", LabelAutoencoder.damp, penalty=_PENALTIES)
            largest = {"trained": np.inf, "linear": MAX_DENSE, "attention": MAX_ATTENDING}
            trained = [
                name for name, most in largest.items() if num_labels <= most and name in self.names
            ]
            for place, name in enumerate(trained):
                fitting.train(name, (start + seconds - time.monotonic()) / (len(trained) - place))
        self.usual = max(1.0, (~fitting.given.isnan()).sum(dim=1).float().mean().item())
        base, held_out = fitting.base_logits[fitting.rows], [*fitting.held_out.values()]
        logits = _logit_columns(base, held_out, fitting.given, self.usual)
        self.combination = LogitStacking().fit(logits.double().numpy(), fitting.rest.numpy())
        weight, bias = np.asarray(self.combination.weight), np.asarray(self.combination.bias)
        # The base logits know more of a label of which masks left out one value only.
        kept = _has_both(y) & ~_has_both(fitting.rest.numpy())
        weight[kept], bias[kept] = np.eye(1, weight.shape[1]), 0.0
        combined = np.einsum("nlc,lc->nl", logits.double().numpy(), weight) + bias
        self.masked = combined, fitting.rest.numpy()
        of_parts = weight[:, 1:].reshape(len(weight), 2, -1)  # as sums, and as means
        used = np.asarray((of_parts > 0).any(axis=(0, 1)))
        self.combination.weight = np.append(
            weight[:, :1], of_parts[..., used].reshape(len(weight), -1), axis=1
        )
        self.parts = {
            name: part
            for (name, part), has in zip(fitting.parts.items(), used.tolist(), strict=True)
            if has
        }
        titles = ["base", *fitting.parts, *(f"{name}, mean" for name in fitting.parts)]
        self.report = {
            "masks": self.masks,
            "losses": {name: fitting.loss(each) for name, each in fitting.held_out.items()},
            "weights": dict(zip(titles, weight.mean(axis=0).tolist(), strict=True)),
            **fitting.chosen,
            "epochs": fitting.epochs,
            "seconds": time.monotonic() - start,
        }
        return self

    @torch.inference_mode()
    def decision_function(self, base_logits: np.ndarray, given: np.ndarray) -> np.ndarray:
        """Returns logits :math:`(N, L)`, those of given labels without their own values.

        Args:
            base_logits (numpy.ndarray): Logits :math:`(N, L)` of the model without given labels.
            given (numpy.ndarray): 0, 1, or NaN for unknown :math:`(N, L)`.
        """
        logits = np.array(base_logits, dtype=float)
        rows = np.flatnonzero(~np.isnan(given).all(axis=1))
        num_labels, num_edges = self.label_graph.num_labels, self.label_graph.num_edges
        # Matrix products hold numbers of labels, a few times over; attention and sparse graphs,
        # numbers of edges.
        are_products = num_edges == num_labels**2 and "attention" not in self.parts
        numbers = max(4 * num_labels if are_products else num_edges, 1)
        if isinstance(neighbours := self.parts.get("neighbours"), LabelNeighbours):
            numbers = max(numbers, 4 * len(neighbours.y))
        size = max(64, _NUMBERS // numbers)
        for place in range(0, len(rows), size):
            some = rows[place : place + size]
            b, known = (
                torch.from_numpy(np.asarray(matrix[some], dtype=np.float32))
                for matrix in (base_logits, given)
            )
            base, parts = (
                torch.from_numpy(logits[some]),
                [part(b, known) for part in self.parts.values()],
            )
            columns = _logit_columns(base, parts, known, self.usual)
            logits[some] = self.combination.decision_function(columns.numpy())
        return logits

    def module(self) -> nn.Module:
        """Returns the :meth:`decision_function` as a module of tensor operators, from base logits
        and given labels :math:`(N, L)`, 0, 1, or NaN for unknown, to logits :math:`(N, L)`.
        """
        return _GivenLabelModule(self)

    def state_dict(self) -> dict[str, Any]:
        """Returns all that :meth:`decision_function` needs, as tensors and plain data."""
        return {
            "masks": self.masks,
            # All pairs would take more room than the weights.
            "edges": None
            if self.label_graph.num_edges == self.label_graph.num_labels**2
            else self.label_graph.edge_index,
            "parts": {name: dict(part.state_dict()) for name, part in self.parts.items()},
            "combination": self.combination.state_dict(),
            "usual": self.usual,
            "report": self.report,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Makes one of its state."""
        found = cls(state["masks"])
        found.combination = LogitStacking().load_state_dict(state["combination"])
        num_labels, edges = len(np.asarray(found.combination.bias)), state["edges"]
        found.usual = state["usual"]
        times = 1 if found.usual is None else 2
        read_array(state["combination"], "weight", num_labels, 1 + times * len(state["parts"]))
        found.label_graph = (
            fully_connected(num_labels)
            if edges is None
            else LabelGraph(edges, num_nodes=num_labels)
        )
        found.parts = {name: PARTS[name](found.label_graph).eval() for name in state["parts"]}
        for name, part in found.parts.items():
            kept = state["parts"][name]
            if isinstance(part, LabelNeighbours):  # which holds as many samples as it was fitted to
                part.start_from_samples(
                    *(torch.zeros(len(kept[key]), num_labels) for key in ("base_logits", "y"))
                )
            part.load_state_dict(kept)
        found.report = state["report"]
        return found


register("given labels", GivenLabelStacking)


class _GivenLabelModule(nn.Module):
    def __init__(self, stacking: GivenLabelStacking) -> None:
        super().__init__()
        self.parts = nn.ModuleList(deepcopy([*stacking.parts.values()]))
        self.combination = stacking.combination.module()
        self.usual = stacking.usual

    def forward(self, base_logits: Tensor, given: Tensor) -> Tensor:
        parts = [part(base_logits, given) for part in self.parts]
        columns = _logit_columns(base_logits, parts, given, self.usual)
        has_given = (~given.isnan()).any(dim=1, keepdim=True)
        return torch.where(has_given, self.combination(columns), base_logits)


def _logit_columns(
    base_logits: Tensor,
    parts: Sequence[Tensor],
    given: Tensor,
    usual: float | None,
) -> Tensor:
    """The logits that are combined :math:`(B, L, C)`: the base logits, the logits of parts, and the
    logits of parts as means unless :obj:`usual`, the mean number of given labels, is :obj:`None`.
    """
    means = list[Tensor]()
    if usual is not None:
        factor = usual / (~given.isnan()).sum(dim=1, keepdim=True).clamp(min=1)
        means = [base_logits + factor * (part - base_logits) for part in parts]
    columns = [base_logits, *(part.to(base_logits.dtype) for part in parts), *means]
    return torch.stack(columns, dim=-1)


class _Fitting:
    """The parts, and their logits of samples that were left out, under masks by which everything is
    chosen."""

    def __init__(
        self,
        base_logits: np.ndarray,
        y: np.ndarray,
        label_graph: LabelGraph,
        masks: GivenMasks,
        seed: int,
    ) -> None:
        self.base_logits, self.y = (
            torch.from_numpy(base_logits).float(),
            torch.from_numpy(y).float(),
        )
        self.label_graph, self.masks = label_graph, masks
        self.generator = torch.Generator().manual_seed(seed)
        most = int(np.clip(_MAX_ENTRIES // y.shape[1], _LEAST_MASKED, _MAX_MASKED))
        repeats = min(-(-min(_MIN_MASKED, most) // len(y)), _MAX_REPEATS)
        self.rows = torch.randperm(len(y), generator=self.generator)[:most].repeat(repeats)
        self.given, self.rest = self._draw(self.rows)
        fold = torch.from_numpy(stratified_folds(y, min(_FOLDS, len(y)), seed))
        #: The samples that a fold is fitted to, and the places of the masks that it predicts.
        self.folds = [
            ((fold != part).nonzero()[:, 0], fold[self.rows] == part)
            for part in range(int(fold.max()) + 1)
        ]
        self.parts: dict[str, nn.Module] = {}
        self.held_out: dict[str, Tensor] = {}
        #: the options of closed forms
        self.chosen: dict[str, dict[str, float]] = {}
        self.epochs: dict[str, int] = {}

    def _draw(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Draws given labels of some samples, and returns them and the targets that remain."""
        present_only = self.masks == "present"
        return draw_given(self.y[rows], MAX_GIVEN, self.generator, present_only=present_only)

    def closed_form(
        self, name: str, set_options: Callable[..., Any], **grid: tuple[float, ...]
    ) -> None:
        """Chooses the options of a part that needs no training."""
        starts = [dict(zip(grid, each, strict=True)) for each in product(*grid.values())]
        logits = torch.empty(len(starts), *self.rest.shape)
        for chosen, masked in self.folds:
            part = self._start(name, chosen)
            for place, start in enumerate(starts):
                logits[place, masked] = self._predict(set_options(part, **start), masked)
        losses = [self.loss(each) for each in logits]
        best = losses.index(min(losses))
        self.chosen[name], self.held_out[name] = starts[best], logits[best]
        self.parts[name] = set_options(self._start(name, torch.arange(len(self.y))), **starts[best])

    def train(self, name: str, seconds: float) -> None:
        """Trains a part on each fold, for as many epochs as do best on the first one, and on all
        samples."""
        before, (chosen, _) = time.monotonic(), self.folds[0]
        self._train(self._start(name, chosen), chosen[: _TIMED * _BATCH_SIZE], 1, 1)
        cost = (time.monotonic() - before) / _TIMED * len(self.y) / _BATCH_SIZE  # of an epoch
        total = epochs = min(_EPOCHS, int(seconds / (cost * (1 + len(self.folds)))))
        if total < _MIN_EPOCHS:
            return
        logits = torch.empty_like(self.rest)
        for fold, (chosen, masked) in enumerate(self.folds):
            part = self._start(name, chosen)
            if fold == 0:
                epochs, logits[masked] = self._train(part, chosen, total, total, masked)
            else:
                self._train(part, chosen, total, epochs)
                logits[masked] = self._predict(part, masked)
        everything = torch.arange(len(self.y))
        part = self._start(name, everything)
        self._train(part, everything, total, epochs)
        self.parts[name], self.held_out[name], self.epochs[name] = part, logits, epochs

    def loss(self, logits: Tensor, masked: Tensor | None = None) -> float:
        """The cross-entropy of held-out logits, of the labels that are not given."""
        rest = self.rest if masked is None else self.rest[masked]
        return _cross_entropy(logits, rest).item()

    def _start(self, name: str, chosen: Tensor) -> Any:
        part = PARTS[name](self.label_graph)
        if isinstance(part, ResidualMessages):
            part.start_from_residuals(
                self.base_logits[chosen], self.y[chosen], **self.chosen.get("closed form", {})
            )
        if isinstance(part, LabelAutoencoder):
            part.start_from_labels(self.y[chosen])
        if isinstance(part, LabelNeighbours):
            few = chosen[
                torch.linspace(0, len(chosen) - 1, min(len(chosen), MAX_NEIGHBOURS)).long()
            ]
            part.start_from_samples(self.base_logits[few], self.y[few])
        return part.eval()

    @torch.no_grad()
    def _predict(self, part: nn.Module, masked: Tensor) -> Tensor:
        places = masked.nonzero()[:, 0]
        some = (places[start : start + _PREDICTED] for start in range(0, len(places), _PREDICTED))
        return torch.cat(
            [part(self.base_logits[self.rows[each]], self.given[each]) for each in some]
        )

    def _train(
        self, part: Any, chosen: Tensor, total: int, epochs: int, check: Tensor | None = None
    ) -> tuple[int, Tensor]:
        """Trains for some epochs of a schedule of more, and keeps moving averages of weights;
        returns the epoch after which the masks to check have the least loss, and their logits.
        """
        num_steps, step = -(-len(chosen) // _BATCH_SIZE), 0
        least, best = float("inf"), (epochs, torch.empty(0))
        rate = getattr(part, "learning_rate", 3e-3)
        optimizer = torch.optim.AdamW(part.parameters(), rate, weight_decay=0.0)
        schedule = OneCycleLR(optimizer, rate, total_steps=total * num_steps)
        average = AveragedModel(part)
        for epoch in range(1, epochs + 1):
            part.train()
            order = chosen[torch.randperm(len(chosen), generator=self.generator)]
            for start in range(0, len(order), _BATCH_SIZE):
                rows, step = order[start : start + _BATCH_SIZE], step + 1
                given, rest = self._draw(rows)
                loss = _cross_entropy(part(self.base_logits[rows], given), rest)
                optimizer.zero_grad()
                (loss + _PENALTY * part.penalty() / len(chosen)).backward()
                optimizer.step()
                schedule.step()
                decay = min(_EMA_DECAY, (1 + step) / (10 + step))
                average.multi_avg_fn = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
                average.update_parameters(part)
            if check is not None:
                logits = self._predict(average.module.eval(), check)
                if self.loss(logits, check) < least:
                    least, best = self.loss(logits, check), (epoch, logits)
        part.load_state_dict(average.module.state_dict())
        part.eval()
        return best


def largest_correlations(residual: np.ndarray, top_k: int) -> LabelGraph:
    """The label graph of the largest correlations of residuals in size, some of each label, in both
    directions.

    Args:
        residual (numpy.ndarray): Residuals :math:`(N, L)`, NaN for unknown.
        top_k (int): The number of edges of a label.
    """
    values = torch.from_numpy(np.nan_to_num(residual)).float()
    values, num_labels = values / values.norm(dim=0).clamp(min=1e-6), values.size(1)
    sources = []
    for start in range(0, num_labels, _COLUMNS):
        some = torch.arange(start, min(start + _COLUMNS, num_labels))
        sizes = (values[:, some].t() @ values).abs()
        sizes[torch.arange(len(some)), some] = -1.0  # a label is no neighbour of its own
        sources.append(sizes.topk(min(top_k, num_labels - 1)).indices)
    source = torch.cat(sources)
    target = torch.arange(num_labels).unsqueeze(-1).expand_as(source)
    edge_index = to_undirected(
        torch.stack([source.flatten(), target.flatten()]), num_nodes=num_labels
    )
    return LabelGraph(edge_index, num_nodes=num_labels, kind="residual_correlation")


def _has_both(y: np.ndarray) -> np.ndarray:
    return np.asarray((y == 0).any(axis=0) & (y == 1).any(axis=0))


def _cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    known = ~y.isnan()
    if not known.any():
        return 0 * logits.sum()
    return binary_cross_entropy_with_logits(logits[known], y[known])
