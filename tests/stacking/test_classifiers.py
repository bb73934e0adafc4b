"""Stacked classifiers as modules of tensor operators."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tg_mlc.baselines import ForestBaseline, LinearBaseline, MLkNN
from tg_mlc.stacking.classifiers import StackedClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 7)).astype(np.float32)
Y = (X[:, :4] + RNG.normal(size=(60, 4)) > 0).astype(float)
Y[:, 3] = 1.0  # This label has one class.


def stacked(classifier, reading="probability", frequency=None):
    classifier.fit(X, Y)
    names = "title", "baseline", reading, "view"
    return StackedClassifier(*names, [], classifier, frequency=frequency)


@pytest.mark.parametrize("baseline", [LinearBaseline("hinge", 1.0), ForestBaseline(5)], ids=repr)
@pytest.mark.parametrize("reading", ["raw", "margin", "logit", "probability", "relative"])
def test_a_module_computes_base_scores(baseline, reading):
    frequency = np.array([0.5, 0.2, 0.9, 1.0]) if reading == "relative" else None
    classifier = stacked(baseline, reading, frequency)
    base_scores = classifier.module()(torch.from_numpy(X))
    np.testing.assert_allclose(base_scores, classifier.scores(X) * classifier.scale, atol=2e-5)


def test_a_classifier_without_a_module_is_named():
    with pytest.raises(ValueError, match=r"got a MLkNN.*base_scores='input'.*scores of 'title'"):
        stacked(MLkNN()).module()
