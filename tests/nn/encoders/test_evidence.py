from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Batch, Data

from tg_mlc.baselines import KernelRidgeBaseline, LinearBaseline
from tg_mlc.graphs import edgeless, fully_connected
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders import (
    BagEncoder,
    KernelEvidence,
    LinearEvidence,
    ScoreEncoder,
    SharedLogits,
    StackedEvidence,
)


@pytest.fixture
def linear():
    evidence = LinearEvidence(5, 3)
    evidence.weight.copy_(torch.randn(5, 3))
    evidence.bias.copy_(torch.randn(3))
    return evidence


@pytest.fixture
def ridge():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 5)) * (rng.random((20, 5)) < 0.6)
    return KernelRidgeBaseline(gamma=0.3, alpha=0.5).fit(sp.csr_array(x), (rng.random((20, 3)) < 0.4).astype(float))


def bags(**attributes):
    samples = [Data(x=torch.tensor([0, 3])), Data(x=torch.empty(0, dtype=torch.long)), Data(x=torch.tensor([4]))]
    for key, values in attributes.items():
        for sample, value in zip(samples, values, strict=True):
            sample[key] = value
    return Batch.from_data_list(samples)


def test_scores_of_words(linear):
    dense = torch.tensor([[1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1.0]])
    torch.testing.assert_close(linear(bags()), dense @ linear.weight + linear.bias)


def test_scores_of_weighted_words(linear):
    batch = bags(weight=[torch.tensor([0.5, 2.0]), torch.empty(0), torch.tensor([3.0])])
    dense = torch.tensor([[0.5, 0, 0, 2, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 3.0]])
    torch.testing.assert_close(linear(batch), dense @ linear.weight + linear.bias)


def test_scores_of_vectors(linear):
    x = torch.randn(4, 5)
    batch = Batch.from_data_list([Data(x=row.unsqueeze(0)) for row in x])
    torch.testing.assert_close(linear(batch), x @ linear.weight + linear.bias)


def test_scores_of_a_kernel_are_those_of_the_fitted_regression(ridge):
    batch = bags(weight=[torch.tensor([0.5, 2.0]), torch.empty(0), torch.tensor([3.0])])
    dense = np.array([[0.5, 0, 0, 2, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 3.0]])
    expected = torch.tensor(ridge.decision_function(sp.csr_array(dense)), dtype=torch.float32)
    torch.testing.assert_close(KernelEvidence.of(ridge)(batch), expected)
    vectors = Batch.from_data_list([Data(x=torch.tensor(row, dtype=torch.float32).unsqueeze(0)) for row in dense])
    torch.testing.assert_close(KernelEvidence.of(ridge)(vectors), expected)


def test_a_kernel_of_unweighted_words_counts_them(ridge):
    repeated = Batch.from_data_list([Data(x=torch.tensor([1, 1, 2]))])
    expected = ridge.decision_function(sp.csr_array(np.array([[0, 2.0, 1, 0, 0]])))
    torch.testing.assert_close(KernelEvidence.of(ridge)(repeated), torch.tensor(expected, dtype=torch.float32))


def test_a_regression_in_memory_that_cannot_be_written_to_is_taken_without_a_warning(ridge, recwarn):
    ridge.dual.setflags(write=False)
    evidence = KernelEvidence.of(ridge)
    assert not recwarn.list
    torch.testing.assert_close(evidence.dual, torch.tensor(ridge.dual, dtype=torch.float32))


def test_a_kernel_is_kept_but_not_trained(ridge):
    evidence = KernelEvidence.of(ridge)
    assert list(evidence.parameters()) == []
    state = evidence.state_dict()
    other = KernelEvidence(5, 3, num_samples=20, num_entries=state["value"].numel())
    assert not torch.equal(other(bags()), evidence(bags()))
    other.load_state_dict(state)
    assert torch.equal(other(bags()), evidence(bags()))


