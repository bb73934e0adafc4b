import time
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from iterstrat.ml_stratifiers import IterativeStratification

from tg_mlc.data import Split, predefined_split, random_split, stratified_split
from tg_mlc.data.splits import coverage_report, part_sizes, sparse_labels, stratified_folds


def make(train=(4, 0), val=(2,), test=(1, 3), name="mine", report=None):
    return Split(torch.tensor(train), torch.tensor(val), torch.tensor(test), name, report)


def test_parts_are_sorted_long_tensors():
    split = make()
    assert split.train.tolist() == [0, 4]
    assert all(part.dtype == torch.long for part in split.parts)
    assert (split.sizes, split.num_samples) == ((2, 1, 2), 5)
    assert repr(split) == f"Split(name='mine', train=2, val=1, test=2, hash='{split.hash[:12]}')"
    assigned = Split.from_assignment(np.array([0, 2, 1, 2, 0]), "mine")
    assert (assigned, assigned.report) == (split, None)
    assert Split(torch.arange(3), torch.tensor([]), torch.tensor([]), "all").sizes == (3, 0, 0)
    with pytest.raises(FrozenInstanceError):
        split.train = torch.tensor([1])


def test_the_hash_depends_on_the_contents_only():
    assert make() == make(train=(0, 4), name="other", report="text")
    assert make() != "split"
    others = [make(train=(0,)), make(val=(4,), train=(0, 2)), make(train=(2,), val=(4, 0))]
    assert len({make(), make(name="other"), make(test=(1, 5)), *others}) == 5


def test_hashes_never_change():
    digest = "9b77b5ae019df19a5cb8f0a72c5a720dbc68e0fe3fe8b7459c96ecde092ff1cf"
    assert make().hash == digest
    digest = "92f834a220d08cb5260f48b94f4bd359a8c65e0f13ce7ea83cc81061c2f73eaf"
    assert random_split(1427, seed=0).hash == digest


def test_check_fits_compares_numbers_of_samples(recwarn):
    split = make(train=(0, 3), val=(1,), test=(2, 4))
    split.check_fits(5)
    assert not recwarn
    with pytest.raises(ValueError, match=r"\(got 4 samples, and sample 4 in the split\)"):
        split.check_fits(4, "'y'")
    with pytest.warns(UserWarning, match="leaves out 2 of 7 samples of 'dataset'"):
        split.check_fits(7)


@pytest.mark.parametrize(
    ("num_samples", "fractions", "sizes"),
    [
        (1427, (0.8, 0.1, 0.1), [1141, 143, 143]),  # The papers use these sizes.
        (100, (0.8, 0.1, 0.1), [80, 10, 10]),
        (10, (0.7, 0.2, 0.1), [7, 2, 1]),
        (3, (1 / 3, 1 / 3, 1 / 3), [1, 1, 1]),
        (7, (0.5, 0.0, 0.5), [4, 0, 3]),
        (5, (1.0, 0.0, 0.0), [5, 0, 0]),
        (7_000_003, (0.8, 0.1, 0.1), [5_600_003, 700_000, 700_000]),
    ],
)
def test_part_sizes_are_rounded_fractions(num_samples, fractions, sizes):
    assert part_sizes(num_samples, fractions).tolist() == sizes


