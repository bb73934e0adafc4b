import numpy as np
import pytest
import torch
from scipy.special import expit
from torch.export import Dim

from tests.nn.test_residual import planted
from tests.requirements import needs_export
from tg_mlc.graphs import LabelGraph, edgeless
from tg_mlc.metrics import macro_roc_auc
from tg_mlc.stacking import given as module
from tg_mlc.stacking.given import GivenLabelStacking


def arrays(seed=0, num_samples=300):
    return tuple(tensor.double().numpy() for tensor in planted(num_samples, seed=seed))


@pytest.fixture(scope="module")
def stacking():
    return GivenLabelStacking().fit(*arrays())


def first_given(y):
    given = np.full_like(y, np.nan)
    given[:, 0] = y[:, 0]
    return given


def test_given_labels_improve_the_ranking_of_other_labels(stacking):
    b, y = arrays(1)
    logits = stacking.decision_function(b, first_given(y))
    auc, base_auc = (macro_roc_auc(y[:, 1:], expit(scores[:, 1:])) for scores in (logits, b))
    assert auc > base_auc + 0.1
    assert macro_roc_auc(y[:, 1:3], expit(logits[:, 1:3])) > 0.95
    assert set(stacking.report["weights"]) == {"base", "closed form", "neighbours"}


def test_rows_without_given_labels_keep_their_logits(stacking):
    b, y = arrays(1)
    given = first_given(y)
    given[::2] = np.nan
    logits = stacking.decision_function(b, given)
    np.testing.assert_array_equal(logits[::2], b[::2])
    assert (logits[1::2, 1:3] != b[1::2, 1:3]).all()


def test_predictions_do_not_depend_on_the_other_rows(stacking, monkeypatch):
    b, y = arrays(1)
    logits = stacking.decision_function(b, first_given(y))
    monkeypatch.setattr(module, "_NUMBERS", 1)
    np.testing.assert_allclose(stacking.decision_function(b, first_given(y)), logits, atol=1e-4)


def test_products_of_pairs_are_computed_for_many_rows_at_once(monkeypatch):
    b, y = arrays(num_samples=300)
    stacking, rows = GivenLabelStacking(names=["closed form"]).fit(b, y), []
    part = stacking.parts["closed form"]
    part.register_forward_hook(lambda part, inputs, output: rows.append(len(output)))
    monkeypatch.setattr(module, "_NUMBERS", 300 * 4 * 6)
    stacking.decision_function(b, first_given(y))
    assert rows == [300]


