from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Batch

from tg_mlc.baselines.linear import best_value
from tg_mlc.data import random_split
from tg_mlc.datasets._records import Records
from tg_mlc.datasets.base import ArrayDataset
from tg_mlc.graphs import fully_connected
from tg_mlc.models import table_lamp
from tg_mlc.nn.encoders import SharedLogits
from tg_mlc.recipes import RECIPES
from tg_mlc.recipes._evidence import evidence
from tg_mlc.recipes.tables import inputs_of, prepare

rng = np.random.default_rng(0)
WORDS = (rng.random((200, 30)) < 0.2).astype(np.float32)
Y = (WORDS @ rng.standard_normal((30, 4)) > 0.3).astype(np.float32)


@pytest.fixture(params=["bag", "vector"])
def dataset(request):
    x = sp.csr_array(WORDS) if request.param == "bag" else WORDS
    names = ["a", "b", "c", "d"]
    return ArrayDataset(Records(x, Y, names, None, np.arange(160), np.arange(160, 200)).to_samples())


def test_prepared_samples_carry_what_other_classifiers_say(dataset, tmp_path):
    split = dataset.official_split()
    prepared = prepare(dataset, split, tmp_path)
    evidence = torch.cat([data.evidence for data in prepared]).numpy()
    assert evidence.shape == (200, 4, 2)
    for i, classifier in enumerate(prepared.classifiers.values()):
        fitted = classifier.decision_function(inputs_of(prepared))
        np.testing.assert_allclose(evidence[split.test, :, i], fitted[split.test], atol=1e-4)
        np.testing.assert_allclose(evidence[split.val, :, i], fitted[split.val], atol=1e-4)
        # Training samples get the opinion of classifiers that have not seen them.
        assert np.abs(evidence[split.train, :, i] - fitted[split.train]).max() > 0.05


def test_the_classifiers_are_fitted_once(dataset, tmp_path, monkeypatch):
    split = dataset.official_split()
    first = prepare(dataset, split, tmp_path)
    for name in ("_fit_svm", "_fit_ridge"):
        monkeypatch.setattr(f"tg_mlc.recipes._evidence.{name}", lambda *args: pytest.fail("fitted again"))
    second = prepare(dataset, split, tmp_path)
    assert torch.equal(first[0].evidence, second[0].evidence)
    x = inputs_of(first)
    for one, other in zip(first.classifiers.values(), second.classifiers.values(), strict=True):
        assert np.array_equal(one.decision_function(x), other.decision_function(x))
        assert one.search == other.search


def test_one_kind_of_classifier_may_do(dataset, tmp_path):
    prepared = prepare(dataset, dataset.official_split(), tmp_path, kinds=("svm",))
    assert list(prepared.classifiers) == ["linear SVM, tuned"]
    assert prepared[0].evidence.shape == (1, 4, 1)


def test_duplicates_are_remembered(tmp_path):
    # Labels that have nothing to do with the words, but for the test samples' duplicates among the training samples.
    y = rng.integers(0, 2, (200, 4)).astype(np.float32)
    words, y[160:] = np.vstack([WORDS[:160], WORDS[:40]]), y[:40]
    records = Records(sp.csr_array(words), y, list("abcd"), None, np.arange(160), np.arange(160, 200))
    dataset = ArrayDataset(records.to_samples())
    split = dataset.official_split()
    prepared = prepare(dataset, split, tmp_path, kinds=("exact",))
    (exact,) = prepared.classifiers.values()
    found = exact.predict_proba(inputs_of(prepared))[split.test.numpy()] > 0.5
    remembered = np.isin(np.arange(40), split.train.numpy())
    assert (found == y[160:])[remembered].all()
    assert exact.search[0][:2] == (1.0, 0.01)
    # It is the subset accuracy that chose it.
    val = split.val.numpy()
    on_val = exact.predict_proba(inputs_of(prepared))[val]
    best = {metric: best_value(y[val], on_val, metric=metric) for metric in ("ACC", "miF1")}
    assert max(value for *_, value in exact.search) == pytest.approx(best["ACC"])
    assert best["ACC"] != best["miF1"]


