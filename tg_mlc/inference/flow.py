"""The values that pass through a model: Query, Reading, Flow and Prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import isnan
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor
from torch_geometric.data import Data
from typing_extensions import Self

from tg_mlc._names import few
from tg_mlc._optional import require
from tg_mlc._options import check_count
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.dataset import joined
from tg_mlc.metrics.coverage import Coverage, Per

#: A hierarchy, whether to respect the model's hierarchy, or :obj:`None` for the model's default.
Coherent: TypeAlias = "bool | Data | None"
#: A warning names given labels that take less than this fraction of the others' uncertainty.
LEAST_TOLD = 0.025


@dataclass(frozen=True)
class Query:
    """The options of a prediction, without the inputs. The constructor checks the options.

    Args:
        given, metric, coverage, coverage_per, coherent, batch_size, top (optional): As in
            :meth:`Model.predict <tg_mlc.inference.Model.predict>`.

    Raises:
        ValueError: If the coverage is not between 0 and 1, or the batch size or :obj:`top` is not
            positive.
    """

    given: Any = None
    metric: str = "f1_micro"
    coverage: float | None = None
    coverage_per: Per = "label"
    coherent: Coherent = None
    batch_size: int = 256
    top: int | None = None

    def __post_init__(self) -> None:
        check_count("batch_size", self.batch_size)
        check_count("top", self.top, or_none=True)
        if self.coverage is not None:
            Coverage(self.coverage, self.coverage_per).check()

    @property
    def decides(self) -> str | Coverage:
        """The metric, or the coverage, that decisions are made for."""
        return self.metric if self.coverage is None else Coverage(self.coverage, self.coverage_per)


class Reading(NamedTuple):
    """The result of reading raw inputs."""

    samples: Any  #: the samples of the readable inputs; :obj:`None` if no input is readable
    rows: list[int] | None  #: the indices of the readable inputs; :obj:`None` if all are readable
    size: int  #: the number of inputs
    reasons: dict[int, str]  #: the reasons why inputs are unreadable, by row
    warnings: list[str]
    #: the numbers of unusual cells, such as blanks, by reason and column
    unusual: Mapping[tuple[str, str], int] = MappingProxyType({})

    @classmethod
    def empty(cls, size: int = 0) -> Self:
        """Returns a reading without samples."""
        return cls(None, None, size, {}, [])

    @classmethod
    def joined(cls, readings: Sequence[Self]) -> Self:
        """Joins readings of several lists of inputs by the same model, without their warnings."""
        if len(readings) == 1:
            return readings[0]
        rows, reasons, offset = list[int](), dict[int, str](), 0
        for reading in readings:
            readable = range(reading.size) if reading.rows is None else reading.rows
            rows += [offset + row for row in readable]
            reasons |= {offset + row: reason for row, reason in reading.reasons.items()}
            offset += reading.size
        parts = [reading.samples for reading in readings if reading.samples is not None]
        samples: Any = None
        if all(isinstance(part, MultiLabelDataset) for part in parts):
            samples = joined(parts) if parts else None
        else:
            samples = [sample for part in parts for sample in part]
        return cls(samples, rows, offset, reasons, [])


@dataclass
class Flow:
    """The values that pass through the stages of a model. Each stage reads and changes them."""

    query: Query
    label_names: list[str]
    samples: Any  #: the samples in the format of the next stage
    size: int  #: the number of samples
    given: Tensor | None = None  #: known labels :math:`(N, L)`: 0, 1, or NaN for unknown
    pairs: Tensor | None = None  #: pairs (label, descendant) that predictions respect
    is_default_hierarchy: bool = True  #: whether the model respects these pairs by default
    batches: Any = None  #: the samples in batches, if they are used many times
    logits: Tensor | None = None  #: :math:`(N, L)`, without the values of given labels
    #: the information of given labels on the others, and the others' entropy :math:`(N, 2)`
    told: Tensor | None = None
    decisions: Tensor | None = None  #: 0 or 1 :math:`(N, L)`
    thresholds: np.ndarray | None = None  #: :math:`(L)`, NaN where label sets decide
    _probabilities: Tensor | None = field(default=None, repr=False)

    @property
    def probabilities(self) -> Tensor:
        """Probabilities :math:`(N, L)`; given labels have 0 or 1."""
        if self._probabilities is None:
            if self.logits is None:
                raise RuntimeError(
                    "Expected a stage with logits or probabilities (got none before this one)"
                )
            values = self.logits.sigmoid()
            if self.logits.dtype == torch.double:  # Fitting uses SciPy's sigmoid.
                values = torch.from_numpy(expit(self.logits.numpy()))
            self._probabilities = self.with_given(values)
        return self._probabilities

    @probabilities.setter
    def probabilities(self, value: Tensor) -> None:
        self._probabilities = value

    def with_given(self, values: Tensor) -> Tensor:
        """Returns values :math:`(N, L)` with 0 or 1 where labels are given."""
        if self.given is None:
            return values
        return torch.where(self.given.isnan(), values, self.given.to(values))

    def rows(self, start: int, stop: int) -> Flow:
        """Returns the flow of some samples. No stage may have computed anything yet."""
        given, size = self.given, min(stop, self.size) - start
        given = None if given is None else given[start:stop]
        return replace(self, samples=self.samples[start:stop], size=size, given=given)

    @classmethod
    def joined(cls, parts: Sequence[Flow]) -> Flow:
        """Joins the flows of parts of the samples, after the last stage."""
        merged = replace(parts[0], samples=None, size=sum(part.size for part in parts))
        for name in ("given", "logits", "told", "decisions", "_probabilities"):
            values = [getattr(part, name) for part in parts]
            setattr(merged, name, None if any(v is None for v in values) else torch.cat(values))
        return merged


@dataclass(frozen=True)
class Prediction:
    """Probabilities and decisions of a few samples, with warnings and reasons of errors."""

    label_names: list[str]
    #: :math:`(N, L)`, NaN for inputs that are unreadable or give no finite probability
    probabilities: np.ndarray
    decisions: np.ndarray  #: whether labels apply :math:`(N, L)`, False without probabilities
    thresholds: np.ndarray  #: :math:`(L)`, NaN where label sets decide
    reasons: Mapping[int, str]  #: the reasons why inputs have no probabilities, by row
    warnings: tuple[str, ...] = ()
    #: labels that are given or follow from given labels :math:`(N, L)`, NaN for unknown
    given: np.ndarray | None = None
    calibrated: bool = False  #: whether probabilities are calibrated for each label
    top: int | None = None  #: the number of labels per row in views of the prediction; None for all
    #: the information of given labels on the others, and the others' entropy :math:`(N, 2)`
    told: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.probabilities)

    def part(self, start: int, stop: int) -> Prediction:
        """Returns the prediction of the rows from start to stop, with the warnings of all rows."""
        rows, given, reasons = slice(start, stop), self.given, self.reasons.items()
        return replace(
            self,
            probabilities=self.probabilities[rows],
            decisions=self.decisions[rows],
            reasons={row - start: text for row, text in reasons if start <= row < stop},
            given=None if given is None else given[rows],
            told=None if self.told is None else self.told[rows],
        )

    def warnings_of_given(self) -> tuple[str, ...]:
        """Returns a warning that names the given labels that tell nearly nothing of the others, in
        all rows together; an empty tuple if all tell more.
        """
        if self.given is None or self.told is None:
            return ()
        information, entropy = (self.told.T @ ~np.isnan(self.given)).tolist()
        triples = zip(self.label_names, information, entropy, strict=True)
        names = [name for name, bits, total in triples if bits < LEAST_TOLD * total]
        if not names:
            return ()
        fraction = f"less than {LEAST_TOLD:.1%} of what is uncertain about them"
        told = f"{few(names)} tell nearly nothing of the other labels, {fraction}"
        return (f"The given labels {told}; predictions are nearly the same without them",)

    def ranked(self) -> dict[str, np.ndarray]:
        """Returns the :attr:`top` labels of each row in descending order of probability, as columns
        of a table with one line per row and label. Labels of equal probability keep their order.

        The columns are ``"row"``, ``"rank"`` (from 1), ``"label"`` (an index of
        :attr:`label_names`), ``"probability"``, ``"decision"`` and ``"threshold"``. A row without
        probabilities has one line, of rank 0 and label -1.
        """
        order = np.argsort(-self.probabilities, axis=1, kind="stable")[:, : self.top]
        positions: np.ndarray = np.indices(order.shape)
        rows, ranks = positions[0], positions[1]
        is_line = ~np.isnan(self.probabilities).all(axis=1, keepdims=True) | (ranks == 0)
        row, rank, label = rows[is_line], ranks[is_line] + 1, order[is_line]
        probability = self.probabilities[row, label]
        is_blank = np.isnan(probability)
        return {
            "row": row,
            "rank": np.where(is_blank, 0, rank),
            "label": np.where(is_blank, -1, label),
            "probability": probability,
            "decision": self.decisions[row, label],
            "threshold": np.where(is_blank, np.nan, self.thresholds[label]),
        }

    def records(self, row: int) -> list[dict[str, Any]]:
        """Returns the lines of :meth:`ranked` for one row as plain data, with None for NaN."""
        columns = self.part(row, row + 1).ranked()
        lines = zip(*(values.tolist() for values in columns.values()), strict=True)
        return [
            {
                "label": self.label_names[label],
                "probability": probability,
                "decision": applies,
                "threshold": None if isnan(threshold) else threshold,
            }
            for _, _, label, probability, applies, threshold in lines
            if label >= 0
        ]

    def frame(self, index: Any = None) -> Any:
        """Returns a data frame with ``"probability"``, ``"decision"`` and ``"threshold"`` by label;
        with :attr:`top`, a data frame with one line per row and label.

        Args:
            index (Any, optional): The index of the rows. (default: :obj:`None`, row numbers)

        Raises:
            ImportError: If pandas is not installed (extra ``train``).
        """
        pandas = require("pandas", extra="train")
        if self.top is not None:
            return self._long_frame(pandas, index)
        axes = {"index": index, "columns": self.label_names}
        probability = pandas.DataFrame(self.probabilities, **axes)
        decision = pandas.DataFrame(self.decisions, **axes)
        if self.reasons:
            decision = decision.astype("boolean").mask(np.isnan(self.probabilities))
        thresholds = np.broadcast_to(self.thresholds, self.probabilities.shape)
        frames = {"probability": probability, "decision": decision}
        frames["threshold"] = pandas.DataFrame(thresholds, **axes)
        frame = _frame_class()(pandas.concat(frames, axis=1))
        frame.attrs |= {"unreadable": dict(self.reasons), "calibrated": self.calibrated}
        return frame

    def _long_frame(self, pandas: Any, index: Any) -> Any:
        """Returns the lines of :meth:`ranked` as a data frame with the names of labels."""
        columns: dict[str, Any] = self.ranked()
        row, label = columns.pop("row"), columns["label"]
        names = np.array([*self.label_names, None], dtype=object)  # Label -1 is None.
        columns["label"] = names[label]
        rows = pandas.RangeIndex(len(self)) if index is None else pandas.Index(index)
        frame = pandas.DataFrame(columns, index=rows[row])
        if self.reasons:
            frame = frame.astype({"rank": "Int64", "decision": "boolean"})
            frame.loc[label < 0, ["rank", "decision"]] = pandas.NA
        frame.attrs |= {"unreadable": dict(self.reasons), "calibrated": self.calibrated}
        return frame

    def of_labels(self, values: np.ndarray) -> dict[str, Any]:
        """Returns the values of one row by label, as plain data with None for NaN."""
        plain = (None if isnan(value) else value for value in values.tolist())
        return dict(zip(self.label_names, plain, strict=True))


@cache
def _frame_class() -> Any:
    """Returns the class of frames. It is defined on first use, because pandas may be missing."""
    pandas = require("pandas", extra="train")

    class Predictions(pandas.DataFrame):  # type: ignore[name-defined]
        """A data frame whose records have strings as keys, as JSON needs."""

        @property
        def _constructor(self) -> Any:
            return Predictions

        def __reduce__(self) -> Any:
            return pandas.DataFrame, (pandas.DataFrame(self),)

        def to_dict(self, orient: str = "dict", **options: Any) -> Any:
            if orient != "records" or self.columns.nlevels == 1:
                return super().to_dict(orient, **options)
            names = [*dict.fromkeys(self.columns.get_level_values(0))]
            frames = [self[name].astype(object) for name in names]
            records = [frame.where(frame.notna(), None).to_dict("records") for frame in frames]
            return [dict(zip(names, row, strict=True)) for row in zip(*records, strict=True)]

    return Predictions
