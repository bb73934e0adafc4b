import numpy as np
import pytest
from scipy.special import expit

from benchmarks.accuracy.trust import TOLERANCE, calibrated, sets


@pytest.fixture
def scored():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1200, 3)) - [0, 1, 2]
    return (rng.random(z.shape) < expit(z)).astype(float), expit(2 * z)


def test_label_sets_reach_the_specified_coverage(scored):
    runs = {run["sets"]: run for run in sets(*scored, seed=0, resplits=30)}
    for fraction in (0.8, 0.9):
        per_label, per_sample = (runs[f"{fraction:.0%} per {per}"] for per in ("label", "sample"))
        assert per_label["labels within"] == per_label["labels"] == 3
        assert per_label["least label"] <= per_label["of labels"] <= per_label["most label"]
        assert per_sample["of samples"] == pytest.approx(fraction, abs=TOLERANCE)
        assert per_label["true size"] < per_label["size"] < 3
    assert runs["80% per label"]["size"] < runs["90% per label"]["size"]


def test_calibration_reduces_errors(scored):
    y, scores = scored
    before, after = calibrated("a model", y[:600], y[600:], scores[:600], scores[600:])
    assert (before["calibrated"], after["calibrated"]) == (False, True)
    assert before["changed labels"] == 3
    for error in ("ece", "brier", "log loss"):
        assert after[error] < before[error]
