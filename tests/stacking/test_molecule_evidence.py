from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.transforms import Compose

from tg_mlc.data import MoleculeDataset, Split
from tg_mlc.graphs import fully_connected
from tg_mlc.inputs import Fingerprint, MoleculeDescriptors, from_state, to_state
from tg_mlc.metrics import macro_roc_auc
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.stacking import ClassifierScores

pytest.importorskip("rdkit")
pytest.importorskip("sklearn")

CHAINS = ["C" * length for length in range(2, 22)]
SMILES = [*CHAINS, *(f"{chain}C(=O)O" for chain in CHAINS), *(f"{chain}CN" for chain in CHAINS)]
NAN = float("nan")
SPLIT = Split(
    *(torch.arange(60)[torch.arange(60) % 5 // 3 + torch.arange(60) % 5 // 4 == i] for i in range(3)), "by hand"
)


def with_evidence(dataset, split, folder=None, kinds=("forest", "molecule_ridge")):
    return ClassifierScores(kinds, folder).fit_transform(dataset, split)


@pytest.fixture(scope="module")
def molecules() -> MoleculeDataset:
    """Acids, amines, a label that all have, one that is seldom known, and one that has nothing to do with the rest."""
    kind = torch.arange(60) // 20
    y = torch.stack([kind == 1, kind == 2, kind >= 0, kind == 1, torch.arange(60) % 2 == 0], dim=1).float()
    y[torch.arange(60) % 4 > 0, 3] = NAN
    features = Compose([Fingerprint("morgan", 128), MoleculeDescriptors()])
    return MoleculeDataset.from_smiles(SMILES, y, list("abcde"), pre_transform=features)


def test_molecules_carry_what_classifiers_say_of_them(molecules, tmp_path):
    prepared = with_evidence(molecules, SPLIT, tmp_path)
    base_scores = prepared.rows("base_scores")
    assert base_scores.shape == (60, 5, 2)
    assert base_scores.dtype == torch.float32
    assert prepared.smiles == molecules.smiles
    assert prepared.report is molecules.report
    assert "base_scores" not in molecules[0]
    for classifier in range(2):
        for part in SPLIT.parts:
            assert macro_roc_auc(molecules.y[part][:, :2], base_scores[part][:, :2, classifier]) > 0.9
    # A label of one class is no news.
    assert (base_scores[:, 2] == 0).all()
    assert base_scores.isfinite().all()


def test_training_molecules_get_the_scores_of_classifiers_that_have_not_seen_them(molecules, tmp_path):
    base_scores = with_evidence(molecules, SPLIT, tmp_path).rows("base_scores")[SPLIT.train, 4]
    y = molecules.y[SPLIT.train, 4:]
    # Every other chain has this label, and the molecules next to it have not: memory would rank it perfectly.
    assert all(macro_roc_auc(y, base_scores[:, i : i + 1]) < 0.7 for i in range(2))


def test_labels_of_other_parts_are_not_looked_at(molecules, tmp_path):
    other = molecules.copy()
    held_out = torch.cat(SPLIT.parts[1:])
    other._data.y[held_out] = 1 - other._data.y[held_out]
    both = [with_evidence(each, SPLIT, tmp_path / str(i)) for i, each in enumerate((molecules, other))]
    torch.testing.assert_close(both[0].rows("base_scores"), both[1].rows("base_scores"))


def test_scores_say_how_far_from_the_frequency(molecules, tmp_path):
    scores = with_evidence(molecules, SPLIT, tmp_path, ("molecule_ridge",)).rows("base_scores")[SPLIT.train, :2, 0]
    assert scores.mean(dim=0).abs().max() < 0.1
    assert 0.3 < scores.std() < 1.5


def test_the_classifiers_are_fitted_once(molecules, tmp_path, monkeypatch):
    first = with_evidence(molecules, SPLIT, tmp_path)
    for name in ("_Forest", "_MoleculeRidge"):
        monkeypatch.setattr(f"tg_mlc.stacking.raters.{name}.fit", lambda *args: pytest.fail("fitted again"))
    second = with_evidence(molecules, SPLIT, tmp_path)
    assert torch.equal(first.rows("base_scores"), second.rows("base_scores"))
    assert len(list(tmp_path.iterdir())) == 2


def test_what_is_restored_says_the_same_to_the_last_bit(molecules):
    scores = ClassifierScores(("forest", "molecule_ridge"))
    prepared = scores.fit_transform(molecules, SPLIT)
    held_out = molecules[SPLIT.test]
    one, other = (each.transform(held_out).rows("base_scores") for each in (scores, from_state(to_state(scores))))
    assert torch.equal(one, other)
    torch.testing.assert_close(one, prepared[SPLIT.test].rows("base_scores"), atol=1e-5, rtol=1e-5)


def test_one_kind_of_classifier_may_do(molecules, tmp_path):
    assert with_evidence(molecules, SPLIT, tmp_path, ("molecule_ridge",))[0].base_scores.shape == (1, 5, 1)


def test_a_recipe_trains_on_labels_that_are_unknown(molecules, tmp_path):
    recipe = RECIPES["tox21"]
    prepared = recipe.prepare(molecules, SPLIT, tmp_path)
    result, data = recipe.train(
        prepared, SPLIT, fully_connected(prepared.label_names), tmp_path / "run", max_epochs=1, logger=False
    )
    scores = result.predict(data.test_dataloader())
    assert macro_roc_auc(molecules.y[SPLIT.test][:, :2], scores[:, :2]) > 0.9
    assert np.isfinite(result.best_value)
