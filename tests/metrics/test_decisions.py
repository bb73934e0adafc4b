import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_allclose
from sklearn.metrics import accuracy_score, f1_score

from tg_mlc.metrics import example_f1, hamming_accuracy, macro_f1, micro_f1, subset_accuracy

NAN = float("nan")
METRICS = {
    "subset_accuracy": subset_accuracy,
    "hamming_accuracy": hamming_accuracy,
    "f1_samples": example_f1,
    "f1_micro": micro_f1,
    "f1_macro": macro_f1,
}
SKLEARN_ZERO_DIVISION = {0: 0.0, 1: 1.0, "drop": np.nan}


@st.composite
def targets_and_decisions(draw):
    shape = draw(array_shapes(min_dims=2, max_dims=2, max_side=6))
    targets = arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0, NAN]))
    y = draw(targets.filter(lambda y: not np.isnan(y).all()))
    return y, draw(arrays(np.int64, shape, elements=st.integers(0, 1)))


def mean_f1(y, p, zero_division):
    """Returns the mean over rows of scikit-learn's F1 on observed entries."""
    rows = [(row, pred, ~np.isnan(row)) for row, pred in zip(y, p, strict=True)]
    options = {"zero_division": SKLEARN_ZERO_DIVISION[zero_division]}
    observed = [(row[known], pred[known]) for row, pred, known in rows if known.any()]
    values = [f1_score(*pair, **options) for pair in observed]
    return np.nan if np.isnan(values).all() else np.nanmean(values)


@settings(max_examples=60)
@given(targets_and_decisions(), st.sampled_from([0, 1, "drop"]))
def test_metrics_equal_sklearn_on_observed_entries(data, zero_division):
    y, p = data
    observed = ~np.isnan(y)
    pooled = f1_score(y[observed], p[observed], zero_division=SKLEARN_ZERO_DIVISION[zero_division])
    assert_allclose(example_f1(y, p, zero_division=zero_division), mean_f1(y, p, zero_division))
    assert_allclose(macro_f1(y, p, zero_division=zero_division), mean_f1(y.T, p.T, zero_division))
    assert_allclose(micro_f1(y, p, zero_division=zero_division), pooled)
    rows = zip(y, p, observed, strict=True)
    exact = [(row[known] == pred[known]).all() for row, pred, known in rows if known.any()]
    assert_allclose(subset_accuracy(y, p), np.mean(exact))
    assert_allclose(hamming_accuracy(y, p), accuracy_score(y[observed], p[observed]))
    for metric in METRICS.values():
        assert metric(y, p) == metric(y, np.where(observed, p, 1 - p))


def test_metrics_without_positives_have_default_values():
    y = p = np.zeros((2, 3))
    assert [metric(y, p) for metric in METRICS.values()] == [1, 1, 1, 0, 0]
    assert np.isnan(macro_f1(y, p, zero_division="drop"))
    with pytest.raises(ValueError, match=r"'zero_division' .*\(got 2\)"):
        macro_f1(y, p, zero_division=2)


def test_tensors_and_lists_are_read_like_arrays():
    y, p = [[1, NAN], [0, 1]], [[True, False], [True, True]]
    expected = micro_f1(np.array(y), np.array(p))
    for targets in (y, torch.tensor(y, dtype=torch.bfloat16), torch.tensor(y, requires_grad=True)):
        assert micro_f1(targets, p) == micro_f1(targets, torch.tensor(p)) == expected


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([[0, 2]], [[0, 1]], r"'y_true' to hold 0, 1 or NaN \(unknown\) \(got 2.0 at \[0, 1\]\)"),
        ([[0, -1]], [[0, 1]], "got -1.0"),
        ([[0, float("inf")]], [[0, 1]], "got inf"),
        ([[0, 1]], [[0.3, 1]], "'y_pred' to hold 0 or 1"),
        ([[0, 1]], [[NAN, 1]], "got nan"),
        ([[0, 1]], [[1]], r"shape of the targets, \[1, 2\] \(got \[1, 1\]\)"),
        ([0, 1], [0, 1], r"'y_true' of shape \[num_samples, num_labels\]"),
        (np.zeros((0, 3)), np.zeros((0, 3)), "not empty"),
        ([[NAN, NAN]], [[0, 1]], "at least one observed label"),
    ],
)
def test_bad_inputs_are_named(y, p, message):
    with pytest.raises(ValueError, match=message):
        subset_accuracy(y, p)