def test_vectors_are_standardised_by_training_samples_alone(tmp_path):
    def prepared(x):
        records = Records(x, Y, list("abcd"), None, np.arange(160), np.arange(160, 200))
        dataset = ArrayDataset(records.to_samples())
        split = dataset.official_split()
        return prepare(dataset, split, tmp_path, kinds=("svm",))[split.train].rows("x")

    other = WORDS.copy()
    other[160:] += 5
    assert torch.equal(prepared(WORDS), prepared(other))


def test_a_part_of_a_data_set_is_prepared_by_itself(dataset, tmp_path):
    part, x = dataset[80:], sp.csr_array(WORDS) if dataset.kind == "bag" else WORDS
    split = random_split(len(part), seed=0)
    prepared = prepare(part, split, tmp_path / "part", kinds=("svm",))
    whole = ArrayDataset(Records(x[80:], Y[80:], list("abcd")).to_samples())
    expected = prepare(whole, split, tmp_path / "whole", kinds=("svm",))
    assert torch.equal(prepared.rows("evidence"), expected.rows("evidence"))
    rows = [5, 3]
    dense = [x.toarray() if sp.issparse(x) else x for x in map(inputs_of, (prepared[rows], expected))]
    assert np.array_equal(dense[0], dense[1][rows])
    with pytest.raises(ValueError, match="published with a split"):
        prepared.official_split()


def test_gaps_in_vectors_are_named_before_classifiers_meet_them(tmp_path):
    x = WORDS.astype(np.float32)
    x[3, 1] = x[7, 0] = np.nan
    records = Records(x, Y, list("abcd"), None, np.arange(160), np.arange(160, 200))
    dataset = ArrayDataset(records.to_samples())
    with pytest.raises(ValueError, match="got NaN in 2 of 200 samples"):
        prepare(dataset, dataset.official_split(), tmp_path)


def test_words_that_have_weights_are_not_weighed_again(tmp_path):
    x = sp.csr_array(WORDS * np.linspace(0.1, 0.9, WORDS.shape[1]))
    records = Records(x, Y, list("abcd"), None, np.arange(160), np.arange(160, 200))
    dataset = ArrayDataset(records.to_samples())
    weighted = inputs_of(prepare(dataset, dataset.official_split(), tmp_path, kinds=("svm",))).toarray()
    norms = np.linalg.norm(x.toarray(), axis=1, keepdims=True)
    np.testing.assert_allclose(weighted, x.toarray() / np.where(norms > 0, norms, 1), atol=1e-6)


def test_words_of_the_dictionary_are_those_that_labels_stand_for(dataset, tmp_path, monkeypatch):
    dataset.label_names = ["TAG_cat", "b", "c", "d"]
    dataset.label_descriptions = {"b": "Coconut oil"}
    prepared = prepare(dataset, dataset.official_split(), tmp_path, kinds=("svm",))
    asked = []
    monkeypatch.setattr("tg_mlc.recipes.tables.wordnet", lambda names, words: asked.append(words))
    RECIPES["bibtex"].label_graph("wordnet", prepared, dataset.official_split())
    assert asked == [{"TAG_cat": "cat", "b": "Coconut oil", "c": "c", "d": "d"}]


def test_evidence_of_some_classifiers(dataset, tmp_path):
    prepared = prepare(dataset, dataset.official_split(), tmp_path)
    name = "kernel ridge regression, tuned"
    kept = prepared.with_evidence_of([name])
    assert torch.equal(kept[3].evidence, prepared[3].evidence[..., 1:])
    assert kept.classifiers == {name: prepared.classifiers[name]}
    assert prepared.with_evidence_of([]).classifiers == {}


def test_other_samples_get_their_own_classifiers(dataset, tmp_path):
    prepare(dataset, dataset.official_split(), tmp_path)
    prepare(dataset, dataset.official_split(seed=1), tmp_path)
    assert len(list((tmp_path / "evidence").iterdir())) == 4


