"""The kernels agree with the oracle on a GPU, or in Triton's interpreter, which a test starts.

Triton chooses its interpreter when it is imported, so the interpreter needs its own process:
``TRITON_INTERPRET=1 pytest tests/ops/kernels/test_csr_triton.py``.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from tests.ops.random_patterns import ptr, random_edges
from tg_mlc.ops import Blocks, Edges, Shared, graph_attention

ROOT = Path(__file__).parents[3]
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")


@pytest.fixture
def device():
    if INTERPRETED:
        return "cpu"
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device, or TRITON_INTERPRET=1")
    return "cuda"


def ragged_edges(num_queries=7, num_keys=6):
    """Returns edges: a row longer than any block for query 0, none for query 1 or key 1."""
    hub = torch.stack([torch.arange(19) % (num_keys - 2) + 2, torch.zeros(19, dtype=torch.long)])
    others = random_edges(num_queries - 2, num_keys - 2, 9, seed=0).edge_index + 2
    last_key = torch.tensor([[0], [num_queries - 1]])
    edge_index = torch.cat([hub, others, last_key], dim=1)
    order = torch.randperm(edge_index.size(1), generator=torch.Generator().manual_seed(0))
    return Edges(edge_index[:, order], num_queries, num_keys)


def hub_edges():
    """Returns 300 edges of query 0 and of key 0, along which a program of many warps walks."""
    source, target = torch.arange(300) % 9, torch.zeros(300, dtype=torch.long)
    far_edges = torch.tensor([[3, 4], [70, 71]])
    forward = torch.stack([source, target])
    return Edges(torch.cat([forward, forward.flip(0), far_edges], dim=1), 72, 72)


PATTERNS = {
    "ragged": ragged_edges(),
    "hub": hub_edges(),
    "shared-ragged": Shared(ragged_edges(6, 6), 2),
    "small": Shared(random_edges(3, 3, 5, seed=1), 2),
    "one-edge": Edges(torch.tensor([[0], [0]]), 1, 1),
    "no-edge": Shared(torch.zeros(2, 0, dtype=torch.long), 2, num_nodes=3),
    "no-query": Edges(torch.zeros(2, 0, dtype=torch.long), 0, 3),
    "no-key": Edges(torch.zeros(2, 0, dtype=torch.long), 3, 0),
    "no-sample": Shared(random_edges(3, 3, 4, seed=0), 0),
    "blocks": Blocks(ptr([1, 2, 0]), ptr([2, 0, 1])),
}
#: Numbers of heads, of channels of keys, and of channels of values.
SIZES = [(1, 4, 4), (3, 6, 5), (2, 1, 3), (1, 20, 1)]


def inputs(pattern, size, device, dtype=torch.float32):
    """Returns queries, keys, values and an edge bias."""
    heads, channels, value_channels = size
    generator = torch.Generator().manual_seed(0)
    sizes = [(pattern.num_queries, heads, channels), (pattern.num_keys, heads, channels)]
    sizes += [(pattern.num_keys, heads, value_channels), (pattern.bias_size, heads)]
    return [torch.randn(size, generator=generator).to(device, dtype) for size in sizes]


def outputs_and_gradients(tensors, pattern, backend="triton", rounded=None):
    """Returns the output, and gradients of its sum with weights rounded to a dtype."""
    leaves = [tensor.detach().requires_grad_() for tensor in tensors]
    bias = leaves[3] if len(leaves) > 3 else None
    out = graph_attention(*leaves[:3], pattern, edge_bias=bias, backend=backend)
    weight = torch.linspace(-1, 1, out.numel(), dtype=torch.float64, device=out.device)
    weight = weight.to(rounded or out.dtype).to(out.dtype).view_as(out)
    return [out.detach(), *torch.autograd.grad(out, leaves, weight, materialize_grads=True)]


def check_against_the_oracle(tensors, pattern):
    actual = outputs_and_gradients(tensors, pattern)
    doubles = [tensor.double() for tensor in tensors]
    exact = outputs_and_gradients(doubles, pattern, "reference", tensors[0].dtype)
    tolerance = TOLERANCE[tensors[0].dtype]
    for value, reference in zip(actual, exact, strict=True):
        assert value.dtype == tensors[0].dtype
        assert_close(value.double(), reference, atol=tolerance, rtol=tolerance)


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="runs in the interpreter already")
def test_the_kernels_pass_these_tests_in_the_interpreter():
    plugins = ["-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, __file__]
    settings = {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTEST_ADDOPTS": ""}
    options = {"cwd": ROOT, "env": {**os.environ, **settings}, "capture_output": True, "text": True}
    process = subprocess.run(command, check=False, **options)
    assert process.returncode == 0, process.stdout + process.stderr
    assert " passed" in process.stdout


@pytest.mark.parametrize(
    ("name", "with_bias"), [*((name, True) for name in PATTERNS), ("ragged", False)]
)
def test_the_kernels_agree_with_the_oracle(device, name, with_bias):
    pattern = PATTERNS[name].to(device)
    tensors = inputs(pattern, (1, 6, 5), device)
    check_against_the_oracle(tensors if with_bias else tensors[:3], pattern)


@pytest.mark.parametrize(
    ("size", "dtype"),
    [*((size, torch.float32) for size in SIZES), *(((1, 6, 5), dtype) for dtype in TOLERANCE)],
    ids=str,
)
def test_the_kernels_take_any_heads_channels_and_dtypes(device, size, dtype):
    pattern = PATTERNS["small"].to(device)
    check_against_the_oracle(inputs(pattern, size, device, dtype), pattern)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("size", [(4, 128, 128), (2, 96, 64), (16, 32, 32), (1, 512, 512)], ids=str)
def test_many_programs_agree_with_the_oracle(dtype, size):
    pattern = Shared(random_edges(983, 983, 9830, seed=0), 4).to("cuda")
    check_against_the_oracle(inputs(pattern, size, "cuda", dtype), pattern)


def test_a_bias_can_take_edges_out(device):
    pattern = Edges(torch.tensor([[0, 1, 0, 1], [0, 0, 1, 1]], device=device), 2, 2)
    *tensors, _ = inputs(pattern, (1, 4, 4), device)
    bias = torch.tensor([0.0, -torch.inf, -torch.inf, -torch.inf], device=device).unsqueeze(-1)
    out, *gradients = outputs_and_gradients([*tensors, bias], pattern)
    assert_close(out, torch.stack([tensors[2][0], torch.zeros_like(out[1])]))
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_outputs_and_gradients_of_huge_scores_are_finite(device):
    pattern = PATTERNS["small"].to(device)
    query, key, *rest = inputs(pattern, (2, 6, 5), device)
    actual = outputs_and_gradients([query * 1e5, key * 1e5, *rest], pattern)
    assert all(x.isfinite().all() for x in actual)


def test_rows_of_larger_tensors_are_not_copied(device):
    from tg_mlc.ops.kernels.csr_triton import dense_rows

    pattern = PATTERNS["small"].to(device)
    packed = torch.randn(pattern.num_keys, 4, 6, device=device)
    tensors = [packed[:, 0:2], packed[:, 2:4], packed[:, 1:3]]
    assert all(dense_rows(x) is x and not x.is_contiguous() for x in tensors)
    check_against_the_oracle(tensors, pattern)


def test_other_strides_are_copied(device):
    pattern = PATTERNS["small"].to(device)
    query, key, value, bias = inputs(pattern, (2, 6, 5), device)
    query = query.transpose(0, 1).contiguous().transpose(0, 1)
    tensors = [query, key.mT.contiguous().mT, value[:1].expand_as(value)]
    check_against_the_oracle([*tensors, bias[:, :1].expand_as(bias)], pattern)


def test_offsets_may_exceed_32_bits(device):
    """On a CPU, the pages between the rows are never touched, so they take no memory."""
    pattern = Edges(torch.tensor([[0, 4, 4], [0, 0, 4]], device=device), 5, 5)
    *tensors, _ = inputs(pattern, (2, 3, 3), device, torch.float16)
    memory = torch.empty(2**31 + 64, dtype=torch.float16, device=device)
    views = [memory.as_strided((5, 2, 3), (2**29 + 8, 3, 1), offset) for offset in (0, 8, 16)]
    copies = [view.copy_(tensor) for view, tensor in zip(views, tensors, strict=True)]
    check_against_the_oracle(copies, pattern)


def test_results_are_the_same_bits_every_time(device):
    pattern = PATTERNS["ragged"].to(device)
    tensors = inputs(pattern, (1, 6, 5), device)
    first, second = (outputs_and_gradients(tensors, pattern) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def attend_with_dropout(tensors, pattern, seed):
    torch.manual_seed(seed)
    return graph_attention(*tensors, pattern, dropout_p=0.4, backend="triton")


def test_dropout_is_drawn_anew_for_each_seed_sample_and_head(device):
    pattern = Shared(torch.zeros(2, 150, dtype=torch.long, device=device), 2, num_nodes=1)
    ones = [torch.ones(2, 2, 1, device=device)] * 3
    runs = [attend_with_dropout(ones, pattern, seed) for seed in (0, 0, 1)]
    assert torch.equal(runs[0], runs[1])
    means = torch.cat([runs[0], runs[2]]).flatten()
    assert means.unique().numel() == means.numel()
    # Each mean is over 150 numbers whose standard deviation is 0.8.
    assert_close(means, torch.ones_like(means), atol=0.25, rtol=0)


def test_gradients_use_the_same_dropped_weights_as_the_output(device):
    graph = random_edges(3, 3, 7, seed=0).to(device)
    pattern = Shared(graph, 2)
    *tensors, _ = inputs(pattern, (2, 4, 3), device)
    # With unit vectors as values, the output of a query is its row of weights:
    units = torch.eye(3, device=device).repeat(2, 1).unsqueeze(1).expand(-1, 2, -1)
    is_kept = attend_with_dropout([*tensors[:2], units], pattern, seed=3).view(2, 3, 2, 3) != 0
    assert 0 < is_kept.sum() < 2 * 2 * 7

    def attend_again(query, key, value):
        query, key, value = (x.view(2, 3, 2, -1) for x in (query, key, value))
        score = torch.einsum("bihc,bjhc->bihj", query, key) / 2
        score = score.masked_fill(~graph.mask()[None, :, None], -torch.inf)
        weight = score.softmax(dim=-1).nan_to_num(0.0)
        return torch.einsum("bihj,bjhc->bihc", weight * is_kept / 0.6, value).flatten(end_dim=1)

    leaves = [tensor.requires_grad_() for tensor in tensors]
    actual, expected = attend_with_dropout(leaves, pattern, seed=3), attend_again(*leaves)
    assert_close(actual, expected)
    weight = torch.randn_like(actual)
    gradients = (torch.autograd.grad(out, leaves, weight) for out in (actual, expected))
    assert_close(*gradients, atol=1e-5, rtol=1e-5)


def test_dropping_everything_gives_zeros(device):
    pattern = PATTERNS["small"].to(device)
    *leaves, _ = (tensor.requires_grad_() for tensor in inputs(pattern, (1, 4, 4), device))
    out = graph_attention(*leaves, pattern, dropout_p=1.0, backend="triton")
    assert (out == 0).all()
    assert all((gradient == 0).all() for gradient in torch.autograd.grad(out.sum(), leaves))
