from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from tg_mlc.datasets import Planted
from tg_mlc.graphs import edgeless
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders import NodeEncoder


def test_nodes_become_components():
    encoder = NodeEncoder(-1, 6)
    batch = Batch.from_data_list([Data(x=torch.randn(2, 4)), Data(x=torch.randn(3, 4))])
    components = encoder(batch)
    assert components.x.shape == (5, 6)
    assert components.ptr.tolist() == [0, 2, 5]
    assert components.edge_index is None
    assert components.to_label is None


def test_a_component_speaks_to_its_own_label_only():
    torch.manual_seed(0)
    dataset = Planted(num_samples=6, num_labels=4, degree=1)
    model = LaMP(NodeEncoder(8, 16), edgeless(4), num_feature_layers=0, num_steps=2).eval()
    batch = Batch.from_data_list([dataset[0], dataset[1]])
    before = model(batch)
    batch.x[4 + 2] += 1.0  # the third component of the second sample
    changed = model(batch) != before
    assert changed.nonzero().tolist() == [[1, 2]]


def test_feature_message_passing_keeps_the_labels_of_components():
    dataset = Planted(num_samples=6, num_labels=4, degree=1)
    model = LaMP(NodeEncoder(8, 16), edgeless(4), num_steps=1, num_feature_layers=1).eval()
    output = model(Batch.from_data_list([dataset[0]]), return_attention_weights=True)
    edges, weights = output.attention[0].feature_to_label
    assert edges.tolist() == [[0, 1, 2, 3], [0, 1, 2, 3]]
    torch.testing.assert_close(weights, torch.ones_like(weights))


def test_features_of_another_size_are_refused():
    with pytest.raises(ValueError, match=r"features 'x' of shape \[N, 3\] \(got \[5, 4\]\)"):
        NodeEncoder(3, 8)(Data(x=torch.randn(5, 4)))
