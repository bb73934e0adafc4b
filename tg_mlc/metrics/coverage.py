"""Thresholds with guaranteed coverage: conformal prediction per label, risk control per sample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from typing_extensions import Self

from tg_mlc._names import few, shorten
from tg_mlc._options import check_choice
from tg_mlc._warnings import warn
from tg_mlc.metrics._inputs import ArrayLike, read_scores, read_targets
from tg_mlc.metrics.thresholds import ThresholdTuner

Per = Literal["label", "sample"]

_TINY = 1e-9  # Tolerance for rounding errors of (n + 1)(1 - coverage).


class Coverage(NamedTuple):
    """The coverage that label sets have to reach, for each label or over the labels of a sample."""

    share: float  #: fraction of the labels that apply
    per: Per = "label"

    def __str__(self) -> str:
        return f"coverage {self.share:g} per {self.per}"

    def check(self) -> None:
        """Raises ValueError if the share is not between 0 and 1."""
        check_choice("coverage_per", self.per, get_args(Per))
        is_number = isinstance(self.share, (int, float)) and not isinstance(self.share, bool)
        if not is_number or not 0 < self.share < 1:
            expected = "'coverage' between 0 and 1, such as 0.9"
            raise ValueError(f"Expected {expected} (got {self.share!r})")

    @property
    def least(self) -> int:
        """The smallest number of scores that suffices to guarantee this coverage."""
        return math.ceil(1 / (1 - self.share) - 1 - _TINY)


class ConformalThresholds:
    r"""Thresholds whose label sets hold a promised fraction of true labels. New samples have to be
    exchangeable with the calibration samples, to which no part of the model may be fitted.

    Per label, the threshold is the :math:`k`-th smallest score of the :math:`n` samples to which
    the label is known to apply, :math:`k = \lfloor (n + 1) \alpha \rfloor` for a coverage of
    :math:`1 - \alpha`. In expectation, the label is then missing from the sets of at most
    :math:`\alpha` of the samples to which it applies. With :math:`k = 0`, all sets hold the label.

    Per sample, the threshold :math:`\lambda` for all labels is the largest with
    :math:`(n \hat{R}(\lambda) + 1) / (n + 1) \le \alpha`, where :math:`\hat{R}` is the mean,
    over the :math:`n` samples with present labels, of the fraction of these labels that score less
    (`"Conformal Risk Control" <https://arxiv.org/abs/2208.02814>`_). In expectation, sets miss at
    most :math:`\alpha` of the present labels. Unknown labels are ignored.

    Args:
        y (Tensor or numpy.ndarray): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
        scores (Tensor or numpy.ndarray): Probabilities :math:`(N, L)`.

    Raises:
        ValueError: If no label applies to any sample.
    """

    def __init__(self, y: ArrayLike, scores: ArrayLike) -> None:
        targets = read_targets(y, "y")
        if not targets.positive.any():
            expected = "samples to which labels apply, by whose scores sets are chosen"
            raise ValueError(f"Expected {expected} (got none)")
        self.row, self.label = np.nonzero(targets.positive)
        self.score = read_scores(scores, targets)[targets.positive]
        self.num_labels = targets.positive.shape[1]

    def tuner(self, coverage: Coverage, label_names: Sequence[str]) -> ThresholdTuner:
        """Returns the thresholds for a coverage.

        Raises:
            ValueError: If the coverage is not between 0 and 1, or there are too few scores for it.
        """
        coverage.check()
        per_label = coverage.per == "label"
        counts = np.bincount(self.label, minlength=self.num_labels)
        num_scores = counts.max() if per_label else len({*self.row.tolist()})
        if num_scores < coverage.least:
            kind = "samples to which one label applies" if per_label else "samples with labels"
            expected = f"at least {coverage.least} {kind} for coverage={coverage.share:g}"
            got = f"at most {num_scores}" if per_label else num_scores
            hint = "pass more to 'conformalize', or ask for less"
            raise ValueError(f"Expected {expected} (got {got}); {hint}")
        tuner = ThresholdTuner(per_label=per_label)
        if per_label:
            order = np.lexsort((self.score, self.label))
            k = np.floor((counts + 1) * (1 - coverage.share) + _TINY).astype(int)
            index = np.maximum(np.cumsum(counts) - counts + k - 1, 0)
            tuner.thresholds = np.where(k > 0, self.score[order][index], 0.0)
        else:
            sizes, order = np.bincount(self.row), np.argsort(self.score)
            # The sum over samples of missed fractions, if the lowest scores are missed in order.
            missed = np.cumsum(1 / sizes[self.row[order]])
            max_missed = (np.count_nonzero(sizes) + 1) * (1 - coverage.share) - 1
            index = np.searchsorted(missed, max_missed + _TINY, side="right")
            tuner.thresholds = self.score[order[[index]]]
        if per_label and (rare := np.flatnonzero(counts < coverage.least).tolist()):
            names = few([shorten(label_names[label], 40) for label in rare])
            reason = f"each known to apply to fewer than {coverage.least} of the samples"
            message = f"All label sets hold {len(rare)} of {self.num_labels} labels, {reason}"
            warn(f"{message} for coverage={coverage.share:g}: {names}", stacklevel=3)
        return tuner

    def state_dict(self) -> dict[str, Any]:
        """Returns the scores of present labels, with the indices of samples and labels."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Restores thresholds from a state, and checks that its parts agree."""
        thresholds = cls.__new__(cls)
        thresholds.num_labels = size = int(state["num_labels"])
        arrays = [np.asarray(state[name]) for name in ("row", "label", "score")]
        thresholds.row, thresholds.label, thresholds.score = row, label, score = arrays
        shapes = {array.shape for array in arrays}
        if len(shapes) > 1 or not label.size or label.min() < 0 or label.max() >= size:
            expected = f"the conformal scores have to be of {size} labels"
            raise ValueError(f"{expected} (got shapes {shapes})")
        if row.min() < 0 or not ((score >= 0) & (score <= 1)).all():
            raise ValueError("the conformal scores have to be probabilities of samples")
        return thresholds
