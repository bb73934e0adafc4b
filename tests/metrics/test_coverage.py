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
        known = applies.any(axis=1).sum() / 2
        known = applies.sum(axis=0).mean() if per == "label" else known
        sizes.append(1 / (known + 1))
    noise = 3 * np.std(actual) / 10
    assert share - noise < np.mean(actual) < share + np.mean(sizes) + noise


def test_a_label_has_the_threshold_of_mapie():
    """Conformal prediction of one class, by its samples, is what MAPIE computes of them."""
    mapie = pytest.importorskip("mapie.classification")
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Scores(ClassifierMixin, BaseEstimator):
        classes_ = np.array([0, 1])

        def fit(self, x, y):
            return self

        def __sklearn_is_fitted__(self):
            return True

        def predict_proba(self, x):
            return np.stack([1 - x[:, 0], x[:, 0]], axis=1)

        def predict(self, x):
            return (x[:, 0] > 0.5).astype(int)

    y, scores = draw(300)
    tuner = ConformalThresholds(y[:200], scores[:200]).tuner(Coverage(0.85), NAMES)
    for label in range(3):
        known = scores[:200, label][y[:200, label] == 1]
        theirs = mapie.SplitConformalClassifier(Scores(), confidence_level=0.85, prefit=True)
        theirs.conformalize(known[:, None], np.ones(len(known), int))
        _, sets = theirs.predict_set(scores[200:, [label]])
        np.testing.assert_array_equal(tuner.predict(scores[200:])[:, label], sets[:, 1, 0])


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
        (Coverage(0.99), "at least 99 samples of a label that applies to them"),
        (Coverage(0.999, "sample"), "at least 999 samples to which a label applies"),
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
