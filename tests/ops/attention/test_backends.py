"""Every backend agrees with the oracle, 'reference', and the oracle agrees with the formula."""

import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from tests.ops.random_patterns import EXAMPLES, KINDS, patterns, ptr, random_edges
from tg_mlc.ops import Blocks, Edges, Shared, available_backends, explain_choice, graph_attention
from tg_mlc.ops.attention import registry
from tg_mlc.ops.attention.backend import AttentionCall

#: The backend for GPUs has its own tests.
BACKENDS = [name for name in available_backends() if name != "triton"]
OTHERS = [name for name in BACKENDS if name != "reference"]
#: The kinds of patterns for each backend that does not take all kinds.
KINDS_OF = {"blocks": ("blocks", "ragged")}
#: Error messages of other backends recommend these backends, so these must refuse nothing.
ADVISED = ("dense", "scatter", "reference", "auto")
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}


def inputs(pattern, heads, dtype, seed, factor=1.0):
    generator = torch.Generator().manual_seed(seed)
    rows = [(pattern.num_queries, 4), (pattern.num_keys, 4), (pattern.num_keys, 3)]
    options = {"generator": generator, "dtype": torch.float64}
    tensors = [torch.randn(n, heads, channels, **options) * factor for n, channels in rows]
    return [tensor.to(dtype).requires_grad_() for tensor in tensors]


def outputs_and_gradients(tensors, pattern, backend, edge_bias, **options):
    leaves = [t.detach().clone().requires_grad_() for t in tensors]
    bias = None if edge_bias is None else edge_bias.detach().clone().requires_grad_()
    result = graph_attention(*leaves, pattern, edge_bias=bias, backend=backend, **options)
    out = result if isinstance(result, Tensor) else result[0]
    out.backward(torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out))
    leaves += [] if bias is None else [bias]
    gradients = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]
    return [*([result] if isinstance(result, Tensor) else result), *gradients]


def example(backend):
    """Returns a small pattern that a backend takes, with an isolated query."""
    if backend == "blocks":
        return Blocks(ptr([2, 3, 1]), ptr([4, 2, 0]))
    return Shared(random_edges(5, 5, 12, seed=0), 2)


def keeps_no_weights(backend):
    pattern = Blocks(ptr([1]), ptr([1]))
    tensors = inputs(pattern, 1, torch.float32, seed=0)
    call = AttentionCall(*tensors, pattern, scale=1.0, return_weights=True)
    return registry.get(backend).refuse(call.shape) is not None


#: The message with which a backend refuses second derivatives.
REFUSED = "second derivatives .got '{}'.; take 'reference' or 'scatter'"
WITHOUT_WEIGHTS = {backend for backend in BACKENDS if keeps_no_weights(backend)}
#: Pairs of a backend and whether weights are returned.
WAYS = [
    (name, weights)
    for name in [*BACKENDS, "auto"]
    for weights in (False, True)[: 2 - (name in WITHOUT_WEIGHTS)]
]


@pytest.mark.parametrize("backend", OTHERS)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("max_examples", EXAMPLES)
def test_backends_agree_with_the_oracle(backend, dtype, max_examples):
    @settings(max_examples=max_examples)
    @given(data=st.data(), heads=st.integers(1, 3), seed=st.integers(0, 2**31))
    def check(data, heads, seed):
        check_against_the_oracle(backend, dtype, data, heads, seed)

    check()


