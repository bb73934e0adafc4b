"""Tests baselines as modules of tensor operators."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.export import Dim

from tests.requirements import needs_export
from tg_mlc.baselines import (
    ForestBaseline,
    KernelRidgeBaseline,
    LabelFrequency,
    LinearBaseline,
    MLkNN,
    NetworkBaseline,
)
from tg_mlc.graphs import tree

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 7)).astype(np.float32)
Y = (X[:, :4] + RNG.normal(size=(60, 4)) > 0).astype(float)
Y[:, 3] = 1.0  # This label has one class.
NEW = np.concatenate([X, RNG.normal(size=(20, 7)).astype(np.float32)])

BASELINES = [
    LinearBaseline("hinge", 1.0),
    LinearBaseline("logistic", 1.0),
    KernelRidgeBaseline(0.5, 0.3),
    KernelRidgeBaseline(0.5, 0.3, correlated=True),
    ForestBaseline(5),
    ForestBaseline(5, criterion="gini"),
    ForestBaseline(5, max_outputs=2, extra_trees=True),
    NetworkBaseline(8, epochs=2),
    NetworkBaseline(8, epochs=2, num_networks=2, label_graph=tree([(0, 1), (2, 1), (3, None)])),
]


@pytest.mark.parametrize("baseline", BASELINES, ids=repr)
def test_a_module_computes_the_decision_function(baseline):
    baseline.fit(X, Y)
    decisions = baseline.module()(torch.from_numpy(NEW))
    assert decisions.dtype == torch.float32
    np.testing.assert_allclose(decisions, baseline.decision_function(NEW), rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    "baseline", [LinearBaseline(), KernelRidgeBaseline(0.5), ForestBaseline(5)], ids=repr
)
def test_a_module_of_a_baseline_of_sparse_features_takes_dense_features(baseline):
    x = np.where(np.abs(X) > 0.3, X, 0)
    baseline.fit(sp.csr_array(x), Y)
    decisions = baseline.module()(torch.from_numpy(x))
    expected = baseline.decision_function(sp.csr_array(x))
    np.testing.assert_allclose(decisions, expected, rtol=0, atol=2e-5)


@needs_export
@pytest.mark.parametrize("baseline", BASELINES[1::2], ids=repr)
def test_a_module_is_exported_for_any_number_of_samples(baseline):
    module, x = baseline.fit(X, Y).module(), torch.from_numpy(NEW)
    program = torch.export.export(module, (x,), dynamic_shapes=({0: Dim.DYNAMIC},)).module()
    torch.testing.assert_close(program(x[:5]), module(x[:5]))


def test_a_module_keeps_its_weights_when_its_baseline_is_fitted_again():
    for baseline in (LinearBaseline(), NetworkBaseline(8, epochs=1)):
        module = baseline.fit(X, Y).module()
        expected = module(torch.from_numpy(X))
        baseline.fit(X + X[::-1], Y)
        assert torch.equal(module(torch.from_numpy(X)), expected)
    module.double()
    assert all(weight.dtype == torch.float32 for weight in baseline.networks_[0].parameters())


def test_a_baseline_without_a_module_is_named():
    for baseline in (MLkNN().fit(X, Y), LabelFrequency().fit(X, Y)):
        with pytest.raises(ValueError, match=rf"tensors alone \(got a {type(baseline).__name__}\)"):
            baseline.module()


@pytest.mark.parametrize(
    "baseline", [LinearBaseline, KernelRidgeBaseline, ForestBaseline, NetworkBaseline]
)
def test_a_module_needs_a_fit(baseline):
    with pytest.raises(RuntimeError, match="'fit' to be called before 'module'"):
        baseline().module()
