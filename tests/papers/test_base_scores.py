"""Base scores of classifiers on published data sets."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.transforms import Compose

from tests.fresh import run_python
from tg_mlc.baselines.baseline import best_value
from tg_mlc.data import ArrayDataset, MoleculeDataset, Split, random_split
from tg_mlc.data.bags import inputs_of
from tg_mlc.data.records import Records
from tg_mlc.graphs import fully_connected
from tg_mlc.inputs import Fingerprint, MoleculeDescriptors
from tg_mlc.inputs.preprocessor import from_state, to_state
from tg_mlc.metrics import macro_roc_auc
from tg_mlc.papers import base_scores as module
from tg_mlc.papers.base_scores import published_features, table_preprocessor

pytest.importorskip("sklearn")

rng = np.random.default_rng(0)
WORDS = (rng.random((200, 30)) < 0.2).astype(np.float32)
Y = (WORDS @ rng.standard_normal((30, 4)) > 0.3).astype(np.float32)


@pytest.fixture(scope="module", autouse=True)
def _small_forests():
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(module._GINI, "n_estimators", 50)
        yield


def table(x, y=Y, official=True):
    train_and_test = (np.arange(160), np.arange(160, 200)) if official else (None, None)
    return ArrayDataset(Records(x, y, ["a", "b", "c", "d"], None, *train_and_test).to_samples())


@pytest.fixture(params=["bag", "vector"])
def dataset(request):
    return table(sp.csr_array(WORDS) if request.param == "bag" else WORDS)


def prepare(dataset, split, kinds=("svm", "ridge")):
    """Returns the samples with their base scores, and the classifiers."""
    chain = table_preprocessor(dataset.kind, kinds)
    return chain.fit_transform(dataset, split), list(chain.steps[-1].classifiers.values())


def test_published_samples_have_decisions_as_base_scores(dataset):
    split = dataset.official_split()
    prepared, classifiers = prepare(dataset, split)
    base_scores = prepared.rows("base_scores").numpy()
    assert base_scores.shape == (200, 4, 2)
    for i, wrapper in enumerate(classifiers):
        decisions = wrapper.classifier.decision_function(inputs_of(prepared))
        for part in (split.test, split.val):
            np.testing.assert_allclose(base_scores[part, :, i], decisions[part], atol=1e-4)
        # Scores of training samples are from classifiers that have not seen these samples.
        assert np.abs(base_scores[split.train, :, i] - decisions[split.train]).max() > 0.05


def test_duplicates_are_remembered():
    # The labels are independent of the words, but test samples repeat training samples.
    y = rng.integers(0, 2, (200, 4)).astype(np.float32)
    words, y[160:] = np.vstack([WORDS[:160], WORDS[:40]]), y[:40]
    split = (dataset := table(sp.csr_array(words), y)).official_split()
    prepared, [exact] = prepare(dataset, split, kinds=("exact",))
    assert exact.title == "kernel ridge regression, tuned for subset accuracy"
    scores = exact.classifier.predict_proba(inputs_of(prepared))
    remembered = np.isin(np.arange(40), split.train.numpy())
    assert ((scores[split.test.numpy()] > 0.5) == y[160:])[remembered].all()
    # The classifier was chosen by subset accuracy.
    val, metrics = split.val.numpy(), ("subset_accuracy", "f1_micro")
    best = {metric: best_value(y[val], scores[val], metric=metric) for metric in metrics}
    assert exact.tried[0][1] == (1.0, 0.01)
    assert max(value for *_, value in exact.tried) == pytest.approx(best["subset_accuracy"])
    assert best["subset_accuracy"] != best["f1_micro"]


@pytest.mark.parametrize("kinds", [("svm", "ridge"), ("svm",), ("exact",), ()])
def test_state_predicts_the_same_to_the_last_bit(kinds, dataset):
    split = dataset.official_split()
    chain = table_preprocessor(dataset.kind, kinds)
    prepared = chain.fit_transform(dataset, split)
    loaded = from_state(to_state(chain))
    first, second = (source.transform(dataset[split.test]) for source in (chain, loaded))
    assert all(torch.equal(sample.x, other.x) for sample, other in zip(first, second, strict=True))
    assert ("weight" in first[0]) == (dataset.kind == "bag")
    if dataset.kind == "bag":
        assert torch.equal(first._data.weight, second._data.weight)
    if kinds:
        scores, expected = (source.rows("base_scores") for source in (first, prepared[split.test]))
        assert scores.shape == (40, 4, len(kinds))
        assert torch.equal(scores, second.rows("base_scores"))
        torch.testing.assert_close(scores, expected, atol=1e-5, rtol=1e-5)


def test_vectors_are_standardised_by_training_samples_alone():
    shifted = WORDS.copy()
    shifted[160:] += 5
    split = table(WORDS).official_split()
    prepared = (prepare(table(x), split, kinds=("svm",))[0] for x in (WORDS, shifted))
    first, second = (data[split.train].rows("x") for data in prepared)
    assert torch.equal(first, second)
    expected = (WORDS - WORDS[split.train].mean(axis=0)) / WORDS[split.train].std(axis=0) / 30**0.5
    torch.testing.assert_close(first, torch.from_numpy(expected)[split.train])


def test_a_subset_of_a_data_set_is_prepared_by_itself(dataset):
    subset, x = dataset[80:], sp.csr_array(WORDS) if dataset.kind == "bag" else WORDS
    split = random_split(len(subset), seed=0)
    prepared, _ = prepare(subset, split, kinds=("svm",))
    expected, _ = prepare(table(x[80:], Y[80:], official=False), split, kinds=("svm",))
    assert torch.equal(prepared.rows("base_scores"), expected.rows("base_scores"))
    rows, all_rows = (sp.csr_array(inputs_of(data)) for data in (prepared[[5, 3]], expected))
    assert np.array_equal(rows.toarray(), all_rows.toarray()[[5, 3]])
    with pytest.raises(ValueError, match="published with a split"):
        prepared.official_split()


@pytest.mark.parametrize("part", ["train", "test"])
def test_gaps_in_vectors_are_named_before_classifiers_meet_them(part):
    split, x = table(WORDS).official_split(), WORDS.copy()
    x[getattr(split, part)[:2], 1] = np.nan
    with pytest.raises(ValueError, match="got NaN in 2 of"):
        prepare(table(x), split)


# Molecules ----------------------------------------------------------------------------------------

CHAINS = ["C" * length for length in range(2, 22)]
POSITION = torch.arange(60) % 5
SPLIT = Split(*(torch.arange(60)[i == POSITION // 3 + POSITION // 4] for i in range(3)), "by hand")


@pytest.fixture(scope="module")
def molecules():
    """Molecules with labels: acid, amine, always present, seldom known, and alternating."""
    pytest.importorskip("rdkit")
    kind, alternating = torch.arange(60) // 20, torch.arange(60) % 2 == 0
    labels = [kind == 1, kind == 2, kind >= 0, kind == 1, alternating]
    y = torch.stack(labels, dim=1).float()
    y[torch.arange(60) % 4 > 0, 3] = torch.nan
    transforms = Compose([Fingerprint("morgan", 128), MoleculeDescriptors()])
    smiles = [*CHAINS, *(f"{chain}C(=O)O" for chain in CHAINS), *(f"{chain}CN" for chain in CHAINS)]
    return MoleculeDataset.from_smiles(smiles, y, list("abcde"), pre_transform=transforms)


def prepare_molecules(dataset, kinds=("forest", "molecule_ridge")):
    return published_features(kinds).fit_transform(dataset, SPLIT)


def test_molecules_have_scores_relative_to_the_frequency_of_labels(molecules):
    prepared = prepare_molecules(molecules)
    base_scores = prepared.rows("base_scores")
    assert base_scores.shape == (60, 5, 2)
    assert base_scores.dtype == torch.float32
    assert base_scores.isfinite().all()
    assert prepared.smiles == molecules.smiles
    assert prepared.report is molecules.report
    assert "base_scores" not in molecules[0]
    for part in SPLIT.parts:
        for scores in base_scores[part][:, :2].unbind(dim=2):
            assert macro_roc_auc(molecules.y[part][:, :2], scores) > 0.9
    assert (base_scores[:, 2] == 0).all()  # The label has one class.
    ridge_scores = base_scores[SPLIT.train, :2, 1]
    assert ridge_scores.mean(dim=0).abs().max() < 0.1
    assert 0.3 < ridge_scores.std() < 1.5
    # The last label alternates along chains, so that memorised neighbours would predict it well.
    unseen, y = base_scores[SPLIT.train, 4], molecules.y[SPLIT.train, 4:]
    assert all(macro_roc_auc(y, unseen[:, i : i + 1]) < 0.7 for i in range(2))


def test_base_scores_do_not_depend_on_labels_of_other_parts(molecules):
    changed, held_out = molecules.copy(), torch.cat(SPLIT.parts[1:])
    changed._data.y[held_out] = 1 - changed._data.y[held_out]
    base_scores = [prepare_molecules(data).rows("base_scores") for data in (molecules, changed)]
    torch.testing.assert_close(*base_scores)


@pytest.mark.parametrize("kinds", [("forest", "molecule_ridge"), ("molecule_ridge",)])
def test_state_of_classifiers_of_molecules_predicts_the_same_to_the_last_bit(kinds, molecules):
    scores, held_out = published_features(kinds), molecules[SPLIT.test]
    prepared = scores.fit_transform(molecules, SPLIT)
    features = (scores, from_state(to_state(scores)))
    one, other = (feature.transform(held_out).rows("base_scores") for feature in features)
    assert one.shape == (len(held_out), 5, len(kinds))
    assert torch.equal(one, other)
    torch.testing.assert_close(one, prepared[SPLIT.test].rows("base_scores"), atol=1e-5, rtol=1e-5)


def test_a_recipe_trains_on_labels_that_are_unknown(molecules, tmp_path):
    pytest.importorskip("lightning")
    from tg_mlc.papers.recipes import RECIPES

    recipe = RECIPES["tox21"]
    prepared = recipe.prepare(molecules, SPLIT)
    graph, options = fully_connected(molecules.label_names), {"max_epochs": 1, "logger": False}
    result, data = recipe.train(prepared, SPLIT, graph, tmp_path / "run", **options)
    scores = result.scores(data.test_dataloader())
    assert macro_roc_auc(molecules.y[SPLIT.test][:, :2], scores[:, :2]) > 0.9
    assert np.isfinite(result.best_value)


# Saving -------------------------------------------------------------------------------------------

RESTORE = """
import sys
import torch
import tg_mlc.stacking
from tg_mlc.inputs.preprocessor import from_state
assert "tg_mlc.papers" not in sys.modules
state, samples = torch.load(sys.argv[1], weights_only=False)
samples = from_state(state).transform(samples)
assert not {"lightning", "sklearn", "networkx", "matplotlib"} & {*sys.modules}
torch.save(samples.rows("base_scores"), sys.argv[2])
"""


def test_a_new_process_finds_the_views_of_a_saved_state(tmp_path):
    dataset = table(WORDS)
    split = dataset.official_split()
    chain = table_preprocessor("vector", ["svm"]).fit(dataset, split)
    torch.save((to_state(chain), dataset[split.test]), tmp_path / "state.pt")
    run_python(RESTORE, [str(tmp_path / "state.pt"), str(tmp_path / "scores.pt")])
    expected = chain.transform(dataset[split.test]).rows("base_scores")
    assert torch.equal(torch.load(tmp_path / "scores.pt"), expected)


def test_refuses_unknown_classifiers():
    with pytest.raises(ValueError, match=r"'kinds' among \['svm', .* \(got \['tree'\]\)"):
        published_features(["svm", "tree"])
