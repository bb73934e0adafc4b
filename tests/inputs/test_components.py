import pytest
import torch
from torch_geometric.data import Batch, Data

from tg_mlc.inputs.components import Nodes


@pytest.fixture
def sample() -> Data:
    """A path of four nodes around node 2."""
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    x, y = torch.arange(1, 9).view(4, 2), torch.ones(1, 3)
    return Data(x=x, edge_index=edge_index, seed_index=torch.tensor([2]), y=y)


@pytest.mark.parametrize(
    ("kept", "x", "edges", "seed"),
    [
        ([True, True, True, True], [[1, 2], [3, 4], [5, 6], [7, 8]], 6, 2),
        ([False, True, True, True], [[3, 4], [5, 6], [7, 8]], 4, 1),
        ([True, True, False, True], [[1, 2], [3, 4], [0, 0], [7, 8]], 6, 2),
        ([False, False, False, False], [[0, 0]], 0, 0),
    ],
)
def test_a_hidden_seed_keeps_its_place_without_features(sample, kept, x, edges, seed):
    before = sample.clone()
    hidden = Nodes().hide(sample, torch.tensor(kept).numpy())
    assert hidden.x.tolist() == x
    assert (hidden.num_edges, hidden.seed_index.tolist()) == (edges, [seed])
    assert torch.equal(hidden.y, sample.y)
    assert torch.equal(sample.x, before.x)
    assert torch.equal(sample.seed_index, before.seed_index)
    batch = Batch.from_data_list([sample, hidden])
    assert batch.seed_index.tolist() == [2, 4 + seed]


def test_without_a_seed_all_nodes_are_removed(sample):
    del sample.seed_index
    hidden = Nodes().hide(sample, torch.zeros(4, dtype=torch.bool).numpy())
    assert hidden.num_nodes == 0
    assert Nodes().components(sample) == ["node 0", "node 1", "node 2", "node 3"]


def test_nodes_are_named_by_their_indices_in_the_whole_graph(sample):
    sample.n_id = torch.tensor([7, 3, 9, 12])
    assert Nodes().components(sample) == ["node 7", "node 3", "node 9 (seed)", "node 12"]
    hidden = Nodes().hide(sample, torch.tensor([False, True, False, True]).numpy())
    assert Nodes().components(hidden) == ["node 3", "node 9 (seed)", "node 12"]


@pytest.mark.parametrize("seed", [[4], [-1], [0, 1], []])
def test_seeds_that_are_not_one_node_are_refused(sample, seed):
    sample.seed_index = torch.tensor(seed, dtype=torch.long)
    with pytest.raises(ValueError, match="'seed_index' to hold the index of one of 4 nodes"):
        Nodes().components(sample)
