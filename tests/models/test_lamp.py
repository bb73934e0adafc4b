import copy

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch, Data
from torch_geometric.explain import AttentionExplainer, Explainer

from tests.models.samples import batch, molecules
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected
from tg_mlc.models import LaMP
from tg_mlc.models.lamp import LaMPOutput
from tg_mlc.nn.encoders import BagEncoder, MoleculeEncoder, SequenceEncoder, VectorEncoder
from tg_mlc.nn.encoders.components import Components

GRAPH = LabelGraph(torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]), num_nodes=5)


@pytest.mark.parametrize("num_feature_layers", [0, 2])
@pytest.mark.parametrize(
    "graph", [edgeless(5), fully_connected(5), GRAPH], ids=["edgeless", "complete", "prior"]
)
def test_lamp_takes_molecules(num_feature_layers, graph):
    model = LaMP(MoleculeEncoder(8), graph, num_feature_layers=num_feature_layers, heads=2)
    logits = model(batch(6))
    assert logits.size() == (6, 5)
    logits.sum().backward()
    unused = {name for name, p in model.named_parameters() if p.grad is None}
    assert unused == (set() if num_feature_layers else {"encoder.bonds.weight"})
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_one_sample_is_a_batch_of_one():
    model = LaMP(MoleculeEncoder(8), GRAPH, heads=2).eval()
    data = molecules(3)[2]
    assert_close(model(data), model(Batch.from_data_list([data])))


@pytest.mark.parametrize(
    ("encoder", "x"),
    [
        (BagEncoder(10, 8), lambda n: torch.randint(10, (n,))),
        (SequenceEncoder(10, 8), lambda n: torch.randint(10, (n,))),
        (VectorEncoder(4, 8), lambda n: torch.randn(1, 4)),
    ],
    ids=["bag", "sequence", "vector"],
)
@pytest.mark.parametrize("num_feature_layers", [0, 2])
def test_lamp_takes_words_sequences_and_vectors(encoder, x, num_feature_layers):
    model = LaMP(copy.deepcopy(encoder), GRAPH, num_feature_layers=num_feature_layers, heads=2)
    data = [Data(x=x(n)) for n in (3, 1, 5)]
    assert model(Batch.from_data_list(data)).size() == (3, 5)


def test_lamp_returns_intermediate_logits():
    model = LaMP(MoleculeEncoder(8), GRAPH, heads=2, num_steps=3).eval()
    data = batch(4)
    output = model(data, return_intermediate=True)
    assert isinstance(output, LaMPOutput)
    assert torch.equal(output.logits, model(data))
    assert [tuple(logits.shape) for logits in output.intermediate] == [(4, 5)] * 5
    assert len(output.attention) == len(output.feature_attention) == 0


def test_lamp_returns_attention_weights():
    model = LaMP(MoleculeEncoder(8), GRAPH, heads=2, num_steps=2, num_feature_layers=3).eval()
    data = batch(4)
    output = model(data, return_attention_weights=True)
    assert_close(output.logits, model(data))
    assert len(output.attention) == 2
    assert len(output.feature_attention) == 3
    blocks, weights = output.attention[0].feature_to_label
    assert torch.equal(blocks.key_ptr, data.ptr)
    assert weights.size() == (GRAPH.num_labels * data.num_nodes, 2)
    for edge_index, among_atoms in output.feature_attention:
        assert torch.equal(edge_index, data.edge_index)
        assert among_atoms.size() == (data.num_edges, 2)


def test_options_reach_every_block():
    defaults = {"heads": 4, "dropout": 0.3, "mlp_channels": 5, "norm": "pre"}
    overrides = {"label_kwargs": {"heads": 2}, "feature_kwargs": {"heads": 1, "dropout": 0.2}}
    model = LaMP(MoleculeEncoder(8), GRAPH, num_feature_layers=3, **overrides, **defaults)
    assert [conv.heads for conv in model.labels.label_to_label] == [2, 2]
    assert [conv.heads for conv in model.labels.feature_to_label] == [4, 4]
    assert [(conv.heads, conv.dropout) for conv in model.features.convs] == [(1, 0.2)] * 3
    label_convs = [*model.labels.feature_to_label, *model.labels.label_to_label]
    for conv in (*model.features.convs, *label_convs):
        assert (conv.norm, conv.mlp[0].out_channels) == ("pre", 5)
    for conv in label_convs:
        assert (conv.dropout, conv.attention_dropout) == (0.3, 0.3)
    assert model.readout.weight is not model.labels.embedding.weight
    assert model.readout.bias.eq(0).all()
    default = LaMP(MoleculeEncoder(8), GRAPH, heads=2)
    convs = [*default.features.convs, *default.labels.feature_to_label]
    assert {conv.dropout for conv in convs} == {0.1}


