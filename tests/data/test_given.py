from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from tg_mlc.data import given_labels
from tg_mlc.data.given import draw_given

LABELS = ["nausea", "rash", "fever"]
NAN = float("nan")


def assert_equal(given: torch.Tensor, expected: list[list[float]]) -> None:
    torch.testing.assert_close(given, torch.tensor(expected), equal_nan=True)


MATRIX = [[0.0, NAN, 1.0], [NAN, 1.0, NAN]]


@pytest.mark.parametrize(
    ("given", "batch_size", "expected"),
    [
        ({"fever": 1, "nausea": False}, 1, [[0.0, NAN, 1.0]]),
        ({"rash": 1.0, "fever": None}, 2, [[NAN, 1.0, NAN]] * 2),
        ({}, 1, [[NAN] * 3]),
        ([{"rash": 1}, {}, {"nausea": 0}], 1, [[NAN, 1, NAN], [NAN] * 3, [0, NAN, NAN]]),
        *((convert(MATRIX), 1, MATRIX) for convert in (list, np.array, torch.tensor)),
    ],
)
def test_given_labels_by_name_or_as_a_matrix_become_a_tensor(given, batch_size, expected):
    assert_equal(given_labels(LABELS, given, batch_size), expected)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_labels_without_a_column_of_the_data_frame_are_not_given(library):
    frame = pytest.importorskip(library).DataFrame({"fever": [1.0, None], "nausea": [0, 1]})
    assert_equal(given_labels(LABELS, frame), [[0.0, NAN, 1.0], [1.0, NAN, NAN]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cough": 1}, r"such as \['nausea', .*\(got \['cough'\]\)"),
        ([{}, {"cough": 1}], r"got \['cough'\]"),
        ({"rash": 2}, r"0, 1 or NaN \(got 2 in row 0, column 1: label 'rash'\)"),
        ([[0.0, 0.5, 1.0]], r"0, 1 or NaN \(got 0\.5 in row 0, column 1: label 'rash'\)"),
        ({"rash": [1, 0]}, r"pass a list of mappings"),
        ({"rash": "maybe"}, r"\(got 'maybe' in row 0"),
        ([[0.0, 1.0]], r"'given' to be .*a column for each of 3 labels \(got shape \[1, 2\]\)"),
        ("rash", r"'given' to be a mapping from names.*\(got 'rash'\)"),
        ([{"rash": 1}, None], r"a list of one for each sample.*\(got \[\{'rash': 1\}, None\]\)"),
        ([{"cough": 1}] * 2, r"\(got \['cough'\]\)"),
        (pd.DataFrame([[0, 1]], columns=["rash", "rash"]), "columns of given' to be unique"),
    ],
)
def test_wrong_given_labels_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        given_labels(LABELS, given)


@pytest.mark.parametrize("present_only", [False, True])
def test_masks_give_a_fraction_of_known_labels(present_only):
    y = torch.tensor([[1.0, 0.0, NAN]]).repeat(2000, 1)
    given, targets = draw_given(y, 0.7, torch.Generator().manual_seed(0), present_only=present_only)
    is_given = ~given.isnan()
    assert torch.equal(is_given ^ ~targets.isnan(), ~y.isnan())
    assert torch.equal(given[is_given], y[is_given])
    assert torch.equal(targets[~targets.isnan()], y[~targets.isnan()])
    means = is_given.float().mean(dim=0).tolist()
    assert means == pytest.approx([0.35, 0.0 if present_only else 0.35, 0.0], abs=0.03)


def test_masks_follow_the_generator():
    y = torch.ones(20, 5)
    torch.manual_seed(0)
    default_given, _ = draw_given(y, 0.7)
    given, other = (draw_given(y, 0.7, torch.Generator().manual_seed(seed))[0] for seed in (0, 1))
    torch.testing.assert_close(default_given, given, equal_nan=True)
    assert not torch.equal(given.isnan(), other.isnan())
