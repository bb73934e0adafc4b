"""torch.compile without graph breaks, and without a new graph for every batch."""

import shutil

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from tests.nn.samples import complete_edges, path_graph, ragged
from tests.requirements import FULL_GRAPH
from tg_mlc.graphs import LabelGraph, fully_connected
from tg_mlc.models import LaMP
from tg_mlc.nn import FeatureMessagePassing, LabelMessagePassing
from tg_mlc.nn.encoders import BagEncoder

BATCHES = [[3, 4, 2], [5, 1, 7, 2], [2, 2], [6, 0, 3]]


def arguments(form, batch, sizes):
    out = {"batch": batch, "batch_size": len(sizes)}
    if form.startswith("ptr"):
        out = {"ptr": torch.tensor([0, *sizes]).cumsum(0)}
    if form.endswith("max"):
        out["max_num_nodes"] = max(sizes)
    if form.endswith("edges"):
        out["edge_index"] = complete_edges(batch, 5)[:, ::2]
    return out


def run(model, x, **kwargs):
    """Returns the output, and the gradients of the input and of every parameter."""
    model.zero_grad()
    x = x.double().requires_grad_()
    out = model(x, **kwargs)
    out.square().sum().backward()
    return [out, x.grad, *(p.grad for p in model.parameters() if p.grad is not None)]


def check(model, backend, form, batches):
    """Checks that the first batch compiles one graph, which serves all other batches.

    It runs in double precision, because rounded gradients depend on the order of labels.
    """
    compiled = torch.compile(model.double(), fullgraph=FULL_GRAPH, dynamic=True, backend=backend)
    for i, sizes in enumerate(batches):
        x, batch = ragged(sizes, 8)
        kwargs = arguments(form, batch, sizes)
        expected = run(model, x, **kwargs)
        with torch.compiler.set_stance("fail_on_recompile" if FULL_GRAPH and i > 0 else "default"):
            assert_close(run(compiled, x, **kwargs), expected, atol=1e-9, rtol=1e-9)


def sparse_graph():
    generator = torch.Generator().manual_seed(0)
    return LabelGraph(torch.randint(0, 100, (2, 150), generator=generator), num_nodes=100)


def label_layer(graph, **options):
    return LabelMessagePassing(8, graph, **{"num_steps": 1, "heads": 2, **options})


CASES = {
    "ptr": (lambda: label_layer(path_graph(5)), "ptr"),
    "batch": (lambda: label_layer(path_graph(5)), "batch"),
    "largest sample": (lambda: label_layer(path_graph(5)), "batch-max"),
    "large sparse label graph": (lambda: label_layer(sparse_graph()), "ptr"),
    "explicit edges": (lambda: label_layer(path_graph(5)), "ptr-edges"),
    "checkpointing": (lambda: label_layer(path_graph(5), num_steps=2, checkpointing=True), "ptr"),
    "features": (lambda: FeatureMessagePassing(8, num_layers=1, heads=2), "batch-max"),
    "features of unknown sizes": (lambda: FeatureMessagePassing(8, num_layers=1, heads=2), "ptr"),
}


#: Other layers are compiled by slow tests.
FAST = {"features"}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] * (case not in FAST)) for case in CASES]
)
def test_layers_compile(case):
    model, form = CASES[case]
    check(model(), "eager", form, BATCHES)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_gradients_of_layers_are_traced(case):
    model, form = CASES[case]
    check(model(), "aot_eager", form, BATCHES)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
def test_a_layer_compiles_with_inductor():
    check(label_layer(path_graph(5)), "inductor", "batch", BATCHES[:2])


def test_compiled_dropout_is_random():
    model = label_layer(fully_connected(5), dropout=0.5, norm="pre")
    compiled = torch.compile(model, fullgraph=FULL_GRAPH, dynamic=True, backend="eager")
    x, batch = ragged([3, 2], 8)
    assert not torch.equal(compiled(x, batch, batch_size=2), compiled(x, batch, batch_size=2))


@pytest.mark.parametrize("tied", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("num_feature_layers", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_whole_models_compile(num_feature_layers, tied):
    options = {"num_steps": 1, "num_feature_layers": num_feature_layers, "tied": tied}
    options |= {"heads": 2, "dropout": 0.0}
    model = LaMP(BagEncoder(20, 8), path_graph(5), **options)
    compiled = torch.compile(model, fullgraph=FULL_GRAPH, dynamic=True, backend="eager")
    for i, sizes in enumerate(BATCHES):
        samples = [Data(x=torch.arange(size) % 20, num_nodes=size) for size in sizes]
        batch = Batch.from_data_list(samples)
        with torch.compiler.set_stance("fail_on_recompile" if FULL_GRAPH and i > 0 else "default"):
            out = compiled(batch)
        assert_close(out, model(batch), atol=1e-4, rtol=1e-4)
