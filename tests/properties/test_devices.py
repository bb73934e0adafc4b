"""Properties on a GPU: results equal those of a CPU, and models train, save and load there."""

import copy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.testing import assert_close
from torch_geometric.data import Batch

import tg_mlc
from tests.models.samples import molecules
from tests.nn.samples import ragged
from tests.ops.random_patterns import ptr, random_edges
from tests.sequences.batches import batch as batch_of_windows
from tests.sequences.test_lanet import lanet
from tests.training.conftest import GINE, LabelModel, ToyGraphs, make_module
from tg_mlc.data import random_split
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected
from tg_mlc.models import LaMP
from tg_mlc.nn import LabelHead, LabelMessagePassing, ResidualMessages
from tg_mlc.nn.encoders import MoleculeEncoder
from tg_mlc.ops import Blocks, Shared, available_backends, graph_attention
from tg_mlc.ops.attention import registry
from tg_mlc.ops.attention.backend import AttentionCall
from tg_mlc.training import MultiLabelDataModule, fit

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

NUM_LABELS = 40
SPARSE = random_edges(NUM_LABELS, NUM_LABELS, 200, seed=0).edge_index
PRIOR = LabelGraph(SPARSE, num_nodes=NUM_LABELS)
GRAPHS = {"edgeless": edgeless(NUM_LABELS), "complete": fully_connected(NUM_LABELS), "prior": PRIOR}
PATTERNS = {
    "blocks": Blocks(ptr([5, 5, 5]), ptr([4, 0, 9])),
    "ragged": Blocks(ptr([5, 0, 2]), ptr([4, 3, 9])),
    "edges": random_edges(30, 20, 90, seed=0),
    "shared": Shared(random_edges(300, 300, 1800, seed=0), 3),
    "dense": Shared(random_edges(30, 30, 500, seed=0), 3),
    "complete": Shared(random_edges(30, 30, 900, seed=0), 3),
}
LOOSE = {"atol": 1e-4, "rtol": 1e-3}


def on(device, value):
    """Returns the value on a device. Networks are copied first."""
    return (copy.deepcopy(value) if isinstance(value, nn.Module) else value).to(device)


def results(model, call, device):
    """Returns the output and its gradients for all used parameters, moved to the CPU."""
    model = on(device, model)
    out = call(model, device)
    weight = torch.linspace(-1, 1, out.numel()).view_as(out).to(device)
    parameters = list(model.parameters())
    gradients = torch.autograd.grad((out * weight).sum(), parameters, allow_unused=True)
    return [out.detach().cpu(), *(grad.cpu() for grad in gradients if grad is not None)]


