import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data

from tg_mlc.graphs import edgeless, fully_connected
from tg_mlc.models import LaMP
from tg_mlc.nn import GivenLabels, LabelMessagePassing
from tg_mlc.nn.encoders import BagEncoder, GivenComponents
from tg_mlc.nn.given import given_in, takes_given_labels

NAN = float("nan")


def bags(given=None):
    samples = [Data(x=torch.tensor([0, 3])), Data(x=torch.tensor([4]))]
    for i, sample in enumerate(samples if given is not None else []):
        sample.given = given[i : i + 1]
    return Batch.from_data_list(samples)


def test_known_labels_have_states_and_unknown_labels_stay_at_zero():
    layer = GivenLabels(4)
    states = layer(torch.tensor([[0.0, 1.0, NAN], [1.0, NAN, 0.0]]))
    negative, positive, zero = states[0]
    assert torch.equal(states[1], torch.stack([positive, zero, negative]))
    assert not zero.any()
    assert not torch.equal(negative, positive)
    states.sum().backward()
    assert layer.embedding.weight.grad.any(dim=1).tolist() == [False, True, True]
    layer.reset_parameters()
    assert layer.embedding.weight.any(dim=1).tolist() == [False, True, True]
    with pytest.raises(ValueError, match=r"'given' of shape \[B, L\].*got"):
        layer(torch.zeros(3))


@pytest.mark.parametrize(
    ("graph", "options"), [(edgeless, {}), (fully_connected, {"label_messages": False})]
)
def test_given_labels_without_neighbours_raise_a_warning(graph, options):
    with pytest.warns(UserWarning, match=r"changes no other prediction.*GivenComponents\(encoder"):
        LaMP(BagEncoder(5, 8), graph(3), given_labels=True, **options)


def test_known_components_reach_labels_without_neighbours():
    model = LaMP(GivenComponents(BagEncoder(5, 8), 3), edgeless(3), num_feature_layers=0).eval()
    given = model(bags(torch.tensor([[1.0, NAN, NAN], [NAN] * 3])))
    assert (given != model(bags())).tolist() == [[True] * 3, [False] * 3]


@pytest.mark.filterwarnings("ignore:.*changes no other prediction")
@pytest.mark.parametrize("graph", [edgeless, fully_connected])
def test_given_labels_are_sent_along_the_graph_only(graph):
    model = LaMP(BagEncoder(5, 8), graph(3), num_feature_layers=0, given_labels=True).eval()
    without = model(bags())
    assert torch.equal(model(bags(torch.full((2, 3), NAN))), without)
    given = [torch.tensor([[NAN, value, NAN], [NAN] * 3]) for value in (0.0, 1.0)]
    negative, positive = (model(bags(values)) for values in given)
    reached = [graph is fully_connected, True, graph is fully_connected]
    assert (negative[0] != without[0]).tolist() == (positive[0] != negative[0]).tolist() == reached
    assert torch.equal(positive[1], without[1])  # Other samples are unaffected.


def test_label_message_passing_takes_given_labels_as_base_scores():
    labels, given = LabelMessagePassing(8, fully_connected(3)).eval(), GivenLabels(8)
    x, batch = torch.randn(4, 8), torch.tensor([0, 0, 1, 1])
    states = labels(x, batch, base_scores=given(torch.tensor([[1.0, NAN, NAN], [NAN] * 3])))
    assert (states != labels(x, batch)).flatten(1).any(dim=1).tolist() == [True, False]


def test_given_labels_add_to_base_scores():
    base_scores = nn.Module()
    base_scores.forward = lambda data: data.rated
    options = {"num_feature_layers": 0, "base_scores": base_scores, "given_labels": True}
    model = LaMP(BagEncoder(5, 8), fully_connected(3), **options).eval()
    batch = bags()
    batch.rated = torch.randn(2, 3)
    rated = model(batch)
    batch.given = torch.tensor([[1.0, NAN, NAN], [NAN] * 3])
    both = model(batch)
    assert (both[0] != rated[0]).all()
    assert torch.equal(both[1], rated[1])
    batch.rated = torch.zeros(2, 3)
    assert (model(batch)[0] != both[0]).all()


def test_given_labels_add_only_an_embedding_to_the_weights():
    plain = LaMP(BagEncoder(5, 8), fully_connected(3))
    with_given = LaMP(BagEncoder(5, 8), fully_connected(3), given_labels=True)
    added = with_given.state_dict().keys() - plain.state_dict().keys()
    assert added == {"given_labels.embedding.weight"}
    assert takes_given_labels(with_given)
    assert takes_given_labels(nn.Sequential(GivenLabels(2)))
    assert not takes_given_labels(plain)
    assert given_in(plain, bags()) is None
    with pytest.raises(ValueError, match=r"as LaMP does not use given .*LaMP\(given_labels=True\)"):
        plain(bags(torch.zeros(2, 3)))
