import numpy as np
import pytest
import torch
import torch_geometric.typing
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import ClusterData, ClusterLoader, NeighborLoader
from torch_geometric.nn import HeteroConv, SAGEConv

from tests.nn.samples import path_graph
from tg_mlc.graphs import edgeless
from tg_mlc.nn import LabelHead, LabelMessagePassing, NeighbourComponents

HAS_TORCH_SPARSE = torch_geometric.typing.WITH_TORCH_SPARSE
needs_torch_sparse = pytest.mark.skipif(not HAS_TORCH_SPARSE, reason="needs torch-sparse")
#: 1 -> 0, 2 -> 0, 2 -> 1, 3 -> 2, 0 -> 2
EDGES = torch.tensor([[1, 2, 2, 3, 0], [0, 0, 1, 2, 2]])


STATES = torch.randn(4, 8)


def nodes_by_seed(actual, num_nodes, num_seeds, hop):
    """Returns the nodes of one hop for every seed of a module without known labels."""
    row, seed = actual.components
    start = 0 if hop == 0 else num_seeds + (hop - 1) * num_nodes
    size = num_seeds if hop == 0 else num_nodes
    inside = (row >= start) & (row < start + size)
    return [sorted((row[inside & (seed == s)] - start).tolist()) for s in range(num_seeds)]


@pytest.mark.parametrize(
    ("seeds", "by_hop"),
    [
        (2, [[[0], [1]], [[1, 2], [2]], [[3], [0, 3]]]),
        (torch.tensor([2, 0]), [[[0], [1]], [[0, 3], [1, 2]], [[1], [3]]]),
        (torch.tensor([False, False, False, True]), [[[0]], [[]], [[]]]),
    ],
    ids=["first", "numbers", "mask"],
)
def test_components_are_the_seed_and_its_neighbours_by_hop(seeds, by_hop):
    layer, x = NeighbourComponents(8, num_hops=2), torch.randn(4, 8)
    actual = layer(x, EDGES, seeds)
    num_seeds = len(by_hop[0])
    assert [nodes_by_seed(actual, 4, num_seeds, hop) for hop in range(3)] == by_hop
    index = torch.arange(seeds) if isinstance(seeds, int) else seeds
    assert_close(actual.x[:num_seeds], x[index] + layer.hop.weight[0])
    assert_close(actual.x[num_seeds : num_seeds + 4], x + layer.hop.weight[1])
    assert (actual.components[1].diff() >= 0).all()


def test_repeated_edges_and_self_loops_add_nothing():
    layer, x = NeighbourComponents(8), torch.randn(4, 8)
    repeated = torch.cat([EDGES, EDGES, torch.arange(4).expand(2, 4)], dim=1)
    assert torch.equal(layer(x, repeated, 4).components, layer(x, EDGES, 4).components)


def test_label_messages_of_shared_components_equal_those_of_copies():
    components, labels = NeighbourComponents(8), LabelMessagePassing(8, path_graph(5), heads=2)
    x, pairs = components(torch.randn(4, 8), EDGES, 3)
    copies, batch = x[pairs[0]], pairs[1]
    expected = labels(copies, batch)
    assert_close(labels(x, components=pairs), expected)
    assert_close(labels(x, components=pairs.flip(1), batch_size=3), expected)
    larger = labels(x, components=pairs, batch_size=4, return_attention_weights=True)
    assert_close(larger.states[:3], expected)
    pattern, weights = larger.attention[0].feature_to_label
    total = torch.zeros(20, 2).index_add(0, pattern.to_edge_index()[1], weights)
    assert_close(total[:15], torch.ones(15, 2))
    assert (total[15:] == 0).all()  # The last sample has no components.


@pytest.mark.parametrize("argument", ["batch", "ptr", "edge_index"])
def test_components_and_a_batch_exclude_each_other(argument):
    labels, pairs = LabelMessagePassing(8, path_graph(5)), torch.tensor([[0, 1], [0, 1]])
    with pytest.raises(ValueError, match=r"either 'components' or 'batch'"):
        labels(torch.randn(2, 8), components=pairs, **{argument: pairs[0]})