ODD = float("nan"), 0.5, 0.5
ZEROS = np.zeros((2, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make(val=(4,)), r"sample 4 more than once, in \['train', 'val'\]"),
        (lambda: make(train=(0, 0)), r"sample 0 more than once, in \['train'\]"),
        (lambda: make(test=(-1,)), "'test'.*at least 0.*got -1"),
        (lambda: make(test=(0.5,)), "'test'.*integers"),
        (lambda: make(test=(True, False)), "'test'.*integers"),
        (lambda: make(test=((1, 3),)), r"'test'.*one-dimensional.*\[1, 2\]"),
        *(
            (lambda fractions=fractions: part_sizes(100, fractions), "Expected 'fractions'")
            for fractions in ((0.8, 0.2), (0.8, 0.3, -0.1), (0.8, 0.1, 0.2), (0.5, 0.2, 0.2), ODD)
        ),
        (lambda: part_sizes(100, 0.5), "Expected 'fractions'"),
        (lambda: part_sizes(100, ("a", 0, 1)), "Expected 'fractions'"),
        (lambda: part_sizes(3, (0.8, 0.1, 0.1)), r"got 3 samples.*\[3, 0, 0\]"),
        (lambda: random_split(object()), r"a whole number \(got object\).*of a data set take"),
        (lambda: predefined_split([0, 1], [1], [2], 5), "sample 1 more than once"),
        (lambda: predefined_split([0], [1], [5], 5), "'test' .* below num_samples=5 .got 5"),
        (lambda: predefined_split([-1], [1], [2], 5), "'train'.*at least 0"),
        (lambda: stratified_split(ZEROS, (0.5, 0.1, 0.1)), "'fractions'"),
        (lambda: stratified_split(ZEROS, label_names=["a"]), "'label_names'"),
        (lambda: stratified_split(object()), r"'y' .*a matrix \(got object\).*of a data set take"),
        (lambda: stratified_folds(np.eye(3), 4), "'num_folds' between 2 and the 3 samples"),
        (lambda: sparse_labels(ZEROS, ["a"]), r"'label_names' .* of the 3 columns \(got 1"),
        (lambda: sparse_labels(torch.ones(3)), r"\[num_samples, num_labels\]"),
        (lambda: sparse_labels(np.array([[0.5]])), "0, 1, or NaN"),
        (lambda: sparse_labels(np.array([[2]])), "0, 1, or NaN"),
        (lambda: sparse_labels(sp.csr_array([[-1.0]])), "0, 1, or NaN"),
        (lambda: sparse_labels(torch.tensor([[np.inf]])), "0, 1, or NaN"),
    ],
)
def test_wrong_splits_and_labels_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


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
def test_all_matrix_types_give_the_same_labels(convert):
    labels = sparse_labels(convert(DENSE))
    assert (labels.positive.toarray() == (DENSE == 1)).all()
    assert (labels.unknown.toarray() == np.isnan(DENSE)).all()
    assert labels.positive.shape == labels.unknown.shape == (4, 3)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.long, torch.bfloat16])
def test_labels_may_have_any_dtype(dtype):
    y = torch.tensor([[1, 0], [0, 1]], dtype=dtype)
    assert sparse_labels(y).positive.toarray().tolist() == [[1, 0], [0, 1]]


def test_class_counts_skip_unknown_labels():
    counts = sparse_labels(DENSE).class_counts(np.array([0, 1, 0, 1]), 3)
    assert counts.tolist() == [[0, 1, 1, 2, 0, 0], [2, 1, 0, 0, 1, 2], [0, 0, 0, 0, 0, 0]]


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


def test_coverage_report_names_parts_of_unknowns_but_not_empty_parts():
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


def test_the_seed_determines_the_split():
    assert random_split(100, seed=3) == random_split(100, seed=3)
    assert len({random_split(100, seed=seed).hash for seed in range(20)}) == 20


def test_predefined_split_accepts_lists_and_tensors():
    split = predefined_split([3, 0], torch.tensor([1]), [], num_samples=5)
    assert [part.tolist() for part in split.parts] == [[0, 3], [1], []]
    assert split.name == "predefined"
    assert split.report == "2 of 5 samples are in no part"


FRACTIONS = np.array([0.8, 0.1, 0.1])


def random_labels(num_samples, num_labels, seed=0):
    rng = np.random.default_rng(seed)
    rates = rng.beta(0.5, 4, num_labels)
    return (rng.random((num_samples, num_labels)) < rates).astype(np.int64)


def assignment(split):
    part_of = np.empty(split.num_samples, dtype=int)
    for number, part in enumerate(split.parts):
        part_of[part.numpy()] = number
    return part_of


