from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from tg_mlc.metrics import (
    ThresholdTuner,
    example_f1,
    hamming_accuracy,
    macro_f1,
    micro_f1,
    subset_accuracy,
    tune_thresholds,
)
from tg_mlc.metrics.thresholds import PAPER_GRID

NAN = float("nan")
METRICS = {
    "subset_accuracy": subset_accuracy,
    "hamming_accuracy": hamming_accuracy,
    "f1_samples": example_f1,
    "f1_micro": micro_f1,
    "f1_macro": macro_f1,
}


@st.composite
def targets_and_scores(draw):
    shape = draw(array_shapes(min_dims=2, max_dims=2, max_side=6))
    y = draw(arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0, NAN])))
    # Scores on grid points and between them: a score equal to the threshold counts as positive.
    scores = draw(arrays(np.float64, shape, elements=st.sampled_from([0.0, 0.005, *PAPER_GRID, 0.12, 0.97, 1.0])))
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


def test_paper_grid():
    assert len(PAPER_GRID) == 27
    assert PAPER_GRID[:2] == (0.01, 0.02)
    assert PAPER_GRID[9:12] == (0.1, 0.15, 0.2)
    assert PAPER_GRID[-1] == 0.95


@pytest.mark.parametrize("metric", METRICS)
@given(data=targets_and_scores())
def test_finds_what_trying_every_threshold_finds(metric, data):
    y, scores = data
    values = [METRICS[metric](y, scores >= threshold) for threshold in PAPER_GRID]
    tuner = ThresholdTuner(metric).fit(y, scores)
    assert tuner.best_value == pytest.approx(max(values))
    assert tuner.threshold == PAPER_GRID[middle_of_longest_best_run(values)]
    np.testing.assert_array_equal(tuner.predict(scores), scores >= tuner.threshold)


@given(data=targets_and_scores())
def test_one_threshold_per_label_maximises_its_f1(data):
    y, scores = data
    tuner = ThresholdTuner("f1_macro", per_label=True).fit(y, scores)
    for label, threshold in enumerate(tuner.thresholds):
        column = y[:, [label]]
        if np.isnan(column).all():
            values = [0.0]
        else:
            values = [micro_f1(column, scores[:, [label]] >= candidate) for candidate in PAPER_GRID]
        if max(values) > 0:
            assert threshold == PAPER_GRID[middle_of_longest_best_run(values)]
        else:
            assert threshold == ThresholdTuner("f1_macro").fit(y, scores).threshold


def test_label_without_positives_takes_the_common_threshold():
    y = np.array([[1, 0, NAN], [0, 0, NAN]])
    scores = np.array([[0.62, 0.9, 0.9], [0.57, 0.1, 0.1]])
    tuner = ThresholdTuner(per_label=True, grid=[0.1, 0.6, 0.7]).fit(y, scores)
    np.testing.assert_array_equal(tuner.thresholds, [0.6, 0.6, 0.6])
    with pytest.raises(RuntimeError, match="thresholds"):
        _ = tuner.threshold


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        # Perfect between the scores: 0.3, 0.4, 0.5 and 0.6 tie, and the lower of the two middles is taken.
        ([[0.25], [0.65]], 0.4),
        ([[0.25], [0.6]], 0.4),
        ([[0.25], [0.55]], 0.4),
        ([[0.25], [0.3]], 0.3),
    ],
)
def test_ties_take_the_middle(scores, expected):
    tuner = ThresholdTuner("subset_accuracy", grid=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]).fit([[0], [1]], scores)
    assert tuner.threshold == expected


def test_of_several_plateaus_the_longest_is_taken():
    y, scores = [[1], [0], [1]], [[0.15], [0.25], [0.55]]
    tuner = ThresholdTuner("hamming_accuracy", grid=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).fit(y, scores)
    assert tuner.best_value == pytest.approx(2 / 3)  # at 0.1, and from 0.3 to 0.5
    assert tuner.threshold == 0.4