@pytest.mark.parametrize(
    ("components", "message"),
    [
        (torch.tensor([[5], [0]]), r"source indices .*\[0, 2\)"),
        (torch.tensor([[0], [3]]), r"'batch_size'"),
        (torch.tensor([0, 1]), r"'components' of shape \[2, M\]"),
    ],
)
def test_invalid_components_are_refused(components, message):
    labels = LabelMessagePassing(8, path_graph(5))
    with pytest.raises(ValueError, match=message):
        labels(torch.randn(2, 8), components=components, batch_size=2)


def test_states_are_made_once_for_each_node_and_hop():
    star = torch.stack([torch.arange(1, 2001), torch.zeros(2000, dtype=torch.long)])
    everyone = torch.stack([torch.arange(2000).repeat(3), torch.arange(3).repeat_interleave(2000)])
    for edges, seeds in ((star, 1), (everyone, 3)):
        actual = NeighbourComponents(4)(torch.randn(2001, 4), edges, seeds)
        assert actual.x.size(0) == seeds + 2001  # one row for each seed, and for each node and hop
        assert actual.components.size(1) <= seeds + edges.size(1)


@pytest.mark.parametrize("index", [0, 1], ids=["its own", "those of another seed"])
def test_labels_of_seeds_are_never_read(index):
    layer, x = NeighbourComponents(8, num_hops=2, num_labels=3), torch.randn(4, 8)
    known = (torch.rand(4, 3) > 0.3).float()
    actual = layer(x, EDGES, 2, known)
    changed = known.clone()
    changed[index] = 1.0 - changed[index]
    for left, right in zip(actual, layer(x, EDGES, 2, changed), strict=True):
        assert torch.equal(left, right)
    unknown = known.clone()
    unknown[:2] = torch.nan
    assert torch.equal(layer(x, EDGES, 2, unknown).components, actual.components)


def test_known_labels_of_neighbours_are_components():
    layer, x = NeighbourComponents(8, num_labels=3), torch.randn(4, 8)
    known = torch.tensor([[1, 0, 0], [0, 1, 1], [0, 0, 0], [torch.nan, 1, 0]])
    plain, actual = layer(x, EDGES, torch.tensor([0])), layer(x, EDGES, torch.tensor([0]), known)
    extra = actual.components[:, actual.components[0] >= 5]
    assert plain.components.size(1) == 3
    # Only node 1 counts: nothing applies to node 2, and node 3 is no neighbour.
    assert extra.tolist() == [[5 + 1], [0]]
    expected = layer.lin_known.weight[:, 1] + layer.lin_known.weight[:, 2] + layer.hop.weight[1]
    assert_close(actual.x[6], expected)
    # One label of node 3 is known to apply.
    assert layer(x, EDGES, torch.tensor([2]), known).components[0].max() == 5 + 3
    numbers = known.nan_to_num().long()
    expected = layer(x, EDGES, 2, numbers.float()).x
    assert torch.equal(layer(x, EDGES, np.int64(2), numbers).x, expected)


@pytest.mark.parametrize(
    ("options", "call", "message"),
    [
        ({"num_hops": 0}, {}, "'num_hops'"),
        ({}, {"seeds": 5}, "'seeds' to be different nodes of 4"),
        ({}, {"seeds": torch.tensor([1, 1])}, "'seeds' to be different nodes"),
        ({}, {"seeds": -1}, "got the first -1"),
        ({}, {"seeds": torch.tensor([0.0, 1.0])}, r"got torch.float32 of shape \[2\]"),
        ({}, {"seeds": torch.tensor([True, False])}, r"got torch.bool of shape \[2\]"),
        ({"num_labels": 3}, {"known": torch.full((4, 3), -1.0)}, "'known' to hold 0, 1 or NaN"),
        ({}, {"x": [STATES, STATES.clone()]}, "equal states in another tensor at hop 1"),
        ({}, {"known": torch.zeros(4, 3)}, "'num_labels'"),
        ({"num_labels": 3}, {"known": torch.zeros(4, 2)}, r"'known' of shape \[4, 3\]"),
        ({"num_hops": 2}, {"edge_index": [EDGES]}, "3 node types and 2 relations"),
        ({}, {"edge_index": EDGES + 4}, r"source indices of 'edge_index'"),
    ],
)
def test_invalid_arguments_are_refused(options, call, message):
    call = {"x": torch.randn(4, 8), "edge_index": EDGES, "seeds": 2, **call}
    with pytest.raises(ValueError, match=message):
        NeighbourComponents(8, **options)(**call)


