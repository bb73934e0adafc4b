"""Which recorded labels are likely wrong, given the inputs and all other labels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from scipy.special import expit, log_expit
from torch import Tensor
from tqdm import tqdm

from tg_mlc._files import replace_when_done
from tg_mlc._names import find, register
from tg_mlc._optional import require
from tg_mlc._warnings import check_abandoned, collected_warnings, warn
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.bags import with_attribute
from tg_mlc.inference import Model
from tg_mlc.inference.flow import Query, Reading
from tg_mlc.inference.pipeline import INFINITE
from tg_mlc.inputs.distinct import distinct_inputs
from tg_mlc.joint.messages import messages_of
from tg_mlc.metrics._inputs import read_targets
from tg_mlc.nn import ResidualMessages

#: Folds of samples whose covariances leave out the samples that are audited.
FOLDS = 10

# With a smaller fraction of distinct inputs, equal inputs are no repetitions of one sample, but
# samples of which the inputs tell little.
_DISTINCT = 0.5
_LEAST_ROWS = 20  # Samples with known labels, to tell swapped ones.

# Errors among the most probable labels are mostly errors of the record, and so are those among the
# least probable ones. Fractions of the labels that are recorded as present, or as absent: of rare
# labels, few are surely present.
_TAIL_FRACTION, _LEAST_TAIL = 0.04, 50
# With a larger ratio of the two rates of errors, and a p-value below this, one kind of error
# dominates; else the mean is the rate of both.
_ONE_SIDED, _SURE = 4.0, 0.01
# Permutations of rows, and the fractions of lowest scores that estimate the swapped rows.
_PERMUTATIONS, _LOWEST = 20, np.linspace(0.1, 0.5, 9)
# Labels of a swapped row agree with each other. With more errors than this among the least and the
# most probable labels, or if at least as many rows as look swapped have a single wrong label (at
# this confidence), single labels are wrong, not rows.
_AGREEING, _CONFIDENCE = 0.03, 0.95
_LIKELY = 0.5  # Blanks of at least this probability are reported.


@dataclass(frozen=True)
class Evidence:
    """What an audit is based on, from which a report shows what speaks against a record."""

    model: Model
    raw: Any  #: the samples, or their raw inputs
    base_logits: np.ndarray  #: the logits :math:`(N, L)` by the inputs alone
    y: np.ndarray  #: the recorded labels :math:`(N, L)`
    #: the fold :math:`(N)` of each sample, whose correlations are those of other folds
    fold: np.ndarray | None
    is_fitted: bool  #: whether the model was fitted to the samples

    def messages(self) -> Iterator[tuple[Tensor, ResidualMessages]]:
        """Yields masks of samples with the messages that were not fitted to them."""
        messages = messages_of(self.model)
        return messages_by_fold(messages, self.base_logits, self.y, self.fold)


@dataclass(frozen=True)
class Audit:
    """The suspects among recorded labels. The data set is not changed.

    Attributes:
        cells (pandas.DataFrame): Every known label of every sample, the suspects first: ``row``,
            ``label``, ``recorded`` (0 or 1), ``probability`` of the recorded value given the inputs
            and all other labels, and ``suspicion``, the probability that the record is wrong.
        rows (pandas.DataFrame): Every sample, the suspects first: ``row``, ``suspicion`` that at
            least one of its labels is wrong, and ``swapped``, the probability that its labels
            belong to another sample.
        noise (pandas.DataFrame): Per label, the number of ``known`` values, and the estimated
            fractions of values that are ``wrongly_present`` or ``wrongly_absent``. The attribute
            ``attrs["swapped_rows"]`` is the fraction of swapped rows, at most, and 0 for fewer than
            20 samples with known labels: inputs that tell
            little of the labels leave this bound high. It is 0 if single wrong labels explain it.
        blanks (pandas.DataFrame): Unknown labels that are likely present: ``row``, ``label`` and
            ``probability``.
        evidence (Evidence): The model, the samples and the scores behind the suspicion;
            :obj:`None` if some of the samples could not be read.
    """

    cells: Any
    rows: Any
    noise: Any
    blanks: Any
    evidence: Evidence | None = field(default=None, repr=False, compare=False)

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        number: int = 200,
        explained: int | None = 20,
        raw: Any = None,
        names: Sequence[Any] | None = None,
        rows: Sequence[int] | None = None,
        title: str | None = None,
    ) -> str:
        """Returns an HTML page without external resources, in which a person goes through the
        suspects, sees what other labels and the inputs say of each, decides, and exports the
        decisions as CSV.

        Args:
            path (str or PathLike, optional): Where to save the page. (default: :obj:`None`)
            number (int, optional): The largest number of suspects. (default: :obj:`200`)
            explained (int, optional): The largest number of suspects, from the first, whose inputs
                are shaded by occlusion; :obj:`None` for none. There are fewer if their inputs have
                many components, and none in an audit of the samples that the model was fitted to,
                because its explanations follow their records. (default: :obj:`20`)
            raw (Any, optional): The raw inputs of all samples, such as their texts.
                (default: :obj:`None`, those that the audit got)
            names (Sequence, optional): Names of all samples. (default: :obj:`None`)
            rows (Sequence[int], optional): Numbers of all samples, such as their rows in a file.
                (default: :obj:`None`, their indices)
            title (str, optional): The headline. (default: :obj:`None`)

        Raises:
            ValueError: If no label is known, a sample could not be read, or an argument has another
                length than the audit.
            ImportError: If jinja2 is not installed (extra ``explain``), or, for molecules, RDKit
                (extra ``molecules``).
        """
        make_page = find("method", "suspects_page")
        page: str = make_page(self, number, explained, raw, names, rows, title)
        if path is not None:
            with replace_when_done(path) as unfinished:
                unfinished.write_text(page, encoding="utf-8")
        return page

    def __repr__(self) -> str:
        suspects = int((self.cells["suspicion"] >= _LIKELY).sum())
        sizes = f"{len(self.cells)} labels of {len(self.rows)} samples, {suspects} likely wrong"
        return f"{type(self).__name__}({sizes}, {len(self.blanks)} blanks likely present)"


def audit(dataset: MultiLabelDataset, seconds: float = 300.0, seed: int = 0) -> Audit:
    r"""Finds recorded labels that are likely wrong, by :func:`tg_mlc.auto` and messages among
    labels.

    The probability of each recorded value is that given the inputs, by classifiers that were not
    fitted to the sample, and given all other labels of the sample
    (:meth:`~tg_mlc.nn.ResidualMessages.leave_one_out`), by correlations of other samples. Samples
    with equal inputs do not inform each other, if at least half of the inputs are distinct. Where
    whole rows of labels are swapped, other labels mislead, and the inputs count alone: the
    probability that a row is swapped comes from its likelihood, compared with that of permuted
    rows.

    .. code-block:: python

        result = tg_mlc.audit(dataset, seconds=120)
        result.cells.head(20)

    Args:
        dataset (MultiLabelDataset): The samples, with recorded labels 0, 1, or NaN for unknown.
        seconds (float, optional): The approximate time of :func:`tg_mlc.auto`.
            (default: :obj:`300.0`)
        seed (int, optional): Seed of all random choices. (default: :obj:`0`)

    Raises:
        ValueError: If the data set has one label.
    """
    if dataset.num_labels < 2:
        raise ValueError(f"Expected 'dataset' with several labels (got {dataset.num_labels})")
    from tg_mlc.stacking import auto

    index, rng = distinct_inputs(dataset), np.random.default_rng(seed)
    if index.max() + 1 < _DISTINCT * len(index):  # Equal inputs are other samples.
        index = np.arange(len(dataset))
    num_inputs = int(index.max()) + 1
    is_repeated = num_inputs < len(dataset)
    model = auto(_first_of_each(dataset, index) if is_repeated else dataset, seconds, seed)
    # The held-out logits of an input come from classifiers that saw none of its repetitions.
    base_logits, y = model.training.held_out[index], dataset.y.double().numpy()
    fold = (rng.permutation(num_inputs) % min(FOLDS, num_inputs))[index]
    result = suspects(messages_of(model), model.label_names, base_logits, y, fold, rng)
    return replace(result, evidence=Evidence(model, dataset, base_logits, y, fold, True))


def audit_new(model: Model, raw: Any, y: Any = None, seed: int = 0) -> Audit:
    """Audits samples to which the model was not fitted (:meth:`tg_mlc.inference.Model.audit`)."""
    targets = model.targets(raw, y)
    messages_of(model)
    reading = raw if isinstance(raw, Reading) else model.read(raw, on_error="raise")
    if reading.samples is None:
        raise ValueError("Expected at least one input that can be read (got none)")
    with collected_warnings() as messages:
        flow = model.prepare(reading, Query(coherent=False))
    for message in dict.fromkeys([*reading.warnings, *messages]):
        warn(message, stacklevel=3)
    if flow.given is not None:
        raise ValueError("Expected samples without 'given' labels (got some); remove the attribute")
    base_logits = model.logits(flow).numpy()
    readable = np.arange(len(base_logits)) if reading.rows is None else np.array(reading.rows, int)
    expected = len(readable) + len(reading.reasons), len(model.label_names)
    if targets.shape != expected:
        got = f"(got shape {list(targets.shape)})"
        raise ValueError(f"Expected 'y' of shape {list(expected)}, samples by labels {got}")
    targets = targets[readable]
    known = int(read_targets(targets, "y").observed.sum())
    if not (is_finite := np.isfinite(base_logits).all(axis=1)).all():
        raise ValueError(f"{INFINITE} in row {readable[~is_finite][0]}")
    if known < 2 * _LEAST_TAIL:
        hint = "trust 'probability' more than 'suspicion'"
        expected_size = (
            f"at least {2 * _LEAST_TAIL} recorded labels, to estimate how many are wrong"
        )
        warn(f"Expected {expected_size} (got {known}); {hint}", stacklevel=3)
    rng = np.random.default_rng(seed)
    result = suspects(messages_of(model), model.label_names, base_logits, targets, None, rng)
    for frame in (result.cells, result.rows, result.blanks):
        frame["row"] = readable[frame["row"]]
    if reading.reasons:
        return result
    samples = reading.samples if isinstance(raw, Reading) else raw
    return replace(result, evidence=Evidence(model, samples, base_logits, targets, None, False))


register("method", audit_new, "audit")


def _first_of_each(dataset: MultiLabelDataset, index: np.ndarray) -> MultiLabelDataset:
    """Returns one sample per distinct input, each label with its first known value."""
    _, first = np.unique(index, return_index=True)
    y = dataset.y.double().numpy()
    values = np.full((len(first), y.shape[1]), np.nan)
    for row in range(len(y) - 1, -1, -1):
        is_known = ~np.isnan(y[row])
        values[index[row], is_known] = y[row, is_known]
    samples = with_attribute(dataset[first.tolist()], "y", torch.from_numpy(values).float())
    assert isinstance(samples, MultiLabelDataset)
    return samples


def suspects(
    messages: ResidualMessages,
    label_names: Sequence[str],
    base_logits: np.ndarray,
    y: np.ndarray,
    fold: np.ndarray | None,
    rng: np.random.Generator,
) -> Audit:
    """Finds suspects among labels :math:`(N, L)` by their base logits and each other. With folds,
    the correlations of a sample are those of samples in other folds.
    """
    logits = joint_logits(messages, base_logits, y, fold)
    is_known = ~np.isnan(y)
    wrongly_present, wrongly_absent = error_rates(logits, y)
    of_cell = error_probability(logits, y, wrongly_present, wrongly_absent)
    swapped_rows, swapped = 0.0, np.zeros(len(y))
    if wrongly_present + wrongly_absent < 2 * _AGREEING:
        fraction, probability_of_row = swapped_probability(base_logits, y, rng)
        if fraction > rows_with_errors(logits, y):
            swapped_rows, swapped = fraction, probability_of_row
    by_inputs = np.where(y == 1, expit(-base_logits), expit(base_logits))
    suspicion = swapped[:, None] * by_inputs + (1 - swapped[:, None]) * of_cell
    probability = expit(np.where(y == 1, logits, -logits))
    pandas = require("pandas", "train")
    names = np.asarray(label_names, dtype=object)
    row, label = np.nonzero(is_known)
    cells = pandas.DataFrame(
        {
            "row": row,
            "label": names[label],
            "recorded": y[row, label].astype(int),
            "probability": probability[row, label],
            "suspicion": suspicion[row, label],
        }
    )
    any_wrong = 1 - np.prod(np.where(is_known, 1 - suspicion, 1.0), axis=1)
    rows = pandas.DataFrame({"row": range(len(y)), "suspicion": any_wrong, "swapped": swapped})
    blank_row, blank_label = np.nonzero(~is_known & (logits >= np.log(_LIKELY / (1 - _LIKELY))))
    blanks = pandas.DataFrame(
        {
            "row": blank_row,
            "label": names[blank_label],
            "probability": expit(logits[blank_row, blank_label]),
        }
    )
    noise = pandas.DataFrame({"label": names, "known": is_known.sum(axis=0)})
    for column, value in (("wrongly_present", 1), ("wrongly_absent", 0)):
        is_recorded = y == value
        total = np.where(is_recorded, of_cell, 0.0).sum(axis=0)
        noise[column] = total / np.maximum(is_recorded.sum(axis=0), 1)
    noise.attrs["swapped_rows"] = swapped_rows
    by = {"ascending": False, "ignore_index": True, "kind": "stable"}
    return Audit(
        cells.sort_values("suspicion", **by),
        rows.sort_values("suspicion", **by),
        noise,
        blanks.sort_values("probability", **by),
    )


def joint_logits(
    messages: ResidualMessages, base_logits: np.ndarray, y: np.ndarray, fold: np.ndarray | None
) -> np.ndarray:
    """Returns the logits :math:`(N, L)` of labels given all other known labels, with folds as in
    :func:`suspects`.
    """
    b, targets = torch.from_numpy(base_logits).float(), torch.from_numpy(y).float()
    logits = torch.empty_like(b)
    for rows, others in messages_by_fold(messages, base_logits, y, fold):
        check_abandoned()
        logits[rows] = others.leave_one_out(b[rows], targets[rows])
    return logits.double().numpy()


def messages_by_fold(
    messages: ResidualMessages, base_logits: np.ndarray, y: np.ndarray, fold: np.ndarray | None
) -> Iterator[tuple[Tensor, ResidualMessages]]:
    """Yields the samples of each fold, as a mask, with the messages by correlations of samples in
    other folds. Without folds, yields all samples with :obj:`messages`.
    """
    if fold is None:
        yield torch.ones(len(y), dtype=torch.bool), messages
        return
    b, targets = torch.from_numpy(base_logits).float(), torch.from_numpy(y).float()
    others = ResidualMessages(messages.label_graph)
    folds = range(int(fold.max()) + 1)
    for index in tqdm(folds, "Folds of the audit", disable=None, leave=False):
        held_out = torch.from_numpy(fold == index)
        others.start_from_residuals(b[~held_out], targets[~held_out])
        others.damp(float(messages.noise), bool(messages.adds_logits))
        yield held_out, others


def error_rates(logits: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Returns the fractions of absent labels that are recorded as present, and of present labels
    that are recorded as absent: the errors among the least and the most probable labels. Both are
    their mean unless one is surely larger, by Fisher's exact test.
    """
    from scipy.stats import fisher_exact

    tails = _errors_in_tails(logits, y)
    rates = np.array([(count + 1) / (size + 2) for count, size in tails])
    p = fisher_exact([[count, size - count] for count, size in tails])[1]
    if rates.max() < _ONE_SIDED * rates.min() or p >= _SURE:
        rates[:] = rates.mean()
    wrongly_present, wrongly_absent = rates.tolist()
    return wrongly_present, wrongly_absent


