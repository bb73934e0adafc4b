from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tg_mlc.data.splits._labels import coverage_report, sparse_labels

DENSE = np.array([[1.0, 0.0, np.nan], [0.0, 0.0, 1.0], [1.0, np.nan, 0.0], [0.0, 1.0, 1.0]])


@pytest.mark.parametrize(
    "convert",
    [
        lambda y: y,
        torch.from_numpy,
        lambda y: torch.from_numpy(y).float(),
        sp.csr_matrix,
        sp.csr_array,
        sp.coo_array,
        sp.lil_matrix,
        lambda y: torch.from_numpy(y).to_sparse(),
        lambda y: torch.from_numpy(y).to_sparse_csr(),
    ],
)
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_all_kinds_of_matrices_read_alike(convert):
    labels = sparse_labels(convert(DENSE))
    assert (labels.positive.toarray() == (DENSE == 1)).all()
    assert (labels.unknown.toarray() == np.isnan(DENSE)).all()
    assert (labels.num_samples, labels.num_labels) == (4, 3)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.long, torch.bfloat16])
def test_types_of_tensors(dtype):
    y = torch.tensor([[1, 0], [0, 1]], dtype=dtype)
    assert sparse_labels(y).positive.toarray().tolist() == [[1, 0], [0, 1]]


def test_class_counts_leave_unknowns_out():
    counts = sparse_labels(DENSE).class_counts(np.array([0, 1, 0, 1]), 3)
    assert counts.tolist() == [[0, 1, 1, 2, 0, 0], [2, 1, 0, 0, 1, 2], [0, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("y", [np.array([[0.5]]), np.array([[2]]), sp.csr_array([[-1.0]]), torch.tensor([[np.inf]])])
def test_other_values_are_refused(y):
    with pytest.raises(ValueError, match="0, 1, or NaN"):
        sparse_labels(y)


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"\[num_samples, num_labels\]"):
        sparse_labels(torch.ones(3))


def test_coverage_report_names_labels_and_parts():
    y = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, np.nan], [0, 1, 0]])
    part_of = np.array([0, 0, 1, 1, 2, 2])
    report = coverage_report(sparse_labels(y), part_of, ["a", "b", "c"])
    assert report.splitlines() == [
        "no known positive anywhere for 1 of 3 labels: c",
        "no known positive in val for 1 of 3 labels: b",
        "no known positive in test for 1 of 3 labels: a",
    ]
    assert "in val for 1 of 3 labels: 1" in coverage_report(sparse_labels(y), part_of, None)


def test_coverage_report_tells_parts_of_unknowns_from_empty_ones():
    y = np.array([[1.0], [0.0], [np.nan]])
    assert coverage_report(sparse_labels(y), np.array([0, 0, 0]), None).startswith("both classes")
    assert coverage_report(sparse_labels(y), np.array([0, 0, 2]), ["a"]).splitlines() == [
        "no known negative in test for 1 of 1 labels: a",
        "no known positive in test for 1 of 1 labels: a",
    ]


def test_coverage_report_shortens_long_lists():
    y = np.zeros((4, 200))
    y[0] = y[2, :100] = 1
    assert "and 60 more" in coverage_report(sparse_labels(y), np.array([0, 0, 1, 1]), None)


def test_names_are_one_for_each_label():
    assert sparse_labels(np.zeros((2, 3)), ["a", "b", "c"]).num_labels == 3
    with pytest.raises(ValueError, match=r"'label_names' to name each of the 3 columns \(got 1"):
        sparse_labels(np.zeros((2, 3)), ["a"])
