"""Prediction: the result of a model, shown as frames, files, answers of a server and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import isnan
from typing import Any

import numpy as np

from tg_mlc._optional import require


@dataclass(frozen=True)
class Prediction:
    """Probabilities and decisions of a few samples, with warnings and the reasons of errors."""

    label_names: list[str]
    #: :math:`(N, L)`, NaN for inputs that cannot be read or computed with
    probabilities: np.ndarray
    decisions: np.ndarray  #: whether labels apply :math:`(N, L)`, not for such inputs
    thresholds: np.ndarray  #: :math:`(L)`, NaN where label sets decide
    reasons: Mapping[int, str]  #: why inputs have no probabilities, by rows
    warnings: tuple[str, ...] = ()
    #: labels that were given or follow from these :math:`(N, L)`, NaN for unknown
    given: np.ndarray | None = None
    calibrated: bool = False  #: whether probabilities are calibrated for each label

    def __len__(self) -> int:
        return len(self.probabilities)

    def part(self, start: int, stop: int) -> Prediction:
        """Returns the prediction of the rows from start to stop, with the warnings of all."""
        rows, given = slice(start, stop), self.given
        reasons = self.reasons.items()
        return replace(
            self,
            probabilities=self.probabilities[rows],
            decisions=self.decisions[rows],
            reasons={row - start: text for row, text in reasons if start <= row < stop},
            given=None if given is None else given[rows],
        )

    def frame(self, index: Any = None) -> Any:
        """Returns a data frame with ``"probability"``, ``"decision"`` and ``"threshold"`` by label.

        Args:
            index (Any, optional): The index of the rows. (default: :obj:`None`, their numbers)

        Raises:
            ImportError: If pandas is not installed (extra ``train``).
        """
        pandas = require("pandas", extra="train")
        axes = {"index": index, "columns": self.label_names}
        probability = pandas.DataFrame(self.probabilities, **axes)
        decision = pandas.DataFrame(self.decisions, **axes)
        if self.reasons:
            decision = decision.astype("boolean").mask(np.isnan(self.probabilities))
        thresholds = np.broadcast_to(self.thresholds, self.probabilities.shape)
        threshold = pandas.DataFrame(thresholds, **axes)
        parts = {"probability": probability, "decision": decision, "threshold": threshold}
        frame = _frame_class()(pandas.concat(parts, axis=1))
        frame.attrs |= {"unreadable": dict(self.reasons), "calibrated": self.calibrated}
        return frame

    def of_labels(self, values: np.ndarray) -> dict[str, Any]:
        """Returns the values of one row by label, as plain data with None for NaN."""
        plain = (None if isnan(value) else value for value in values.tolist())
        return dict(zip(self.label_names, plain, strict=True))


@cache
def _frame_class() -> Any:
    """The class of frames, made on use because pandas may be missing."""
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
            parts = [*dict.fromkeys(self.columns.get_level_values(0))]
            cells = [self[part].astype(object) for part in parts]
            records = [part.where(part.notna(), None).to_dict("records") for part in cells]
            return [dict(zip(parts, row, strict=True)) for row in zip(*records, strict=True)]

    return Predictions
