from __future__ import annotations

import numpy as np
import pytest
import torch

from tg_mlc.data import Split, from_arrays, tokenize
from tg_mlc.inputs import TfIdf
from tg_mlc.inputs.preprocessor import from_state, to_state
from tg_mlc.metrics import macro_roc_auc
from tg_mlc.stacking import StackingFeatures
from tg_mlc.stacking.classifiers import AUTOMATIC, StackedClassifier

pytest.importorskip("sklearn")


def rows(num_samples=120, seed=0):
    """Returns inputs and two labels; linear classifiers can learn only the first label."""
    x = np.random.default_rng(seed).normal(size=(num_samples, 5)).astype(np.float32)
    return x, np.stack([x[:, 0] > 0, x[:, 1] * x[:, 2] > 0], axis=1).astype(np.float32)


def all_of(dataset):
    indices = torch.arange(len(dataset))
    return Split(indices, indices[:0], indices[:0], "all")


@pytest.fixture(scope="module")
def fitted():
    dataset = from_arrays(*rows(), kind="vector")
    features = StackingFeatures(seconds=5)
    return features, features.fit_transform(dataset, all_of(dataset))


def test_every_classifier_scores_new_samples_well(fitted):
    features, samples = fitted
    assert samples.rows("base_scores").shape == (120, 2, 4)
    assert list(features.classifiers) == list(AUTOMATIC) == ["svm", "logistic", "ridge", "forest"]
    x, y = rows(seed=1)
    base_scores = features.transform(from_arrays(x, y, kind="vector")).rows("base_scores")
    assert macro_roc_auc(y[:, :1], base_scores[:, :1, 0]) > 0.95
    assert macro_roc_auc(y[:, 1:], base_scores[:, 1:, 2]) > 0.7
    x[0] = np.nan  # Missing entries are replaced by the mean.
    base_scores = features.transform(from_arrays(x, y, kind="vector")).rows("base_scores")
    assert base_scores.isfinite().all()


@pytest.mark.parametrize("kind", AUTOMATIC)
def test_training_samples_get_held_out_scores(kind):
    y = np.random.default_rng(3).integers(0, 2, size=(80, 2)).astype(np.float32)
    dataset = from_arrays(rows(80)[0], y, kind="vector")
    samples = StackingFeatures([kind], seconds=1).fit_transform(dataset, all_of(dataset))
    assert macro_roc_auc(y, samples.rows("base_scores")[..., 0]) < 0.65


def test_final_classifiers_do_not_score_training_samples(monkeypatch):
    num_scored, scores = [], StackedClassifier.scores
    recorded = lambda self, x: num_scored.append(len(x)) or scores(self, x)  # noqa: E731
    monkeypatch.setattr(StackedClassifier, "scores", recorded)
    dataset, indices = from_arrays(*rows(60), kind="vector"), torch.arange(60)
    StackingFeatures(["ridge"], seconds=1).fit_transform(dataset, all_of(dataset))
    assert not num_scored
    split = Split(indices[:50], indices[50:], indices[:0], "some")
    samples = StackingFeatures(["ridge"], seconds=1).fit_transform(dataset, split)
    assert num_scored == [10]
    assert samples.rows("base_scores").isfinite().all()


def test_quantile_scaling_is_chosen_for_inputs_with_outliers():
    x, y = rows(300)
    dataset = from_arrays(np.exp(4 * x), y[:, :1], kind="vector")
    features = StackingFeatures(["svm"], seconds=5).fit(dataset, all_of(dataset))
    assert features.classifiers["svm"].view == features.scaling == "quantile"


def test_bags_of_words_are_not_scaled():
    texts = ["red apple", "green pear", "red cherry", "green lime"] * 10
    y = np.array([[text.startswith("red"), "pear" in text] for text in texts], dtype=np.float32)
    dataset = from_arrays([tokenize(text) for text in texts], y, kind="bag")
    dataset = TfIdf().fit_transform(dataset, all_of(dataset))
    samples = StackingFeatures(["svm"], seconds=1).fit_transform(dataset, all_of(dataset))
    assert macro_roc_auc(dataset.y, samples.rows("base_scores")[..., 0]) == 1.0
    assert torch.equal(samples._data.x, dataset._data.x)


def test_classifiers_restored_from_state_give_the_same_scores(fitted):
    features, new = fitted[0], from_arrays(*rows(seed=2), kind="vector")
    restored = from_state(to_state(features)).transform(new)
    for key in ("x", "base_scores"):
        assert torch.equal(restored.rows(key), features.transform(new).rows(key))


def test_refuses_unknown_classifiers():
    with pytest.raises(ValueError, match=r"'kinds' among \['svm', .* \(got \['tree'\]\)"):
        StackingFeatures(["svm", "tree"])
