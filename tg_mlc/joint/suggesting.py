"""Which labels of a sample to look up next."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from numbers import Real
from types import NoneType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import trange

from tg_mlc._names import register
from tg_mlc._optional import require
from tg_mlc._options import check_count
from tg_mlc._warnings import check_abandoned, warn
from tg_mlc.inference import Model
from tg_mlc.inference.flow import Query
from tg_mlc.joint.messages import messages_of
from tg_mlc.nn import ResidualMessages
from tg_mlc.nn.residual import AllPairs

_NUMBERS = 2**22  # Numbers of pairs of labels in memory at a time.
_LEAST_PROBABILITY = 1e-6
_NAMED = 3  # Labels in a reason.
# Labels that learn less than this fraction of what the first label learns are not named.
_NAMED_FRACTION = 0.25
_NAMED_GAIN = 0.02  # Nor are labels that make up less than this fraction of the whole gain.


def suggest(
    model: Model,
    raw: Any,
    *,
    given: Any = None,
    k: int = 1,
    targets: Sequence[str] | None = None,
    candidates: Sequence[str] | None = None,
    cost: Mapping[str, float] | None = None,
    budget: float | None = None,
) -> Any:
    r"""Suggests which labels of each sample to look up next.

    The gain of looking up label :math:`j` is the expected fall of the summed cross-entropy of the
    targets :math:`\mathcal{T}`, the mutual information in bits

    .. math::
        g_j = \sum_{i \in \mathcal{T}} H(\mathbb{E}[p_{i \mid y_j}]) - \mathbb{E}[H(p_{i \mid y_j})]

    over the two values that :math:`y_j` may have, with the probabilities of the model and the
    messages of :class:`~tg_mlc.nn.ResidualMessages`; a target that is looked up loses its own
    entropy. Further labels of a sample are chosen one after the other, each with its gain beyond
    the labels before it, whose values are not known yet. If you look up one label at a time, ask
    again with its value in :obj:`given`: that tells more.

    .. code-block:: python

        model.suggest(molecules, given=assays, k=5, cost={"in vivo": 20.0})

    Args:
        model (Model): A model of :func:`tg_mlc.auto` or of an estimator.
        raw (Any): The inputs, as in :meth:`~tg_mlc.inference.Model.predict`; or the result of
            :meth:`~tg_mlc.inference.Pipeline.read`, whose unreadable rows get no suggestions.
        given (Any, optional): Known labels, as in :meth:`~tg_mlc.inference.Model.predict`.
            (default: :obj:`None`)
        k (int, optional): Largest number of labels per sample. (default: :obj:`1`)
        targets (Sequence[str], optional): The labels whose values matter. (default: all)
        candidates (Sequence[str], optional): The labels that can be looked up. (default: all)
        cost (dict, optional): The costs of labels, 1 for others; gains are compared per cost.
        budget (float, optional): The largest cost of all suggestions together. The samples then
            share it, up to :obj:`k` labels each; the list of a sample ends at the first label that
            the rest of the budget cannot pay for. (default: :obj:`None`, no limit)

    Returns:
        A data frame with a row for each suggestion: the ``row`` of the sample, the ``rank`` of the
        suggestion within it (with a budget, among all samples), the ``label``, its ``probability``,
        the gain in ``bits``, the ``cost``, and the ``reason``.

    Raises:
        ValueError: If a name is unknown, a cost is not a positive number, no label is left to look
            up, or the model has no messages between all pairs of labels.
    """
    check_count("k", k)
    names, messages = model.label_names, messages_of(model)
    if not isinstance(messages.pairs, AllPairs):
        expected = "Expected a model with messages between all pairs of labels"
        raise ValueError(f"{expected} (got {messages.num_edges} edges of {len(names)} labels)")
    is_target, is_candidate = (
        _mask("targets", targets, names),
        _mask("candidates", candidates, names),
    )
    costs = _read_costs(cost, names)
    is_candidate = is_candidate & _affordable(costs, budget)
    prediction = model.answer(raw, Query(given=given), on_error="raise")
    for message in prediction.warnings:
        warn(message, stacklevel=3)
    readable = [row for row in range(len(prediction)) if row not in prediction.reasons]
    if not readable:
        raise ValueError("Expected at least one input that can be read (got none)")
    probabilities = torch.from_numpy(prediction.probabilities[readable]).double()
    is_given = torch.zeros(probabilities.shape, dtype=torch.bool)
    if prediction.given is not None:
        is_given = ~torch.from_numpy(prediction.given[readable]).isnan()
    _check_open(is_candidate & ~is_given, is_target & ~is_given)
    samples = []
    step = max(1, _NUMBERS // len(names) ** 2)
    for start in trange(0, len(is_given), step, desc="Suggestions", disable=None, leave=False):
        check_abandoned()
        rows = slice(start, start + step)
        gains = Gains(messages, probabilities[rows], is_given[rows], is_target)
        num_steps = min(k, len(names))
        chosen = zip(*[gains.look_up(is_candidate, costs) for _ in range(num_steps)], strict=True)
        samples.extend([[found for found in sample if found is not None] for sample in chosen])
    order = _in_order(samples) if budget is None else _within(samples, costs.numpy(), budget)
    records = []
    for rank, row, (label, probability, bits, labels_told) in order:
        reason = _reason(names, label, probability, bool(is_target[label]), labels_told)
        shown = (readable[row], rank, names[label], probability, bits, float(costs[label]), reason)
        records.append(dict(zip(_COLUMNS, shown, strict=True)))
    pandas = require("pandas", "train")
    return pandas.DataFrame(records, columns=_COLUMNS)


register("method", suggest)

_COLUMNS = ["row", "rank", "label", "probability", "bits", "cost", "reason"]

#: A label, its probability, its gain in bits, and the other labels that it tells of.
Suggestion = tuple[int, float, float, list[int]]


class Gains:
    """The gains of looking up labels of some samples, one label of each after the other."""

    def __init__(
        self, messages: ResidualMessages, p: Tensor, is_known: Tensor, is_target: Tensor
    ) -> None:
        assert isinstance(messages.pairs, AllPairs)
        self.messages, self.is_known, self.is_target = messages, is_known.clone(), is_target
        self.p = p.clamp(_LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
        self.noise, self.deviation = messages.noise.double(), messages.deviation.double()
        self.covariance = messages.pairs.covariance(is_known, messages.noise).double()
        #: The expected entropy of each label once the chosen labels are looked up.
        self.remaining = entropy(self.p)

    def information(self, candidates: Tensor, targets: Tensor) -> Tensor:
        """Returns the bits that each candidate tells of each target of a sample.

        Args:
            candidates (Tensor): Labels that may be looked up :math:`(B, C)`.
            targets (Tensor): Labels whose values matter :math:`(B, T)`.

        Shapes:
            - **output:** bits :math:`(B, C, T)`
        """
        columns = targets.unsqueeze(1)
        rows = torch.arange(len(targets)).view(-1, 1, 1)
        covariance = self.covariance[rows, candidates.unsqueeze(-1), columns]
        variance = self.covariance.diagonal(dim1=1, dim2=2).gather(1, candidates) + self.noise
        p, remaining = self.p.gather(1, candidates), self.remaining.gather(1, targets).unsqueeze(1)
        logits = self.p.gather(1, targets).logit().unsqueeze(1)
        scale = self.deviation[candidates] * variance
        present, absent = (
            self.messages.add(logits, covariance * innovation.unsqueeze(-1), columns).sigmoid()
            for innovation in ((1 - p) / scale, -p / scale)
        )
        p = p.unsqueeze(-1)
        mean = p * present + (1 - p) * absent
        bits = entropy(mean) - p * entropy(present) - (1 - p) * entropy(absent)
        bits = torch.minimum(bits.clamp(min=0), remaining)
        return torch.where(candidates.unsqueeze(-1) == columns, remaining, bits)

    def look_up(self, is_candidate: Tensor, costs: Tensor) -> list[Suggestion | None]:
        """Chooses the best label of each sample, and counts it as known from then on."""
        candidates, is_open = _padded(is_candidate & ~self.is_known)
        targets, is_wanted = _padded(self.is_target & ~self.is_known)
        suggestions: list[Suggestion | None] = [None] * len(candidates)
        if not is_open.any():
            return suggestions
        information = self.information(candidates, targets) * is_wanted.unsqueeze(1)
        bits = information.sum(dim=-1)
        best = (bits / costs[candidates]).masked_fill(~is_open, -1.0).argmax(dim=1)
        for row, index in enumerate(best.tolist()):
            if not is_open[row, index]:
                continue
            label = int(candidates[row, index])
            told = information[row, index].masked_fill(targets[row] == label, 0.0)
            others = told.topk(min(_NAMED, len(told))).indices.tolist()
            p, gain = float(self.p[row, label]), float(bits[row, index])
            largest = float(told.max()) if len(told) else 0.0
            limit = max(_NAMED_FRACTION * largest, _NAMED_GAIN * gain)
            named = [int(targets[row, other]) for other in others if told[other] > limit]
            suggestions[row] = label, p, gain, named
            column = self.covariance[row, :, label].clone()
            variance = column[label] + self.noise
            self.covariance[row] -= column.outer(column) / variance
            self.remaining[row].index_add_(0, targets[row], -information[row, index])
            self.is_known[row, label] = True
        return suggestions


def _padded(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the marked labels of each sample :math:`(B, K)`, and which of them are no padding."""
    is_marked, labels = mask.byte().sort(dim=1, descending=True, stable=True)
    number = int(mask.sum(dim=1).max())
    return labels[:, :number], is_marked[:, :number].bool()


