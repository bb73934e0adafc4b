"""Implementations of attention along a pattern, and their errors from the reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.index import ptr2index
from torch_geometric.nn import MessagePassing, TransformerConv
from torch_geometric.utils import softmax

from benchmarks.speed.measure import Job, relative_rms
from benchmarks.speed.regimes import Inputs, draw, find
from tg_mlc.ops import Blocks, Edges, Pattern, available_backends, graph_attention
from tg_mlc.ops.attention import registry
from tg_mlc.ops.attention.backend import AttentionCall

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]

OURS, LITERAL, SDPA, FLEX = "ours", "literal", "SDPA", "FlexAttention"
#: Backends that make tensors with a row for every edge.
PER_EDGE = ("reference", "scatter")
#: Peak memory of such a backend, forward and backward, in numbers of tensors of this size.
TENSORS_PER_EDGE = 6
#: Largest graph that gets a dense mask.
MAX_MASK = 10_000

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2}
#: The output and the gradients.
NAMES = ("out", "dq", "dk", "dv")
#: Maximum size of per-edge tensors of the reference, which processes queries in portions.
PORTION = 2**25


@dataclass(frozen=True)
class Candidate:
    """One way to compute attention.

    Args:
        name: The name of the candidate.
        prepare: Does untimed work that depends on the pattern alone. Returns the function to time.
        per_edge: Whether the candidate makes tensors with a row for every edge.
        masked: Whether the candidate makes a dense mask.
        backend: The backend that the candidate calls, if any.
    """

    name: str
    prepare: Callable[[Pattern], Attend]
    per_edge: bool = False
    masked: bool = False
    backend: str | None = None

    def refuse(self, inputs: Inputs, pattern: Pattern, memory: float) -> str | None:
        """The reason why the candidate takes no part, or :obj:`None`."""
        if self.backend is not None:
            reason = registry.get(self.backend).refuse(call(inputs, pattern).shape)
            if reason:
                return reason
        if self.name == "torch-sparse" and find_spec("torch_sparse") is None:
            return "torch-sparse is not installed"
        if self.name in ("SDPA, one by one", "SDPA, jagged") and not isinstance(pattern, Blocks):
            return "only for Blocks"
        if self.per_edge:
            width = inputs.query.size(1) * inputs.query.size(2) * inputs.query.element_size()
            needed = TENSORS_PER_EDGE * pattern.num_edges * width
            return f"would need about {needed / 1e9:.0f} GB" if needed > memory else None
        is_masked = self.masked and not isinstance(pattern, Blocks)
        if is_masked and pattern.shared()[0].num_keys > MAX_MASK:
            return f"makes no dense mask of more than {MAX_MASK} nodes"
        return None


def candidates() -> list[Candidate]:
    """Our automatic choice, each of our backends, and rivals, some of which need a GPU."""
    on_gpu = [Candidate("SDPA, jagged", sdpa_jagged), Candidate(FLEX, flex_attention, masked=True)]
    backends = [
        Candidate(
            f"{OURS} ({name})", partial(ours, backend=name), name in PER_EDGE, name == "dense", name
        )
        for name in available_backends()
    ]
    return [
        Candidate(LITERAL, literal, per_edge=True),
        Candidate("TransformerConv", transformer_conv, per_edge=True),
        Candidate(SDPA, sdpa, masked=True),
        Candidate("SDPA, one by one", sdpa_one_by_one),
        *(on_gpu if torch.cuda.is_available() else []),
        Candidate("torch-sparse", torch_sparse, per_edge=True),
        Candidate(OURS, partial(ours, backend="auto")),
        *backends,
    ]


def call(inputs: Inputs, pattern: Pattern) -> AttentionCall:
    """The call in the form that backends receive."""
    return AttentionCall(*inputs.leaves, pattern, inputs.query.size(2) ** -0.5)


def passes(attend: Attend, inputs: Inputs) -> dict[str, Job]:
    """The forward pass alone, as in inference, and the pass with all three gradients."""

    def forward() -> Tensor:
        with torch.no_grad():
            return attend(*inputs.leaves)

    def both() -> tuple[Tensor, ...]:
        out = attend(*inputs.leaves)
        return out, *torch.autograd.grad(out, inputs.leaves, inputs.grad)

    return {"forward": forward, "forward_backward": both}


def memory_jobs(
    regime: str, candidate: str, *, quick: bool, device: str, dtype: str, threads: int
) -> dict[str, Job]:
    """The passes of one candidate, after a warm-up on a tiny pattern of the same kind."""
    torch.set_num_threads(threads)
    spec = find(regime, quick=quick)
    pattern = spec.make().to(device)
    inputs = draw(pattern, spec, getattr(torch, dtype))
    chosen = next(option for option in candidates() if option.name == candidate)
    automatic, tiny = registry.choose(call(inputs, pattern).shape)[0].name, find(regime, quick=True)
    tiny_pattern = tiny.make().to(device)
    prepare = partial(ours, backend=automatic) if candidate == OURS else chosen.prepare
    for job in passes(prepare(tiny_pattern), draw(tiny_pattern, tiny, inputs.query.dtype)).values():
        job()
    return passes(chosen.prepare(pattern), inputs)


def ours(pattern: Pattern, backend: str) -> Attend:
    """The operator of this package with one backend."""
    if backend == "dense" and not isinstance(pattern, Blocks):
        pattern.shared()[0].mask()
    return partial(graph_attention, pattern=pattern, backend=backend)


class Literal(MessagePassing):
    """One message for every edge, as in PyG's :class:`~torch_geometric.nn.TransformerConv`."""

    def __init__(self) -> None:
        super().__init__(aggr="add", node_dim=0)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, edge_index: Tensor) -> Tensor:
        size = (key.size(0), query.size(0))
        out: Tensor = self.propagate(edge_index, size=size, query=query, key=key, value=value)
        return out

    def message(
        self,
        query_i: Tensor,
        key_j: Tensor,
        value_j: Tensor,
        index: Tensor,
        ptr: Tensor | None,
        size_i: int | None,
    ) -> Tensor:
        score = (query_i * key_j).sum(dim=-1) / math.sqrt(key_j.size(-1))
        return value_j * softmax(score, index, ptr, size_i).unsqueeze(-1)


