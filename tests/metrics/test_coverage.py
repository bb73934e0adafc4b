import re

import numpy as np
import pytest

from tg_mlc.metrics.coverage import ConformalThresholds, Coverage

NAN, NAMES = float("nan"), ["often", "sometimes", "rarely"]


def draw(num_samples, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.random((num_samples, 3))
    y = (rng.random(scores.shape) < scores**2 * [1.0, 0.8, 0.6]).astype(float)
    y[rng.random(y.shape) < 0.3] = NAN
    return y, scores


def covered(y, decisions, per):
    """Returns the fraction of positive labels in the label sets, per label or per sample."""
    positive, hits = y == 1, (y == 1) & (decisions == 1)
    if per == "label":
        return hits.sum(axis=0) / positive.sum(axis=0)
    has_positive = positive.any(axis=1)
    return hits.sum(axis=1)[has_positive] / positive.sum(axis=1)[has_positive]


@pytest.mark.parametrize("per", ["label", "sample"])
@pytest.mark.parametrize("share", [0.8, 0.95])
def test_coverage_of_new_samples_is_as_requested(per, share):
    actual, slacks = [], []
    for seed in range(100):
        y, scores = draw(700, seed)
        conformal = ConformalThresholds(y[:200], scores[:200])
        sets = conformal.tuner(Coverage(share, per), NAMES).predict(scores[200:])
        actual.append(covered(y[200:], sets, per).mean())
        positive = y[:200] == 1
        count = positive.sum(axis=0).mean() if per == "label" else positive.any(axis=1).sum() / 2
        slacks.append(1 / (count + 1))
    noise = 3 * np.std(actual) / 10
    assert share - noise < np.mean(actual) < share + np.mean(slacks) + noise


def test_thresholds_per_sample_agree_with_mapie():
    risk_control = pytest.importorskip("mapie.risk_control")
    y, scores = draw(100)
    y = np.where(np.isnan(y), 0, y)  # MAPIE does not support unknown labels.
    y[~y.any(axis=1), 0] = 1  # MAPIE needs a positive label in each sample.
    threshold = ConformalThresholds(y, scores).tuner(Coverage(0.9, "sample"), NAMES).fitted()[0]
    grid = np.linspace(0.0, 1.0, 201)
    options = {"risk": "recall", "method": "crc", "target_level": 0.9, "predict_params": grid}
    controller = risk_control.MultiLabelClassificationController(lambda x: x, **options)
    controller.calibrate(scores, y)
    assert threshold - 2 * grid[1] <= controller.best_predict_param[0] <= threshold


def test_ties_and_bounds_by_hand():
    y = np.array([[1.0]] * 4 + [[0.0]] * 4)
    scores = np.array([[0.4], [0.2], [0.2], [0.8], [0.9], [0.9], [0.9], [0.1]])
    conformal = ConformalThresholds(y, scores)
    for share, threshold in ((0.8, 0.2), (0.5, 0.2), (0.39, 0.4), (0.2, 0.8)):
        assert conformal.tuner(Coverage(share), ["a"]).fitted() == [threshold]
    # At a coverage of 0.6, one of four samples may be missed: (4 * 1/4 + 1)/5 = 2/5.
    assert conformal.tuner(Coverage(0.6, "sample"), ["a"]).fitted() == [0.2]
    assert conformal.tuner(Coverage(0.4, "sample"), ["a"]).fitted() == [0.4]


def test_labels_with_few_samples_are_in_all_sets_and_named():
    y, scores = draw(200)
    y[:, 2] = np.where(np.cumsum(y[:, 2] == 1) > 5, NAN, y[:, 2])
    with pytest.warns(UserWarning, match=r"1 of 3 labels.*fewer than 9 .*coverage=0.9: rarely"):
        tuner = ConformalThresholds(y, scores).tuner(Coverage(0.9), NAMES)
    assert tuner.fitted()[2] == 0.0
    assert (tuner.fitted()[:2] > 0).all()


@pytest.mark.parametrize(
    ("coverage", "message"),
    [
        (Coverage(1.0), "'coverage' between 0 and 1, such as 0.9 (got 1.0)"),
        (Coverage(0), "got 0"),
        (Coverage(True), "got True"),
        (Coverage("0.9"), "got '0.9'"),
        (Coverage(0.9, "row"), "'coverage_per' to be one of label, sample (got 'row')"),
        (Coverage(0.99), "at least 99 samples to which one label applies"),
        (Coverage(0.999, "sample"), "at least 999 samples with labels"),
    ],
)
def test_impossible_coverages_are_refused(coverage, message):
    conformal = ConformalThresholds(*draw(200))
    with pytest.raises(ValueError, match=re.escape(message)):
        conformal.tuner(coverage, NAMES)
    with pytest.raises(ValueError, match="to which labels apply"):
        ConformalThresholds([[0, NAN]], [[0.1, 0.2]])


@pytest.mark.parametrize(
    "changes", [{"label": [3]}, {"row": [-1]}, {"score": [1.5]}, {"score": [0.1, 0.2]}]
)
def test_inconsistent_states_are_refused(changes):
    conformal = ConformalThresholds([[1, 0, NAN]], [[0.5, 0.2, 0.1]])
    state = conformal.state_dict()
    assert vars(ConformalThresholds.from_state(state)) == vars(conformal)
    arrays = {name: np.array(values) for name, values in changes.items()}
    with pytest.raises(ValueError, match="the conformal scores have to be"):
        ConformalThresholds.from_state({**state, **arrays})