def entropy(p: Tensor) -> Tensor:
    """Returns the entropy of a label in bits."""
    nats: Tensor = -torch.xlogy(p, p) - torch.xlogy(1 - p, 1 - p)
    return nats / math.log(2)


def _in_order(samples: list[list[Suggestion]]) -> Iterator[tuple[int, int, Suggestion]]:
    for row, sample in enumerate(samples):
        for rank, suggestion in enumerate(sample):
            yield rank, row, suggestion


def _within(
    samples: list[list[Suggestion]], costs: np.ndarray, budget: float
) -> Iterator[tuple[int, int, Suggestion]]:
    """Yields the suggestions with the largest gains per cost that a budget pays for."""

    def entry(row: int, rank: int) -> tuple[float, int, int]:
        label, _, bits, _ = samples[row][rank]
        return -bits / costs[label], row, rank

    queue = [entry(row, 0) for row, sample in enumerate(samples) if sample]
    heapq.heapify(queue)
    rank = 0
    while queue:
        _, row, place = heapq.heappop(queue)
        suggestion = samples[row][place]
        if costs[suggestion[0]] > budget:
            continue  # Later labels of this sample count on this one.
        budget -= costs[suggestion[0]]
        yield rank, row, suggestion
        rank += 1
        if place + 1 < len(samples[row]):
            heapq.heappush(queue, entry(row, place + 1))