def test_a_linear_path_adds_to_the_logits():
    model, data = LaMP(MoleculeEncoder(8), GRAPH, heads=2).eval(), batch(4)
    logits = model(data)
    model.linear_path = Constant()
    assert_close(model(data), logits + torch.arange(5.0))


class Constant(torch.nn.Module):
    def forward(self, data):
        return torch.arange(5.0)


class TensorInputs(torch.nn.Module):
    """A model that takes tensors, as explainers pass them."""

    def __init__(self, model, data):
        super().__init__()
        self.model, self.data = model, data

    def forward(self, x, edge_index):
        self.model.encoder = States(x, self.data.ptr, edge_index)
        return self.model(self.data)


class States(torch.nn.Module):
    channels, edge_dim = 8, None

    def __init__(self, *components):
        super().__init__()
        self.components = Components(*components)

    def forward(self, data):
        return self.components


def test_bonds_can_be_explained():
    data = batch(4)
    x = torch.randn(data.num_nodes, 8)
    model = LaMP(States(x, data.ptr, data.edge_index), GRAPH, heads=2)
    config = {"mode": "regression", "task_level": "graph", "return_type": "raw"}
    options = {"explanation_type": "model", "edge_mask_type": "object", "model_config": config}
    explainer = Explainer(TensorInputs(model, data).eval(), AttentionExplainer(), **options)
    explanation = explainer(x, data.edge_index)
    assert explanation.edge_mask.size() == (data.num_edges,)
    assert (explanation.edge_mask > 0).all()


def test_lamp_learns():
    data = batch(16)
    y = torch.randint(2, (16, 5)).float()
    model = LaMP(MoleculeEncoder(16), GRAPH, heads=2, dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(60):
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(data), y)
        loss.backward()
        optimizer.step()
    assert ((model(data) > 0) == y.bool()).float().mean() > 0.95


KNOWN = r"options of a block among attention_dropout, .*, heads, .*value_channels"
HEAD, EDGE_DIM, NONE = {"head": 2}, {"edge_dim": 3}, {"num_feature_layers": 0}


@pytest.mark.parametrize(
    ("encoder", "options", "error", "message"),
    [
        (MoleculeEncoder(8), {"heads": 3}, ValueError, "'heads' .* (got heads=3, channels=8)"),
        (MoleculeEncoder(8), {"num_feature_layers": -1}, ValueError, "'num_layers' .* (got -1)"),
        (fully_connected(3), {}, ValueError, "'encoder' to be a module .* (got LabelGraph)"),
        (torch.nn.Linear(2, 2), {}, ValueError, "'encoder' to be a module .* (got Linear)"),
        (MoleculeEncoder(8), HEAD, TypeError, f"{KNOWN} (got head)"),
        (MoleculeEncoder(8), {"label_kwargs": HEAD}, TypeError, f"{KNOWN} (got head)"),
        (MoleculeEncoder(8), {"feature_kwargs": HEAD}, TypeError, f"{KNOWN} (got head)"),
        (MoleculeEncoder(8), {"feature_kwargs": HEAD, **NONE}, TypeError, "(got head)"),
        (MoleculeEncoder(8), {"feature_kwargs": EDGE_DIM, **NONE}, TypeError, "(got edge_dim)"),
        (MoleculeEncoder(8), {**EDGE_DIM, **NONE}, TypeError, "(got edge_dim)"),
    ],
)
def test_invalid_arguments_are_refused(encoder, options, error, message):
    with pytest.raises(error, match=message.replace("(", r"\(").replace(")", r"\)")):
        LaMP(encoder, GRAPH, **options)
