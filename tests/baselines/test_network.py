import numpy as np
import pytest
import torch

from tests.baselines.test_baseline import NAN, X, Y
from tg_mlc.baselines import NetworkBaseline
from tg_mlc.graphs import tree
from tg_mlc.metrics import macro_roc_auc

WITH_PARENT = np.column_stack([Y, np.maximum(Y[:, 0], Y[:, 1])])
SMALL = {"hidden": 32, "dropout": 0.1, "epochs": 30, "batch_size": 16, "learning_rate": 0.01}


def coherent_graph():
    last = Y.shape[1]
    return tree([(0, last), (1, last), *((label, None) for label in range(2, last))])


@pytest.mark.parametrize("graph", [None, coherent_graph()], ids=["independent", "hierarchy"])
def test_networks_learn_and_are_restored(graph):
    y = WITH_PARENT.copy()
    y[0, 0] = NAN
    network = NetworkBaseline(**SMALL, label_graph=graph)
    held_out = network.held_out_scores(X, y, cv=3)
    assert macro_roc_auc(y, held_out) > 0.7
    scores = network.decision_function(X)
    if graph is not None:
        assert (scores[:, -1:] >= scores[:, :2]).all()
        assert (held_out[:, -1:] >= held_out[:, :2]).all()
    restored = NetworkBaseline().load_state_dict(network.state_dict())
    np.testing.assert_array_equal(restored.decision_function(X), scores)
    assert np.allclose(network.predict_proba(X), 1 / (1 + np.exp(-scores)))


def test_equal_seeds_give_equal_networks_and_leave_global_random_state():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    options = {**SMALL, "epochs": 1}
    fits = (NetworkBaseline(**options, random_state=seed).fit(X, Y) for seed in (1, 1, 2))
    first, second, other = fits
    assert torch.equal(torch.rand(3), expected)
    assert (first.predict_proba(X) == second.predict_proba(X)).all()
    assert (first.predict_proba(X) != other.predict_proba(X)).any()
    assert first.seconds_per_epoch(X, Y) > 0


@pytest.mark.parametrize(
    ("options", "match"),
    [({"hidden": 0}, "'hidden'"), ({"dropout": 1.0}, "'dropout'"), ({"epochs": 0}, "'epochs'")],
)
def test_settings_out_of_range_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        NetworkBaseline(**options).fit(X, Y)


def test_pairs_of_a_state_must_be_labels():
    network = NetworkBaseline(**{**SMALL, "epochs": 1}, label_graph=coherent_graph())
    state = network.fit(X, WITH_PARENT).state_dict()
    with pytest.raises(ValueError, match="'pairs' of labels below"):
        NetworkBaseline().load_state_dict({**state, "pairs": np.array([[99], [0]])})