def literal(pattern: Pattern) -> Attend:
    """Message passing along an explicit list of edges."""
    return partial(Literal(), edge_index=pattern.to_edge_index())


class _Fixed(torch.nn.Module):
    """Replaces a projection, and returns its precomputed output."""

    def forward(self, _: Tensor) -> Tensor:
        return self.output


def transformer_conv(pattern: Pattern) -> Attend:
    """PyG's layer without its projections and its skip connection."""
    edge_index = pattern.to_edge_index()
    convs: dict[tuple[int, int], TransformerConv] = {}

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        heads, channels = query.shape[1:]
        if (heads, channels) not in convs:
            conv = TransformerConv(heads * channels, channels, heads, root_weight=False)
            conv.lin_query, conv.lin_key, conv.lin_value = _Fixed(), _Fixed(), _Fixed()
            convs[heads, channels] = conv
        conv = convs[heads, channels]
        conv.lin_query.output, conv.lin_key.output, conv.lin_value.output = query, key, value
        return conv((key, query), edge_index).view(-1, heads, channels)

    return attend


def sdpa(pattern: Pattern) -> Attend:
    """One call of PyTorch's SDPA, masked or padded."""
    if isinstance(pattern, Blocks):
        return _padded_sdpa(pattern)
    graph, num_samples = pattern.shared()
    mask = None if graph.is_complete else graph.mask()
    return _by_sample(num_samples, partial(F.scaled_dot_product_attention, attn_mask=mask))


