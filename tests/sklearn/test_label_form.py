from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tg_mlc.sklearn.label_form import LabelForm

MARGINS = np.array([[1.0, -1.0], [-1.0, 0.0]])


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([{"a"}, {"b"}], [{"a"}, {"b"}]),
        ([["a"], ["b"]], [{"a"}, {"b"}]),
        (pd.Series([{"a"}, {"b"}]), [{"a"}, {"b"}]),
        ([{7}, {8}], [{7}, {8}]),
        ([[1, 0], [0, 1]], [[1, 0], [0, 1]]),
        (np.array([[True, False], [False, True]]), [[True, False], [False, True]]),
    ],
)
def test_decisions_have_the_type_of_the_labels(y: Any, expected: Any) -> None:
    form, matrix = LabelForm.read(y)
    decisions = form.decide(MARGINS)
    assert (decisions if form.form == "sets" else decisions.tolist()) == expected
    np.testing.assert_array_equal(matrix, np.eye(2))
    np.testing.assert_array_equal(form.encode(y), matrix)


def test_two_classes_have_one_column() -> None:
    form, matrix = LabelForm.read(["no", "yes", "no"])
    assert matrix.tolist() == [[0], [1], [0]]
    assert form.names == ["yes"]
    assert form.decide(np.array([[0.5], [-0.5]])).tolist() == ["yes", "no"]
    assert form.probabilities(np.array([[0.25]])).tolist() == [[0.75, 0.25]]


def test_the_best_of_more_than_two_classes_is_predicted() -> None:
    form, matrix = LabelForm.read([3, 1, 2])
    assert matrix.tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert form.decide(np.array([[-3.0, -1.0, -2.0]])).tolist() == [2]
    assert form.probabilities(np.array([[0.1, 0.2, 0.1]])).tolist() == [[0.25, 0.5, 0.25]]
    with pytest.raises(ValueError, match=r"Expected 'y' to hold classes among .* \(got \[7\]\)"):
        form.encode([7, 1])


def test_a_column_of_one_label_is_a_matrix() -> None:
    assert LabelForm.read(np.array([[0], [1], [np.nan]]))[0].form == "matrix"
    with pytest.warns(UserWarning, match="column-vector"):
        assert LabelForm.read(np.array([[0], [1], [2]]))[0].form == "classes"