class Net(torch.nn.Module):
    """A GNN with label messages for seeds."""

    def __init__(self, num_hops: int = 1) -> None:
        super().__init__()
        self.gnn = SAGEConv(4, 8)
        self.components = NeighbourComponents(8, num_hops, num_labels=3)
        self.labels = LabelMessagePassing(8, path_graph(3), heads=2)
        self.head = LabelHead(self.labels)

    def forward(self, data: Data, seeds: int | Tensor) -> Tensor:
        x = self.gnn(data.x, data.edge_index).relu()
        x, pairs = self.components(x, data.edge_index, seeds, known=data.get("known"))
        return self.head(self.labels(x, components=pairs))


@pytest.fixture
def graph():
    """A ring of sixty nodes whose labels mostly equal those of their neighbours."""
    ring = torch.arange(60)
    forward = torch.stack([ring, (ring + 1) % 60])
    edges = torch.cat([forward, forward.flip(0)], dim=1)
    y = torch.stack([ring // 20 == k for k in range(3)], dim=1).float()
    return Data(x=torch.randn(60, 4), edge_index=edges, y=y, known=y)


def test_full_batch_learns_from_known_labels_of_neighbours(graph):
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(60):
        seeds = torch.randperm(60)[:20]  # The labels of all other nodes are known.
        optimizer.zero_grad()
        bce = torch.nn.functional.binary_cross_entropy_with_logits
        bce(net(graph, seeds), graph.y[seeds]).backward()
        optimizer.step()
    net.eval()
    seeds = torch.arange(0, 60, 4)
    with torch.no_grad():
        accuracy = ((net(graph, seeds) > 0).float() == graph.y[seeds]).float().mean()
        graph.known = None
        without_known = ((net(graph, seeds) > 0).float() == graph.y[seeds]).float().mean()
    assert accuracy > 0.9
    assert accuracy > without_known


@needs_torch_sparse
@pytest.mark.filterwarnings("ignore:Using 'NeighborSampler' without")
@pytest.mark.parametrize("num_hops", [1, 2])
def test_batches_of_a_neighbor_loader_give_what_the_full_graph_gives(graph, num_hops):
    net, seeds = Net(num_hops).eval(), torch.arange(0, 60, 7)
    graph.known[seeds] = torch.nan  # A batch masks only its own seeds.
    loader = NeighborLoader(graph, [-1] * (num_hops + 1), input_nodes=seeds, batch_size=4)
    with torch.no_grad():
        actual = torch.cat([net(batch, batch.batch_size) for batch in loader])
        assert_close(actual, net(graph, seeds))


@needs_torch_sparse
def test_clusters_give_logits_for_their_seeds(graph):
    graph.train_mask = torch.arange(60) % 2 == 0
    try:
        clusters = ClusterData(graph, num_parts=3, log=False)
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"METIS, which comes with pyg-lib or torch-sparse, is not compiled: {error}")
    for batch in ClusterLoader(clusters, batch_size=1):
        assert Net()(batch, batch.train_mask).shape == (int(batch.train_mask.sum()), 3)


def test_components_follow_a_metapath_of_a_hetero_graph():
    """Authors have labels; components are their papers, and co-authors with known labels."""
    data = HeteroData()
    data["author"].x, data["paper"].x = torch.randn(4, 6), torch.randn(3, 5)
    writes = torch.tensor([[0, 1, 1, 2], [0, 0, 1, 1]])
    data["author", "writes", "paper"].edge_index = writes
    data["paper", "rev_writes", "author"].edge_index = writes.flip(0)
    relations = data.edge_index_dict
    gnn = HeteroConv({relation: SAGEConv((-1, -1), 8) for relation in relations})
    h = gnn(data.x_dict, relations)

    components = NeighbourComponents(8, num_hops=2, num_labels=3)
    path = [relations["paper", "rev_writes", "author"], relations["author", "writes", "paper"]]
    known = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
    x, pairs = components([h["author"], h["paper"], h["author"]], path, torch.tensor([0, 3]), known)
    row, seed = pairs
    # Author 0 itself, paper 0, author 1, and the known labels of author 1.
    assert row[seed == 0].tolist() == [0, 2 + 0, 5 + 1, 9 + 1]
    assert row[seed == 1].tolist() == [1]  # Author 3 has no papers.
    labels = LabelMessagePassing(8, edgeless(3), heads=2)
    assert LabelHead(labels)(labels(x, components=pairs)).shape == (2, 3)
