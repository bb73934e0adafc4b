import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from tg_mlc.datasets import Planted
from tg_mlc.graphs import edgeless
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders import MoleculeEncoder, NodeEncoder
from tg_mlc.nn.encoders.graphs import CategoricalEmbedding


def test_categorical_embeddings_are_summed():
    embedding = CategoricalEmbedding([3, 2, 4], 8)
    out = embedding(torch.tensor([[2, 0, 3], [0, 1, 0]]))
    assert_close(out, embedding.weight[torch.tensor([[2, 3, 8], [0, 4, 5]])].sum(dim=1))
    assert embedding(torch.zeros(0, 3, dtype=torch.long)).size() == (0, 8)
    assert {name: x.size() for name, x in embedding.state_dict().items()} == {"weight": (9, 8)}
    out = CategoricalEmbedding([50, 50, 50], 200)(torch.randint(0, 50, (100, 3)))
    assert out.std().item() == pytest.approx(1.0, abs=0.05)


def test_nodes_become_components():
    encoder = NodeEncoder(-1, 6)
    batch = Batch.from_data_list([Data(x=torch.randn(2, 4)), Data(x=torch.randn(3, 4))])
    components = encoder(batch)
    assert components.x.shape == (5, 6)
    assert components.ptr.tolist() == [0, 2, 5]
    assert components.edge_index is components.to_label is None
    assert encoder.lin.in_channels == 4  # The size comes from the first input.


def test_a_component_sends_to_its_own_label_only():
    dataset = Planted(num_samples=6, num_labels=4, degree=1)
    model = LaMP(NodeEncoder(8, 16), edgeless(4), num_feature_layers=0, num_steps=2).eval()
    batch = Batch.from_data_list([dataset[0], dataset[1]])
    original = model(batch)
    batch.x[4 + 2] += 1.0  # This is the third component of the second sample.
    assert (model(batch) != original).nonzero().tolist() == [[1, 2]]


def test_feature_message_passing_keeps_the_labels_of_components():
    dataset = Planted(num_samples=6, num_labels=4, degree=1)
    model = LaMP(NodeEncoder(8, 16), edgeless(4), num_steps=1, num_feature_layers=1).eval()
    output = model(Batch.from_data_list([dataset[0]]), return_attention_weights=True)
    edges, weights = output.attention[0].feature_to_label
    assert edges.tolist() == [[0, 1, 2, 3], [0, 1, 2, 3]]
    assert_close(weights, torch.ones_like(weights))


def test_atoms_are_components_and_bonds_are_edges():
    pytest.importorskip("rdkit", reason="molecules need RDKit")
    from torch_geometric.utils import from_smiles

    encoder = MoleculeEncoder(8)
    assert (encoder.channels, encoder.edge_dim) == (8, 8)
    data = [from_smiles(smiles) for smiles in ("CCO", "C", "[Na+].[Cl-]")]
    batch = Batch.from_data_list(data)
    x, ptr, edge_index, edge_attr, _ = encoder(batch)
    assert x.size() == (6, 8)
    assert ptr.tolist() == [0, 3, 4, 6]
    assert edge_index is batch.edge_index
    assert edge_attr is not None
    assert edge_attr.size() == (4, 8)
    assert_close(encoder(data[0]).x, x[:3])
    assert encoder(data[1]).ptr.tolist() == [0, 1]