def rows_with_errors(logits: np.ndarray, y: np.ndarray) -> float:
    """Returns the fraction of samples with a single wrong label, at least: the lower ends of
    confidence intervals of both rates of errors (Clopper and Pearson 1934).
    """
    from scipy.stats import beta

    wrongly_present, wrongly_absent = (
        beta.ppf(1 - _CONFIDENCE, count, size - count + 1) if count else 0.0
        for count, size in _errors_in_tails(logits, y)
    )
    num_wrong = (y == 1).sum(axis=1) * wrongly_absent + (y == 0).sum(axis=1) * wrongly_present
    return float(1 - np.exp(-num_wrong).mean())


def _errors_in_tails(logits: np.ndarray, y: np.ndarray) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns the number of present labels among the least probable ones and the number of all of
    these, and the same of absent labels among the most probable ones.
    """
    is_known = ~np.isnan(y)
    recorded = y[is_known][np.argsort(logits[is_known], kind="stable")]
    num_absent, num_present = (
        min(len(recorded), max(_LEAST_TAIL, int(_TAIL_FRACTION * (recorded == value).sum())))
        for value in (0, 1)
    )
    least, most = recorded[:num_absent], recorded[len(recorded) - num_present :]
    return (int(least.sum()), num_absent), (int((1 - most).sum()), num_present)


def error_probability(
    logits: np.ndarray, y: np.ndarray, wrongly_present: float, wrongly_absent: float
) -> np.ndarray:
    """Returns the probability that each recorded label is wrong, by the two :func:`error_rates`."""
    contrary = expit(np.where(y == 1, -logits, logits))
    rate = np.where(y == 1, wrongly_present, wrongly_absent)
    other = np.where(y == 1, wrongly_absent, wrongly_present)
    wrong, right = contrary * rate, (1 - contrary) * (1 - other)
    return np.asarray(wrong / (wrong + right))


def swapped_probability(
    base_logits: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> tuple[float, np.ndarray]:
    """Returns the fraction of samples with the labels of another sample, at most, and the
    probability of each sample that it is one.

    The score of a sample is the log-likelihood of its labels beyond that of label frequencies.
    Scores are compared with those of permuted rows (local false discovery rates, Efron 2004,
    doi:10.1198/016214504000000089).
    """
    from sklearn.isotonic import IsotonicRegression

    swapped, rows = np.zeros(len(y)), np.flatnonzero(~np.isnan(y).all(axis=1))
    if len(rows) < _LEAST_ROWS:
        return 0.0, swapped
    base_logits, y = base_logits[rows], y[rows]
    is_known = ~np.isnan(y)
    count = np.maximum(is_known.sum(axis=0), 1)
    frequency = (np.nansum(y, axis=0) + 1) / (count + 2)

    def scores(labels: np.ndarray) -> np.ndarray:
        likelihood = log_expit(np.where(labels == 1, base_logits, -base_logits))
        expected = np.log(np.where(labels == 1, frequency, 1 - frequency))
        return np.asarray(np.where(np.isnan(labels), 0.0, likelihood - expected).sum(axis=1))

    observed = scores(y)
    permuted = np.concatenate([scores(y[rng.permutation(len(y))]) for _ in range(_PERMUTATIONS)])
    limits = np.quantile(permuted, _LOWEST)
    ratios = [(observed <= limit).mean() / (permuted <= limit).mean() for limit in limits]
    fraction = float(min(1.0, *ratios))
    # The density of permuted scores by that of observed ones falls with the score.
    weight = np.repeat([1 / len(observed), 1 / len(permuted)], [len(observed), len(permuted)])
    is_permuted = np.repeat([0.0, 1.0], [len(observed), len(permuted)])
    curve = IsotonicRegression(increasing=False, y_min=1e-3, y_max=1 - 1e-3, out_of_bounds="clip")
    curve.fit(np.concatenate([observed, permuted]), is_permuted, sample_weight=weight)
    odds = curve.predict(observed) / (1 - curve.predict(observed))
    swapped[rows] = np.clip(fraction * odds, 0, 1)
    return fraction, swapped
