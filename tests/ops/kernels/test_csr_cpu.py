"""The kernels for CPUs are right for hubs, whose rows threads share, and for slices of tensors."""

import multiprocessing

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from tests.ops.random_patterns import EXAMPLES, random_edges
from tg_mlc.ops import Edges, Shared, graph_attention

pytest.importorskip("numba", reason="Numba is not installed")

from tg_mlc.ops.kernels import csr_cpu, csr_numba
from tg_mlc.ops.kernels.graph import Graph

#: Three threads run, however few the edges are. A thread takes whole groups, or all threads share
#: each group. Outputs bypass the caches if rows fill cache lines, as 16 channels of doubles do.
MODES = {"whole groups": {"LARGE": 2**30}, "shared groups": {"LARGE": 0}}


@pytest.fixture(autouse=True, params=MODES)
def _threads(request):
    sizes = {"MIN_EDGES": 1, "MIN_SHARED": 0, "TILE": 64, "STREAMED": 0, **MODES[request.param]}
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    with pytest.MonkeyPatch.context() as patch:
        for name, size in sizes.items():
            patch.setattr(csr_cpu, name, size)
        yield
    torch.set_num_threads(before)


def hub(num_nodes, num_spokes, seed):
    """Returns a graph whose hub has edges in both directions to most nodes, and few others."""
    generator = torch.Generator().manual_seed(seed)
    spokes = torch.randperm(num_nodes, generator=generator)[:num_spokes]
    centre = torch.full_like(spokes, int(torch.randint(num_nodes, (1,), generator=generator)))
    others = torch.randint(num_nodes, (2, num_nodes), generator=generator)
    pairs = torch.cat([torch.stack([spokes, centre]), torch.stack([centre, spokes]), others], dim=1)
    pairs = pairs.unique(dim=1)
    return Edges(pairs[:, torch.randperm(pairs.size(1), generator=generator)], num_nodes, num_nodes)


def results(pattern, heads, dtype, backend, seed=0, channels=5):
    """Returns the output and gradients for slices of one larger tensor."""
    generator = torch.Generator().manual_seed(seed)
    options = {"generator": generator, "dtype": dtype, "requires_grad": True}
    joint = torch.randn(pattern.num_queries, 3, heads, channels, **options)
    bias = torch.randn(pattern.bias_size, heads, generator=generator, dtype=dtype).requires_grad_()
    query, key, value = joint.unbind(dim=1)
    out = graph_attention(query, key, value, pattern, edge_bias=bias, backend=backend)
    out.backward(torch.randn(out.shape, generator=generator, dtype=dtype))
    assert joint.grad is not None
    assert bias.grad is not None
    return [out.detach(), joint.grad, bias.grad]