def label_error(y, part_of):
    """Returns the mean deviation of positives per label and part from the proportional count."""
    counts = np.stack([y[part_of == part].sum(axis=0) for part in range(3)])
    return np.abs(counts - np.outer(FRACTIONS, y.sum(axis=0))).mean()


@pytest.mark.parametrize(("num_samples", "num_labels"), [(500, 10), (1000, 40), (2000, 100)])
def test_stratification_is_as_good_as_the_reference(num_samples, num_labels):
    errors, reference_errors, random_errors = [], [], []
    for seed in range(4):
        y = random_labels(num_samples, num_labels, seed)
        random = np.random.RandomState(seed)
        reference_parts = IterativeStratification(y.astype(bool), FRACTIONS.copy(), random)
        split = stratified_split(y, seed=seed)
        assert split.sizes == random_split(num_samples).sizes
        errors.append(label_error(y, assignment(split)))
        reference_errors.append(label_error(y, reference_parts))
        random_errors.append(label_error(y, assignment(random_split(num_samples, seed=seed))))
    # The reference lets part sizes drift, which lowers its error a little.
    assert np.mean(errors) <= 1.2 * np.mean(reference_errors) + 0.02
    assert np.mean(errors) < 0.6 * np.mean(random_errors)


@pytest.mark.parametrize(
    "convert",
    [torch.from_numpy, sp.csr_array, sp.csc_matrix, lambda y: torch.tensor(y).to_sparse()],
)
def test_sparse_and_dense_labels_give_the_same_split(convert):
    y = random_labels(300, 20)
    assert stratified_split(convert(y), seed=1) == stratified_split(y, seed=1)


def test_seed_determines_the_stratified_split():
    y = random_labels(200, 5)
    assert stratified_split(y, seed=1) == stratified_split(y, seed=1)
    assert len({stratified_split(y, seed=seed).hash for seed in range(5)}) == 5


def test_unknown_labels_are_not_counted():
    y = random_labels(300, 8).astype(float)
    unknown = y.copy()
    unknown[(y == 0) & (np.random.default_rng(0).random(y.shape) < 0.5)] = np.nan
    assert stratified_split(unknown) == stratified_split(y)


def test_a_rare_label_reaches_every_part():
    y = np.zeros((1000, 3), dtype=int)
    y[:10, 0] = y[::2, 1] = 1
    for seed in range(5):
        counts = [y[part.numpy(), 0].sum() for part in stratified_split(y, seed=seed).parts]
        assert counts == [8, 1, 1]


def test_the_report_names_labels():
    y = np.zeros((100, 2), dtype=int)
    y[::2, 0] = 1
    report = stratified_split(y, label_names=["common", "absent"]).report
    assert report == "no known positive anywhere for 1 of 2 labels: absent"
    assert stratified_split(np.zeros((50, 4)), (0.5, 0.0, 0.5)).sizes == (25, 0, 25)


def test_many_labels_stay_sparse_and_quick():
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(20_000), 4), rng.zipf(1.3, 80_000) % 20_000
    y = sp.csr_array((np.ones(80_000), (rows, columns)), shape=(20_000, 20_000))
    y.data[:] = 1
    y.sum_duplicates()
    y.data[:] = 1
    start = time.process_time()
    split = stratified_split(y)
    assert split.sizes == (16_000, 2000, 2000)
    assert time.process_time() - start < 20


def test_folds_distribute_every_label_evenly():
    y = (np.random.default_rng(0).random((103, 6)) < [0.5, 0.3, 0.2, 0.1, 0.1, 0.1]).astype(float)
    fold = stratified_folds(y, 5)
    assert sorted(np.bincount(fold)) == [20, 20, 21, 21, 21]
    positives = np.stack([y[fold == part].sum(axis=0) for part in range(5)])
    assert (positives.max(axis=0) - positives.min(axis=0) <= 2).all()
