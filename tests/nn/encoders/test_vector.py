import copy

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from tg_mlc.inputs.scalers import LogCounts
from tg_mlc.nn.encoders import JointEncoder, VectorEncoder


def batch():
    samples = [Data(x=torch.randn(1, 5), counts=torch.rand(1, 3)) for _ in range(4)]
    return Batch.from_data_list(samples)


@pytest.mark.parametrize("in_channels", [5, -1])
def test_a_vector_becomes_one_component(in_channels):
    encoder = VectorEncoder(in_channels, 8)
    data = batch()
    x, ptr, edge_index, *_ = encoder(data)
    assert_close(x, encoder.lin(data.x))
    assert ptr.tolist() == [0, 1, 2, 3, 4]
    assert edge_index is None


def test_an_attribute_may_become_several_components():
    encoder = VectorEncoder(3, 8, num_components=2, key="counts", scaling=LogCounts())
    data = batch()
    x, ptr, *_ = encoder(data)
    assert ptr.tolist() == [0, 2, 4, 6, 8]
    assert_close(x.view(4, 16), encoder.lin(LogCounts()(data.counts)))


def test_joint_components_stay_with_their_sample():
    one, two = VectorEncoder(5, 8), VectorEncoder(3, 8, num_components=2, key="counts")
    joint = JointEncoder([one, two])
    data = batch()
    x, ptr, *_ = joint(data)
    assert ptr.tolist() == [0, 3, 6, 9, 12]
    expected = torch.cat([one(data).x.view(4, 1, 8), two(data).x.view(4, 2, 8)], dim=1)
    assert_close(x.view(4, 3, 8), copy.deepcopy(joint.norm)(expected))


def test_scaling_may_change_the_size():
    encoder = VectorEncoder(3, 8, scaling=torch.nn.Linear(5, 3))
    assert encoder(Data(x=torch.randn(2, 5))).x.shape == (2, 8)
