import numpy as np
import pytest

from benchmarks.accuracy.explanations import GRAFTS, LOGIC, _auroc, _grafted, _unions

chem = pytest.importorskip("rdkit.Chem")


@pytest.mark.parametrize("smarts", GRAFTS)
def test_a_graft_adds_its_substructure(smarts):
    mol, pattern = chem.MolFromSmiles("BrC1CC(S)C1"), chem.MolFromSmarts(smarts)
    assert not mol.HasSubstructMatch(pattern)
    assert _grafted(mol, GRAFTS[smarts], np.random.default_rng(0)).HasSubstructMatch(pattern)


def test_a_molecule_without_a_suitable_atom_gets_no_graft():
    assert _grafted(chem.MolFromSmiles("c1ccccc1"), "N", np.random.default_rng(0)) is None


@pytest.mark.parametrize(
    ("smiles", "task", "number"),
    [("c1ccccc1", "benzene", 1), ("c1ccccc1Cc1ccccc1", "benzene", 3), ("FC(C=O)(F)F", "logic7", 7)],
)
def test_every_union_of_matches_is_a_truth(smiles, task, number):
    truths = _unions(chem.MolFromSmiles(smiles), [chem.MolFromSmarts(part) for part in LOGIC[task]])
    assert len(np.unique(truths, axis=0)) == number
    assert truths.any(axis=1).all()


def test_the_best_truth_determines_the_roc_auc():
    truths = np.array([[True, False, False, False], [False, False, True, True]])
    assert _auroc(truths, np.array([0.0, 0.1, 0.9, 0.8])) == 1.0
    assert _auroc(truths[:1], np.array([0.0, 0.0, 0.0, 0.0])) == 0.5
