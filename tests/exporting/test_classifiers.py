"""Base classifiers as modules: the scores of the arrays that they were made of."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tg_mlc.baselines import ForestBaseline, KernelRidgeBaseline, LinearBaseline, MLkNN, NetworkBaseline
from tg_mlc.exporting import classifiers
from tg_mlc.exporting.classifiers import as_module
from tg_mlc.graphs import tree
from tg_mlc.stacking.classifiers import StackedClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 7)).astype(np.float32)
Y = (X[:, :4] + RNG.normal(size=(60, 4)) > 0).astype(float)
Y[:, 3] = 1.0  # a label with one value


def stacked(classifier, reading="probability", frequency=None):
    classifier.fit(X, Y)
    return StackedClassifier("title", "baseline", reading, "view", [], classifier, frequency=frequency)


@pytest.mark.parametrize(
    "classifier",
    [
        LinearBaseline("hinge", 1.0),
        LinearBaseline("logistic", 1.0),
        KernelRidgeBaseline(0.5, 0.3),
        ForestBaseline(n_estimators=5),
        ForestBaseline(n_estimators=5, criterion="gini"),
        ForestBaseline(n_estimators=5, max_outputs=2, extra_trees=True),
        NetworkBaseline(8, epochs=2),
        NetworkBaseline(8, epochs=2, label_graph=tree([(0, 1), (2, 1), (3, None)])),
    ],
    ids=repr,
)
def test_module_equals_classifier(classifier):
    each = stacked(classifier)
    x = np.concatenate([X, RNG.normal(size=(20, 7)).astype(np.float32)])
    found = as_module("each", each)(torch.from_numpy(x))
    np.testing.assert_allclose(found, each.scores(x) * each.scale, rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    ("reading", "frequency"),
    [("raw", None), ("margin", None), ("logit", None), ("relative", np.array([0.5, 0.2, 0.9, 1.0]))],
)
def test_every_reading(reading, frequency):
    each = stacked(LinearBaseline("hinge", 1.0), reading, frequency)
    np.testing.assert_allclose(as_module("each", each)(torch.from_numpy(X)), each.scores(X) * each.scale, atol=2e-5)


def test_entries_at_a_threshold_go_left():
    """As numbers in double precision say, between which those in single precision lie."""
    each = stacked(ForestBaseline(n_estimators=3))
    trees = each.classifier._forests[0]
    inner = np.flatnonzero(trees.left >= 0)
    x = np.tile(X[:1], (len(inner), 1))
    x[np.arange(len(inner)), trees.feature[inner]] = trees.threshold[inner].astype(np.float32)
    np.testing.assert_allclose(as_module("each", each)(torch.from_numpy(x)), each.scores(x) * each.scale, atol=2e-5)


def test_refusals_name_the_classifier(monkeypatch):
    with pytest.raises(ValueError, match=r"'knn', a MLkNN.*base_scores='input'"):
        as_module("knn", stacked(MLkNN()))
    monkeypatch.setattr(classifiers, "MAX_NUMBERS", 100)
    with pytest.raises(ValueError, match=r"'ridge', kernel ridge regression with 60 x 7"):
        as_module("ridge", stacked(KernelRidgeBaseline()))
