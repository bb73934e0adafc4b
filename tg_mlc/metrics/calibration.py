"""Calibration: how far probabilities are from the shares of what applies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tg_mlc.metrics._inputs import FloatArray, Targets

NUM_BINS = 15  #: of equal width, as is usual


@dataclass(frozen=True)
class Reliability:
    """How far the probabilities of known entries are from shares of positives; ``to_svg()`` draws it."""

    #: The expected calibration error of each label: of bins of equal width, the mean distance of mean probability and
    #: share of positives, weighted by entries; NaN where all entries are unknown.
    ece: list[float]
    brier: list[float]  #: the mean squared distance of the probabilities of each label from its targets
    #: mean probability, share of positives and entries of each bin that has any, of all labels together
    bins: list[tuple[float, float, int]]

    @classmethod
    def of(cls, targets: Targets, scores: FloatArray) -> Reliability:
        """Measures probabilities :math:`(N, L)`."""
        place = np.minimum((scores * NUM_BINS).astype(int), NUM_BINS - 1)
        weights = (targets.observed, np.where(targets.observed, scores, 0.0), targets.positive)
        shape = (scores.shape[1], NUM_BINS)
        cells = (place + NUM_BINS * np.arange(shape[0])).ravel()
        count, total, positive = (np.bincount(cells, w.ravel(), shape[0] * NUM_BINS).reshape(shape) for w in weights)
        squared = np.where(targets.observed, (scores - targets.positive) ** 2, 0.0).sum(axis=0)
        with np.errstate(invalid="ignore"):  # labels without known entries
            ece, brier = np.abs(total - positive).sum(axis=1) / count.sum(axis=1), squared / count.sum(axis=1)
        pooled = zip(*(each.sum(axis=0).tolist() for each in (total, positive, count)), strict=True)
        return cls(ece.tolist(), brier.tolist(), [(p / n, y / n, int(n)) for p, y, n in pooled if n])

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain values for JSON, with None for NaN."""
        return {
            name: [None if np.any(np.isnan(each)) else each for each in values] for name, values in vars(self).items()
        }

    def to_svg(self) -> str:
        """Draws shares of positives over mean probabilities, in the colour of the text around; calibrated ones lie on
        the dashed line, and the area of a dot is that of its bin's entries.
        """
        most = max((n for *_, n in self.bins), default=1)
        at = [(20 + 200 * p, 220 - 200 * share, 1.5 + 6 * (n / most) ** 0.5) for p, share, n in self.bins]
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" stroke="none"/>' for x, y, r in at)
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in at)
        words = "".join(
            f'<text x="{x}" y="{y}" text-anchor="middle" font-size="11" stroke="none"{turned}>{text}</text>'
            for x, y, text, turned in (
                (120, 236, "mean probability", ""),
                (12, 120, "share of positives", ' transform="rotate(-90 12 120)"'),
            )
        )
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 240" width="240" fill="currentColor" '
            'stroke="currentColor" role="img" aria-label="Share of positives by mean probability">'
            '<path d="M20 20v200h200" fill="none"/><path d="M20 220L220 20" fill="none" stroke-dasharray="4"/>'
            f'<polyline points="{line}" fill="none"/>{dots}{words}</svg>'
        )
