import numpy as np
import pytest
import torch
from scipy.special import expit

from tg_mlc.graphs import LabelGraph, fully_connected
from tg_mlc.stacking import dependencies as module
from tg_mlc.stacking import given
from tg_mlc.stacking.dependencies import sure_dependencies
from tg_mlc.stacking.given import GivenLabelStacking


def find(b, y, label_graph=None):
    """Returns the weights of sure pairs."""
    tensors = [torch.from_numpy(np.asarray(values)).float() for values in (b, y)]
    graph = sure_dependencies(*tensors, label_graph or fully_connected(y.shape[1]))
    pairs = map(tuple, graph.edge_index.t().tolist())
    return dict(zip(pairs, graph.edge_weight.tolist(), strict=True))


def planted(num_samples=1500, seed=0):
    """Returns logits of the inputs, on which all labels depend, and labels. A factor beyond the
    inputs lets labels 0 and 1 occur together, and label 2 exclude them.
    """
    rng = np.random.default_rng(seed)
    b = np.repeat(2 * rng.standard_normal((num_samples, 1)), 6, axis=1)
    factor = 3 * rng.standard_normal((num_samples, 1)) * [1, 1, -1, 0, 0, 0]
    y = (b + factor + rng.logistic(size=b.shape) > 0).astype(float)
    return b * np.where(factor.any(axis=0), 0.5, 1.0), y


def test_pairs_that_depend_beyond_the_inputs_are_found_with_their_sign():
    b, y = planted()
    assert np.corrcoef(y, rowvar=False)[3:, 3:].min() > 0.2  # The inputs let them correlate.
    weights = find(b, y)
    assert weights.keys() == {(0, 1), (0, 2), (1, 2)}
    assert weights[0, 1] > 0.3
    assert max(weights[0, 2], weights[1, 2]) < -0.3
    residual = y - expit(b)
    expected = (residual[:, 0] @ residual[:, 1]) / np.prod(np.linalg.norm(residual[:, :2], axis=0))
    assert weights[0, 1] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("base", [0.0, -4.0])
@pytest.mark.parametrize("slope", [0.0, 20.0])
def test_labels_that_are_independent_given_the_inputs_have_no_edge(base, slope):
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        b = np.repeat(base + slope * rng.standard_normal((500, 1)), 30, axis=1)
        found += len(find(b, (rng.random(b.shape) < expit(b)).astype(float)))
    assert found == 0


def test_overconfident_probabilities_give_no_edges():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (1000, 20))
    y = np.where(rng.random(truth.shape) < 0.1, 1 - truth, truth).astype(float)
    assert not find(np.where(truth == 1, 7.0, -7.0), y)


def test_few_samples_with_two_rare_labels_are_enough_and_one_is_not():
    y = np.zeros((2000, 3))
    y[:10, 0] = y[2:12, 1] = y[11:21, 2] = 1
    b = np.full(y.shape, np.log(0.005 / 0.995))
    assert find(b, y).keys() == {(0, 1)}  # Labels 1 and 2 share one sample.


def test_unknown_labels_do_not_count():
    b, y = planted()
    y[np.random.default_rng(1).random(y.shape) < 0.4] = np.nan
    weights = find(b, y)
    assert weights.keys() == {(0, 1), (0, 2), (1, 2)}
    residual = (y - expit(b))[:, :2]
    residual = residual[~np.isnan(residual).any(axis=1)]
    expected = (residual[:, 0] @ residual[:, 1]) / np.prod(np.linalg.norm(residual, axis=0))
    assert weights[0, 1] == pytest.approx(expected, abs=1e-5)
    y[:, 0] = np.nan
    assert find(b, y).keys() == {(1, 2)}


def test_only_edges_of_a_sparse_graph_are_looked_at(monkeypatch):
    b, y = planted()
    monkeypatch.setattr(module, "_NUMBERS", 1)
    graph = LabelGraph(torch.tensor([[1, 3], [0, 4]]), num_nodes=6)
    weights = find(b, y, graph)
    assert weights.keys() == {(0, 1)}
    assert weights[0, 1] == pytest.approx(find(b, y)[0, 1], abs=1e-5)


@pytest.mark.parametrize("max_dense", [1000, 2])
def test_the_dependencies_are_part_of_the_state(monkeypatch, max_dense):
    monkeypatch.setattr(given, "MAX_DENSE", max_dense)
    monkeypatch.setattr(given, "TOP_K", 1)
    stacking = GivenLabelStacking(names=["closed form"]).fit(*planted(600))
    assert stacking.dependencies.num_edges >= 2
    loaded = GivenLabelStacking.from_state(stacking.state_dict()).dependencies
    assert torch.equal(loaded.edge_index, stacking.dependencies.edge_index)
    assert torch.equal(loaded.edge_weight, stacking.dependencies.edge_weight)


def test_one_label_depends_on_no_other():
    graph = sure_dependencies(torch.zeros(5, 1), torch.ones(5, 1), fully_connected(1))
    assert (graph.num_nodes, graph.num_edges) == (1, 0)