def check_against_the_oracle(backend, dtype, data, heads, seed):
    pattern, with_bias = data.draw(patterns(KINDS_OF.get(backend, KINDS))), data.draw(st.booleans())
    return_weights = data.draw(st.booleans()) and backend not in WITHOUT_WEIGHTS
    tensors = inputs(pattern, heads, dtype, seed)
    bias = torch.randn(pattern.bias_size, heads, dtype=dtype) if with_bias else None
    options = {"return_weights": return_weights}
    expected = outputs_and_gradients(tensors, pattern, "reference", bias, **options)
    actual = outputs_and_gradients(tensors, pattern, backend, bias, **options)
    assert len(actual) == len(expected)
    for tensor, reference in zip(actual, expected, strict=True):
        assert tensor.shape == reference.shape
        assert tensor.isfinite().all()
        assert_close(tensor, reference, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@settings(max_examples=50)
@given(pattern=patterns(), seed=st.integers(0, 2**31))
def test_the_oracle_equals_the_formula(pattern, seed):
    query, key, value = (t.detach() for t in inputs(pattern, 2, torch.float64, seed))
    options = {"return_weights": True, "backend": "reference"}
    out, weights = graph_attention(query, key, value, pattern, **options)
    edge_index, weights = pattern.to_edge_list(weights)
    expected = torch.zeros_like(out)
    for i in range(pattern.num_queries):
        for head in range(2):
            edges = (edge_index[1] == i).nonzero().flatten().tolist()
            neighbours = [int(edge_index[0, edge]) for edge in edges]
            scores = [float(query[i, head] @ key[j, head]) / math.sqrt(4) for j in neighbours]
            exps = list(map(math.exp, scores))
            for edge, j, exp in zip(edges, neighbours, exps, strict=True):
                expected[i, head] += exp / sum(exps) * value[j, head]
                assert float(weights[edge, head]) == pytest.approx(exp / sum(exps), abs=1e-12)
    assert_close(out, expected, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "pattern",
    [
        Edges(torch.tensor([[0], [1]]), 3, 2),
        Blocks(ptr([2, 2]), ptr([0, 3])),
        Shared(torch.tensor([[0], [1]]), 2, num_nodes=3),
        Shared(torch.zeros(2, 0, dtype=torch.long), 2, num_nodes=2),
        Edges(torch.zeros(2, 0, dtype=torch.long), 2, 2),
    ],
    ids=["edges", "blocks", "shared", "shared-empty", "edges-empty"],
)
def test_queries_without_neighbours_give_zeros(backend, pattern):
    if backend == "blocks" and not isinstance(pattern, Blocks):
        pytest.skip("takes Blocks only")
    tensors = inputs(pattern, 2, torch.float32, seed=0)
    out, *gradients = outputs_and_gradients(tensors, pattern, backend, None)
    isolated = torch.bincount(pattern.to_edge_index()[1], minlength=pattern.num_queries) == 0
    assert isolated.any()
    assert (out[isolated] == 0).all()
    assert (gradients[0][isolated] == 0).all()
    assert all(g.isfinite().all() for g in gradients)


@pytest.mark.parametrize("backend", BACKENDS)
def test_outputs_and_gradients_of_huge_logits_are_finite(backend):
    pattern = Blocks(ptr([3, 3]), ptr([4, 2]))
    tensors = inputs(pattern, 2, torch.float32, seed=0, factor=1e4)
    for tensor in outputs_and_gradients(tensors, pattern, backend, None):
        assert tensor.isfinite().all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("dtype", "tolerance", "under_autocast"),
    [(torch.bfloat16, 2e-2, False), (torch.float16, 2e-3, False), (torch.bfloat16, 2e-2, True)],
)
def test_half_precision_is_close_to_the_oracle(backend, dtype, tolerance, under_autocast):
    pattern = example(backend)
    tensors = inputs(pattern, 2, torch.float32 if under_autocast else dtype, seed=0, factor=3.0)
    exact = outputs_and_gradients([t.double() for t in tensors], pattern, "reference", None)
    with torch.autocast("cpu", dtype, enabled=under_autocast):
        actual = outputs_and_gradients(tensors, pattern, backend, None)
    for tensor, reference in zip(actual, exact, strict=True):
        assert under_autocast or tensor.dtype == dtype
        assert (tensor.double() - reference).norm() < tolerance * reference.norm()