def test_scores_of_several_classifiers_stand_side_by_side(linear, ridge):
    stacked = StackedEvidence(linear, KernelEvidence.of(ridge))
    assert stacked.num_scores == 2
    assert torch.equal(stacked(bags())[..., 0], linear(bags()))
    assert torch.equal(stacked(bags())[..., 1], KernelEvidence.of(ridge)(bags()))
    known = torch.randn(3, 3, 2)
    assert torch.equal(stacked(bags(evidence=known.split(1))), known)


def test_classifiers_that_are_not_fitted_are_refused():
    with pytest.raises(ValueError, match="'linear' to be fitted"):
        LinearEvidence.of(LinearBaseline())
    with pytest.raises(ValueError, match="'ridge' to be fitted"):
        KernelEvidence.of(KernelRidgeBaseline())


def test_known_scores_come_first(linear):
    known = torch.randn(3, 3)
    assert torch.equal(linear(bags(evidence=known.split(1))), known)


def test_the_linear_model_is_kept_but_not_trained(linear):
    assert list(linear.parameters()) == []
    assert set(linear.state_dict()) == {"weight", "bias"}


def test_scores_become_states():
    encoder = ScoreEncoder(6)
    scores = torch.tensor([[-3.0, 0.0, 2.0]])
    states = encoder(scores)
    assert states.shape == (1, 3, 6)
    torch.testing.assert_close(encoder(scores[:, 1:2]), states[:, 1:2])  # each label's score on its own
    torch.testing.assert_close(encoder(torch.full((1, 1), -40.0)), torch.zeros(1, 1, 6))


def test_every_classifier_has_steps_of_its_own():
    encoder = ScoreEncoder(6, num_scores=2)
    scores = torch.randn(2, 3, 2)
    alone = [ScoreEncoder(6), ScoreEncoder(6)]
    for i, part in enumerate(alone):
        part.lin.weight.data = encoder.lin.weight.data[:, 8 * i : 8 * i + 8]
    expected = alone[0](scores[..., 0]) + alone[1](scores[..., 1])
    torch.testing.assert_close(encoder(scores), expected)


@pytest.mark.parametrize("graph", [edgeless, fully_connected])
def test_labels_hear_of_each_other_along_the_graph_only(linear, graph):
    torch.manual_seed(0)
    model = LaMP(BagEncoder(5, 8), graph(3), num_feature_layers=0, num_steps=1, evidence=linear).eval()
    known = torch.zeros(3, 3)
    before = model(bags(evidence=known.split(1)))
    known[0, 1] = 2.0
    after = model(bags(evidence=known.split(1)))
    changed = (before != after).any(dim=0)
    assert changed[1]
    assert changed[0].item() == (graph is fully_connected)
    assert torch.equal(before[1:], after[1:])  # other samples hear nothing


def test_a_model_hears_several_classifiers(linear, ridge):
    torch.manual_seed(0)
    evidence = StackedEvidence(linear, KernelEvidence.of(ridge))
    model = LaMP(BagEncoder(5, 8), fully_connected(3), num_feature_layers=0, num_steps=1, evidence=evidence).eval()
    known = torch.zeros(3, 3, 2)
    before = model(bags(evidence=known.split(1)))
    known[0, 1, 1] = 2.0
    after = model(bags(evidence=known.split(1)))
    assert (before[0] != after[0]).all()
    assert torch.equal(before[1:], after[1:])


def test_shared_logits_rise_with_the_scores_and_are_the_same_for_all_labels():
    shared = SharedLogits(num_scores=2)
    scores = torch.linspace(-1.2, 1.2, 9)
    logits = shared(torch.stack([scores, scores], dim=-1).unsqueeze(0))
    assert logits.shape == (1, 9)
    assert (logits.diff() > 0).all()
    torch.testing.assert_close(shared(torch.zeros(1, 3, 2)), logits[:, 4:5].expand(1, 3))


def test_shared_logits_start_at_zero_for_scores_of_zero():
    torch.testing.assert_close(SharedLogits(num_scores=2)(torch.zeros(1, 3, 2)), torch.zeros(1, 3))


