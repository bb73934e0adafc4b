from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.transforms import Compose

from tg_mlc.baselines.baseline import best_value
from tg_mlc.data import ArrayDataset, MoleculeDataset, Split, from_arrays, random_split, tokenize
from tg_mlc.data.bags import inputs_of
from tg_mlc.data.records import Records
from tg_mlc.graphs import fully_connected
from tg_mlc.inputs import Fingerprint, MoleculeDescriptors, TfIdf
from tg_mlc.inputs.preprocessor import from_state, to_state
from tg_mlc.metrics import macro_roc_auc
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.stacking import StackingFeatures, features, table_preprocessor
from tg_mlc.stacking.classifiers import AUTOMATIC, StackedClassifier
from tg_mlc.stacking.features import ResumableParts, key_of, published_features

pytest.importorskip("sklearn")

rng = np.random.default_rng(0)
WORDS = (rng.random((200, 30)) < 0.2).astype(np.float32)
Y = (WORDS @ rng.standard_normal((30, 4)) > 0.3).astype(np.float32)


def rows(num_samples=120, seed=0):
    """Labels of which kernels learn both, and linear classifiers one."""
    x = np.random.default_rng(seed).normal(size=(num_samples, 5)).astype(np.float32)
    return x, np.stack([x[:, 0] > 0, x[:, 1] * x[:, 2] > 0], axis=1).astype(np.float32)


def all_of(dataset):
    every = torch.arange(len(dataset))
    return Split(every, every[:0], every[:0], "all")


@pytest.fixture(scope="module")
def fitted():
    dataset = from_arrays(*rows(), kind="vector")
    scores = StackingFeatures(seconds=5)
    return scores, scores.fit_transform(dataset, all_of(dataset))


def test_every_classifier_gives_base_scores(fitted):
    scores, samples = fitted
    assert samples.rows("base_scores").shape == (120, 2, 4)
    assert list(scores.classifiers) == list(AUTOMATIC) == ["svm", "logistic", "ridge", "forest"]


def test_new_samples_are_scored_well(fitted):
    x, y = rows(seed=1)
    base_scores = fitted[0].transform(from_arrays(x, y, kind="vector")).rows("base_scores")
    assert macro_roc_auc(y[:, :1], base_scores[:, :1, 0]) > 0.95
    assert macro_roc_auc(y[:, 1:], base_scores[:, 1:, 2]) > 0.7  # linear classifiers cannot


def test_missing_entries_count_as_the_mean(fitted):
    x, y = rows(seed=2)
    x[0] = np.nan
    assert fitted[0].transform(from_arrays(x, y, kind="vector")).rows("base_scores").isfinite().all()


@pytest.mark.parametrize("kind", AUTOMATIC)
def test_training_samples_are_scored_by_fits_without_them(kind):
    y = np.random.default_rng(3).integers(0, 2, size=(80, 2)).astype(np.float32)
    dataset = from_arrays(rows(80)[0], y, kind="vector")
    base_scores = StackingFeatures([kind], seconds=1).fit_transform(dataset, all_of(dataset)).rows("base_scores")
    assert macro_roc_auc(y, base_scores[..., 0]) < 0.65


def test_only_other_samples_are_scored_by_the_fits_to_all_training_samples(monkeypatch):
    scored, scores = [], StackedClassifier.scores
    monkeypatch.setattr(StackedClassifier, "scores", lambda self, x: scored.append(len(x)) or scores(self, x))
    dataset, every = from_arrays(*rows(60), kind="vector"), torch.arange(60)
    StackingFeatures(["ridge"], seconds=1).fit_transform(dataset, all_of(dataset))
    assert not scored
    some = Split(every[:50], every[50:], every[:0], "some")
    samples = StackingFeatures(["ridge"], seconds=1).fit_transform(dataset, some)
    assert scored == [10]
    assert samples.rows("base_scores").isfinite().all()


def test_ranks_are_chosen_where_entries_have_outliers():
    x, y = rows(300)
    dataset = from_arrays(np.exp(4 * x), y[:, :1], kind="vector")
    scores = StackingFeatures(["svm"], seconds=5).fit(dataset, all_of(dataset))
    assert scores.classifiers["svm"].view == scores.scaling == "quantile"


def test_words_are_taken_as_they_are():
    texts = ["red apple", "green pear", "red cherry", "green lime"] * 10
    y = [[text.startswith("red"), "pear" in text] for text in texts]
    dataset = from_arrays([tokenize(text) for text in texts], np.array(y, dtype=np.float32), kind="bag")
    dataset = TfIdf().fit_transform(dataset, all_of(dataset))
    samples = StackingFeatures(["svm"], seconds=1).fit_transform(dataset, all_of(dataset))
    assert macro_roc_auc(dataset.y, samples.rows("base_scores")[..., 0]) == 1.0
    assert torch.equal(samples._data.x, dataset._data.x)


