"""Blocks are divided among threads."""

from threading import Thread

import pytest
import torch
from torch.testing import assert_close

from tests.ops.random_patterns import ptr, random_edges
from tg_mlc.ops import Blocks, Shared, explain_choice, graph_attention
from tg_mlc.ops.attention import blocks

PATTERN = Blocks(ptr([3, 0, 5, 2, 4]), ptr([4, 3, 0, 7, 1]))
COMPLETE = Shared(random_edges(6, 6, 36, seed=0), 5)
PATTERNS = {
    "ragged": PATTERN,
    "equal": Blocks(ptr([4] * 5), ptr([3] * 5)),
    "complete": COMPLETE,
    "several tiles": Blocks(ptr([9, 1, 4]), ptr([7, 3, 11])),
    "several tiles of one": Blocks(ptr([9]), ptr([7])),
}


@pytest.fixture(autouse=True, params=["numba", "torch"])
def _threads(request, monkeypatch):
    """Sets three threads, one of the two softmax functions, and tiles of a few queries."""
    if request.param == "numba":
        pytest.importorskip("numba", reason="Numba is not installed")
    kernels = {"torch": lambda: blocks.TorchSoftmax, "numba": blocks.softmax}
    monkeypatch.setattr(blocks, "softmax", kernels[request.param])
    monkeypatch.setattr(blocks, "TILE", 100)
    monkeypatch.setattr(blocks, "MIN_ROWS", 2)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def tensors(pattern, channels=4):
    sizes = (pattern.num_queries, pattern.num_keys, pattern.num_keys)
    options = {"dtype": torch.float64, "requires_grad": True}
    return [torch.randn(size, 2, channels, **options) for size in sizes]


def results(pattern, leaves, backend="blocks", **options):
    """Returns the output and the gradients, with the same seed every time."""
    torch.manual_seed(0)
    bias = (*leaves, None)[3]
    out = graph_attention(*leaves[:3], pattern, edge_bias=bias, backend=backend, **options)
    return [out, *torch.autograd.grad(out.square().sum(), leaves)]


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("case", ["plain", "biased", "new memory is NaN"])
def test_threads_agree_with_the_oracle_and_their_number_stays_the_same(name, case):
    pattern = PATTERNS[name]
    leaves = tensors(pattern)
    if case == "biased":
        if isinstance(pattern, Shared):
            pytest.skip("takes no bias along a shared graph")
        leaves.append(torch.randn(pattern.bias_size, 2, dtype=torch.float64).requires_grad_())
    expected = results(pattern, leaves, "reference")
    torch.use_deterministic_algorithms(case == "new memory is NaN")
    try:
        actual = results(pattern, leaves)
    finally:
        torch.use_deterministic_algorithms(False)
    assert_close(actual, expected, atol=1e-10, rtol=1e-10)
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("name", PATTERNS)
def test_both_passes_drop_the_same_weights(name):
    pattern = PATTERNS[name]
    leaves = tensors(pattern)

    def attend(*leaves):
        torch.manual_seed(0)
        return graph_attention(*leaves, pattern, dropout_p=0.4, backend="blocks")

    assert torch.autograd.gradcheck(attend, leaves, fast_mode=True)  # along a random direction
    leaves = [leaf.detach() for leaf in (*leaves[:2], torch.ones_like(leaves[2]))]
    exact = graph_attention(*leaves, pattern, backend="reference")
    # Every head draws its own mask.
    leaves = [leaf.repeat(1, 100, 1) for leaf in leaves]
    outputs = [graph_attention(*leaves, pattern, dropout_p=0.4, backend="blocks") for _ in range(4)]
    mean = torch.stack(outputs).unflatten(2, (100, 2)).mean(dim=(0, 2))
    assert_close(mean, exact, atol=0.2, rtol=0.0)


@pytest.mark.parametrize("name", PATTERNS)
def test_dropout_does_not_depend_on_the_number_of_threads(name):
    pattern, actual = PATTERNS[name], []
    leaves = tensors(pattern)
    for num_threads in (1, 3):
        torch.set_num_threads(num_threads)
        actual.append(results(pattern, leaves, dropout_p=0.5))
    assert_close(*actual)


@pytest.mark.parametrize("num_keys", [1, 31, 32, 70])
def test_single_precision_is_close_to_the_oracle_and_nan_stays_nan(num_keys):
    pattern = Blocks(ptr([9, 9]), ptr([num_keys, num_keys]))
    leaves = [leaf.detach().float().requires_grad_() for leaf in tensors(pattern, 16)]
    out = graph_attention(*leaves, pattern, backend="blocks")
    exact = graph_attention(*[leaf.double() for leaf in leaves], pattern, backend="reference")
    actual, expected = (torch.autograd.grad(x.square().sum(), leaves) for x in (out, exact))
    for tensor, reference in zip((out, *actual), (exact, *expected), strict=True):
        assert (tensor - reference).norm() <= 1e-5 * reference.norm().clamp(min=1e-3)
    leaves[0].data[4] = torch.nan
    out = graph_attention(*leaves, pattern, backend="blocks")
    assert out[4].isnan().all()
    assert not out[[0, 1, 2, 3, *range(5, 18)]].isnan().any()


