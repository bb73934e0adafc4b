import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from tg_mlc.graphs import edgeless, fully_connected
from tg_mlc.models import LaMP
from tg_mlc.nn.base_scores import BaseScores, ScoreEncoder, SharedLogits
from tg_mlc.nn.encoders import BagEncoder


def bags(**attributes):
    samples = [Data(x=torch.tensor(words, dtype=torch.long)) for words in ([0, 3], [], [4])]
    for key, values in attributes.items():
        for sample, value in zip(samples, values, strict=True):
            sample[key] = value
    return Batch.from_data_list(samples)


def model_of(graph, base_scores=None):
    options = {"num_feature_layers": 0, "num_steps": 1, "base_scores": base_scores}
    return LaMP(BagEncoder(5, 8), graph(3), **options).eval()


@pytest.mark.parametrize("graph", [edgeless, fully_connected])
@pytest.mark.parametrize("num_scores", [1, 2])
def test_messages_follow_the_graph_only(graph, num_scores):
    model = model_of(graph, BaseScores(num_scores))
    scores = torch.zeros(3, 3) if num_scores == 1 else torch.zeros(3, 3, num_scores)
    logits = model(bags(base_scores=scores.split(1)))
    scores.view(3, 3, -1)[0, 1, -1] = 2.0
    changed = model(bags(base_scores=scores.split(1)))
    reached = [graph is fully_connected, True, graph is fully_connected]
    # Other samples are unaffected.
    assert (logits != changed).tolist() == [reached, [False] * 3, [False] * 3]


def test_base_scores_may_skip_to_the_logits():
    model, scores = model_of(edgeless, BaseScores(score_skip=True)), torch.randn(3, 3)
    batch = bags(base_scores=scores.split(1))
    with_skip = model(batch)
    shared, model.score_skip = model.score_skip, None
    assert_close(with_skip, model(batch) + shared(scores))


def test_base_scores_of_a_wrong_shape_are_refused():
    x, ptr = torch.randn(4, 8), torch.tensor([0, 2, 4])
    with pytest.raises(ValueError, match=r"'base_scores' of shape \[2, 3, 8\]"):
        model_of(fully_connected).labels(x, ptr=ptr, base_scores=torch.zeros(2, 3))
    with pytest.raises(ValueError, match=r"scores of 2 classifiers for every label \(got 1\)"):
        ScoreEncoder(6, num_scores=2)(torch.zeros(1, 3))


@pytest.mark.parametrize("key", ["base_scores", "opinions"])
def test_base_scores_are_read_from_samples(key):
    scores = torch.randn(3, 3)
    base_scores = BaseScores(key=key)
    assert torch.equal(base_scores(bags(**{key: scores.split(1)})), scores)
    with pytest.raises(ValueError, match=f"samples with the attribute '{key}'.*preprocessor"):
        base_scores(bags())


def test_scores_become_states():
    encoder = ScoreEncoder(6)
    scores = torch.tensor([[-3.0, 0.0, 2.0]])
    states = encoder(scores)
    assert states.shape == (1, 3, 6)
    # Each label's score is encoded on its own.
    assert_close(encoder(scores[:, 1:2]), states[:, 1:2])
    assert_close(encoder(torch.full((1, 1), -40.0)), torch.zeros(1, 1, 6))


def test_every_classifier_has_steps_of_its_own():
    encoder = ScoreEncoder(6, num_scores=2)
    scores = torch.randn(2, 3, 2)
    encoders = [ScoreEncoder(6), ScoreEncoder(6)]
    for i, score_encoder in enumerate(encoders):
        score_encoder.lin.weight.data = encoder.lin.weight.data[:, 8 * i : 8 * i + 8]
    assert_close(encoder(scores), encoders[0](scores[..., 0]) + encoders[1](scores[..., 1]))


def test_shared_logits_rise_from_zero_with_the_scores_and_are_the_same_for_all_labels():
    shared, scores = SharedLogits(num_scores=2), torch.linspace(-1.2, 1.2, 9)
    logits = shared(torch.stack([scores, scores], dim=-1).unsqueeze(0))
    assert logits.shape == (1, 9)
    assert (logits.diff() > 0).all()
    assert_close(shared(torch.zeros(1, 3, 2)), torch.zeros(1, 3))
    assert_close(logits[:, 4], torch.zeros(1))


def test_shared_logits_learn_what_scores_mean_beside_an_offset():
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(4000, 3, 2, generator=generator) * 2 - 1
    offset = torch.tensor([-2.0, 0.0, 2.0])
    logits = 3 * scores[..., 0] + offset  # The second classifier has random scores.
    y = torch.bernoulli(torch.sigmoid(logits), generator=generator)
    y[::7, 1] = torch.nan
    shared = SharedLogits(num_scores=2)
    shared.start_from_scores(scores, y, offset)  # Without it, the error would be over 1.
    with torch.no_grad():
        error = shared(scores) + offset - logits
    assert error.square().mean().sqrt() < 0.25
    assert all(parameter.grad is None for parameter in shared.parameters())


def test_shared_logits_are_fitted_to_the_same_subset_of_many_pairs_every_time(monkeypatch):
    monkeypatch.setattr("tg_mlc.nn.base_scores.MAX_PAIRS", 500)
    scores, y = torch.randn(1000, 4), torch.randint(2, (1000, 4)).float()
    first, second, other = SharedLogits(), SharedLogits(), SharedLogits()
    first.start_from_scores(scores, y)
    second.start_from_scores(scores, y)
    monkeypatch.setattr("tg_mlc.nn.base_scores.MAX_PAIRS", 4000)
    other.start_from_scores(scores, y)
    assert torch.equal(first(scores), second(scores))
    assert not torch.equal(first(scores), other(scores))


@pytest.mark.parametrize(
    ("scores", "y", "message"),
    [
        (torch.zeros(2, 3), torch.full((2, 3), torch.nan), "'y' with known labels"),
        (torch.zeros(10, 3), torch.zeros(5, 3), r"as 'y' \[5, 3\] \(got \[10, 3, 1\]\)"),
        (torch.full((2, 3), torch.nan), torch.zeros(2, 3), "finite 'scores'"),
        (torch.zeros(2, 3, 2), torch.zeros(2, 3), "scores of 1 classifiers"),
    ],
)
def test_shared_logits_refuse_invalid_scores_and_labels(scores, y, message):
    shared = SharedLogits()
    original = {name: value.clone() for name, value in shared.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        shared.start_from_scores(scores, y)
    assert_close(shared.state_dict(), original, rtol=0, atol=0)


def test_shared_logits_take_other_dtypes():
    scores, y = torch.randn(50, 4), torch.randint(2, (50, 4))
    plain, other = SharedLogits(), SharedLogits()
    plain.start_from_scores(scores, y.float())
    other.start_from_scores(scores.double(), y)
    assert_close(other(scores), plain(scores))
