import json
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from scipy.special import expit

from tg_mlc.metrics import evaluate
from tg_mlc.metrics.calibration import MIN_OWN, NUM_BINS, Calibration

NAN = float("nan")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    scores = rng.random((200, 4))
    y = (rng.random(scores.shape) < scores**2).astype(float)
    y[rng.random(y.shape) < 0.3], y[:, 3] = NAN, NAN
    return y, scores


def test_errors_equal_torchmetrics_and_scikit_learn(data):
    torchmetrics = pytest.importorskip("torchmetrics.functional.classification")
    calibration_error = torchmetrics.binary_calibration_error
    brier_score_loss = pytest.importorskip("sklearn.metrics").brier_score_loss
    y, scores = data
    evaluation = evaluate(y, scores)
    actual = evaluation.to_dict()["reliability"]
    for label in range(3):
        known = ~np.isnan(y[:, label])
        p, target = scores[known, label], y[known, label]
        pair = torch.from_numpy(p), torch.from_numpy(target).long()
        expected = float(calibration_error(*pair, n_bins=NUM_BINS))
        assert actual["ece"][label] == pytest.approx(expected, abs=1e-6)
        assert actual["brier"][label] == pytest.approx(brier_score_loss(target, p))
    assert (actual["ece"][3], actual["brier"][3]) == (None, None)
    assert evaluation["ece_macro"] == pytest.approx(np.mean(actual["ece"][:3]))
    assert evaluation["brier_macro"] == pytest.approx(np.mean(actual["brier"][:3]))
    assert sum(n for *_, n in actual["bins"]) == np.sum(~np.isnan(y))
    json.dumps(evaluation.to_dict(), allow_nan=False)


def test_certain_correct_probabilities_have_no_error():
    evaluation = evaluate([[0, 1], [1, NAN]], [[0.0, 1.0], [1.0, 0.5]])
    assert evaluation["ece_macro"] == evaluation["brier_macro"] == 0.0
    assert evaluation.reliability.bins == [(0.0, 0.0, 1), (1.0, 1.0, 2)]


def test_other_scores_have_no_calibration_error():
    evaluation = evaluate([[0, 1]], [[-1.0, 3.0]], 0.0)
    assert np.isnan(evaluation["ece_macro"])
    assert evaluation.to_dict()["reliability"] is None
    with pytest.raises(ValueError, match="Expected probabilities"):
        Calibration.fit([[0, 1]], [[-1.0, 3.0]])


def test_the_picture_has_a_dot_for_each_bin(data):
    reliability = evaluate(*data).reliability
    picture = ElementTree.fromstring(reliability.to_svg())
    dots = picture.findall("{http://www.w3.org/2000/svg}circle")
    assert len(dots) == len(reliability.bins)
    predicted, fraction, _ = reliability.bins[3]
    center = [float(dots[3].attrib[name]) for name in ("cx", "cy")]
    assert center == pytest.approx([20 + 200 * predicted, 220 - 200 * fraction], abs=0.06)


def distorted(num_samples, seed=0):
    """Returns targets and scores of six labels, two of them rare. Scores of the first four labels
    are calibrated, too extreme, too low, and a curved function of the probability.
    """
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(num_samples, 6))
    true_logits = z * [1, 0.3, 1, 1, 1, 1] + [0, 0, 2, 0, -3, -3]
    true_logits[:, 3] = np.where(z[:, 3] > 1, 3, -1)
    y = (rng.random(z.shape) < expit(true_logits)).astype(float)
    y[rng.random(y.shape) < 0.2] = NAN
    y[:, 4:] = np.where(np.cumsum(y[:, 4:] == 1, axis=0) < MIN_OWN, y[:, 4:], NAN)
    z[:, 4:] -= 5
    return y, expit(z)


def test_each_label_gets_a_suitable_function():
    (y, scores), (y_new, scores_new) = distorted(3000), distorted(3000, seed=1)
    calibration = Calibration.fit(y, scores)
    assert calibration.methods[:4] == ["identity", "temperature", "platt", "isotonic"]
    assert calibration.methods[4] == calibration.methods[5] != "identity"
    assert float(calibration.scale[1]) == pytest.approx(0.3, abs=0.05)
    assert float(calibration.shift[2]) == pytest.approx(2, abs=0.3)
    actual = calibration.probabilities(torch.from_numpy(scores_new)).numpy()
    raw, calibrated = (np.array(evaluate(y_new, p).reliability.ece) for p in (scores_new, actual))
    assert calibrated[0] == raw[0]
    assert (calibrated[1:4] < 0.5 * raw[1:4]).all()


def test_functions_increase_and_keep_0_and_1():
    calibration = Calibration.fit(*distorted(3000))
    inner = [torch.logspace(-6, 0, 500)[:-1], 1 - torch.logspace(-1, -6, 50)]
    p = torch.cat([torch.zeros(1), *inner, torch.ones(1)])
    p = p.double().sort()[0].unique()
    mapped = calibration.probabilities(p[:, None].expand(-1, 6))
    assert (mapped.diff(dim=0) > 0).all()
    assert (mapped[0] == 0).all()
    assert (mapped[-1] == 1).all()


@pytest.mark.parametrize("num_known", [0, 3, 2000])
def test_calibrated_scores_do_not_change(num_known):
    rng = np.random.default_rng(0)
    scores = rng.random((2000, 2))
    y = (rng.random(scores.shape) < scores).astype(float)
    y[num_known:, 1] = NAN
    calibration = Calibration.fit(y, scores)
    assert calibration.methods == ["identity", "identity"]
    np.testing.assert_allclose(calibration.probabilities(torch.from_numpy(scores)), scores)