@pytest.mark.parametrize("make", [StackingFeatures, published_features])
def test_refuses_unknown_classifiers(make):
    with pytest.raises(ValueError, match=r"'kinds' among \['svm', .* \(got \['tree'\]\)"):
        make(["svm", "tree"])


# Classifiers of published data sets ----------------------------------------------------------------------------------


def table(x, y=Y, official=True):
    parts = (np.arange(160), np.arange(160, 200)) if official else (None, None)
    return ArrayDataset(Records(x, y, ["a", "b", "c", "d"], None, *parts).to_samples())


@pytest.fixture(params=["bag", "vector"])
def dataset(request):
    return table(sp.csr_array(WORDS) if request.param == "bag" else WORDS)


def prepare(dataset, split, folder=None, kinds=("svm", "ridge")):
    """The samples with their base scores, and the classifiers."""
    chain = table_preprocessor(dataset.kind, kinds, folder)
    return chain.fit_transform(dataset, split), list(chain.steps[-1].classifiers.values())


def test_published_samples_have_decisions_as_base_scores(dataset):
    split = dataset.official_split()
    prepared, classifiers = prepare(dataset, split)
    base_scores = prepared.rows("base_scores").numpy()
    assert base_scores.shape == (200, 4, 2)
    for i, each in enumerate(classifiers):
        decisions = each.classifier.decision_function(inputs_of(prepared))
        for part in (split.test, split.val):
            np.testing.assert_allclose(base_scores[part, :, i], decisions[part], atol=1e-4)
        # Those of training samples are by classifiers that have not seen them.
        assert np.abs(base_scores[split.train, :, i] - decisions[split.train]).max() > 0.05


def test_duplicates_are_remembered():
    # Labels that have nothing to do with the words, but for the test samples' duplicates among the training samples.
    y = rng.integers(0, 2, (200, 4)).astype(np.float32)
    words, y[160:] = np.vstack([WORDS[:160], WORDS[:40]]), y[:40]
    split = (dataset := table(sp.csr_array(words), y)).official_split()
    prepared, [exact] = prepare(dataset, split, kinds=("exact",))
    assert exact.title == "kernel ridge regression, tuned for subset accuracy"
    scores = exact.classifier.predict_proba(inputs_of(prepared))
    remembered = np.isin(np.arange(40), split.train.numpy())
    assert ((scores[split.test.numpy()] > 0.5) == y[160:])[remembered].all()
    # It is the subset accuracy that chose it.
    val = split.val.numpy()
    best = {metric: best_value(y[val], scores[val], metric=metric) for metric in ("subset_accuracy", "f1_micro")}
    assert exact.tried[0][1] == (1.0, 0.01)
    assert max(value for *_, value in exact.tried) == pytest.approx(best["subset_accuracy"])
    assert best["subset_accuracy"] != best["f1_micro"]


@pytest.mark.parametrize("kinds", [("svm", "ridge"), ("svm",), ("exact",), ()])
def test_state_predicts_the_same_to_the_last_bit(kinds, dataset):
    split = dataset.official_split()
    chain = table_preprocessor(dataset.kind, kinds)
    prepared = chain.fit_transform(dataset, split)
    one, other = (each.transform(dataset[split.test]) for each in (chain, from_state(to_state(chain))))
    assert all(torch.equal(sample.x, again.x) for sample, again in zip(one, other, strict=True))
    assert ("weight" in one[0]) == (dataset.kind == "bag")
    assert one._data.get("weight", torch.zeros(())).equal(other._data.get("weight", torch.zeros(())))
    if kinds:
        scores = one.rows("base_scores")
        assert scores.shape == (40, 4, len(kinds))
        assert torch.equal(scores, other.rows("base_scores"))
        torch.testing.assert_close(scores, prepared[split.test].rows("base_scores"), atol=1e-5, rtol=1e-5)


def test_state_of_tuned_classifiers_predicts_the_same(fitted):
    scores, new = fitted[0], from_arrays(*rows(seed=2), kind="vector")
    restored = from_state(to_state(scores)).transform(new)
    for key in ("x", "base_scores"):
        assert torch.equal(restored.rows(key), scores.transform(new).rows(key))