def test_shared_logits_learn_what_scores_mean_beside_an_offset():
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(4000, 3, 2, generator=generator) * 2 - 1
    offset = torch.tensor([-2.0, 0.0, 2.0])
    logits = 3 * scores[..., 0] + offset  # the second classifier knows nothing
    y = torch.bernoulli(torch.sigmoid(logits), generator=generator)
    y[::7, 1] = torch.nan
    shared = SharedLogits(num_scores=2)
    shared.start_from_scores(scores, y, offset)  # without the offset, the error would be above 1
    with torch.no_grad():
        error = shared(scores) + offset - logits
    assert error.square().mean().sqrt() < 0.25
    assert all(parameter.grad is None for parameter in shared.parameters())


def test_shared_logits_of_many_pairs_are_fitted_to_the_same_share_of_them_every_time(monkeypatch):
    monkeypatch.setattr("tg_mlc.nn.encoders.evidence.MAX_PAIRS", 500)
    scores, y = torch.randn(1000, 4), torch.randint(2, (1000, 4)).float()
    first, second, other = SharedLogits(), SharedLogits(), SharedLogits()
    first.start_from_scores(scores, y)
    second.start_from_scores(scores, y)
    other.start_from_scores(scores, y, seed=1)
    assert torch.equal(first(scores), second(scores))
    assert not torch.equal(first(scores), other(scores))


@pytest.mark.parametrize(
    ("scores", "y", "message"),
    [
        (torch.zeros(2, 3), torch.full((2, 3), torch.nan), "'y' with known labels"),
        (torch.zeros(10, 3), torch.zeros(5, 3), r"same samples and labels as 'y' \[5, 3\] \(got \[10, 3, 1\]\)"),
        (torch.full((2, 3), torch.nan), torch.zeros(2, 3), "finite 'scores'"),
        (torch.zeros(2, 3, 2), torch.zeros(2, 3), "scores of 1 classifiers"),
    ],
)
def test_shared_logits_refuse_what_they_cannot_learn_from(scores, y, message):
    shared = SharedLogits()
    before = {name: value.clone() for name, value in shared.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        shared.start_from_scores(scores, y)
    torch.testing.assert_close(shared.state_dict(), before, rtol=0, atol=0)


def test_shared_logits_take_other_types():
    scores, y = torch.randn(50, 4), torch.randint(2, (50, 4))
    plain, other = SharedLogits(), SharedLogits()
    plain.start_from_scores(scores, y.float())
    other.start_from_scores(scores.double(), y)
    torch.testing.assert_close(other(scores), plain(scores))


def test_training_without_known_scores_is_warned_of(linear, recwarn):
    model = LaMP(BagEncoder(5, 8), edgeless(3), num_feature_layers=0, num_steps=1, evidence=linear)
    model.eval()(bags())
    model.train()(bags(evidence=torch.zeros(3, 3).split(1)))
    assert not recwarn
    with pytest.warns(UserWarning, match="no attribute 'evidence'"):
        model(bags())


def test_evidence_may_skip_to_the_logits(linear):
    torch.manual_seed(0)
    model = LaMP(
        BagEncoder(5, 8), edgeless(3), num_feature_layers=0, num_steps=1, evidence=linear, evidence_skip=True
    ).eval()
    known = torch.randn(3, 3)
    batch = bags(evidence=known.split(1))
    with_skip = model(batch)
    shared, model.skip = model.skip, None
    torch.testing.assert_close(with_skip, model(batch) + shared(known))


def test_scores_of_another_number_of_classifiers_are_refused():
    with pytest.raises(ValueError, match=r"scores of 2 classifiers for every label \(got 1\)"):
        ScoreEncoder(6, num_scores=2)(torch.zeros(1, 3))
    with pytest.raises(ValueError, match="at least one of 'parts'"):
        StackedEvidence()


def test_evidence_of_a_wrong_shape_is_named():
    model = LaMP(BagEncoder(5, 8), fully_connected(3), num_feature_layers=0, num_steps=1)
    x, ptr = torch.randn(4, 8), torch.tensor([0, 2, 4])
    with pytest.raises(ValueError, match=r"'evidence' of shape \[2, 3, 8\]"):
        model.labels(x, ptr=ptr, evidence=torch.zeros(2, 3))
