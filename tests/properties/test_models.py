"""Properties of whole models with any weights."""

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from tests.models.samples import molecules
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders import BagEncoder, MoleculeEncoder
from tg_mlc.ops import available_backends

NUM_LABELS = 7
GENERATOR = torch.Generator().manual_seed(0)
# No edge enters the last two labels.
EDGES = torch.randint(0, NUM_LABELS, (2, 12), generator=GENERATOR) % torch.tensor([[7], [5]])
PRIOR = LabelGraph(EDGES, num_nodes=NUM_LABELS)
GRAPHS = {"edgeless": edgeless(NUM_LABELS), "complete": fully_connected(NUM_LABELS), "prior": PRIOR}
FEATURE_LAYERS = [2, 0]
LOOSE = {"atol": 1e-5, "rtol": 1e-5}


def lamp(graph, num_feature_layers=2, **kwargs):
    torch.manual_seed(0)
    options = {"num_feature_layers": num_feature_layers, "heads": 4, **kwargs}
    model = LaMP(MoleculeEncoder(16), graph, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


@pytest.mark.parametrize("num_feature_layers", FEATURE_LAYERS)
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_a_batch_equals_its_single_samples(num_feature_layers, graph):
    model, data = lamp(graph, num_feature_layers), molecules(64)
    logits = model(Batch.from_data_list(data))
    assert_close(logits, torch.cat([model(sample) for sample in data]), **LOOSE)


@pytest.mark.parametrize("num_feature_layers", FEATURE_LAYERS)
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_permuted_labels_give_permuted_logits(num_feature_layers, graph):
    model, perm = lamp(graph, num_feature_layers), torch.randperm(NUM_LABELS, generator=GENERATOR)
    permuted = lamp(graph.permute(perm), num_feature_layers)
    state_dict = model.state_dict()
    for name in ("labels.embedding.weight", "readout.own_weight", "readout.bias"):
        state_dict[name] = state_dict[name][perm]
    state_dict["labels._extra_state"] = permuted.labels.get_extra_state()
    permuted.load_state_dict(state_dict)
    data = Batch.from_data_list(molecules(8))
    assert_close(permuted(data), model(data)[:, perm], **LOOSE)


def permuted_nodes(data, seed):
    perm = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(seed))
    new_index = torch.empty_like(perm).scatter_(0, perm, torch.arange(perm.numel()))
    edges = {"edge_index": new_index[data.edge_index], "edge_attr": data.edge_attr}
    return Data(x=data.x[perm], num_nodes=perm.numel(), **edges)


@pytest.mark.parametrize("num_feature_layers", FEATURE_LAYERS)
def test_the_order_of_atoms_and_of_words_in_bags_does_not_matter(num_feature_layers):
    model, data = lamp(PRIOR, num_feature_layers), molecules(8)
    permuted = [permuted_nodes(sample, seed) for seed, sample in enumerate(data)]
    assert_close(model(Batch.from_data_list(permuted)), model(Batch.from_data_list(data)), **LOOSE)
    bags = LaMP(BagEncoder(20, 16), PRIOR, num_feature_layers=num_feature_layers).eval()
    words = torch.randint(20, (9,), generator=GENERATOR)
    assert_close(bags(Data(x=words.flip(0))), bags(Data(x=words)), **LOOSE)


def test_labels_without_sources_have_finite_gradients():
    graph = LabelGraph(torch.zeros(2, 0, dtype=torch.long), num_nodes=NUM_LABELS)
    for model in (lamp(graph), lamp(PRIOR)):
        logits = model(Batch.from_data_list(molecules(4)))
        logits.sum().backward()
        assert logits.isfinite().all()
        assert all(p.grad.isfinite().all() for p in model.parameters())


def test_messages_go_along_the_label_graph_only():
    model = lamp(LabelGraph(torch.tensor([[0, 1], [1, 2]]), num_nodes=NUM_LABELS), num_steps=1)
    data = Batch.from_data_list(molecules(4))
    logits = model(data)
    with torch.no_grad():
        model.labels.embedding.weight[0] += 1
    # A message moves by one edge in one step.
    assert (model(data) != logits).any(dim=0).tolist() == [True, True, *[False] * 5]


def test_labels_never_write_to_atoms():
    model, data = lamp(PRIOR), Batch.from_data_list(molecules(4))
    atoms = []
    for conv in model.labels.feature_to_label:
        conv.register_forward_pre_hook(lambda module, args: atoms.append(args[0][0]))
    model(data)
    assert len(atoms) == 2
    assert torch.equal(atoms[0], atoms[1])


@pytest.mark.parametrize(
    "backend", sorted(set(available_backends()) - {"reference", "blocks", "triton"})
)
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_backends_agree(graph, backend):
    results = []
    for name in ("reference", backend):
        torch.manual_seed(0)
        model = LaMP(MoleculeEncoder(8), graph, heads=2, backend=name).double().eval()
        logits = model(Batch.from_data_list(molecules(6)))
        logits.square().sum().backward()
        results.append([logits, *(parameter.grad for parameter in model.parameters())])
    assert_close(results[1], results[0], atol=1e-9, rtol=1e-9)