def test_vectors_are_standardised_by_training_samples_alone():
    other = WORDS.copy()
    other[160:] += 5
    split = table(WORDS).official_split()
    one, two = (prepare(table(x), split, kinds=("svm",))[0][split.train].rows("x") for x in (WORDS, other))
    assert torch.equal(one, two)
    expected = (WORDS - WORDS[split.train].mean(axis=0)) / WORDS[split.train].std(axis=0) / 30**0.5
    torch.testing.assert_close(one, torch.from_numpy(expected)[split.train])


def test_a_part_of_a_data_set_is_prepared_by_itself(dataset):
    part, x = dataset[80:], sp.csr_array(WORDS) if dataset.kind == "bag" else WORDS
    split = random_split(len(part), seed=0)
    prepared, _ = prepare(part, split, kinds=("svm",))
    expected, _ = prepare(table(x[80:], Y[80:], official=False), split, kinds=("svm",))
    assert torch.equal(prepared.rows("base_scores"), expected.rows("base_scores"))
    dense = [x.toarray() if sp.issparse(x) else x for x in map(inputs_of, (prepared[[5, 3]], expected))]
    assert np.array_equal(dense[0], dense[1][[5, 3]])
    with pytest.raises(ValueError, match="published with a split"):
        prepared.official_split()


@pytest.mark.parametrize("part", ["train", "test"])
def test_gaps_in_vectors_are_named_before_classifiers_meet_them(part):
    split, x = table(WORDS).official_split(), WORDS.copy()
    x[getattr(split, part)[:2], 1] = np.nan
    with pytest.raises(ValueError, match="got NaN in 2 of"):
        prepare(table(x), split)


def test_classifiers_are_fitted_once_to_the_same_samples_and_split(dataset, tmp_path, monkeypatch):
    split = dataset.official_split()
    first, ones = prepare(dataset, split, tmp_path)
    prepare(dataset, dataset.official_split(seed=1), tmp_path)
    assert len(list(tmp_path.iterdir())) == 4
    monkeypatch.setattr(features, "find_classifier", lambda *args: pytest.fail("fitted again"))
    second, others = prepare(dataset, split, tmp_path)
    assert torch.equal(first.rows("base_scores"), second.rows("base_scores"))
    for one, other in zip(ones, others, strict=True):
        assert np.array_equal(one.scores(inputs_of(first)), other.scores(inputs_of(first)))


@pytest.mark.parametrize("change", [lambda x, y: (x[:, ::-1].copy(), y), lambda x, y: (x, y[:, ::-1].copy())])
def test_other_columns_or_labels_are_other_samples(change, tmp_path):
    split = table(WORDS).official_split()
    for x, y in ((WORDS, Y), change(WORDS, Y), (WORDS, Y), (sp.csr_array(WORDS), Y)):
        published_features(("svm",), tmp_path).fit(table(x, y), split)
    assert len(list(tmp_path.iterdir())) == 3


# Molecules -----------------------------------------------------------------------------------------------------------