@pytest.mark.parametrize("change", [lambda x, y: (x[:, ::-1].copy(), y), lambda x, y: (x, y[:, ::-1].copy())])
def test_other_columns_or_labels_are_other_samples(change, tmp_path):
    split = ArrayDataset(Records(WORDS, Y, list("abcd"), None, np.arange(160), np.arange(160, 200)).to_samples())
    split = split.official_split()
    x, y = change(WORDS, Y)
    evidence(WORDS, torch.from_numpy(Y), split, tmp_path, ["svm"])
    evidence(sp.csr_array(x), torch.from_numpy(y), split, tmp_path, ["svm"])
    evidence(sp.csr_array(WORDS), torch.from_numpy(Y), split, tmp_path, ["svm"])
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("left", [0, 200])
def test_a_damaged_file_is_fitted_again(left, dataset, tmp_path):
    split = dataset.official_split()
    first = prepare(dataset, split, tmp_path)
    for kept in (tmp_path / "evidence").iterdir():
        kept.write_bytes(kept.read_bytes()[:left])
    assert torch.equal(prepare(dataset, split, tmp_path)[0].evidence, first[0].evidence)


def test_a_trained_model_predicts_without_the_attribute(dataset, tmp_path):
    split = dataset.official_split()
    prepared = prepare(dataset, split, tmp_path)
    recipe = RECIPES["bibtex"]
    graph = fully_connected(prepared.label_names)
    result, data = recipe.train(prepared, split, graph, tmp_path / "run", encoder="emb", max_epochs=2, logger=False)
    batch = next(iter(data.test_dataloader()))
    model = result.module.model.eval()
    given = model(batch)
    del batch.evidence
    torch.testing.assert_close(model(batch), given, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("encoder", ["emb", "fmp"])
def test_table_lamp_starts_from_frequencies(dataset, encoder):
    model = table_lamp(dataset[:160], fully_connected(4), encoder, channels=8, frequency_strength=1.0)
    frequency = torch.tensor(Y[:160].mean(axis=0))
    torch.testing.assert_close(model.readout.bias.sigmoid(), frequency)


def test_table_lamp_starts_with_what_the_scores_of_its_samples_mean(dataset, tmp_path):
    split = dataset.official_split()
    prepared = prepare(dataset, split, tmp_path)
    train = prepared[split.train]
    options = {"channels": 8, "evidence": list(prepared.classifiers.values()), "evidence_skip": True}
    model = table_lamp(train, fully_connected(4), **options)
    expected = SharedLogits(2)
    plain = {name: value.clone() for name, value in expected.state_dict().items()}
    expected.start_from_scores(train.rows("evidence"), train.y, model.readout.bias)
    torch.testing.assert_close(model.skip.state_dict(), expected.state_dict())
    silent = table_lamp(train, fully_connected(4), **options).eval()
    batch = Batch.from_data_list(train[:5])
    torch.testing.assert_close(silent(batch), silent.skip(batch.evidence) + silent.readout.bias)
    # Scores of samples that the classifiers were fitted to would mislead: without the attribute nothing is fitted.
    unaware = table_lamp(dataset[:160], fully_connected(4), **options)
    torch.testing.assert_close(unaware.skip.state_dict(), plain)


@pytest.mark.parametrize("kind", ["bibtex", "yeast"])
def test_lamp_as_published_stands_alone(kind, dataset, tmp_path):
    recipe = RECIPES[kind].as_published()
    assert recipe.model != RECIPES[kind].model
    assert recipe.module["weight_decay"] == RECIPES[kind].module["weight_decay"]
    prepared = prepare(dataset, dataset.official_split(), tmp_path, kinds=("svm",))
    model = recipe.build(prepared, fully_connected(4), encoder="emb", **recipe.model)
    assert model.evidence is model.skip is model.linear_path is None
    assert model.encoder.channels == 128
    batch = Batch.from_data_list(prepared[:5])
    logits = model.eval()(batch)
    batch.evidence = torch.zeros_like(batch.evidence)
    assert torch.equal(model(batch), logits)
    assert logits.std() > 0.1  # messages have something to say from the start


def test_kinds_without_a_table_are_refused():
    planted = RECIPES["planted-50"].load_dataset("unused")
    with pytest.raises(ValueError, match="'bag', 'sequence' or 'vector'"):
        table_lamp(planted, fully_connected(24))
