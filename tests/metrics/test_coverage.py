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
    """The share of what applies that sets hold: of each label, or the mean over samples."""
    positive, held = y == 1, (y == 1) & (decisions == 1)
    if per == "label":
        return held.sum(axis=0) / positive.sum(axis=0)
    some = positive.any(axis=1)
    return held.sum(axis=1)[some] / positive.sum(axis=1)[some]


@pytest.mark.parametrize("per", ["label", "sample"])
@pytest.mark.parametrize("share", [0.8, 0.95])
def test_sets_of_new_samples_hold_what_was_promised_and_hardly_more(per, share):
    actual, sizes = [], []
    for seed in range(100):
        y, scores = draw(700, seed)
        conformal = ConformalThresholds(y[:200], scores[:200])
        sets = conformal.tuner(Coverage(share, per), NAMES).predict(scores[200:])
        actual.append(covered(y[200:], sets, per).mean())
        applies = y[:200] == 1
        known = applies.sum(axis=0).mean() if per == "label" else applies.any(axis=1).sum() / 2
        sizes.append(1 / (known + 1))
    noise = 3 * np.std(actual) / 10
    assert share - noise < np.mean(actual) < share + np.mean(sizes) + noise


def test_samples_have_the_threshold_of_mapie():
    risk_control = pytest.importorskip("mapie.risk_control")
    y, scores = draw(100)
    y = np.where(np.isnan(y), 0, y)  # which MAPIE does not know
    y[~y.any(axis=1), 0] = 1  # nor samples without labels
    mine = ConformalThresholds(y, scores).tuner(Coverage(0.9, "sample"), NAMES).fitted()[0]
    grid = np.linspace(0.0, 1.0, 201)
    options = {"risk": "recall", "method": "crc", "target_level": 0.9, "predict_params": grid}
    theirs = risk_control.MultiLabelClassificationController(lambda x: x, **options)
    theirs.calibrate(scores, y)
    assert mine - 2 * grid[1] <= theirs.best_predict_param[0] <= mine


def test_ties_and_bounds_by_hand():
    y = np.array([[1.0]] * 4 + [[0.0]] * 4)
    scores = np.array([[0.4], [0.2], [0.2], [0.8], [0.9], [0.9], [0.9], [0.1]])
    conformal = ConformalThresholds(y, scores)
    for share, threshold in ((0.8, 0.2), (0.5, 0.2), (0.39, 0.4), (0.2, 0.8)):
        assert conformal.tuner(Coverage(share), ["a"]).fitted() == [threshold]
    # At a coverage of 0.6, one of four samples may be missed: (4 * 1/4 + 1)/5 = 2/5.
    assert conformal.tuner(Coverage(0.6, "sample"), ["a"]).fitted() == [0.2]
    assert conformal.tuner(Coverage(0.4, "sample"), ["a"]).fitted() == [0.4]


def test_labels_of_few_samples_are_held_by_all_sets_and_named():
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
def test_coverages_that_cannot_be_promised_are_refused(coverage, message):
    conformal = ConformalThresholds(*draw(200))
    with pytest.raises(ValueError, match=re.escape(message)):
        conformal.tuner(coverage, NAMES)
    with pytest.raises(ValueError, match="to which labels apply"):
        ConformalThresholds([[0, NAN]], [[0.1, 0.2]])


@pytest.mark.parametrize(
    "wrong", [{"label": [3]}, {"row": [-1]}, {"score": [1.5]}, {"score": [0.1, 0.2]}]
)
def test_states_that_are_inconsistent_are_refused(wrong):
    conformal = ConformalThresholds([[1, 0, NAN]], [[0.5, 0.2, 0.1]])
    state = conformal.state_dict()
    assert vars(ConformalThresholds.from_state(state)) == vars(conformal)
    arrays = {name: np.array(values) for name, values in wrong.items()}
    with pytest.raises(ValueError, match="the scores of label sets have to be"):
        ConformalThresholds.from_state({**state, **arrays})