def _by_sample(num_samples: int, compute: Callable[..., Tensor]) -> Attend:
    """One call of ``compute`` over samples of equal size."""

    def attend(*tensors: Tensor) -> Tensor:
        query, key, value = (x.view(num_samples, -1, *x.shape[1:]).transpose(1, 2) for x in tensors)
        return compute(query, key, value).transpose(1, 2).reshape(tensors[0].shape)

    return attend


def _padded_sdpa(pattern: Blocks) -> Attend:
    ptrs = (pattern.query_ptr, pattern.max_queries), (pattern.key_ptr, pattern.max_keys)
    rows = [_padded_rows(*pair) for pair in ptrs]
    columns = torch.arange(pattern.max_keys, device=pattern.device)
    present = columns < pattern.key_ptr.diff().unsqueeze(-1)
    mask = None if present.all() else present[:, None, None, :]  # [B, 1, 1, S]

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        q = _pad(query, rows[0], pattern.num_samples, pattern.max_queries)
        k, v = (_pad(x, rows[1], pattern.num_samples, pattern.max_keys) for x in (key, value))
        out = F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(end_dim=1)
        return out if rows[0] is None else out[rows[0]]

    return attend


def _padded_rows(ptr: Tensor, size: int) -> Tensor | None:
    """The index of every row among padded rows, unless all samples have the same size."""
    if bool((ptr.diff() == size).all()):
        return None
    sample = ptr2index(ptr)
    return torch.arange(sample.numel(), device=ptr.device) + sample * size - ptr[sample]


def _pad(x: Tensor, rows: Tensor | None, num_samples: int, size: int) -> Tensor:
    if rows is not None:
        x = x.new_zeros(num_samples * size, *x.shape[1:]).index_copy(0, rows, x)
    return x.view(num_samples, size, *x.shape[1:]).transpose(1, 2)


def sdpa_one_by_one(pattern: Pattern) -> Attend:
    """One call of PyTorch's SDPA for each sample, without padding."""
    assert isinstance(pattern, Blocks)
    sizes = [ptr.diff().tolist() for ptr in (pattern.query_ptr, pattern.key_ptr)]

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        parts = (query.split(sizes[0]), key.split(sizes[1]), value.split(sizes[1]))
        outs = []
        for sample in zip(*parts, strict=True):
            q, k, v = (x.transpose(0, 1) for x in sample)
            outs.append(F.scaled_dot_product_attention(q, k, v).transpose(0, 1))
        return torch.cat(outs)

    return attend


def sdpa_jagged(pattern: Pattern) -> Attend:
    """One call of PyTorch's SDPA over nested tensors, without padding."""
    assert isinstance(pattern, Blocks)
    sizes = (pattern.query_ptr, pattern.max_queries), (pattern.key_ptr, pattern.max_keys)

    def nested(x: Tensor, ptr: Tensor, size: int) -> Tensor:
        options = {"min_seqlen": 1, "max_seqlen": size}
        return torch.nested.nested_tensor_from_jagged(x, ptr, **options).transpose(1, 2)

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        q, k, v = nested(query, *sizes[0]), nested(key, *sizes[1]), nested(value, *sizes[1])
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).values()

    return attend