def test_a_call_does_not_change_the_number_of_threads_of_new_threads(monkeypatch):
    counts = []
    product = blocks._product

    def spy(*args):
        thread = Thread(target=lambda: counts.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        inner_counts.add(torch.get_num_threads())
        return product(*args)

    inner_counts = set()
    leaves = tensors(PATTERN)
    graph_attention(*leaves, PATTERN, backend="blocks")
    monkeypatch.setattr(blocks, "_product", spy)
    graph_attention(*leaves, PATTERN, backend="blocks").sum().backward()
    assert set(counts) == {3}
    assert inner_counts == {1}
    assert torch.get_num_threads() == 3


def test_inference_mode_gives_the_same_output():
    leaves = tensors(PATTERN)
    expected = graph_attention(*leaves, PATTERN, backend="reference")
    with torch.inference_mode():
        assert_close(graph_attention(*leaves, PATTERN, backend="blocks"), expected)


@pytest.mark.parametrize(
    ("queries", "keys", "channels", "name"),
    [
        ([200, 200], [400, 100], 128, "blocks"),
        ([200, 200], [250, 250], 128, "dense"),
        ([3, 3], [9, 2], 32, "dense"),
    ],
    ids=["ragged", "regular", "small"],
)
def test_large_ragged_blocks_are_preferred(queries, keys, channels, name):
    pattern = Blocks(ptr(queries), ptr(keys))
    assert explain_choice(*tensors(pattern, channels), pattern).startswith(f"{name}: Blocks")


def test_blocks_recompute_weights_where_some_are_dropped():
    complete = Shared(random_edges(260, 260, 260**2, seed=0), 2)
    half = Shared(random_edges(260, 260, 260**2 // 2, seed=0), 2)
    queries = [torch.empty(complete.num_queries, 2, 64)] * 3
    assert explain_choice(*queries, complete).startswith("dense: Shared")
    assert explain_choice(*queries, complete, dropout_p=0.1).startswith("blocks: Shared")
    choice = explain_choice(*queries, complete, dropout_p=0.1, return_weights=True)
    assert choice.startswith("dense: Shared")
    assert not explain_choice(*queries, half, dropout_p=0.1).startswith("blocks")


@pytest.mark.parametrize(
    ("size", "num_samples", "tile", "name"),
    [
        (30, 3, 100, "dense"),
        (130, 3, 100, "blocks"),
        (200, 1, 2**20, "dense"),
        (200, 3, 2**20, "blocks"),
    ],
)
def test_few_or_small_samples_are_left_to_the_dense_backend(
    size, num_samples, tile, name, monkeypatch
):
    monkeypatch.setattr(blocks, "TILE", tile)
    pattern = Blocks(*[ptr([size] * num_samples)] * 2)
    queries = [torch.empty(size * num_samples, 4, 64)] * 3
    assert explain_choice(*queries, pattern, dropout_p=0.1).startswith(f"{name}: Blocks")


def test_few_samples_are_divided_among_many_threads():
    pattern, actual = PATTERNS["several tiles of one"], []
    bias = torch.randn(pattern.bias_size, 2, dtype=torch.float64, requires_grad=True)
    leaves = [*tensors(pattern), bias]
    for num_threads in (2, 16):  # There are fewer heads than 16.
        torch.set_num_threads(num_threads)
        actual.append(results(pattern, leaves, dropout_p=0.5))
        tasks = blocks._tasks(pattern.query_ptr, pattern.key_ptr, leaves[0])
        rows = [task.rows for task in tasks if task.heads == slice(0, 1)]
        assert [row for row_slice in rows for row in range(9)[row_slice]] == list(range(9))
        assert len(rows) == min(5, num_threads // 2)  # A tile has two queries.
    assert_close(*actual)


def test_parts_of_a_sum_in_half_precision_may_be_larger_than_it_holds():
    pattern = Blocks(ptr([400]), ptr([8]))
    torch.set_num_threads(16)
    leaves = [leaf.detach().half().zero_().requires_grad_() for leaf in tensors(pattern)]
    out = graph_attention(*leaves, pattern, backend="blocks")
    sign = torch.ones(400, 1, 1).half()
    sign[200:] = -1
    grad = torch.autograd.grad(out, leaves[2], (6e4 * sign).expand_as(out).contiguous())[0]
    assert grad.abs().max() < 1  # Equal weights make the gradients cancel.


def test_states_may_have_no_heads():
    empty = [leaf[:, :0].detach().requires_grad_() for leaf in tensors(PATTERN)]
    out = graph_attention(*empty, PATTERN, backend="blocks")
    assert out.shape == (14, 0, 4)
    grads = torch.autograd.grad(out.sum(), empty)
    assert [grad.shape for grad in grads] == [leaf.shape for leaf in empty]


def test_a_complete_graph_takes_no_bias():
    bias = torch.zeros(36).double()
    with pytest.raises(ValueError, match="complete shared graphs without a bias"):
        graph_attention(*tensors(COMPLETE), COMPLETE, edge_bias=bias, backend="blocks")


def test_forward_and_backward_drop_the_same_weights_for_any_number_of_threads(monkeypatch):
    pattern = Blocks(query_ptr=torch.tensor([0, 9]), key_ptr=torch.tensor([0, 7]))
    gradients = []
    for workers in (1, 4):
        torch.manual_seed(0)
        query, key, value = (torch.randn(n, 2, 8, requires_grad=True) for n in (9, 7, 7))
        monkeypatch.setattr(blocks.threads, "num_workers", lambda: 1)
        out = graph_attention(query, key, value, pattern, dropout_p=0.5, backend="blocks")
        monkeypatch.setattr(blocks.threads, "num_workers", lambda workers=workers: workers)
        gradients.append(torch.autograd.grad(out.square().sum(), (query, key, value)))
    for first, second in zip(*gradients, strict=True):
        assert_close(first, second)
