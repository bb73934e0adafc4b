import time

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from tg_mlc.graphs import LabelGraph, fully_connected, tree
from tg_mlc.models import LaMP
from tg_mlc.nn import LabelHead, LabelMessagePassing, Shortlister
from tg_mlc.nn.base_scores import BaseScores
from tg_mlc.nn.encoders import VectorEncoder

#     0     6
#    / \
#   1   2
#  / \   \
# 3   4   5
TREE = tree([(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, None)])
GRAPHS = {
    "tree": TREE,
    "down": tree([(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, None)], undirected=False),
}


def test_ancestors_and_edges_among_candidates_are_added():
    actual = Shortlister(GRAPHS["down"])(torch.tensor([[3, 3], [6, 5]]))
    assert actual.label.tolist() == [0, 1, 3, 0, 2, 5, 6]
    assert actual.ptr.tolist() == [0, 3, 7]
    assert actual.sample.tolist() == [0] * 3 + [1] * 4
    edges = actual.label[actual.edge_index].t().tolist()
    pairs = {(source, target) for source, target in edges if source != target}
    assert pairs == {(0, 1), (1, 3), (0, 2), (2, 5)}
    assert (actual.sample[actual.edge_index[0]] == actual.sample[actual.edge_index[1]]).all()
    complete = Shortlister(fully_connected(7))(torch.tensor([[3, 5]]))
    assert (complete.label.tolist(), complete.edge_index.size(1)) == ([3, 5], 4)


def model(graph, **options):
    torch.manual_seed(0)
    scores = BaseScores(2, score_skip=True)
    return LaMP(VectorEncoder(4, 16), graph, base_scores=scores, **options).eval()


def batch(num_labels, num_samples=3):
    torch.manual_seed(1)
    draws = [(torch.randn(1, 4), torch.randn(1, num_labels, 2)) for _ in range(num_samples)]
    return Batch.from_data_list([Data(x=x, base_scores=scores) for x, scores in draws])


@pytest.mark.parametrize("name", GRAPHS)
def test_a_shortlist_of_all_labels_gives_the_logits_without_shortlist(name):
    network, data = model(GRAPHS[name], num_steps=2), batch(7)
    shortlist = Shortlister(GRAPHS[name])(torch.arange(7).repeat(3, 1))
    assert_close(network(data, shortlist=shortlist).view(3, 7), network(data))


def test_a_shortlist_gives_the_logits_of_a_model_of_its_labels():
    network, data = model(TREE), batch(7, 1)
    shortlist = Shortlister(TREE)(torch.tensor([[4]]))
    assert shortlist.label.tolist() == [0, 1, 4]
    submodel = model(LabelGraph(shortlist.edge_index, num_nodes=3))
    state = network.state_dict()
    rows = {"labels.embedding.weight", "readout.own_weight", "readout.bias"}
    subset = {key: value[shortlist.label] if key in rows else value for key, value in state.items()}
    extra = {key: value for key, value in submodel.state_dict().items() if "extra" in key}
    submodel.load_state_dict({**subset, **extra})
    data.base_scores = data.base_scores[:, shortlist.label]
    assert_close(network(batch(7, 1), shortlist=shortlist), submodel(data)[0])


def test_gradients_reach_the_labels_of_the_shortlist_alone():
    network = model(TREE).train()
    network(batch(7), shortlist=Shortlister(TREE)(torch.tensor([[4], [4], [1]]))).sum().backward()
    has_gradient = network.labels.embedding.weight.grad.abs().sum(dim=1) > 0
    assert has_gradient.tolist() == [True, True, False, False, True, False, False]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda s: Shortlister(TREE)(torch.tensor([1, 2])), r"'candidates' of shape \[B, K\]"),
        (lambda s: model(TREE)(batch(7, 2), shortlist=s), "a shortlist for each sample"),
        (lambda s: model(TREE)(batch(7), shortlist=s, return_intermediate=True), "or attention"),
    ],
)
def test_invalid_shortlists_and_options_are_refused(call, match):
    shortlist = Shortlister(TREE)(torch.tensor([[4], [4], [1]]))
    with pytest.raises(ValueError, match=match):
        call(shortlist)


def test_time_does_not_grow_with_the_number_of_labels():
    seconds = []
    for num_labels in (1000, 50_000):
        graph = tree([(child, (child - 1) // 8) for child in range(1, num_labels)])
        labels = LabelMessagePassing(16, graph, num_steps=1).eval()
        shortlister, head, x = Shortlister(graph), LabelHead(labels), torch.randn(8, 16)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            with torch.inference_mode():
                shortlist = shortlister(torch.randint(num_labels, (1, 50)))
                head(labels(x, shortlist=shortlist), shortlist.label)
            times.append(time.perf_counter() - start)
        seconds.append(min(times))
    assert seconds[1] < 5 * seconds[0]
