from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tg_mlc.baselines.linear import best_value
from tg_mlc.data import ArrayDataset, random_split
from tg_mlc.data.bags import inputs_of
from tg_mlc.data.records import Records
from tg_mlc.inputs import Chain, from_state, to_state
from tg_mlc.stacking import ClassifierScores, table_preprocessor

rng = np.random.default_rng(0)
WORDS = (rng.random((200, 30)) < 0.2).astype(np.float32)
Y = (WORDS @ rng.standard_normal((30, 4)) > 0.3).astype(np.float32)


def table(x, y=Y, official=True):
    parts = (np.arange(160), np.arange(160, 200)) if official else (None, None)
    return ArrayDataset(Records(x, y, ["a", "b", "c", "d"], None, *parts).to_samples())


@pytest.fixture(params=["bag", "vector"])
def dataset(request):
    return table(sp.csr_array(WORDS) if request.param == "bag" else WORDS)


def prepare(dataset, split, folder=None, kinds=("svm", "ridge")):
    """The samples with their base scores, and the classifiers by name."""
    chain = table_preprocessor(dataset.kind, kinds, folder)
    return chain.fit_transform(dataset, split), chain.steps[-1].classifiers


def test_prepared_samples_carry_what_other_classifiers_say(dataset):
    split = dataset.official_split()
    prepared, classifiers = prepare(dataset, split)
    base_scores = torch.cat([data.base_scores for data in prepared]).numpy()
    assert base_scores.shape == (200, 4, 2)
    for i, classifier in enumerate(classifiers.values()):
        fitted = classifier.decision_function(inputs_of(prepared))
        np.testing.assert_allclose(base_scores[split.test, :, i], fitted[split.test], atol=1e-4)
        np.testing.assert_allclose(base_scores[split.val, :, i], fitted[split.val], atol=1e-4)
        # Training samples get the opinion of classifiers that have not seen them.
        assert np.abs(base_scores[split.train, :, i] - fitted[split.train]).max() > 0.05


def test_one_kind_of_classifier_may_do(dataset):
    prepared, classifiers = prepare(dataset, dataset.official_split(), kinds=("svm",))
    assert list(classifiers) == ["linear SVM, tuned"]
    assert prepared[0].base_scores.shape == (1, 4, 1)


def test_duplicates_are_remembered():
    # Labels that have nothing to do with the words, but for the test samples' duplicates among the training samples.
    y = rng.integers(0, 2, (200, 4)).astype(np.float32)
    words, y[160:] = np.vstack([WORDS[:160], WORDS[:40]]), y[:40]
    records = Records(sp.csr_array(words), y, list("abcd"), None, np.arange(160), np.arange(160, 200))
    dataset = ArrayDataset(records.to_samples())
    split = dataset.official_split()
    prepared, classifiers = prepare(dataset, split, kinds=("exact",))
    (exact,) = classifiers.values()
    found = exact.predict_proba(inputs_of(prepared))[split.test.numpy()] > 0.5
    remembered = np.isin(np.arange(40), split.train.numpy())
    assert (found == y[160:])[remembered].all()
    assert exact.search[0][:2] == (1.0, 0.01)
    # It is the subset accuracy that chose it.
    val = split.val.numpy()
    on_val = exact.predict_proba(inputs_of(prepared))[val]
    best = {metric: best_value(y[val], on_val, metric=metric) for metric in ("subset_accuracy", "f1_micro")}
    assert max(value for *_, value in exact.search) == pytest.approx(best["subset_accuracy"])
    assert best["subset_accuracy"] != best["f1_micro"]


def test_the_classifiers_are_fitted_once(dataset, tmp_path, monkeypatch):
    split = dataset.official_split()
    first, ones = prepare(dataset, split, tmp_path)
    for name in ("_SVM", "_Ridge"):
        monkeypatch.setattr(f"tg_mlc.stacking.raters.{name}.fit", lambda *args: pytest.fail("fitted again"))
    second, others = prepare(dataset, split, tmp_path)
    assert torch.equal(first[0].base_scores, second[0].base_scores)
    x = inputs_of(first)
    for one, other in zip(ones.values(), others.values(), strict=True):
        assert np.array_equal(one.decision_function(x), other.decision_function(x))
        assert one.search == other.search


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
    rows = [5, 3]
    dense = [x.toarray() if sp.issparse(x) else x for x in map(inputs_of, (prepared[rows], expected))]
    assert np.array_equal(dense[0], dense[1][rows])
    with pytest.raises(ValueError, match="published with a split"):
        prepared.official_split()


@pytest.mark.parametrize("part", ["train", "test"])
def test_gaps_in_vectors_are_named_before_classifiers_meet_them(part):
    split = table(WORDS).official_split()
    x = WORDS.copy()
    x[getattr(split, part)[:2], 1] = np.nan
    with pytest.raises(ValueError, match="got NaN in 2 of"):
        prepare(table(x), split)


def test_other_samples_get_their_own_classifiers(dataset, tmp_path):
    prepare(dataset, dataset.official_split(), tmp_path)
    prepare(dataset, dataset.official_split(seed=1), tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("change", [lambda x, y: (x[:, ::-1].copy(), y), lambda x, y: (x, y[:, ::-1].copy())])
def test_other_columns_or_labels_are_other_samples(change, tmp_path):
    split = table(WORDS).official_split()
    for x, y in ((WORDS, Y), change(WORDS, Y), (WORDS, Y)):
        ClassifierScores(("svm",), tmp_path).fit(table(x, y), split)
    ClassifierScores(("svm",), tmp_path).fit(table(sp.csr_array(WORDS)), split)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("kinds", [("svm", "ridge"), ("exact",), ()])
def test_what_is_restored_says_the_same_to_the_last_bit(kinds, dataset):
    split = dataset.official_split()
    chain = table_preprocessor(dataset.kind, kinds)
    prepared = chain.fit_transform(dataset, split)
    restored = from_state(to_state(chain))
    assert isinstance(restored, Chain)
    one, other = (each.transform(dataset[split.test]) for each in (chain, restored))
    assert all(torch.equal(sample.x, again.x) for sample, again in zip(one, other, strict=True))
    assert ("weight" in one[0]) == (dataset.kind == "bag")
    assert one._data.get("weight", torch.zeros(())).equal(other._data.get("weight", torch.zeros(())))
    if kinds:
        assert torch.equal(one.rows("base_scores"), other.rows("base_scores"))
        torch.testing.assert_close(
            one.rows("base_scores"), prepared[split.test].rows("base_scores"), atol=1e-5, rtol=1e-5
        )


def test_classifiers_that_nobody_knows_are_named():
    with pytest.raises(ValueError, match=r"'kinds' among \['svm', .* \(got \['tree'\]\)"):
        ClassifierScores(("svm", "tree"))