def flex_attention(pattern: Pattern) -> Attend:
    """PyTorch's compiled attention. It skips blocks of 128 queries and keys without an edge."""
    from torch.nn.attention import flex_attention as flex

    if isinstance(pattern, Blocks):
        num_samples, sizes = 1, (pattern.num_queries, pattern.num_keys)
        sample_of_query, sample_of_key = ptr2index(pattern.query_ptr), ptr2index(pattern.key_ptr)

        def is_edge(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return sample_of_query[query] == sample_of_key[key]
    else:
        graph, num_samples = pattern.shared()
        sizes, mask = (graph.num_queries, graph.num_keys), graph.mask()

        def is_edge(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return mask[query, key]

    torch.compiler.reset()  # Otherwise torch.compile stops compiling after some patterns.
    block_mask = flex.create_block_mask(is_edge, None, None, *sizes, device=str(pattern.device))
    compiled = torch.compile(flex.flex_attention, dynamic=False)
    return _by_sample(num_samples, partial(compiled, block_mask=block_mask))


def torch_sparse(pattern: Pattern) -> Attend:
    """Scores and softmax along edges, and the sum as one sparse product over all heads."""
    from torch_sparse import SparseTensor, matmul

    ptr, source, _ = pattern.csr()
    target = ptr2index(ptr, output_size=source.numel())
    adjacencies: dict[int, Any] = {}

    def adjacency(heads: int) -> Any:
        if heads not in adjacencies:
            head = torch.arange(heads, device=ptr.device).unsqueeze(-1)
            row = (head * pattern.num_queries + target).flatten()
            col = (head * pattern.num_keys + source).flatten()
            sizes = (heads * pattern.num_queries, heads * pattern.num_keys)
            # Rows are sorted; the products do not require sorted columns.
            options = {"sparse_sizes": sizes, "is_sorted": True, "trust_data": True}
            adjacencies[heads] = SparseTensor(row=row, col=col, **options).fill_cache_()
        return adjacencies[heads]

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        heads, channels = query.shape[1:]
        score = (query[target] * key[source]).sum(dim=-1) / math.sqrt(channels)
        weight = softmax(score, ptr=ptr).t().flatten()
        stacked = value.transpose(0, 1).reshape(-1, value.size(2))
        out = matmul(adjacency(heads).set_value(weight, layout="coo"), stacked)
        return out.view(heads, pattern.num_queries, -1).transpose(0, 1)

    return attend


def explicit(ptr: Tensor, key: Tensor, first: int, last: int, num_keys: int) -> Edges:
    """The edges of a range of queries, which are numbered from the first of the range."""
    rows = ptr[first : last + 1]
    edge_index = torch.stack([key[rows[0] : rows[-1]], ptr2index(rows - rows[0])])
    return Edges(edge_index, last - first, num_keys, validate=False)


def reference(inputs: Inputs, pattern: Pattern, portion: int = PORTION) -> tuple[Tensor, ...]:
    """The output and the gradients of queries, keys and values in double precision."""
    query, key, value = (leaf.detach().double() for leaf in inputs.leaves)
    ptr, index, _ = pattern.csr()
    out, grads = torch.zeros_like(query), [torch.zeros_like(x) for x in (query, key, value)]
    for first, last in _portions(ptr, max(1, portion // query[0].numel())):
        rows = slice(first, last)
        leaves = [x.requires_grad_() for x in (query[rows].clone(), key, value)]
        edges = explicit(ptr, index, first, last, pattern.num_keys)
        output = graph_attention(*leaves, edges, backend="reference")
        assert isinstance(output, Tensor)
        grad = inputs.grad[rows].double()
        grad_query, grad_key, grad_value = torch.autograd.grad(output, leaves, grad)
        out[rows], grads[0][rows] = output.detach(), grad_query
        grads[1] += grad_key
        grads[2] += grad_value
    return out, *grads


def _portions(ptr: Tensor, num_edges: int) -> list[tuple[int, int]]:
    """Ranges of queries with at most ``num_edges`` edges, or of one query."""
    bounds, first = [], 0
    while first < ptr.numel() - 1:
        last = int(torch.searchsorted(ptr, ptr[first] + num_edges, right=True)) - 1
        bounds.append((first, max(last, first + 1)))
        first = bounds[-1][1]
    return bounds


def errors(attend: Attend, inputs: Inputs, expected: tuple[Tensor, ...]) -> dict[str, float]:
    """The relative root mean square errors of the output and of the three gradients."""
    results = passes(attend, inputs)["forward_backward"]()
    return {name: relative_rms(*pair) for name, *pair in zip(NAMES, results, expected, strict=True)}


def agrees(error: dict[str, float], dtype: torch.dtype) -> bool:
    """Whether all errors are within the tolerance of a type."""
    return all(math.isfinite(value) and value <= TOLERANCE[dtype] for value in error.values())