def check_equal(model, call):
    actual, expected = (results(model, call, device) for device in ("cuda", "cpu"))
    assert len(actual) == len(expected) > 1
    for on_gpu, on_cpu in zip(actual, expected, strict=True):
        assert_close(on_gpu, on_cpu, **LOOSE)


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("backend", [*available_backends(), "auto"])
def test_every_backend_equals_the_reference(backend, name, with_bias):
    pattern, generator = PATTERNS[name].to("cuda"), torch.Generator().manual_seed(0)
    sizes = [(pattern.num_queries, 2, 16), (pattern.num_keys, 2, 16), (pattern.num_keys, 2, 24)]
    sizes += [(pattern.bias_size, 2)] if with_bias else []
    tensors = [torch.randn(size, generator=generator).to("cuda") for size in sizes]
    bias = tensors[3] if with_bias else None
    shape = AttentionCall(*tensors[:3], pattern, 0.25, edge_bias=bias).shape
    if backend != "auto" and (reason := registry.get(backend).refuse(shape)):
        pytest.skip(reason)

    def run(chosen, dtype):
        leaves = [x.to(dtype, copy=True).requires_grad_() for x in tensors]
        bias = leaves[3] if with_bias else None
        out = graph_attention(*leaves[:3], pattern, edge_bias=bias, backend=chosen)
        assert isinstance(out, Tensor)
        weight = torch.linspace(-1, 1, out.numel(), dtype=dtype, device="cuda").view_as(out)
        return [out.detach(), *torch.autograd.grad(out, leaves, weight)]

    results = run(backend, torch.float32), run("reference", torch.float64)
    for tensor, reference in zip(*results, strict=True):
        assert_close(tensor.double(), reference, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_label_message_passing_is_the_same_on_gpu_and_cpu(graph):
    labels = LabelMessagePassing(32, graph, num_steps=2, heads=4)
    model = nn.ModuleList([labels, LabelHead(labels)])
    x, batch = ragged([5, 1, 0, 12], 32)

    def call(model, device):
        return model[1](model[0](x.to(device), batch.to(device), batch_size=4))

    check_equal(model, call)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_lamp_is_the_same_on_gpu_and_cpu(graph):
    data = Batch.from_data_list(molecules(20))
    model = LaMP(MoleculeEncoder(32), graph).eval()
    check_equal(model, lambda model, device: model(on(device, data)))


def test_lanet_is_the_same_on_gpu_and_cpu():
    data = batch_of_windows()
    check_equal(lanet(), lambda model, device: model(on(device, data)))


def test_residual_messages_are_the_same_on_gpu_and_cpu():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(50, NUM_LABELS, generator=generator)
    y = (torch.rand(50, NUM_LABELS, generator=generator) < logits.sigmoid()).float()
    given = y.masked_fill(torch.rand(y.shape, generator=generator) < 0.5, torch.nan)
    model = ResidualMessages(fully_connected(NUM_LABELS))
    model.start_from_residuals(logits, y)
    expected = model(logits, given), model.leave_one_out(logits, y)
    model, logits, given, y = model.cuda(), logits.cuda(), given.cuda(), y.cuda()
    for actual, on_cpu in zip(
        (model(logits, given), model.leave_one_out(logits, y)), expected, strict=True
    ):
        assert_close(actual.cpu(), on_cpu, **LOOSE)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_compiled_modules_equal_eager_modules(graph):
    labels = LabelMessagePassing(32, graph, num_steps=2, heads=4).cuda()
    x, _ = ragged([5, 1, 7, 12], 32)
    starts = ptr([5, 1, 7, 12]).cuda()
    compiled = torch.compile(labels, fullgraph=True)
    assert_close(compiled(x.cuda(), ptr=starts), labels(x.cuda(), ptr=starts), **LOOSE)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_replayed_cuda_graphs_equal_eager_modules(graph):
    labels = LabelMessagePassing(32, graph, num_steps=2, heads=4).cuda().eval()
    x, starts = torch.randn(24, 32, device="cuda"), ptr([5, 1, 6, 12]).cuda()
    stream, cuda_graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.no_grad():
        with torch.cuda.stream(stream):
            labels(x, ptr=starts, max_num_nodes=12)
        torch.cuda.synchronize()
        with torch.cuda.graph(cuda_graph, stream=stream):
            out = labels(x, ptr=starts, max_num_nodes=12)
        x += 1
        cuda_graph.replay()
        assert_close(out, labels(x, ptr=starts), **LOOSE)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_bfloat16_is_close_to_float32(graph):
    data = on("cuda", Batch.from_data_list(molecules(20)))
    model = LaMP(MoleculeEncoder(32), graph).cuda().eval()
    exact = model(data)
    with torch.autocast("cuda", torch.bfloat16):
        actual = model(data)
        loss = actual.float().square().sum()
    loss.backward()
    error, size = ((x.square().mean().sqrt()) for x in (actual - exact, exact))
    assert float(error) < 0.03 * float(size) + 0.01
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("model", [GINE, LabelModel])
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_training_saving_and_loading_work_on_a_gpu(model, precision, tmp_path):
    pytest.importorskip("lightning")
    dataset = ToyGraphs()
    data = MultiLabelDataModule(dataset, random_split(60, (0.6, 0.2, 0.2), seed=0), batch_size=8)
    options = {"max_epochs": 30, "patience": None, "logger": False}
    options |= {"accelerator": "gpu", "precision": precision}
    result = fit(make_module(model), data, tmp_path / "run", **options).training
    assert result.best_value is not None
    assert result.best_value > 0.8  # This is the ROC AUC on validation samples.
    result.model.save(tmp_path / "model")
    samples = [dataset[i] for i in range(10)]
    predictors = [tg_mlc.load(tmp_path / "model", model, device=name) for name in ("cuda", "cpu")]
    actual = [predictor.probabilities(samples) for predictor in predictors]
    assert_allclose(actual[0], actual[1], atol=1e-4)


def test_estimators_predict_the_same_on_gpu_and_cpu():
    pytest.importorskip("lightning")
    pytest.importorskip("sklearn")
    from tg_mlc.sklearn import LaMPClassifier

    x = np.random.default_rng(0).normal(size=(80, 6)).astype(np.float32)
    y = (x[:, :3] > 0).astype(int)
    model = LaMPClassifier(max_epochs=15, device="cuda", random_state=0).fit(x, y)
    assert model.score(x, y) > 0.3
    on_gpu = model.predict_proba(x)
    assert_allclose(model.set_params(device="cpu").predict_proba(x), on_gpu, atol=1e-4)


def test_auto_models_predict_the_same_on_gpu_and_cpu():
    pytest.importorskip("lightning")
    pytest.importorskip("sklearn")
    from tg_mlc.data import from_arrays

    x = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32)
    y = np.stack([x[:, 0] > 0, x[:, 1] > 0.5], axis=1).astype(np.float32)
    model = tg_mlc.auto(from_arrays(x, y, kind="vector"), seconds=20)
    on_cpu = model.probabilities(x)
    assert_allclose(model.to("cuda").probabilities(x), on_cpu, atol=1e-4)
    given = np.array([[1.0, np.nan]] * 90)
    on_gpu = model.probabilities(x, given=given)
    assert_allclose(model.to("cpu").probabilities(x, given=given), on_gpu, atol=1e-4)
