from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from tg_mlc.baselines import LabelFrequency, MorganForest
from tg_mlc.metrics import macro_roc_auc

pytest.importorskip("rdkit")
pytest.importorskip("sklearn")

NAN = float("nan")
CHAINS = ["C" * length for length in range(2, 12)]
ACIDS = [f"{chain}C(=O)O" for chain in CHAINS]
AMINES = [f"{chain}CN" for chain in CHAINS]
SMILES = CHAINS + ACIDS + AMINES


@pytest.fixture
def y():
    """Acid, amine."""
    return np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 10, axis=0)


def forest(**kwargs):
    return MorganForest(20, num_bits=256, n_jobs=1, **kwargs)


def test_learns_functional_groups(y):
    scores = forest().fit(SMILES[::2], y[::2]).predict_proba(SMILES[1::2])
    assert scores.shape == (15, 2)
    assert macro_roc_auc(y[1::2], scores) > 0.95


def test_scores_are_those_of_scikit_learn(y):
    model = forest().fit(SMILES[::2], y[::2])
    bits = model.fingerprints(SMILES)
    trees = RandomForestClassifier(20, random_state=0).fit(bits[::2], y[::2])
    expected = np.stack([probability[:, 1] for probability in trees.predict_proba(bits)], axis=1)
    np.testing.assert_allclose(model.predict_proba(SMILES), expected, atol=1e-12)


@pytest.mark.parametrize("unknown", [False, True])
def test_a_restored_forest_says_the_same(y, unknown):
    y = np.column_stack([y, np.ones(len(y))])
    y[0, 0] = NAN if unknown else y[0, 0]
    model = forest(min_samples_leaf=3, oob_score=True).fit(SMILES, y)
    restored = MorganForest().load_state_dict(model.state_dict())
    assert repr(restored) == repr(model)
    assert np.array_equal(restored.predict_proba(SMILES), model.predict_proba(SMILES))
    with pytest.raises(RuntimeError, match="'out_of_bag'"):
        restored.out_of_bag()
    with pytest.raises(RuntimeError, match="'fit' to be called before 'state_dict'"):
        forest().state_dict()


def test_unknown_labels_train_a_forest_each_on_their_known_molecules(y):
    y[0, 0] = y[29, 1] = NAN
    together, acid = forest().fit(SMILES, y), forest().fit(SMILES[1:], y[1:, :1])
    np.testing.assert_array_equal(together.predict_proba(SMILES)[:, :1], acid.predict_proba(SMILES))
    assert len(together._forests) == 2
    assert macro_roc_auc(y, together.predict_proba(SMILES)) == 1.0


@pytest.mark.parametrize("unknown", [False, True])
def test_labels_with_one_class_get_the_constant(y, unknown):
    constants = np.tile([0.0, 1.0, NAN if unknown else 1.0], (len(y), 1))
    constants[0, 1] = NAN if unknown else 1.0
    y = np.column_stack([constants, y])
    scores = forest().fit(SMILES, y).predict_proba(SMILES[:4])
    np.testing.assert_array_equal(scores[:, :3], LabelFrequency().fit(y).predict_proba(4)[:, :3])
    assert scores[:, :2].tolist() == [[0.0, 1.0]] * 4
    assert len(np.unique(scores[:, 3:])) > 1


def test_out_of_bag_scores_are_of_trees_that_have_not_seen_the_molecule():
    rng = np.random.default_rng(0)
    smiles = SMILES * 4
    y = rng.integers(0, 2, (len(smiles), 2)).astype(float)  # nothing to learn, only to remember
    fitted = MorganForest(50, num_bits=64, n_jobs=1, oob_score=True).fit(smiles, y)
    assert abs(macro_roc_auc(y, fitted.out_of_bag()) - 0.5) < 0.15
    np.testing.assert_array_equal(fitted.predict_proba(smiles), forest_of_fifty(smiles, y).predict_proba(smiles))


def forest_of_fifty(smiles, y):
    return MorganForest(50, num_bits=64, n_jobs=1).fit(smiles, y)


def test_out_of_bag_scores_of_what_is_unknown_or_constant(y):
    y = np.column_stack([np.ones(len(y)), y])
    y[0, 1] = NAN
    fitted = MorganForest(50, num_bits=256, n_jobs=1, oob_score=True).fit(SMILES, y)
    scores = fitted.out_of_bag()
    assert np.isfinite(scores).all()
    assert (scores[:, 0] == 1).all()
    assert scores[0, 1] == fitted.predict_proba(SMILES[:1])[0, 1]  # no tree has seen its label
    assert macro_roc_auc(y[:, 1:], scores[:, 1:]) > 0.95


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_a_molecule_that_every_tree_has_seen_gets_the_frequency(y):
    fitted = MorganForest(1, num_bits=256, n_jobs=1, oob_score=True).fit(SMILES, y)
    scores = fitted.out_of_bag()
    assert (scores == 1 / 3).all(axis=1).sum() > 10


def test_out_of_bag_scores_have_to_be_asked_for(y):
    with pytest.raises(RuntimeError, match="'fit' to be called with 'oob_score=True'"):
        forest().fit(SMILES, y).out_of_bag()


def test_only_constant_labels():
    assert forest().fit(["C", "CC"], [[1, 0], [1, 0]]).predict_proba(["CCC"]).tolist() == [[1.0, 0.0]]


def test_seed_decides(y):
    first, again, other = (forest(seed=seed).fit(SMILES, y).predict_proba(SMILES) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_tuned_returns_the_best_on_validation(y):
    noise = np.random.default_rng(0).random(y.shape) < 0.2
    targets = np.where(noise, 1 - y, y)
    grid = {"min_samples_leaf": [1, 3, 40], "max_features": ["sqrt"]}
    best = MorganForest.tuned(
        SMILES[::2], targets[::2], SMILES[1::2], targets[1::2], grid=grid, num_trees=20, num_bits=256, n_jobs=1
    )
    assert [setting["min_samples_leaf"] for setting, _ in best.search] == [1, 3, 40]
    assert best.search[2][1] == 0.5  # no split leaves 40 molecules on both sides
    value = macro_roc_auc(targets[1::2], best.predict_proba(SMILES[1::2]))
    assert value == max(value for _, value in best.search)
    assert {"min_samples_leaf": best.min_samples_leaf, "max_features": "sqrt"} in [
        setting for setting, _ in best.search
    ]


def test_errors(y):
    with pytest.raises(RuntimeError, match="'fit'"):
        forest().predict_proba(["C"])
    with pytest.raises(ValueError, match=r"valid SMILES \(got 'C1' at index 1\)"):
        forest().fit(["C", "C1"], y[:2])
    with pytest.raises(ValueError, match=r"one row of 'y' per molecule, 1 \(got 30\)"):
        forest().fit(["C"], y)
    with pytest.raises(ValueError, match="'grid' to have keys"):
        MorganForest.tuned(SMILES, y, SMILES, y, grid={"depth": [1]})
    with pytest.raises(ValueError, match="defined on the validation data"):
        MorganForest.tuned(SMILES, y, SMILES, y, grid={}, metric=lambda *_: NAN, num_trees=2)
