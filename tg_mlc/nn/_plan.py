"""Plans of attention blocks: choices of implementations, made once for each shape of call."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch_geometric import EdgeIndex
from torch_geometric.nn import Linear
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse

from tg_mlc.ops import Blocks, Edges, Pattern, Shared
from tg_mlc.ops.attention import registry
from tg_mlc.ops.attention.backend import CallShape
from tg_mlc.ops.attention.crossovers import folding_ratio
from tg_mlc.ops.runtime import (
    in_forward_mode,
    in_transform,
    is_plain,
    numba_problem,
    prefers_onednn,
)

#: Position of normalisations: after each residual, or before each half of the block.
Norm = Literal["post", "pre"]
#: Largest number of cached plans of a block: ragged batches all differ in shape.
MAX_PLANS = 64
#: Size of a residual branch above which the fused kernel is faster without gradients. On one core
#: of an EPYC with 64 channels, 27 rows take 97 us fused and 37 us step by step, 4,096 rows 2.2 and
#: 2.0 ms, and 16,384 rows 11 and 19 ms.
FUSED_NUMBERS = 2**19
_NO_EDGES = torch.empty(2, 0, dtype=torch.long, device="cpu")


@dataclass(frozen=True)
class Plan:
    """The implementations that a block uses for a call, and the reasons."""

    way: Literal["operator", "folded", "messages", "none"]  #: how messages are computed, if at all
    backend: str | None  #: the operator's backend
    onednn: tuple[str, ...]  #: names of projections that use oneDNN
    fused: tuple[bool, bool]  #: whether the residual branches of attention and MLP are fused
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(f"- {reason}" for reason in self.reasons)


def plan(
    conv: Any,
    states: Tensor,
    source: Tensor | None = None,
    edges: Adj | Pattern | None = None,
    num_copies: int = 1,
    return_weights: bool = False,
) -> Plan:
    """Returns the plan of an :class:`AttentionConv` for target states (already normalised
    if ``norm="pre"``), source states and edges. Without edges, only other steps are planned.

    The cache key contains everything that a plan depends on: sizes, types, devices, modes, forced
    backends, and modules with hooks. A compiler traces the decisions instead.
    """
    if torch.compiler.is_compiling() or in_forward_mode() or in_transform():
        return _decide(conv, states, source, edges, num_copies, return_weights)
    device = states.device
    lins = (conv.lin_query, conv.lin_key, conv.lin_value, conv.lin_out)
    modules = (*lins, conv.attention_norm, conv.mlp, *conv.mlp.children(), conv.mlp_norm)
    autocasts = torch.is_autocast_enabled(device.type) and torch.get_autocast_dtype(device.type)
    key = (
        (states.shape, states.dtype, device, None if source is None else source.shape),
        _signature(conv, edges, return_weights),
        (num_copies, return_weights),
        (conv.training, conv.attention_dropout, conv.norm, conv.backend),
        (registry.forced(), torch.get_num_threads(), torch.backends.mkldnn.enabled),
        (torch.is_grad_enabled(), autocasts),
        *map(_signature_of, modules),
    )
    planned: Plan | None = conv._plans.get(key)
    if planned is None:
        if len(conv._plans) >= MAX_PLANS:
            conv._plans.clear()
        planned = _decide(conv, states, source, edges, num_copies, return_weights)
        conv._plans[key] = planned
    if edges is not None:
        conv._last_plan = planned
    return planned


def _signature(conv: Any, edges: Adj | Pattern | None, return_weights: bool) -> tuple[Any, ...]:
    """Returns the properties of edges that a plan depends on."""
    if isinstance(edges, Blocks):
        sizes = (edges.num_queries, edges.num_keys, edges.num_samples)
        return *sizes, edges.max_queries, edges.max_keys, edges.num_edges
    if isinstance(edges, Shared):
        return edges.num_samples, edges.num_nodes, edges.graph.num_edges, edges.graph.is_multigraph
    if isinstance(edges, Edges):
        # Repeated pairs are slow to find, and matter only if a backend is forced.
        is_forced = conv.backend != "auto" or registry.forced()
        return edges.num_queries, edges.num_keys, edges.is_multigraph if is_forced else None
    return () if edges is None else (_is_adjacency(edges), return_weights or conv.needs_messages())


def _signature_of(module: nn.Module) -> tuple[Any, ...]:
    """Returns the properties of a module that a plan depends on."""
    types = (Linear, nn.LayerNorm, nn.Sequential, nn.ReLU)
    plain_type = next((t for t in types if is_plain(module, t)), None)
    signature: list[Any] = [plain_type]
    for name in ("weight", "bias"):
        w = module._parameters.get(name)
        signature.append(None if w is None or is_lazy(w) else (w.shape, w.dtype, w.device))
    return tuple(signature)


def _decide(
    conv: Any,
    states: Tensor,
    source: Tensor | None,
    edges: Adj | Pattern | None,
    num_copies: int,
    return_weights: bool,
) -> Plan:
    obstacle = no_kernels(states)
    num_keys = 0 if source is None else source.size(0)
    sizes = {"lin_query": states.size(0), "lin_key": num_keys, "lin_value": num_keys}
    sizes = {} if obstacle else sizes
    onednn = tuple(name for name in sizes if takes_onednn(sizes[name], getattr(conv, name)))
    way: Any = "none"
    backend: str | None = None
    reasons: list[str] = []
    if source is not None and edges is not None:
        way, backend, reasons = _way(conv, states, source, edges, num_copies, return_weights)
    without_onednn = obstacle or "none, as PyTorch takes the faster library"
    reasons += [f"projections by oneDNN: {', '.join(onednn) or without_onednn}"]

    num_rows = states.size(0) * num_copies
    branches = {"attention": (conv.lin_out, conv.attention_norm), "MLP": (conv.mlp, conv.mlp_norm)}
    fused = []
    for name, (layers, norm) in branches.items():
        reason = obstacle or not_fused(num_rows, layers, norm)
        if conv.norm == "pre":
            reason = "the block normalises first"
        elif name == "attention" and way == "folded":
            reason = "its projection is folded"
        fused.append(reason is None)
        computation = "fused" if reason is None else f"step by step, as {reason}"
        reasons.append(f"residual branch of the {name}: {computation}")
    return Plan(way, backend, onednn, (fused[0], fused[1]), tuple(reasons))


def _way(
    conv: Any,
    states: Tensor,
    source: Tensor,
    edges: Adj | Pattern,
    num_copies: int,
    return_weights: bool,
) -> tuple[str, str | None, list[str]]:
    """Returns how messages are computed, the backend, and reasons."""
    num_queries, num_keys = states.size(0) * num_copies, source.size(0)
    pattern = edges
    if not isinstance(edges, Pattern):
        reason = None
        if return_weights or conv.needs_messages():
            reason = "as weights, hooks or options of the layer need them"
        elif not _is_adjacency(edges):
            reason = "along a list of edges; a Pattern or an adjacency is faster"
        if reason is not None:
            return "messages", None, [f"messages one by one, {reason}"]
        # The choice of a backend depends on numbers of nodes here, not on edges.
        pattern = Edges(_NO_EDGES, num_queries, num_keys, validate=False)
    assert isinstance(pattern, Pattern)
    if (pattern.num_queries, pattern.num_keys) != (num_queries, num_keys):
        expected = f"numbers of target and source states that match {pattern}"
        raise ValueError(f"Expected {expected} (got {num_queries} and {num_keys})")
    reasons = []
    if isinstance(pattern, Blocks):
        reason = _not_folded(conv, states, pattern, num_copies, return_weights)
        if reason is None:
            reason = "the operator with folded projections, which takes fewer multiplications"
            return "folded", None, [reason]
        reasons = [f"projections not folded, as {reason}"]
    device, dtype, compiling = states.device.type, states.dtype, torch.compiler.is_compiling()
    if torch.is_autocast_enabled(device) and dtype != torch.float64:
        dtype = torch.get_autocast_dtype(device)
    sizes = (conv.heads, conv.head_channels, conv.value_channels)
    p = conv.attention_dropout if conv.training else 0.0
    modes = not compiling and in_forward_mode(), not compiling and in_transform()
    shape = CallShape(pattern, device, dtype, *sizes, p, False, return_weights, *modes)
    backend, reason = registry.choose(shape, conv.backend)
    # The name of the pattern contains sizes, which may be symbolic in compilation.
    kind = type(pattern).__name__ if compiling else str(pattern)
    return "operator", backend.name, [f"the operator by {backend.name}: {kind} {reason}", *reasons]


def _not_folded(
    conv: Any, states: Tensor, pattern: Blocks, num_copies: int, return_weights: bool
) -> str | None:
    """Returns why projections are not folded into keys and values; :obj:`None` if they are."""
    lin_query, lin_out, heads = conv.lin_query, conv.lin_out, conv.heads
    if return_weights or conv.backend != "auto" or registry.forced():
        return "weights are returned or a backend is set"
    if states.device.type != "cpu" or torch.compiler.is_compiling():
        return "that is for a CPU, and not compiled"
    if not (is_plain(lin_query, Linear) and is_plain(lin_out, Linear)):
        return "a projection has hooks or is of another type"
    regular = pattern.num_samples * pattern.max_queries == pattern.num_queries
    if not (regular and num_copies in (1, pattern.num_samples)):
        return "samples differ in their number of queries"
    sizes = (lin_query.in_channels, lin_query.out_channels // heads, lin_out.in_channels // heads)
    ratio = folding_ratio(pattern, heads, *sizes, shared=num_copies > 1)
    return None if ratio > 1.0 else "that would take more multiplications"


def _is_adjacency(edges: Adj) -> bool:
    """Tells whether PyG can sum over the edges without a message per edge."""
    return edges.is_sorted_by_col if isinstance(edges, EdgeIndex) else bool(is_sparse(edges))


def no_kernels(x: Tensor) -> str | None:
    """Returns why fast kernels cannot process a tensor; :obj:`None` if they can."""
    if torch.compiler.is_compiling():
        return "the model is compiled"
    is_float32 = x.device.type == "cpu" and x.dtype == torch.float32
    if x.dim() != 2 or not is_float32 or torch.is_autocast_enabled("cpu"):
        return "states are no matrix in single precision on a CPU"
    if in_forward_mode() or in_transform():
        return "other derivatives than those of a backward pass are requested"
    return None


def takes_onednn(num_rows: int, layer: nn.Module) -> bool:
    """Tells whether oneDNN is faster than PyTorch for a layer, which must not have hooks."""
    if not is_plain(layer, Linear) or is_lazy(weight := cast(Tensor, layer.weight)):
        return False
    return prefers_onednn(num_rows, weight) and _is_float32(layer)


def not_fused(num_rows: int, layers: nn.Module, norm: nn.Module) -> str | None:
    """Returns why a residual branch is not fused; :obj:`None` if it is."""
    problem: str | None = numba_problem()
    linears = linears_of(layers)
    if problem is not None or not linears or not is_plain(norm, nn.LayerNorm):
        return problem or "a module has hooks or is of another type"
    weight, bias = (norm._parameters[name] for name in ("weight", "bias"))
    if weight is None or bias is None or weight.dim() != 1 or num_rows == 0:
        return "there are no rows, or no weights of the normalisation"
    weights = [*(layer.weight for layer in linears), weight]
    if any(a.size(0) != b.size(-1) for a, b in pairwise(weights)):
        return "its sizes do not fit"
    if num_rows * weight.numel() < FUSED_NUMBERS and not torch.is_grad_enabled():
        return "its few rows stay in the cache, and need no gradients"
    are_float32 = all(map(_is_float32, (*linears, norm)))
    return None if are_float32 else "its weights are not in single precision on a CPU"


def linears_of(layers: nn.Module) -> list[Linear]:
    """Returns one linear layer, or two around a ReLU; an empty list for any other module."""
    modules = list(layers.children()) if is_plain(layers, nn.Sequential) else [layers]
    types = [Linear] if len(modules) == 1 else [Linear, nn.ReLU, Linear]
    fits = len(modules) == len(types) and all(map(is_plain, modules, types))
    return cast(list[Linear], modules[::2]) if fits else []


def _is_float32(module: nn.Module) -> bool:
    return all(x.device.type == "cpu" and x.dtype == torch.float32 for x in module.parameters())
