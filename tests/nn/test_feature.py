import pytest
import torch
from torch.testing import assert_close

from tests.nn.samples import ragged
from tg_mlc.nn import FeatureMessagePassing
from tg_mlc.nn.feature import FeatureStates
from tg_mlc.ops import Blocks, to_dense_weights


def test_components_attend_to_all_components_of_their_sample():
    features = FeatureMessagePassing(8, num_layers=3, heads=2)
    assert str(features) == "FeatureMessagePassing(8, num_layers=3)"
    x, batch = ragged([3, 1, 4], 8)
    ptr = torch.tensor([0, 3, 4, 8])
    out = features(x, batch)
    assert out.size() == x.size()
    assert_close(features(x, ptr=ptr), out)
    assert_close(features(x, batch, batch_size=3, max_num_nodes=4), out)
    assert_close(features(x, edge_index=Blocks(ptr, ptr).to_edge_index()), out)
    assert_close(features(x[4:]), out[4:])
    assert features(x[:0], batch[:0], batch_size=2).size() == (0, 8)


def test_features_of_bonds_change_their_targets():
    features = FeatureMessagePassing(8, num_layers=1, heads=2, edge_dim=3)
    x, batch = ragged([3, 2], 8)
    edge_index, edge_attr = torch.tensor([[0, 1, 3], [1, 2, 4]]), torch.randn(3, 3)
    out = features(x, batch, edge_index=edge_index, edge_attr=edge_attr)
    filled = edge_attr.index_fill(0, torch.tensor(2), 1.0)
    changed = features(x, batch, edge_index=edge_index, edge_attr=filled)
    assert (changed != out).any(dim=1).nonzero().tolist() == [[4]]


def test_layers_share_no_weights():
    features = FeatureMessagePassing(8, num_layers=2, heads=2)
    assert not torch.equal(features.convs[0].lin_query.weight, features.convs[1].lin_query.weight)
    original = features.convs[1].lin_query.weight.clone()
    features.reset_parameters()
    assert not torch.equal(features.convs[1].lin_query.weight, original)


def test_attention_weights_sum_to_one():
    features = FeatureMessagePassing(8, num_layers=2, heads=2)
    x, batch = ragged([3, 1], 8)
    states = features(x, batch, return_attention_weights=True)
    assert isinstance(states, FeatureStates)
    assert_close(states.states, features(x, batch))
    assert len(states.attention) == 2
    for blocks, weights in states.attention:
        sums = to_dense_weights(blocks, weights).sum(dim=-1)
        assert_close(sums, torch.tensor([[[1.0, 1.0, 1.0]] * 2, [[1.0, 0.0, 0.0]] * 2]))


def test_invalid_options_are_refused():
    with pytest.raises(TypeError, match=r"attention_dropout, .*, value_channels \(got flow\)"):
        FeatureMessagePassing(8, flow="target_to_source")
    with pytest.raises(ValueError, match="'num_layers' to be a whole number of at least 1"):
        FeatureMessagePassing(8, num_layers=0)
