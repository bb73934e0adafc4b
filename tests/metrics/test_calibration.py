from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from tg_mlc.metrics import evaluate
from tg_mlc.metrics.calibration import NUM_BINS

NAN = float("nan")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    scores = rng.random((200, 4))
    y = (rng.random(scores.shape) < scores**2).astype(float)
    y[rng.random(y.shape) < 0.3], y[:, 3] = NAN, NAN
    return y, scores


def test_errors_are_those_of_torchmetrics_and_scikit_learn(data):
    calibration_error = pytest.importorskip("torchmetrics.functional.classification").binary_calibration_error
    brier_score_loss = pytest.importorskip("sklearn.metrics").brier_score_loss
    y, scores = data
    evaluation = evaluate(y, scores)
    found = evaluation.to_dict()["reliability"]
    for label in range(3):
        known = ~np.isnan(y[:, label])
        p, target = scores[known, label], y[known, label]
        pair = torch.from_numpy(p), torch.from_numpy(target).long()
        assert found["ece"][label] == pytest.approx(float(calibration_error(*pair, n_bins=NUM_BINS)), abs=1e-6)
        assert found["brier"][label] == pytest.approx(brier_score_loss(target, p))
    assert (found["ece"][3], found["brier"][3]) == (None, None)
    assert evaluation["ece_macro"] == pytest.approx(np.mean(found["ece"][:3]))
    assert evaluation["brier_macro"] == pytest.approx(np.mean(found["brier"][:3]))
    assert sum(n for *_, n in found["bins"]) == np.sum(~np.isnan(y))
    json.dumps(evaluation.to_dict(), allow_nan=False)


def test_certain_probabilities_that_are_right_have_no_error():
    evaluation = evaluate([[0, 1], [1, NAN]], [[0.0, 1.0], [1.0, 0.5]])
    assert evaluation["ece_macro"] == evaluation["brier_macro"] == 0.0
    assert evaluation.reliability is not None
    assert evaluation.reliability.bins == [(0.0, 0.0, 1), (1.0, 1.0, 2)]


def test_scores_that_are_no_probabilities_have_none():
    evaluation = evaluate([[0, 1]], [[-1.0, 3.0]], 0.0)
    assert np.isnan(evaluation["ece_macro"])
    assert evaluation.to_dict()["reliability"] is None


def test_the_picture_has_a_dot_for_each_bin(data):
    reliability = evaluate(*data).reliability
    assert reliability is not None
    picture = ElementTree.fromstring(reliability.to_svg())
    dots = picture.findall("{http://www.w3.org/2000/svg}circle")
    assert len(dots) == len(reliability.bins)
    predicted, share, _ = reliability.bins[3]
    where = [float(dots[3].attrib[name]) for name in ("cx", "cy")]
    assert where == pytest.approx([20 + 200 * predicted, 220 - 200 * share], abs=0.06)