CHAINS = ["C" * length for length in range(2, 22)]
PLACE = torch.arange(60) % 5
SPLIT = Split(*(torch.arange(60)[i == PLACE // 3 + PLACE // 4] for i in range(3)), "by hand")


@pytest.fixture(scope="module")
def molecules() -> MoleculeDataset:
    """Acids, amines, a label that all have, one that is seldom known, and one that has nothing to do with the rest."""
    pytest.importorskip("rdkit")
    kind = torch.arange(60) // 20
    y = torch.stack([kind == 1, kind == 2, kind >= 0, kind == 1, torch.arange(60) % 2 == 0], dim=1).float()
    y[torch.arange(60) % 4 > 0, 3] = torch.nan
    transforms = Compose([Fingerprint("morgan", 128), MoleculeDescriptors()])
    smiles = [*CHAINS, *(f"{chain}C(=O)O" for chain in CHAINS), *(f"{chain}CN" for chain in CHAINS)]
    return MoleculeDataset.from_smiles(smiles, y, list("abcde"), pre_transform=transforms)


def of_molecules(dataset, folder=None, kinds=("forest", "molecule_ridge")):
    return published_features(kinds, folder).fit_transform(dataset, SPLIT)


def test_molecules_have_scores_relative_to_the_frequency_of_labels(molecules, tmp_path):
    prepared = of_molecules(molecules, tmp_path)
    base_scores = prepared.rows("base_scores")
    assert base_scores.shape == (60, 5, 2)
    assert base_scores.dtype == torch.float32
    assert base_scores.isfinite().all()
    assert prepared.smiles == molecules.smiles
    assert prepared.report is molecules.report
    assert "base_scores" not in molecules[0]
    for classifier in range(2):
        for part in SPLIT.parts:
            assert macro_roc_auc(molecules.y[part][:, :2], base_scores[part][:, :2, classifier]) > 0.9
    assert (base_scores[:, 2] == 0).all()  # a label of one class is no news
    of_ridge = base_scores[SPLIT.train, :2, 1]
    assert of_ridge.mean(dim=0).abs().max() < 0.1
    assert 0.3 < of_ridge.std() < 1.5
    # Every other chain has the last label, and those next to it have not: memory would rank it perfectly.
    unseen, y = base_scores[SPLIT.train, 4], molecules.y[SPLIT.train, 4:]
    assert all(macro_roc_auc(y, unseen[:, i : i + 1]) < 0.7 for i in range(2))
    assert torch.equal(of_molecules(molecules, tmp_path).rows("base_scores"), base_scores)
    assert len(list(tmp_path.iterdir())) == 2


def test_labels_of_other_parts_are_not_looked_at(molecules):
    other, held_out = molecules.copy(), torch.cat(SPLIT.parts[1:])
    other._data.y[held_out] = 1 - other._data.y[held_out]
    both = [of_molecules(each).rows("base_scores") for each in (molecules, other)]
    torch.testing.assert_close(*both)


@pytest.mark.parametrize("kinds", [("forest", "molecule_ridge"), ("molecule_ridge",)])
def test_state_of_classifiers_of_molecules_predicts_the_same_to_the_last_bit(kinds, molecules):
    scores, held_out = published_features(kinds), molecules[SPLIT.test]
    prepared = scores.fit_transform(molecules, SPLIT)
    one, other = (each.transform(held_out).rows("base_scores") for each in (scores, from_state(to_state(scores))))
    assert one.shape == (len(held_out), 5, len(kinds))
    assert torch.equal(one, other)
    torch.testing.assert_close(one, prepared[SPLIT.test].rows("base_scores"), atol=1e-5, rtol=1e-5)


def test_a_recipe_trains_on_labels_that_are_unknown(molecules, tmp_path):
    recipe = RECIPES["tox21"]
    prepared, graph = recipe.prepare(molecules, SPLIT, tmp_path), fully_connected(molecules.label_names)
    result, data = recipe.train(prepared, SPLIT, graph, tmp_path / "run", max_epochs=1, logger=False)
    scores = result.predict(data.test_dataloader())
    assert macro_roc_auc(molecules.y[SPLIT.test][:, :2], scores[:, :2]) > 0.9
    assert np.isfinite(result.best_value)


def test_parts_are_made_once(tmp_path):
    made = []

    def make():
        made.append(1)
        return {"x": np.array([1.0, 2.0]), "names": ("a", "b")}

    for _ in range(2):
        part = ResumableParts(tmp_path).part("first", make)
        assert np.asarray(part["x"]).tolist() == [1.0, 2.0]
        assert list(part["names"]) == ["a", "b"]
    assert len(made) == 1
    ResumableParts().part("first", make)
    assert len(made) == 2


def test_nothing_is_kept_of_what_was_interrupted(tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ResumableParts(tmp_path).part("first", interrupted)
    assert ResumableParts(tmp_path).part("first", lambda: 1) == 1


@pytest.mark.parametrize("name", ["model.json", "weights-*.safetensors"])
@pytest.mark.parametrize("lost", [False, True])
def test_what_is_damaged_is_made_again(tmp_path, name, lost):
    ResumableParts(tmp_path).part("first", lambda: np.arange(50.0))
    [file] = (tmp_path / "first").glob(name)
    if lost:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1])
    if name == "model.json" and lost:  # as if the other file had only just been written
        assert ResumableParts(tmp_path).part("first", lambda: 7) == 7
    else:
        with pytest.warns(UserWarning, match="'first' is made again, as what was kept of it is damaged"):
            assert ResumableParts(tmp_path).part("first", lambda: 7) == 7
    assert ResumableParts(tmp_path).part("first", lambda: 8) == 7


def test_parts_that_are_read_take_the_time_that_they_once_took(tmp_path):
    ResumableParts(tmp_path).part("slow", lambda: time.sleep(0.3))
    kept, now = ResumableParts(tmp_path), time.monotonic()
    kept.part("slow", lambda: time.sleep(0.3))
    assert kept.clock() - time.monotonic() >= 0.3
    assert time.monotonic() - now < 0.3


def test_keys_tell_options_shapes_and_entries_apart():
    x = sp.csr_array(np.eye(3))
    other = x.copy()
    other.data[0] = 2.0
    different = [((), [x]), ((1,), [x]), ((), [other]), ((), [np.eye(3)]), ((), [np.ones(6)]), ((), [np.ones((2, 3))])]
    assert len({key_of(*each) for each in different}) == len(different)
    assert key_of((1.0, "svm"), [x]) == key_of((1.0, "svm"), [x.copy()])