def test_equal_seeds_give_equal_parts_and_leave_the_global_random_state():
    torch.manual_seed(0)
    state = torch.get_rng_state()
    b, y = arrays(num_samples=80)
    first, second = (GivenLabelStacking().fit(b, y, seed=3) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    expected = second.decision_function(b, first_given(y))
    np.testing.assert_array_equal(first.decision_function(b, first_given(y)), expected)


PAIR = LabelGraph(torch.tensor([[0, 1], [1, 0]]), num_nodes=6)


@pytest.mark.parametrize("label_graph", [None, PAIR])
def test_a_restored_model_predicts_the_same(label_graph):
    b, y = arrays(num_samples=80)
    stacking = GivenLabelStacking("present").fit(b, y, label_graph=label_graph)
    restored = GivenLabelStacking.from_state(stacking.state_dict())
    given = np.where(y == 1, y, np.nan)
    expected = stacking.decision_function(b, given)
    np.testing.assert_array_equal(restored.decision_function(b, given), expected)
    assert restored.masks == "present"


def test_without_edges_given_labels_do_not_improve_other_labels():
    b, y = arrays()
    stacking = GivenLabelStacking().fit(b, y, label_graph=edgeless(6))
    assert "neighbours" not in stacking.report["weights"]
    logits = stacking.decision_function(b, first_given(y))
    np.testing.assert_allclose(macro_roc_auc(y, expit(logits)), macro_roc_auc(y, expit(b)))


def test_many_labels_send_messages_along_the_largest_correlations_of_residuals(monkeypatch):
    monkeypatch.setattr(module, "MAX_DENSE", 5)
    monkeypatch.setattr(module, "TOP_K", 1)
    monkeypatch.setattr(module, "_COLUMNS", 4)
    b, y = arrays()
    stacking = GivenLabelStacking().fit(b, y)
    edges = {tuple(edge) for edge in stacking.label_graph.edge_index.t().tolist()}
    assert {(0, 1), (1, 0)} <= edges or {(0, 2), (2, 0)} <= edges
    assert len(edges) < 2 * 6
    assert all(source != target for source, target in edges)
    logits = stacking.decision_function(b, first_given(y))
    auc, base_auc = (macro_roc_auc(y[:, 1:3], expit(scores[:, 1:3])) for scores in (logits, b))
    assert auc > base_auc + 0.1


def test_unknown_targets_and_constant_labels_give_finite_logits():
    b, y = arrays()
    y[::3, 1], y[:, 5] = np.nan, 0.0
    stacking = GivenLabelStacking().fit(b, y)
    assert np.isfinite(stacking.decision_function(b, first_given(y))).all()
    assert "neighbours" in stacking.parts
    for part in stacking.parts.values():
        assert all(value.isfinite().all() for value in part.state_dict().values())


def test_an_autoencoder_uses_the_number_of_given_labels(monkeypatch):
    monkeypatch.setattr(module, "MAX_COMPARED", 5)
    # With so little noise, many given labels say too much where only present labels are given.
    monkeypatch.setattr(module, "_NOISE", (0.001,))
    rng = np.random.default_rng(0)
    y = (rng.random((400, 40)) < rng.choice([0.1, 0.6], (400, 1))).astype(float)
    b = np.full(y.shape, np.log(y.mean() / (1 - y.mean())))
    stacking = GivenLabelStacking("present").fit(b[:300], y[:300])
    assert "autoencoder" in stacking.parts
    assert stacking.report["autoencoder"].keys() == {"penalty"}
    given = np.where((y == 1) & (rng.random(y.shape) < 0.5), 1, np.nan)
    hidden = np.where(np.isnan(given), y, np.nan)
    loaded = GivenLabelStacking.from_state(stacking.state_dict())
    assert macro_roc_auc(hidden[300:], expit(loaded.decision_function(b[300:], given[300:]))) > 0.65
    losses = stacking.report["losses"]
    assert stacking.report["weights"]["autoencoder"] > 0
    assert losses["autoencoder"] < losses["closed form"]
    few = GivenLabelStacking("present").fit(b[:300], y[:300], label_graph=edgeless(40))
    assert list(few.report["weights"]) == ["base", "closed form"]


def xor_labels(num_samples, rng):
    """Returns logits and labels; the third label is the XOR of the others, so pairs do not help."""
    y = rng.integers(0, 2, (num_samples, 3)).astype(float)
    y[:, 2] = y[:, 0] != y[:, 1]
    return np.zeros_like(y), y


def test_neighbours_predict_an_xor_of_labels_that_pairs_cannot():
    rng = np.random.default_rng(0)
    b, y = xor_labels(400, rng)
    stacking = GivenLabelStacking().fit(b[:300], y[:300])
    given = y.copy()
    given[:, 2] = np.nan
    pairwise = GivenLabelStacking(names=["closed form"]).fit(b[:300], y[:300])
    logits = [model.decision_function(b, given) for model in (stacking, pairwise)]
    scores, pair_scores = (expit(values)[300:, [2]] for values in logits)
    assert macro_roc_auc(y[300:, [2]], scores) > 0.99
    assert macro_roc_auc(y[300:, [2]], pair_scores) < 0.7
    restored = GivenLabelStacking.from_state(stacking.state_dict())
    expected = stacking.decision_function(b, given)
    np.testing.assert_array_equal(restored.decision_function(b, given), expected)


@pytest.mark.parametrize("name", list(module.PARTS))
def test_the_value_of_a_given_label_does_not_change_its_own_logit(name, monkeypatch):
    monkeypatch.setattr(module, "MAX_COMPARED", 5 if name == "autoencoder" else 300)
    rng = np.random.default_rng(0)
    y = np.where(rng.random((300, 6)) < 0.2, 1, 0) ^ rng.integers(0, 2, (300, 1))
    stacking = GivenLabelStacking(names=[name]).fit(np.zeros(y.shape), y.astype(float))
    assert list(stacking.parts) == [name]
    given = np.full((2, 6), np.nan)
    given[:, 0] = 0, 1
    first, second = stacking.decision_function(np.zeros((2, 6)), given)
    assert first[0] == pytest.approx(second[0], abs=1e-6)
    assert abs(first[1:] - second[1:]).min() > 0.1


def test_the_number_of_neighbours_is_limited(monkeypatch):
    monkeypatch.setattr(module, "MAX_NEIGHBOURS", 299)
    stacking = GivenLabelStacking(names=["neighbours"]).fit(*arrays(num_samples=300))
    assert len(stacking.parts["neighbours"].y) == 299


def test_copies_of_a_given_label_do_not_add_up():
    rng = np.random.default_rng(0)
    y = np.where(rng.random((600, 12)) < 0.02, 1, 0) ^ rng.integers(0, 2, (600, 1))
    b, y = np.zeros(y.shape), y.astype(float)
    stacking = GivenLabelStacking(names=["closed form"]).fit(b[:300], y[:300])
    changes = []
    for number in (1, 11):
        given = np.where(np.arange(12) < number, y, np.nan)[300:]
        changes.append(np.median(np.abs(stacking.decision_function(b[300:], given))[:, 11]))
    assert changes[0] > 1
    assert changes[1] < 3 * changes[0]


def test_a_module_computes_the_logits(stacking):
    stacking = GivenLabelStacking.from_state(stacking.state_dict())
    b, y = arrays(1)
    given = first_given(y)
    given[::2] = np.nan
    with torch.no_grad():
        logits = stacking.module()(torch.from_numpy(b).float(), torch.from_numpy(given).float())
    np.testing.assert_allclose(logits, stacking.decision_function(b, given), rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(logits[::2], b[::2].astype(np.float32))


@needs_export
def test_a_module_is_exported_for_any_number_of_samples(stacking):
    b, y = (torch.from_numpy(x).float() for x in (arrays(1)[0], first_given(arrays(1)[1])))
    module, sizes = stacking.module(), ({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC})
    program = torch.export.export(module, (b, y), dynamic_shapes=sizes).module()
    torch.testing.assert_close(program(b[:3], y[:3]), module(b[:3], y[:3]))


def test_a_label_too_rare_for_masks_keeps_its_base_logits(monkeypatch):
    for name in ("_MIN_MASKED", "_MAX_MASKED", "_LEAST_MASKED"):
        monkeypatch.setattr(module, name, 200)
    b, y = arrays()
    y[:, 5] = 0.0
    y[torch.randperm(300, generator=torch.Generator().manual_seed(0))[200:203], 5] = 1.0
    stacking = GivenLabelStacking().fit(b, y)
    logits = stacking.decision_function(b, first_given(y))
    np.testing.assert_allclose(logits[:, 5], b[:, 5], rtol=1e-6)
    assert (logits[:, 1] != b[:, 1]).all()


def test_unknown_masks_and_names_are_refused():
    with pytest.raises(ValueError, match="'given_masks' to be one of both, present"):
        GivenLabelStacking("absent")
    with pytest.raises(ValueError, match="'names' to be one of closed form, neighbours"):
        GivenLabelStacking(names=["trees"])