def _reason(
    names: Sequence[str], label: int, p: float, is_target: bool, told: Sequence[int]
) -> str:
    reasons = []
    if is_target:
        reasons.append(f"uncertain (probability {p:.2f})")
    if told:
        reasons.append("tells of " + ", ".join(names[other] for other in told))
    return "; ".join(reasons) or "tells little"


def _mask(argument: str, labels: Sequence[str] | None, names: Sequence[str]) -> Tensor:
    if labels is None:
        return torch.ones(len(names), dtype=torch.bool)
    if isinstance(labels, str) or not isinstance(labels, Collection) or not len(labels):
        raise ValueError(f"Expected '{argument}' to be a list of labels (got {labels!r:.80})")
    if unknown := [label for label in labels if label not in names]:
        expected = f"Expected '{argument}' among labels of the model, such as {list(names[:3])}"
        raise ValueError(f"{expected} (got {unknown[:3]})")
    return torch.tensor([name in labels for name in names])


def _read_costs(cost: Mapping[str, float] | None, names: Sequence[str]) -> Tensor:
    costs = torch.ones(len(names), dtype=torch.double)
    if not isinstance(cost, (Mapping, NoneType)):
        raise ValueError(f"Expected 'cost' to map labels to numbers (got {cost!r:.40})")
    if cost:
        _mask("cost", [*cost], names)
    for name, value in (cost or {}).items():
        if not _is_positive(value):
            got = f"{value!r:.40} for {name!r}"
            raise ValueError(f"Expected 'cost' to be positive numbers (got {got})")
        costs[names.index(name)] = float(value)
    return costs


def _affordable(costs: Tensor, budget: float | None) -> Tensor:
    """Returns the labels that cost at most the whole budget."""
    if budget is None:
        return torch.ones(len(costs), dtype=torch.bool)
    if not _is_positive(budget):
        raise ValueError(f"Expected 'budget' to be a number above 0 (got {budget!r:.40})")
    if budget < costs.min():
        got = f"{budget:g}, while the cheapest costs {float(costs.min()):g}"
        raise ValueError(f"Expected 'budget' to pay for one of the labels (got {got})")
    return costs <= budget


def _check_open(is_candidate: Tensor, is_target: Tensor) -> None:
    """Raises ValueError if no label is left for any sample, and counts the samples without one."""
    for name, is_open in {"candidates": is_candidate, "targets": is_target}.items():
        if not is_open.any():
            raise ValueError(f"Expected '{name}' with labels that are not given (got none)")
    if num_complete := int((~is_candidate).all(dim=1).sum()):
        warn(f"{num_complete} of {len(is_candidate)} samples have no label left to look up", 4)


def _is_positive(value: Any) -> bool:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and 0 < value < math.inf