@pytest.mark.parametrize(("backend", "return_weights"), WAYS)
@pytest.mark.parametrize("under_autocast", [False, True])
@pytest.mark.parametrize("dropout_p", [0.0, 0.5])
def test_scores_may_be_larger_than_half_precision_can_express(
    backend, under_autocast, return_weights, dropout_p
):
    pattern = example(backend)
    query, key, value = (t.detach() for t in inputs(pattern, 2, torch.float16, seed=0))
    # The products are 360,000, and the largest number of the type is 65,504.
    query, key = query.sign() * 300, key.sign() * 300
    tensors = [t.float() if under_autocast else t for t in (query, key, value)]
    options = {"return_weights": return_weights, "dropout_p": dropout_p}
    with torch.autocast("cpu", torch.float16, enabled=under_autocast):
        result = outputs_and_gradients(tensors, pattern, backend, None, **options)
    assert all(tensor.isfinite().all() for tensor in result)
    if dropout_p == 0.0:
        exact = [t.double() for t in tensors]
        expected = outputs_and_gradients(exact, pattern, "reference", None, **options)
        for tensor, reference in zip(result[: 1 + return_weights], expected, strict=False):
            assert_close(tensor.double(), reference, atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize(("backend", "return_weights"), WAYS)
def test_a_bias_of_higher_precision_does_not_change_the_dtype(backend, return_weights):
    pattern = example(backend)
    tensors, bias = inputs(pattern, 2, torch.float16, seed=0), torch.randn(pattern.bias_size, 2)
    actual = outputs_and_gradients(tensors, pattern, backend, bias, return_weights=return_weights)
    assert {tensor.dtype for tensor in actual[:-1]} == {torch.float16}
    assert actual[-1].dtype == torch.float32


@pytest.mark.parametrize("backend", [*BACKENDS, "auto"])
@pytest.mark.parametrize("sizes", [(0, 3), (4, 0), (0, 0)])
def test_states_may_have_no_channels(backend, sizes):
    pattern = example(backend)
    query, key, value = (t.detach() for t in inputs(pattern, 2, torch.float32, seed=0))
    tensors = [query[:, :, : sizes[0]], key[:, :, : sizes[0]], value[:, :, : sizes[1]]]
    out, *gradients = outputs_and_gradients(tensors, pattern, backend, None)
    weights = torch.zeros(pattern.num_queries, pattern.num_keys)
    weights[tuple(pattern.to_edge_index().flip(0))] = 1.0
    if sizes[0] == 0:  # All keys weigh the same.
        weights /= weights.sum(dim=1, keepdim=True).clamp(min=1.0)
        assert_close(out, torch.einsum("qk,khc->qhc", weights, tensors[2]))
    assert out.shape == (pattern.num_queries, 2, sizes[1])
    assert [gradient.shape for gradient in gradients] == [tensor.shape for tensor in tensors]
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize(("backend", "return_weights"), WAYS)
@pytest.mark.parametrize("dropout_p", [0.0, 0.5])
def test_queries_whose_edges_are_all_masked_give_zeros(backend, return_weights, dropout_p):
    options = {"return_weights": return_weights, "dropout_p": dropout_p}
    pattern = example(backend)
    target = pattern.to_edge_index()[1][: pattern.bias_size]
    masked = (target == target[0]).unsqueeze(-1)
    bias = torch.zeros(pattern.bias_size, 2).masked_fill(masked, -math.inf)
    bias[-1] = 1.0
    tensors = inputs(pattern, 2, torch.float32, seed=0)
    actual = outputs_and_gradients(tensors, pattern, backend, bias, **options)
    assert all(tensor.isfinite().all() for tensor in actual)
    out, *weights = actual[:-4]
    grad_query, _, _, grad_bias = actual[-4:]
    assert (out[target[0]] == 0).all()
    assert (grad_query[target[0]] == 0).all()
    assert (grad_bias[masked.flatten()] == 0).all()
    views = [weight.view(-1, pattern.bias_size, 2) for weight in weights]
    assert all((view[:, masked.flatten()] == 0).all() for view in views)
    if dropout_p == 0.0:
        expected = outputs_and_gradients(tensors, pattern, "reference", bias, **options)
        assert_close(actual, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("backend", ["dense", "scatter", "reference"])
def test_nan_is_not_taken_for_a_mask(backend):
    pattern = example(backend)
    query, key, value = (t.detach() for t in inputs(pattern, 2, torch.float32, seed=0))
    row = int(pattern.to_edge_index()[1, 0])
    query[row] = torch.nan
    bias = torch.zeros(pattern.bias_size)
    options = {"edge_bias": bias, "return_weights": True, "backend": backend}
    out, _ = graph_attention(query, key, value, pattern, **options)
    assert out[row].isnan().all()
    assert out.isnan().sum() == out[row].numel()


@pytest.mark.parametrize("backend", [*BACKENDS, "auto"])
def test_a_batch_may_have_no_samples(backend):
    pattern = Shared(random_edges(5, 5, 12, seed=0), 0)
    if backend == "blocks":
        pattern = Blocks(ptr([]), ptr([]))
    tensors = inputs(pattern, 2, torch.float32, seed=0)
    out, *gradients = outputs_and_gradients(tensors, pattern, backend, None)
    assert out.shape == (0, 2, 3)
    assert [gradient.shape for gradient in gradients] == [(0, 2, 4), (0, 2, 4), (0, 2, 3)]


@pytest.mark.parametrize("backend", [*BACKENDS, "auto"])
@pytest.mark.parametrize("num_nodes", [5, 200])
def test_forward_mode_derivatives_are_right_or_refused(backend, num_nodes):
    pattern = example(backend)
    if not isinstance(pattern, Blocks):
        pattern = Shared(random_edges(num_nodes, num_nodes, 12, seed=0), 2)
    query, key, _ = (t.detach() for t in inputs(pattern, 2, torch.float64, seed=0))
    value = key  # PyTorch uses a fused kernel if values are as wide as keys.

    def attend(new_query):
        return graph_attention(new_query, key, value, pattern, backend=backend)

    try:
        _, derivative = torch.func.jvp(attend, (query,), (query,))
    except ValueError as error:
        if backend in ADVISED or "no forward-mode derivatives" not in str(error):
            raise
        return
    step = 1e-6
    expected = (attend(query * (1 + step)) - attend(query * (1 - step))) / (2 * step)
    assert_close(derivative, expected, atol=1e-6, rtol=1e-6)


def check_transforms(tensors, pattern, backend):
    query, key, value = (t.detach() for t in tensors)

    def loss(query, backend=backend):
        return graph_attention(query, key, value, pattern, backend=backend).square().sum()

    gradient = torch.func.grad(loss)(query)
    query.requires_grad_()
    assert_close(gradient, torch.autograd.grad(loss(query, "reference"), query)[0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_transforms_are_right_or_refused(backend):
    pattern = example(backend)
    try:
        check_transforms(inputs(pattern, 2, torch.float64, seed=0), pattern, backend)
    except ValueError as error:
        if backend in ADVISED or "transforms of torch.func" not in str(error):
            raise


def test_auto_has_jacobians_and_hessians_by_transforms():
    pattern = Blocks(ptr([2, 3]), ptr([4, 2]))
    query, key, _ = (t.detach() for t in inputs(pattern, 2, torch.float32, seed=0))
    assert explain_choice(query, key, key, pattern).startswith("dense")

    def attend(query, backend="auto"):
        return graph_attention(query, key, key, pattern, backend=backend).square().sum(dim=(1, 2))

    expected = torch.autograd.functional.jacobian(lambda x: attend(x, "reference"), query)
    for transform in (torch.func.jacrev, torch.func.jacfwd):
        assert_close(transform(attend)(query), expected)
    hessian = torch.func.hessian(lambda x: attend(x).sum())(query)
    twice = torch.autograd.functional.hessian(lambda x: attend(x, "reference").sum(), query)
    assert_close(hessian, twice, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("preferred", ["blocks", "csr"])
def test_auto_avoids_backends_that_cannot_take_transforms(preferred, monkeypatch):
    monkeypatch.setattr("tg_mlc.ops.kernels.threads.num_workers", lambda: 2)
    sparse = preferred == "csr"
    pattern = Blocks(ptr([200, 200]), ptr([300, 100]))
    pattern = Shared(random_edges(600, 600, 1800, seed=0), 2) if sparse else pattern
    tensors = inputs(pattern, 2, torch.float64, seed=0)
    tensors = [t.repeat(1, 1, 1 if sparse else 32) for t in tensors]
    assert explain_choice(*tensors, pattern).startswith(preferred)
    check_transforms(tensors, pattern, "auto")


@pytest.mark.parametrize(("backend", "return_weights"), WAYS)
def test_second_derivatives_are_right_or_refused(backend, return_weights):
    pattern = example(backend)
    query, key, _ = inputs(pattern, 1, torch.float64, seed=0)

    def attend(query, key):
        options = {"return_weights": return_weights, "backend": backend}
        result = graph_attention(query, key, key, pattern, **options)
        return result if isinstance(result, Tensor) else result[0]

    try:
        loss = attend(query, key).square().sum()
        (gradient,) = torch.autograd.grad(loss, query, create_graph=True)
        gradient.square().sum().backward()
    except (RuntimeError, ValueError) as error:
        if backend in ("reference", "scatter") or not re.search(
            REFUSED.format(backend).replace("auto", ".*"), str(error)
        ):
            raise
        return
    assert torch.autograd.gradgradcheck(attend, (query, key))


@pytest.mark.parametrize("backend", ["csr", "dense", "scatter"])
def test_a_graph_used_in_inference_can_be_used_in_training(backend):
    pattern = Shared(random_edges(5, 5, 12, seed=0), 2)
    tensors = inputs(pattern, 2, torch.float32, seed=0)
    with torch.inference_mode():
        graph_attention(*tensors, pattern, backend=backend)
    graph_attention(*tensors, pattern, backend=backend).sum().backward()
    assert tensors[0].grad is not None


@pytest.mark.parametrize(("backend", "return_weights"), WAYS)
def test_dropout_keeps_the_mean(backend, return_weights):
    pattern = Blocks(ptr([2]), ptr([3]))
    tensors = [t.detach() for t in inputs(pattern, 1, torch.float64, seed=0)]
    exact = graph_attention(*tensors, pattern)
    repeated = [tensor.repeat(1, 500, 1) for tensor in tensors]  # Each head draws its own mask.
    runs = []
    for _ in range(2):
        options = {"return_weights": return_weights, "backend": backend}
        result = graph_attention(*repeated, pattern, dropout_p=0.5, **options)
        runs.append(result if isinstance(result, Tensor) else result[0])
    assert not torch.equal(runs[0], runs[1])
    heads = torch.cat(runs, dim=1).unflatten(1, (1000, -1))
    assert_close(heads.mean(dim=1), exact, atol=0.1, rtol=0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dropout_p", [0.0, 0.5])
def test_gradients_equal_finite_differences_with_the_same_dropped_weights(backend, dropout_p):
    pattern = example(backend)

    def attend(*tensors):
        torch.manual_seed(0)
        return graph_attention(*tensors, pattern, dropout_p=dropout_p, backend=backend)

    assert torch.autograd.gradcheck(attend, inputs(pattern, 1, torch.float64, seed=0))


def test_repeated_edges_count_several_times():
    pattern = Edges(torch.tensor([[0, 0, 1], [0, 0, 0]]), 1, 2)
    value = torch.tensor([[[3.0]], [[9.0]]])
    zeros = torch.zeros(2, 1, 1)
    for backend in ("reference", "scatter", "csr", "auto"):
        out = graph_attention(zeros[:1], zeros, value, pattern, backend=backend)
        assert float(out) == pytest.approx(5.0)
    with pytest.raises(ValueError, match=r"'dense' cannot take this call.*more than once"):
        graph_attention(zeros[:1], zeros, value, pattern, backend="dense")
