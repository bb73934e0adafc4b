from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from iterstrat.ml_stratifiers import IterativeStratification

from tg_mlc.data import random_split, stratified_split
from tg_mlc.data.splits import stratified_folds

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
    """Mean deviation of the positives of each label and part from their fair share."""
    counts = np.stack([y[part_of == part].sum(axis=0) for part in range(3)])
    return np.abs(counts - np.outer(FRACTIONS, y.sum(axis=0))).mean()


@pytest.mark.parametrize(("num_samples", "num_labels"), [(500, 10), (1000, 40), (2000, 100)])
def test_it_is_as_good_as_the_reference_implementation(num_samples, num_labels):
    ours, theirs, by_chance = [], [], []
    for seed in range(4):
        y = random_labels(num_samples, num_labels, seed)
        oracle = IterativeStratification(y.astype(bool), FRACTIONS.copy(), np.random.RandomState(seed))
        split = stratified_split(y, seed=seed)
        assert split.sizes == random_split(num_samples).sizes
        ours.append(label_error(y, assignment(split)))
        theirs.append(label_error(y, oracle))
        by_chance.append(label_error(y, assignment(random_split(num_samples, seed=seed))))
    # The reference lets the sizes of the parts drift to save a little here.
    assert np.mean(ours) <= 1.2 * np.mean(theirs) + 0.02
    assert np.mean(ours) < 0.6 * np.mean(by_chance)


@pytest.mark.parametrize("name", ["sider", "nci"])
def test_it_is_as_good_as_the_reference_implementation_on_real_labels(name, request):
    y = request.getfixturevalue(name).y.numpy().astype(np.int64)
    oracle = IterativeStratification(y.astype(bool), FRACTIONS.copy(), np.random.RandomState(0))
    split = stratified_split(y)
    assert split.sizes == random_split(len(y)).sizes
    assert label_error(y, assignment(split)) <= 1.1 * label_error(y, oracle) + 0.02


@pytest.mark.parametrize(
    "convert", [torch.from_numpy, sp.csr_array, sp.csc_matrix, lambda y: torch.tensor(y).to_sparse()]
)
def test_sparse_and_dense_labels_give_the_same_split(convert):
    y = random_labels(300, 20)
    assert stratified_split(convert(y), seed=1) == stratified_split(y, seed=1)


def test_the_seed_determines_the_split():
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


def test_samples_without_labels_fill_the_parts():
    assert stratified_split(np.zeros((50, 4))).sizes == (40, 5, 5)


def test_other_fractions():
    y = random_labels(100, 5)
    assert stratified_split(y, (0.5, 0.0, 0.5)).sizes == (50, 0, 50)
    with pytest.raises(ValueError, match="'fractions'"):
        stratified_split(y, (0.5, 0.1, 0.1))


def test_the_report_names_labels():
    y = np.zeros((100, 2), dtype=int)
    y[::2, 0] = 1
    report = stratified_split(y, label_names=["common", "absent"]).report
    assert report == "no known positive anywhere for 1 of 2 labels: absent"
    with pytest.raises(ValueError, match="'label_names'"):
        stratified_split(y, label_names=["common"])


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


def test_a_data_set_is_not_what_it_takes():
    with pytest.raises(ValueError, match=r"'y' to be a matrix \(got object\).*of a data set take"):
        stratified_split(object())


def test_folds_share_out_every_label():
    y = (np.random.default_rng(0).random((103, 6)) < [0.5, 0.3, 0.2, 0.1, 0.1, 0.1]).astype(float)
    fold = stratified_folds(y, 5)
    assert sorted(np.bincount(fold)) == [20, 20, 21, 21, 21]
    positives = np.stack([y[fold == part].sum(axis=0) for part in range(5)])
    assert (positives.max(axis=0) - positives.min(axis=0) <= 2).all()


def test_refuses_more_folds_than_samples():
    with pytest.raises(ValueError, match="Expected 'num_folds' between 2 and the 3 samples"):
        stratified_folds(np.eye(3), 4)
