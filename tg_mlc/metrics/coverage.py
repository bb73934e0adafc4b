"""Thresholds with a guarantee: conformal prediction for each label, and conformal risk control over whole samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from typing_extensions import Self

from tg_mlc._names import shorten
from tg_mlc._options import check_choice
from tg_mlc._warnings import warn
from tg_mlc.metrics._inputs import ArrayLike, read_scores, read_targets
from tg_mlc.metrics.thresholds import ThresholdTuner

Per = Literal["label", "sample"]

_TINY = 1e-9  # by which (n + 1)(1 - coverage) may be off in floating point


class Coverage(NamedTuple):
    """The coverage that label sets have to reach, in place of a metric that decisions are best for."""

    share: float  #: of what applies
    per: Per = "label"

    def __str__(self) -> str:
        return f"coverage {self.share:g} per {self.per}"

    def check(self) -> None:
        """Refuses shares outside of (0, 1)."""
        check_choice("coverage_per", self.per, get_args(Per))
        if (
            isinstance(self.share, bool)
            or not isinstance(self.share, (int, float))
            or not 0 < self.share < 1
        ):
            raise ValueError(
                f"Expected 'coverage' between 0 and 1, such as 0.9 (got {self.share!r})"
            )

    @property
    def least(self) -> int:
        """The fewest scores that such a share can be promised by."""
        return math.ceil(1 / (1 - self.share) - 1 - _TINY)


class ConformalThresholds:
    r"""Thresholds whose label sets hold what applies, for new samples that are exchangeable with those of calibration,
    which no part of the model may have been fitted to.

    Per label, the threshold is the :math:`k`-th smallest score of the :math:`n` samples to which the label is known to
    apply, :math:`k = \lfloor (n + 1) \alpha \rfloor` for a coverage of :math:`1 - \alpha`. The label is then missing
    from the sets of at most :math:`\alpha` of the samples to which it applies, in expectation, and of at least
    :math:`\alpha - 1 / (n + 1)` if no scores are equal. With :math:`k = 0`, all sets hold the label.

    Per sample, one threshold :math:`\lambda` for all labels is the largest with :math:`(n \hat{R}(\lambda) + 1) / (n +
    1) \le \alpha`, where :math:`\hat{R}` is the mean over the :math:`n` samples with a label that applies of the share
    of these labels that score less (`"Conformal Risk Control" <https://arxiv.org/abs/2208.02814>`_). The share that
    sets miss is then at most :math:`\alpha` in expectation over such samples.

    Unknown labels count nowhere, so that both hold for labels as they come to be known.

    Args:
        y (Tensor or numpy.ndarray): Targets :math:`(N, L)` of calibration samples: 0, 1, or NaN for unknown.
        scores (Tensor or numpy.ndarray): Their probabilities :math:`(N, L)`.

    Raises:
        ValueError: If no label applies to any sample.
    """

    def __init__(self, y: ArrayLike, scores: ArrayLike) -> None:
        targets = read_targets(y, "y")
        if not targets.positive.any():
            raise ValueError(
                "Expected samples to which labels apply, by whose scores sets are chosen (got none)"
            )
        self.row, self.label = np.nonzero(targets.positive)
        self.score = read_scores(scores, targets)[targets.positive]
        self.num_labels = targets.positive.shape[1]

    def tuner(self, coverage: Coverage, label_names: Sequence[str]) -> ThresholdTuner:
        """The thresholds of a coverage.

        Raises:
            ValueError: If the coverage is not between 0 and 1, or too few scores are there for it.
        """
        coverage.check()
        per_label = coverage.per == "label"
        counts = np.bincount(self.label, minlength=self.num_labels)
        most = counts.max() if per_label else len({*self.row.tolist()})
        if most < coverage.least:
            what = (
                "samples of a label that applies to them"
                if per_label
                else "samples to which a label applies"
            )
            raise ValueError(
                f"Expected at least {coverage.least} {what} to calibrate coverage={coverage.share:g} by (got "
                f"{'at most ' if per_label else ''}{most}); pass more to 'conformalize', or ask for less"
            )
        tuner = ThresholdTuner(per_label=per_label)
        if per_label:
            order = np.lexsort((self.score, self.label))
            allowed = np.floor((counts + 1) * (1 - coverage.share) + _TINY).astype(int)
            place = np.cumsum(counts) - counts + allowed - 1
            tuner.thresholds = np.where(allowed > 0, self.score[order][np.maximum(place, 0)], 0.0)
        else:
            sizes, order = np.bincount(self.row), np.argsort(self.score)
            # samples, if all up to a score are missed
            missed = np.cumsum(1 / sizes[self.row[order]])
            budget = (np.count_nonzero(sizes) + 1) * (1 - coverage.share) - 1
            tuner.thresholds = self.score[
                order[[np.searchsorted(missed, budget + _TINY, side="right")]]
            ]
        if per_label and (few := np.flatnonzero(counts < coverage.least).tolist()):
            named = ", ".join(shorten(label_names[place], 40) for place in few[:5]) + ", ..." * (
                len(few) > 5
            )
            warn(
                f"All label sets hold {len(few)} of {self.num_labels} labels, each known to apply to fewer than "
                f"{coverage.least} of the samples for coverage={coverage.share:g}: {named}",
                stacklevel=3,
            )
        return tuner

    def state_dict(self) -> dict[str, Any]:
        """Returns the scores of what applies, with their samples and labels."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Makes them of their state, whose parts have to agree."""
        found = cls.__new__(cls)
        found.num_labels = int(state["num_labels"])
        found.row, found.label, found.score = (
            np.asarray(state[name]) for name in ("row", "label", "score")
        )
        sizes, places = {each.shape for each in (found.row, found.label, found.score)}, found.label
        if (
            len(sizes) > 1
            or not places.size
            or places.min() < 0
            or places.max() >= found.num_labels
        ):
            raise ValueError(
                f"the scores of label sets have to be of {found.num_labels} labels (got shapes {sizes})"
            )
        if found.row.min() < 0 or not ((found.score >= 0) & (found.score <= 1)).all():
            raise ValueError(
                "the scores of label sets have to be probabilities of samples (got others)"
            )
        return found
