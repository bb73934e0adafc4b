import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_allclose

from tests.metrics.test_decisions import METRICS
from tests.nn.samples import through_a_file
from tg_mlc.metrics import LabelSets, ThresholdTuner, evaluate, micro_f1, tune_thresholds
from tg_mlc.metrics.thresholds import PAPER_GRID, STRENGTHS

NAN = float("nan")
TARGETS = np.random.default_rng(0).integers(0, 2, (40, 5))
SCORES = np.random.default_rng(1).random((40, 5))
rng = np.random.default_rng(0)
FREQUENCIES = np.array([0.5, 0.2, 0.05, 0.01])
Y_TRAIN = (rng.random((4000, 4)) < FREQUENCIES).astype(float)


@st.composite
def targets_and_scores(draw):
    shape = draw(array_shapes(min_dims=2, max_dims=2, max_side=6))
    y = draw(arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0, NAN])))
    # Some scores equal a threshold, which counts as positive.
    values = st.sampled_from([0.0, 0.005, *PAPER_GRID, 0.12, 0.97, 1.0])
    scores = draw(arrays(np.float64, shape, elements=values))
    return np.where(np.isnan(y).all(), 1.0, y), scores


def middle_of_longest_best_run(values):
    runs, best = [[]], max(values)
    for index, value in enumerate(values):
        if best - value < 1e-9:
            runs[-1].append(index)
        else:
            runs.append([])
    run = max(runs, key=len)
    return run[(len(run) - 1) // 2]


def test_the_paper_grid_has_27_thresholds():
    assert PAPER_GRID[:2] + PAPER_GRID[9:12] == (0.01, 0.02, 0.1, 0.15, 0.2)
    assert (len(PAPER_GRID), PAPER_GRID[-1]) == (27, 0.95)


@given(data=targets_and_scores())
def test_fit_equals_an_exhaustive_search(data):
    y, scores = data
    for metric, function in METRICS.items():
        values = [function(y, scores >= threshold) for threshold in PAPER_GRID]
        tuner = ThresholdTuner(metric).fit(y, scores)
        assert tuner.best_value == pytest.approx(max(values))
        assert tuner.threshold == PAPER_GRID[middle_of_longest_best_run(values)]
        np.testing.assert_array_equal(tuner.predict(scores), scores >= tuner.threshold)
    per_label = ThresholdTuner("f1_macro", per_label=True).fit(y, scores)
    for label, threshold in enumerate(per_label.thresholds):
        column, known = y[:, [label]], not np.isnan(y[:, label]).all()
        values = [micro_f1(column, scores[:, [label]] >= at) for at in PAPER_GRID if known] or [0.0]
        best = PAPER_GRID[middle_of_longest_best_run(values)] if max(values) > 0 else None
        assert threshold == (best or ThresholdTuner("f1_macro").fit(y, scores).threshold)


@pytest.mark.parametrize(
    ("y", "scores", "expected"),
    [
        *(([0, 1], [0.25, score], 0.4) for score in (0.65, 0.6, 0.55)),
        ([0, 1], [0.25, 0.3], 0.3),
        ([1, 0, 1], [0.15, 0.25, 0.55], 0.4),  # The threshold 0.1 is as good as 0.3 to 0.5.
    ],
)
def test_the_lower_middle_of_the_longest_plateau_is_taken(y, scores, expected):
    tuner = ThresholdTuner("subset_accuracy", grid=np.arange(1, 8) / 10)
    assert tuner.fit(np.c_[y], np.c_[scores]).threshold == expected


@pytest.mark.parametrize(
    ("zero_division", "threshold", "value"),
    [(0, 0.3, 1 / 4), (1, 0.5, 3 / 4), ("drop", 0.3, 1 / 3), ({"f1_samples": 0}, 0.3, 1 / 4)],
)
def test_zero_division_affects_the_threshold(zero_division, threshold, value):
    y, scores = [[0], [0], [0], [1]], [[0.4], [0.4], [0.1], [0.4]]
    tuner = ThresholdTuner("f1_samples", grid=[0.3, 0.5], zero_division=zero_division)
    assert tuner.fit(y, scores).threshold == threshold
    assert tuner.best_value == pytest.approx(value)


@pytest.mark.parametrize("method", ["shared", "per_label"])
def test_all_metrics_at_once_equal_one_by_one(method):
    tuners = tune_thresholds(TARGETS, SCORES, method)
    assert list(tuners) == list(METRICS)
    for metric, tuner in tuners.items():
        expected = ThresholdTuner(metric, per_label=method == "per_label").fit(TARGETS, SCORES)
        np.testing.assert_array_equal(tuner.thresholds, expected.thresholds)
    only = ["subset_accuracy"]
    assert list(tune_thresholds(TARGETS, SCORES, method, metrics=only)) == only


@pytest.mark.parametrize("per_label", [False, True])
def test_tuners_survive_a_weights_only_checkpoint(per_label):
    options = {"grid": [0.2, 0.4, 0.6], "zero_division": "drop"}
    options |= {"per_label": per_label}
    unfitted, tuner = (ThresholdTuner("f1_samples", **options) for _ in range(2))
    tuner.fit(TARGETS, SCORES)
    for saved in (unfitted, tuner):
        loaded = ThresholdTuner().load_state_dict(through_a_file(saved.state_dict()))
        assert repr(loaded) == repr(saved)
        assert (loaded.grid, loaded.zero_division) == ((0.2, 0.4, 0.6), "drop")
        assert loaded.best_value == saved.best_value
    np.testing.assert_array_equal(loaded.predict(SCORES), tuner.predict(SCORES))


def test_predict_returns_the_type_of_its_input():
    tuner = ThresholdTuner(grid=[0.5]).fit([[1, 0]], [[0.5, 0.2]])
    tensor = tuner.predict(torch.tensor([[0.5, 0.49]]))
    assert tensor.tolist() == [[1, 0]]
    assert tensor.dtype == torch.long
    assert isinstance(tuner.predict([[0.5, 0.49]]), np.ndarray)


def test_logits_need_a_grid_of_their_own():
    y, logits = [[1], [0]], [[3.0], [-2.0]]
    assert ThresholdTuner(grid=[-1, 0, 1, 5]).fit(y, logits).threshold == 0
    predict = ThresholdTuner().fit([[1]], [[0.3]]).predict
    for call in (ThresholdTuner().fit, lambda _, scores: predict(scores)):
        with pytest.raises(ValueError, match="apply a sigmoid"):
            call(y, logits)


PER_LABEL = ThresholdTuner(per_label=True).fit([[0, 1]], [[0.1, 0.9]])


def tuned(**change):
    options = {"method": "frequency", "y_train": Y_TRAIN, **change}
    return tune_thresholds(np.eye(9, 4), np.full((9, 4), 0.5), **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ThresholdTuner("F1"), "'metric' .*'F1'"),
        *(
            (lambda grid=grid: ThresholdTuner(grid=grid), "'grid'")
            for grid in ([], [0.2, 0.1], [0.1, 0.1], [0.1, NAN])
        ),
        (lambda: ThresholdTuner(zero_division="drop").fit([[0]], [[0.0]]), "f1_micro to be"),
        (lambda: ThresholdTuner().fit([[0]], [[NAN]]), "got nan"),
        (lambda: PER_LABEL.predict([[0.1, 0.2, 0.3]]), "one threshold or 3"),
        (lambda: tuned(y_train=Y_TRAIN[:, :3]), "'y_train' with 4 labels"),
        (lambda: tuned(strengths=()), "'strengths' to hold at least one"),
        (lambda: tuned(method="best"), "'method' to be one of shared, per_label, frequency, rank"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_thresholds_need_a_fit():
    with pytest.raises(RuntimeError, match="'fit' to be called"):
        ThresholdTuner().predict([[0.5]])
    with pytest.raises(RuntimeError, match="thresholds"):
        _ = PER_LABEL.threshold


def drawn(num_samples, scale, seed=0):
    """Returns random labels, and their probabilities times one factor per label."""
    random = np.random.default_rng(seed)
    probability = random.random((num_samples, len(scale))) ** 2
    return (random.random(probability.shape) < probability).astype(float), probability * scale


def test_labels_get_own_thresholds_where_scores_differ_in_scale():
    y, scores = drawn(2000, np.array([1.0, 0.1, 0.5]))
    tuner = tune_thresholds(y, scores, "cross_fitted", metrics=["f1_macro"])["f1_macro"]
    assert_allclose(tuner.fitted() / tuner.fitted()[0], [1.0, 0.1, 0.5], rtol=0.3)


def test_labels_with_few_samples_share_one_threshold():
    y, scores = drawn(40, np.ones(200))
    tuners = tune_thresholds(y, scores, "cross_fitted", metrics=["f1_micro"])
    assert tuners["f1_micro"].fitted().shape == (1,)


def test_cross_fitted_thresholds_beat_a_shared_one_on_new_samples():
    y, scores = drawn(3000, np.array([1.0, 0.2, 0.6, 0.4]))
    new = drawn(3000, np.array([1.0, 0.2, 0.6, 0.4]), seed=1)
    tuners = [tune_thresholds(y, scores, method) for method in ("cross_fitted", "shared")]
    cross_fitted, shared = (evaluate(*new, by_metric) for by_metric in tuners)
    gains = {metric: cross_fitted[metric] - shared[metric] for metric in METRICS}
    assert gains["f1_macro"] > 0.02
    assert min(gains.values()) > -0.01


def exclusive(num_samples, seed=0):
    """Returns targets with one label per sample, and uncertain scores."""
    random = np.random.default_rng(seed)
    y = np.eye(3)[random.integers(0, 3, num_samples)]
    return y, np.clip(0.35 + 0.2 * y + 0.1 * random.standard_normal(y.shape), 0, 1)


@pytest.mark.parametrize("known", [1.0, 0.5, 0.0])
def test_label_sets_are_used_where_better_on_held_out_samples(known):
    (y, scores), new = exclusive(400), exclusive(1000, seed=1)
    y[int(known * len(y)) :, 0] = NAN
    tuners, shared = (tune_thresholds(y, scores, method) for method in ("cross_fitted", "shared"))
    set_metrics = {metric for metric, tuner in tuners.items() if isinstance(tuner, LabelSets)}
    assert set_metrics == ({"subset_accuracy", "f1_samples"} if known else set())
    for metric in set_metrics:
        value = evaluate(*new, tuners)[metric]
        assert value > evaluate(*new, shared)[metric] + 0.05
        if known == 1:
            assert tuners[metric].best_value == pytest.approx(value, abs=0.05)


def test_label_sets_are_not_used_where_sets_hardly_recur():
    random = np.random.default_rng(0)
    y = (random.random((60, 30)) < 0.5).astype(float)
    scores = 0.1 + 0.8 * np.where(random.random(y.shape) < 0.02, 1 - y, y)
    assert not isinstance(tune_thresholds(y, scores, "cross_fitted")["subset_accuracy"], LabelSets)


def labels_and_scores(num_samples=4000):
    """Returns labels, and scores whose log odds are shifted by the log frequencies."""
    y = (rng.random((num_samples, 4)) < FREQUENCIES).astype(float)
    base_scores = 3 * (2 * y - 1) + 2 * rng.standard_normal(y.shape)
    return y, 1 / (1 + np.exp(-0.5 * base_scores - np.log(FREQUENCIES)))


def test_rare_labels_get_lower_thresholds_and_macro_f1_gains():
    (y, scores), (y_test, scores_test) = labels_and_scores(), labels_and_scores()
    shared = tune_thresholds(y, scores)
    by_frequency = tune_thresholds(y, scores, "frequency", y_train=Y_TRAIN)
    assert (np.diff(by_frequency["f1_macro"].thresholds) < 0).all()
    assert by_frequency["f1_macro"].best_value > shared["f1_macro"].best_value + 0.05
    actual, baseline = (evaluate(y_test, scores_test, tuners) for tuners in (by_frequency, shared))
    assert actual["f1_macro"] > baseline["f1_macro"] + 0.05


@pytest.mark.parametrize("strengths", [(0.0,), STRENGTHS])
@pytest.mark.parametrize("steps", [None, 20])
def test_best_value_is_the_value_at_the_thresholds(strengths, steps):
    y, scores = labels_and_scores(500)
    if steps:  # Votes of a few trees coincide with candidate thresholds.
        scores = np.round(scores * steps) / steps
    tuners = tune_thresholds(y, scores, "frequency", y_train=Y_TRAIN, strengths=strengths)
    for name, tuner in tuners.items():
        assert tuner.best_value == pytest.approx(evaluate(y, scores, tuner)[name])
        if strengths == (0.0,):
            reference = ThresholdTuner(name).fit(y, scores)
            np.testing.assert_array_equal(tuner.thresholds, np.full(4, reference.threshold))
            assert tuner.best_value == reference.best_value


def test_ties_keep_the_weakest_strength():
    y = np.array([[1.0, 1.0], [0.0, 0.0]])
    scores = np.array([[0.99, 0.99], [0.001, 0.001]])
    y_train = np.array([[1.0, 0.0]] * 9)
    tuner = tune_thresholds(y, scores, "frequency", y_train=y_train)["subset_accuracy"]
    assert tuner.best_value == 1.0
    assert tuner.thresholds[0] == tuner.thresholds[1]


def test_unknown_labels_count_neither_as_frequency_nor_as_error():
    y, scores = labels_and_scores(500)
    y_train = np.where(rng.random(Y_TRAIN.shape) < 0.5, np.nan, Y_TRAIN)
    reference = np.where(np.isnan(y_train), 0.0, y_train)
    assert not np.array_equal(np.nanmean(y_train, axis=0), reference.mean(axis=0))
    tuners = tune_thresholds(y, scores, "frequency", y_train=y_train, strengths=(0.5,))
    thresholds = tuners["f1_macro"].thresholds
    odds = np.log(thresholds / (1 - thresholds))
    frequencies = (np.nansum(y_train, axis=0) + 1) / ((~np.isnan(y_train)).sum(axis=0) + 2)
    assert_allclose(np.diff(odds), 0.5 * np.diff(np.log(frequencies)))


def rare(num_samples, scale, seed=0):
    """Returns rare labels, and scores that are higher for positives, with one scale per label."""
    random = np.random.default_rng(seed)
    y = (random.random((num_samples, len(scale))) < 0.02).astype(float)
    return y, np.clip(0.3 * y + random.random(y.shape) * 0.4, 0, 1) * scale


def test_labels_are_predicted_as_often_as_they_occur():
    y, scores = rare(500, np.array([1.0, 0.5, 0.1]))
    tuner = tune_thresholds(y, scores, "rank", metrics=["f1_macro"])["f1_macro"]
    predicted = tuner.predict(scores).sum(axis=0)
    assert (abs(predicted - predicted.sum() / y.sum() * y.sum(axis=0)) <= 1).all()
    assert tuner.best_value == pytest.approx(evaluate(y, scores, tuner)["f1_macro"])


def test_one_positive_with_a_low_score_does_not_lower_the_threshold():
    y, scores = np.zeros((9, 2)), np.full((9, 2), 0.1)
    y[:3, 0], scores[:3, 0] = 1, 0.9
    y[8, 1], scores[:, 1] = 1, np.linspace(0.2, 0.02, 9)
    assert 0.1 < tune_thresholds(y, scores, "rank")["f1_macro"].fitted()[1] <= 0.2
    assert tune_thresholds(y, scores, "per_label")["f1_macro"].fitted()[1] < 0.1


def test_labels_without_positives_are_not_predicted():
    y, scores = rare(50, np.ones(3))
    y[:, 0], scores[:, 1], y[:, 2], scores[:, 2] = 0, 0.5, np.nan, 0.9
    assert not tune_thresholds(y, scores, "rank")["f1_macro"].predict(scores).any()


@pytest.mark.parametrize("method", ["shared", "per_label", "frequency", "rank", "cross_fitted"])
def test_every_method_ignores_unknown_labels_and_refuses_logits(method):
    y, scores = drawn(500, np.ones(3))
    y[::2, 0] = NAN
    tuners = tune_thresholds(y, scores, method)
    for metric, tuner in tune_thresholds(y, np.where(np.isnan(y), 0.99, scores), method).items():
        if not isinstance(tuner, LabelSets):  # Label sets read the scores of other labels.
            assert (tuner.fitted() == tuners[metric].fitted()).all()
    loaded = ThresholdTuner().load_state_dict(tuners["f1_macro"].state_dict())
    expected = tuners["f1_macro"].predict(scores)
    np.testing.assert_array_equal(loaded.predict(torch.from_numpy(scores)), expected)
    with pytest.raises(ValueError, match="Expected probabilities"):
        tune_thresholds(y, scores * 10 - 5, method)