@pytest.mark.parametrize(
    ("zero_division", "threshold", "value"), [(0, 0.3, 1 / 4), (1, 0.5, 3 / 4), ("drop", 0.3, 1 / 3)]
)
@pytest.mark.parametrize("by_name", [False, True])
def test_zero_division_decides(zero_division, threshold, value, by_name):
    y, scores = [[0], [0], [0], [1]], [[0.4], [0.4], [0.1], [0.4]]
    chosen = {"f1_samples": zero_division} if by_name else zero_division
    tuner = ThresholdTuner("f1_samples", grid=[0.3, 0.5], zero_division=chosen).fit(y, scores)
    assert (tuner.threshold, tuner.best_value) == (threshold, pytest.approx(value))


def test_all_metrics_at_once_equal_one_by_one():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 2, (40, 5)), rng.random((40, 5))
    for per_label in (False, True):
        tuners = tune_thresholds(y, scores, "per_label" if per_label else "shared")
        assert list(tuners) == list(METRICS)
        for metric, tuner in tuners.items():
            expected = ThresholdTuner(metric, per_label=per_label).fit(y, scores)
            np.testing.assert_array_equal(tuner.thresholds, expected.thresholds)
    assert list(tune_thresholds(y, scores, metrics=["subset_accuracy"])) == ["subset_accuracy"]


@pytest.mark.parametrize("per_label", [False, True])
def test_survives_a_weights_only_checkpoint(per_label):
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 2, (40, 5)), rng.random((40, 5))
    tuner = ThresholdTuner("f1_samples", per_label=per_label, grid=[0.2, 0.4, 0.6], zero_division="drop").fit(y, scores)
    file = io.BytesIO()
    torch.save(tuner.state_dict(), file)
    file.seek(0)
    loaded = ThresholdTuner().load_state_dict(torch.load(file, weights_only=True))
    assert vars(loaded).keys() == vars(tuner).keys()
    assert repr(loaded) == repr(tuner)
    assert (loaded.grid, loaded.zero_division) == ((0.2, 0.4, 0.6), "drop")
    assert loaded.best_value == tuner.best_value
    np.testing.assert_array_equal(loaded.thresholds, tuner.thresholds)
    np.testing.assert_array_equal(loaded.predict(scores), tuner.predict(scores))


def test_unfitted_state_round_trip():
    loaded = ThresholdTuner().load_state_dict(ThresholdTuner("hamming_accuracy").state_dict())
    assert loaded.metric == "hamming_accuracy"
    assert loaded.thresholds is None


def test_predict_answers_in_kind():
    tuner = ThresholdTuner(grid=[0.5]).fit([[1, 0]], [[0.5, 0.2]])
    tensor = tuner.predict(torch.tensor([[0.5, 0.49]]))
    assert tensor.tolist() == [[1, 0]]
    assert tensor.dtype == torch.long
    assert isinstance(tuner.predict([[0.5, 0.49]]), np.ndarray)


def test_logits_need_a_grid_of_their_own():
    y, logits = [[1], [0]], [[3.0], [-2.0]]
    with pytest.raises(ValueError, match="apply a sigmoid"):
        ThresholdTuner().fit(y, logits)
    assert ThresholdTuner(grid=[-1, 0, 1, 5]).fit(y, logits).threshold == 0
    with pytest.raises(ValueError, match="apply a sigmoid"):
        ThresholdTuner().fit(y, [[0.3], [0.2]]).predict(logits)


def test_errors():
    with pytest.raises(ValueError, match=r"'metric' to be one of.*'F1'"):
        ThresholdTuner("F1")
    for grid in ([], [0.2, 0.1], [0.1, 0.1], [0.1, NAN]):
        with pytest.raises(ValueError, match="strictly increasing"):
            ThresholdTuner(grid=grid)
    with pytest.raises(RuntimeError, match="'fit' to be called"):
        ThresholdTuner().predict([[0.5]])
    with pytest.raises(ValueError, match="f1_micro to be defined"):
        ThresholdTuner("f1_micro", zero_division="drop").fit([[0]], [[0.0]])
    with pytest.raises(ValueError, match="got nan"):
        ThresholdTuner().fit([[0]], [[NAN]])
    tuner = ThresholdTuner(per_label=True).fit([[0, 1]], [[0.1, 0.9]])
    with pytest.raises(ValueError, match="one threshold or 3"):
        tuner.predict([[0.1, 0.2, 0.3]])