def check_against_the_oracle(pattern, heads=2, **options):
    backends = ("csr", "reference")
    tensors = [results(pattern, heads, torch.float64, name, **options) for name in backends]
    assert_close(*tensors, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("max_examples", EXAMPLES)
def test_threads_that_share_rows_are_right(max_examples):
    @settings(max_examples=max_examples)
    @given(
        num_nodes=st.integers(1, 40),
        num_samples=st.integers(1, 3),
        heads=st.integers(1, 3),
        seed=st.integers(0, 2**31),
        share=st.floats(0, 1),
        channels=st.sampled_from([1, 5, 16, 48, 150]),
    )
    def check(num_nodes, num_samples, heads, seed, share, channels):
        pattern = Shared(hub(num_nodes, round(share * num_nodes), seed), num_samples)
        check_against_the_oracle(pattern, heads, seed=seed, channels=channels)

    check()


def dense_enough_for_tiles(num_nodes):
    generator = torch.Generator().manual_seed(num_nodes)
    pairs = (torch.rand(num_nodes, num_nodes, generator=generator) < 0.9).nonzero().t()
    shuffled = pairs[:, torch.randperm(pairs.size(1), generator=generator)]
    return Shared(Edges(shuffled, num_nodes, num_nodes), 2)


@pytest.mark.parametrize("num_tiles", [1, 2, 5])
@pytest.mark.parametrize("channels", [1, 7, 64, 136])
def test_tiles_agree_with_the_oracle(num_tiles, channels, monkeypatch):
    pattern = dense_enough_for_tiles(60)
    monkeypatch.setattr(csr_cpu, "TILE", 60 // num_tiles * channels * 8)
    assert pattern.graph.num_edges / 3 > csr_numba.EDGES_PER_TILE * num_tiles * 60 / 3 + 60
    check_against_the_oracle(pattern, channels=channels)


def test_keys_of_grouped_edges_need_not_ascend(monkeypatch):
    monkeypatch.setattr(csr_cpu, "TILE", 20 * 16 * 8)  # There would be two tiles if keys ascended.
    ptr, key, _ = dense_enough_for_tiles(40).graph.csr()
    descending = torch.cat([row.flip(0) for row in key.split(ptr.diff().tolist())])
    graph = Edges.from_csr(ptr, descending, 40, 40)
    assert graph.csr().perm is None
    check_against_the_oracle(Shared(graph, 2), channels=16)


@pytest.mark.parametrize("channels", [16, 48, 128, 136])
def test_single_precision_is_close_to_the_oracle(channels):
    pattern = Shared(hub(400, 300, seed=0), 2)
    tensors = [torch.randn(pattern.num_queries, 4, channels, requires_grad=True) for _ in range(3)]
    exact = graph_attention(*[tensor.double() for tensor in tensors], pattern, backend="reference")
    out = graph_attention(*tensors, pattern, backend="csr")
    actual, expected = (torch.autograd.grad(x.square().sum(), tensors) for x in (out, exact))
    for value, reference in zip([out, *actual], [exact, *expected], strict=True):
        assert (value - reference).norm() < 2e-6 * reference.norm()


@pytest.mark.parametrize("degree", [1, 31, 32, 40])
def test_nan_stays_nan(degree):
    key, query = torch.arange(degree).repeat(2), torch.arange(2).repeat_interleave(degree)
    pattern = Edges(torch.stack([key, query]), 2, degree)
    query, key = torch.randn(2, 1, 8), torch.randn(degree, 1, 8)
    query[1] = torch.nan
    query.requires_grad_()
    out = graph_attention(query, key, key, pattern, backend="csr")
    assert out[1].isnan().all()
    assert not out[0].isnan().any()
    (grad,) = torch.autograd.grad(out.sum(), query)
    assert grad[1].isnan().all()
    assert not grad[0].isnan().any()


@pytest.mark.parametrize(("num_queries", "num_keys", "channels"), [(7, 3, 5), (2, 9, 5), (5, 6, 0)])
def test_graphs_may_be_bipartite_and_queries_empty(num_queries, num_keys, channels):
    pattern, actual = random_edges(num_queries, num_keys, 10, seed=0), []
    query = torch.randn(num_queries, 2, channels, dtype=torch.float64)
    key = torch.randn(num_keys, 2, channels, dtype=torch.float64)
    value = torch.randn(num_keys, 2, 3, dtype=torch.float64, requires_grad=True)
    for backend in ("reference", "csr"):
        out = graph_attention(query, key, value, pattern, scale=1.0, backend=backend)
        actual.append([out, *torch.autograd.grad(out.square().sum(), value)])
    assert_close(*actual)


@pytest.mark.parametrize("num_edges", [9, 14], ids=["weights kept", "sums kept"])
@pytest.mark.parametrize("biased", [False, True])
def test_the_operator_passes_the_checks_of_pytorch(biased, num_edges):
    graph = random_edges(4, 4, num_edges, seed=0)
    tensors = [torch.randn(8, 2, 3, requires_grad=True) for _ in range(3)]
    bias = torch.randn(num_edges, 2, requires_grad=True) if biased else None
    edges = (graph.csr().ptr, graph.csr().key, *graph.csc())
    arguments = (*tensors, bias, *edges, 0.5, 0.0, torch.zeros(1, dtype=torch.long))
    torch.library.opcheck(torch.ops.tg_mlc.csr_attention, arguments)


def test_edges_out_of_range_that_were_not_validated_are_an_error():
    graph = Edges(torch.tensor([[0, 40], [1, 2]]), 3, 3, validate=False)
    ptr, key = torch.tensor([0, 0, 1, 2]), torch.tensor([0, 40])
    arguments = (ptr, key, torch.tensor([0, 1, 1, 1]), torch.tensor([1]), torch.tensor([0]))
    x = torch.randn(graph.num_queries, 1, 4)
    options = (1.0, 0.0, torch.zeros(1, dtype=torch.long))
    with pytest.raises(ValueError, match="out of range, or decreasing"):
        torch.ops.tg_mlc.csr_attention(x, x, x, None, *arguments, *options)


def test_results_are_the_same_bits_every_time():
    pattern = Shared(hub(300, 250, seed=1), 3)
    first = results(pattern, 2, torch.float32, "csr")
    for _ in range(5):
        repeated = results(pattern, 2, torch.float32, "csr")
        assert all(torch.equal(one, other) for one, other in zip(first, repeated, strict=True))


def test_no_memory_is_read_before_it_is_written():
    torch.use_deterministic_algorithms(True)  # This fills new memory with NaN.
    try:
        check_against_the_oracle(Shared(random_edges(20, 20, 50, seed=3), 2))
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dropout_p", [0.0, 0.4, 1.0])
def test_saving_weights_or_sums_gives_the_same_results(dropout_p, monkeypatch):
    pattern, actual = Shared(hub(60, 50, seed=2), 3), []
    tensors = [torch.randn(180, 2, 16, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    bias = torch.randn(pattern.bias_size, 2, dtype=torch.float64, requires_grad=True)
    for keeps in (False, True):
        monkeypatch.setattr(Graph, "keeps_weights", lambda self, channels, keeps=keeps: keeps)
        torch.manual_seed(0)
        out = graph_attention(*tensors, pattern, edge_bias=bias, dropout_p=dropout_p, backend="csr")
        saved = out.grad_fn.saved_tensors[-1] if out.grad_fn is not None else out
        assert saved.numel() == 6 * (pattern.graph.num_edges if keeps else 60)
        first = torch.autograd.grad(out.square().sum(), [*tensors, bias], retain_graph=True)
        second = torch.autograd.grad(out.square().sum(), [*tensors, bias])
        assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
        actual.append([out, *first])
    assert_close(actual[1], actual[0])


def attend(pattern):
    query = torch.linspace(-1, 1, 800, dtype=torch.float64).view(100, 2, 4)
    return float(graph_attention(query, query, query, pattern, backend="csr").sum())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_gets_threads_of_its_own():
    pattern = Shared(hub(50, 40, seed=0).prepare(), 2)
    expected = attend(pattern)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=lambda: queue.put(attend(pattern)))
    child.start()
    try:
        assert queue.get(timeout=30) == pytest.approx(expected)
    finally:
        child.terminate()
        child.join()


def test_a_bias_of_minus_infinity_removes_an_edge():
    pattern = random_edges(6, 6, 36, seed=0)
    query = torch.randn(6, 1, 4)
    bias = torch.zeros(36)
    bias[::3] = -torch.inf
    expected = graph_attention(query, query, query, pattern, edge_bias=bias, backend="reference")
    actual = graph_attention(query, query, query, pattern, edge_bias=bias, backend="csr")
    assert_close(actual, expected)
