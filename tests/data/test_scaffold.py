from functools import cache

import numpy as np
import pytest
import torch

from tg_mlc.data import scaffold, scaffold_split
from tg_mlc.data.scaffold import Groups, murcko_scaffolds

_scaffold_of = cache(lambda smiles: murcko_scaffolds([smiles])[0])


def scaffolds_of(smiles):
    """Returns scaffolds, which are cached because each takes milliseconds."""
    return [_scaffold_of(molecule) for molecule in smiles]


@pytest.fixture
def _scaffolds_once(monkeypatch):
    monkeypatch.setattr(scaffold, "murcko_scaffolds", scaffolds_of)


def parts_by_scaffold(smiles, split):
    """Returns the numbers of the parts in which a scaffold occurs, by scaffold."""
    scaffolds = scaffolds_of(smiles)
    parts = {}
    for number, part in enumerate(split.parts):
        for index in part.tolist():
            parts.setdefault(scaffolds[index], set()).add(number)
    return parts


def count_missing_classes(split, y):
    """Returns how often a part lacks a class that a label has elsewhere."""
    absent = 0
    for value in (0, 1):
        present = torch.stack([(y[part] == value).any(dim=0) for part in split.parts])
        absent += (~present[:, (y == value).any(dim=0)]).sum().item()
    return absent


def test_scaffolds_are_rings_without_side_chains():
    molecules = ["CC(=O)Oc1ccccc1C(=O)O", "Cc1ccccc1", "CCO", "C[C@H]1CCCC[C@@H]1O", "C1CCCCC1.CC"]
    assert murcko_scaffolds(molecules) == ["c1ccccc1", "c1ccccc1", "", "C1CCCCC1", "C1CCCCC1"]


@pytest.mark.usefixtures("_scaffolds_once")
@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.slow
def test_scaffolds_and_classes_of_sider_are_split_well(sider, seed):
    split = scaffold_split(sider.smiles, sider.y, seed=seed, label_names=sider.label_names)
    assert all(len(parts) == 1 for parts in parts_by_scaffold(sider.smiles, split).values())
    assert torch.cat(split.parts).sort().values.equal(torch.arange(1427))
    assert split.sizes == (1141, 143, 143)
    assert count_missing_classes(split, sider.y) == 0
    scaffolds, classes = split.report.splitlines()
    assert scaffolds == "824 scaffolds, the largest with 154 molecules"
    assert classes == "both classes of all 27 labels in every part"


@pytest.mark.usefixtures("_scaffolds_once")
def test_without_a_seed_test_has_the_rarest_scaffolds(sider):
    smiles = sider.smiles[:500]
    scaffolds = scaffolds_of(smiles)
    split = scaffold_split(smiles)
    assert max(scaffolds.count(scaffolds[index]) for index in split.test.tolist()) == 1
    largest = max(scaffolds.count(scaffold) for scaffold in scaffolds)
    assert split.report == f"{len(set(scaffolds))} scaffolds, the largest with {largest} molecules"


@pytest.mark.usefixtures("_scaffolds_once")
def test_scaffold_split_is_deterministic(sider):
    def split(seed):
        return scaffold_split(sider.smiles[:100], sider.y[:100], seed=seed).hash

    assert [split(seed) for seed in (None, 0, 1)] == [split(seed) for seed in (None, 0, 1)]
    assert len({split(seed) for seed in (None, 0, 1, 2)}) == 4


RINGS = ["C1CC1", "C1CCC1", "C1CCCC1", "C1CCCCC1", "c1ccccc1"]
RINGS += ["c1ccncc1", "C1CCNCC1", "C1CCOCC1", "c1ccoc1", "c1ccsc1"]


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_both_classes_reach_every_part_where_possible(seed):
    y = torch.zeros(10, 2)
    y[:3, 0] = 1  # Every part can have a positive.
    y[:2, 1] = 1  # Only two parts can have a positive.
    split = scaffold_split(RINGS, y, (0.6, 0.2, 0.2), seed=seed, label_names=["enough", "rare"])
    assert split.sizes == (6, 2, 2)
    assert count_missing_classes(split, y) == 1
    assert split.report.count("no known") == 1
    assert "for 1 of 2 labels: rare" in split.report


def test_unknown_labels_are_of_neither_class():
    y = torch.full((10, 1), torch.nan)
    y[0], y[1] = 1, 0
    report = scaffold_split(RINGS, y, (0.6, 0.2, 0.2)).report
    assert report.count("no known negative") == report.count("no known positive") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"smiles": ["CC", "C1C"] * 5}, r"got 'C1C' for sample 1"),
        ({"smiles": ["CC"] * 10}, "enough scaffolds.*got 1 scaffolds.*another split"),
        ({"smiles": RINGS, "y": torch.ones(3, 1)}, "each of 10 molecules .got 3"),
        ({"smiles": RINGS, "y": torch.ones(10, 1), "label_names": []}, "'label_names'"),
        ({"smiles": RINGS, "fractions": (1, 1, 1)}, "'fractions'"),
        ({"smiles": [object()] * 10}, r"strings \(got object for sample 0\).*'dataset.smiles'"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        scaffold_split(**arguments)


def test_repair_swaps_a_large_group_with_several_small_ones():
    sizes = np.array([4, 4, 1, 1, 1, 1, 1, 1])
    counts = np.array([[4, 0], [4, 0], *[[0, 1]] * 6])
    groups = Groups(sizes, counts)
    mask = np.array([True, True, False])
    part_of = np.array([0, 0, 1, 1, 1, 1, 1, 1])
    repaired = groups.repair(part_of, mask)
    counts_before, counts_after = (groups.part_counts(parts)[mask] for parts in (part_of, repaired))
    assert ((counts_before == 0).sum(), (counts_after == 0).sum()) == (2, 0)
    assert [sizes[repaired == part].sum() for part in (0, 1)] == [8, 6]
