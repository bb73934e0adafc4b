"""Requirements of any PyTorch module: copies, state dicts, other dtypes and devices."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from tests.nn.samples import complete_edges, path_graph, ragged, through_a_file
from tg_mlc.graphs import fully_connected
from tg_mlc.nn import AttentionConv, FeatureMessagePassing, LabelHead, LabelMessagePassing

X, BATCH = ragged([3, 1, 4], 6)
EDGE_INDEX = complete_edges(BATCH, 5)[:, ::2]


class Model(nn.Module):
    """All layers of the package, with edges or without."""

    def __init__(self, in_channels: int = 6, tied: bool = True) -> None:
        super().__init__()
        self.features = FeatureMessagePassing(6, num_layers=1, heads=2)
        self.labels = LabelMessagePassing((in_channels, 8), path_graph(5), heads=2)
        self.readout = LabelHead(self.labels, tied=tied, bias=True)

    def forward(self, x: Tensor, edge_index: Tensor | None = None) -> Tensor:
        return self.readout(self.labels(self.features(x, BATCH), BATCH, edge_index=edge_index))


def test_a_deep_copy_is_independent_of_the_model():
    model = Model()
    copied = copy.deepcopy(model)
    before = model(X)
    assert torch.equal(copied(X), before)
    assert copied.readout.weight is copied.labels.embedding.weight
    assert copied.readout.weight is not model.readout.weight
    with torch.no_grad():
        copied.labels.embedding.weight.add_(1)
    copied.labels.label_graph = fully_connected(5)
    assert torch.equal(model(X), before)
    assert not torch.equal(copied(X), before)
    assert model.labels.label_graph.num_edges < 25


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("tied", [True, False])
def test_a_state_dict_restores_the_outputs(tied, assign):
    model, other = Model(tied=tied), Model(tied=tied).to("meta").to_empty(device="cpu")
    other.load_state_dict(through_a_file(model.state_dict()), assign=assign)
    assert torch.equal(other(X), model(X))
    assert (other.readout.weight is other.labels.embedding.weight) is tied
    with torch.no_grad():
        other.labels.embedding.weight.zero_()
        assert bool((other(X) == other.readout.bias).all()) is tied


def test_a_state_dict_restores_lazy_modules():
    lazy, other = Model(in_channels=-1), Model(in_channels=-1)
    lazy(X)
    other.load_state_dict(through_a_file(lazy.state_dict()))
    assert torch.equal(other(X), lazy(X))

    initialised = Model()
    initialised.load_state_dict(lazy.state_dict())
    assert torch.equal(initialised(X), lazy(X))
    initialised.load_state_dict(Model(in_channels=-1).state_dict())  # The model is lazy again.
    assert initialised(X).size() == (3, 5)
    assert copy.deepcopy(Model(in_channels=-1))(X).size() == (3, 5)


def test_whole_modules_can_be_saved():
    model = Model()
    model(X, EDGE_INDEX)
    other = through_a_file(model, weights_only=False)
    assert torch.equal(other(X, EDGE_INDEX), model(X, EDGE_INDEX))
    assert other.readout.weight is other.labels.embedding.weight is not model.readout.weight
    other.labels.embedding = nn.Embedding(5, 8)
    assert other.readout.weight is other.labels.embedding.weight


@pytest.mark.parametrize("edge_index", [None, EDGE_INDEX], ids=["structured", "edges"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_dtypes_give_close_outputs(dtype, edge_index):
    model = Model()
    expected = model(X, edge_index)
    out = model.to(dtype)(X.to(dtype), edge_index)
    assert out.dtype == dtype
    tolerance = 1e-5 if dtype == torch.float64 else 0.1
    assert_close(out.float(), expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("edge_index", [None, EDGE_INDEX], ids=["structured", "edges"])
def test_autocast_gives_close_outputs_and_float32_gradients(edge_index):
    model = Model()
    expected = model(X, edge_index)
    with torch.autocast("cpu", torch.bfloat16):
        out = model(X, edge_index)
        assert model.labels.feature_to_label[0].lin_query(X.new_zeros(1, 8)).dtype == torch.bfloat16
    assert_close(out.float(), expected, atol=0.1, rtol=0.1)
    out.float().square().sum().backward()
    for parameter in model.parameters():
        assert parameter.grad.dtype == torch.float32
        assert parameter.grad.isfinite().all()


def test_label_edges_move_with_the_module():
    labels = LabelMessagePassing(8, path_graph(5), heads=2)
    x, batch = ragged([3, 1, 4], 8)
    expected = labels(x, batch)
    state_dict = copy.deepcopy(labels.state_dict())

    labels.to("meta")
    assert labels._label_edges.device == torch.device("meta")
    labels.label_graph = path_graph(5)
    assert labels._label_edges.device == torch.device("meta")

    labels.to_empty(device="cpu")
    labels.load_state_dict(state_dict)
    assert torch.equal(labels(x, batch), expected)


def test_modules_can_be_made_on_the_meta_device():
    graph = path_graph(5)
    with torch.device("meta"):
        labels = LabelMessagePassing(8, graph, heads=2)
    labels.to_empty(device="cpu").reset_parameters()
    assert labels(*ragged([3, 1, 4], 8)).isfinite().all()


@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_a_copied_lazy_layer_takes_any_size_of_input(flow):
    conv = copy.deepcopy(AttentionConv((-1, 8), heads=2, flow=flow))
    edge_index = torch.tensor([[0, 1], [0, 2]])
    edge_index = edge_index if flow == "source_to_target" else edge_index.flip(0)
    assert conv((torch.randn(2, 3), torch.randn(3, 8)), edge_index).size() == (3, 8)
