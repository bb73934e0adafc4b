"""The graph attention operator: checks a call, chooses a backend and runs it."""

from __future__ import annotations

import math
from typing import Literal, TypedDict, overload

import torch
from torch import Tensor
from torch_geometric.index import ptr2index
from typing_extensions import Unpack

from tg_mlc._options import check_share
from tg_mlc.ops.attention import registry
from tg_mlc.ops.attention.backend import AttentionCall
from tg_mlc.ops.patterns import Blocks, Pattern, longest, shape_error


class CallOptions(TypedDict, total=False):
    """Options of :func:`graph_attention`, which documents them."""

    scale: float | None
    dropout_p: float
    edge_bias: Tensor | None


@overload
def graph_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    pattern: Pattern,
    *,
    return_weights: Literal[False] = ...,
    backend: str = ...,
    **options: Unpack[CallOptions],
) -> Tensor: ...


@overload
def graph_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    pattern: Pattern,
    *,
    return_weights: Literal[True],
    backend: str = ...,
    **options: Unpack[CallOptions],
) -> tuple[Tensor, Tensor]: ...


def graph_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    pattern: Pattern,
    *,
    scale: float | None = None,
    dropout_p: float = 0.0,
    edge_bias: Tensor | None = None,
    return_weights: bool = False,
    backend: str = "auto",
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Multi-head attention of every query over its neighbours in a pattern.

    .. math::
        \mathbf{o}_i = \sum_{j \in \mathcal{N}(i)} \alpha_{ij} \mathbf{v}_j, \qquad
        \alpha_{ij} = \textrm{softmax}_{j \in \mathcal{N}(i)} \left( s \, \mathbf{q}_i^{\top}
        \mathbf{k}_j + b_{ij} \right)

    A query without neighbours, or with a bias of :math:`-\infty` on all edges, gives zeros.

    Args:
        query (torch.Tensor): The queries.
        key (torch.Tensor): The keys.
        value (torch.Tensor): The values.
        pattern (Pattern): The edges along which queries attend: :class:`~tg_mlc.ops.Edges`,
            :class:`~tg_mlc.ops.Blocks` or :class:`~tg_mlc.ops.Shared`.
        scale (float, optional): :math:`s`, by default :math:`1 / \sqrt{C}`. (default: :obj:`None`)
        dropout_p (float, optional): The probability to drop a weight. (default: :obj:`0.0`)
        edge_bias (torch.Tensor, optional): A term :math:`b_{ij}` for every edge of
            ``pattern.to_edge_index()``, or of the shared graph. A Boolean bias is a mask.
            (default: :obj:`None`)
        return_weights (bool, optional): If set to :obj:`True`, returns the weights before dropout
            as well, for ``pattern.to_edge_list(weights)``. (default: :obj:`False`)
        backend (str, optional): The backend. :obj:`"auto"` means the backend that is set by
            :func:`~tg_mlc.set_backend`, or else the fastest by measured crossovers.
            (default: :obj:`"auto"`)

    Shapes:
        - **query:** :math:`(N_q, H, C)`
        - **key:** :math:`(N_k, H, C)`
        - **value:** :math:`(N_k, H, C_v)`
        - **edge_bias:** :math:`(|\mathcal{E}|)` or :math:`(|\mathcal{E}|, H)`
        - **output:** :math:`(N_q, H, C_v)`; weights :math:`(|\mathcal{E}|, H)` or
          :math:`(B, |\mathcal{E}|, H)`

    Raises:
        TypeError: If dtypes differ or are not floating point, or :obj:`scale` is a tensor.
        ValueError: If sizes disagree, or the backend does not support the call.
    """
    call = _validated(query, key, value, pattern, scale, dropout_p, edge_bias, return_weights)
    out, weights = registry.choose(call.shape, backend)[0].run(call)
    return out if weights is None else (out, weights)


def explain_choice(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    pattern: Pattern,
    *,
    return_weights: bool = False,
    **options: Unpack[CallOptions],
) -> str:
    """Returns a sentence with the backend that :obj:`"auto"` chooses for a call, and the reason.

    Arguments, shapes and errors are those of :func:`graph_attention`. For the last call of a
    layer, see :meth:`AttentionConv.explain_choice()
    <tg_mlc.nn.AttentionConv.explain_choice>`.
    """
    call = _validated(query, key, value, pattern, return_weights=return_weights, **options)
    backend, reason = registry.choose(call.shape)
    return f"{backend.name}: {pattern} {reason}"


def available_backends() -> list[str]:
    """Returns the names of all backends."""
    return list(registry.BACKENDS)


def to_dense_weights(pattern: Pattern, weights: Tensor) -> Tensor:
    r"""Converts attention weights to one matrix for each sample and head.

    Rows are queries, columns are keys. Pairs without an edge are zero. Repeated pairs are summed.

    Args:
        pattern (Pattern): The pattern; :class:`~tg_mlc.ops.Edges` count as one sample.
        weights (torch.Tensor): The weights from :func:`~tg_mlc.ops.graph_attention`.

    Shapes:
        - **weights:** :math:`(*, H)`, whose leading sizes are :obj:`pattern.weights_size`
        - **output:** :math:`(B, H, L, S)` for the largest numbers of queries and keys of a sample
    """
    if weights.shape[:-1] != pattern.weights_size:
        sizes = ", ".join(map(str, pattern.weights_size))
        raise shape_error("'weights'", f"[{sizes}, heads] for {pattern}", weights)
    if isinstance(pattern, Blocks):
        query_ptr, key_ptr = pattern.query_ptr, pattern.key_ptr
    else:
        graph, num_samples = pattern.shared()
        offsets = torch.arange(num_samples + 1, device=pattern.device)
        query_ptr, key_ptr = offsets * graph.num_queries, offsets * graph.num_keys
    (key, query), weights = pattern.to_edge_list(weights)
    sample = ptr2index(query_ptr, output_size=pattern.num_queries)[query]
    index = (sample, query - query_ptr[sample], key - key_ptr[sample])
    shape = (query_ptr.numel() - 1, longest(query_ptr), longest(key_ptr), weights.size(-1))
    out = weights.new_zeros(shape).index_put(index, weights, accumulate=True)
    return out.permute(0, 3, 1, 2)


def _validated(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    pattern: Pattern,
    scale: float | None = None,
    dropout_p: float = 0.0,
    edge_bias: Tensor | None = None,
    return_weights: bool = False,
) -> AttentionCall:
    if not torch.is_floating_point(query) or not query.dtype == key.dtype == value.dtype:
        got = f"{query.dtype}, {key.dtype} and {value.dtype}"
        message = f"Expected 'query', 'key' and 'value' to share a floating point type (got {got})"
        raise TypeError(message)
    sizes = {"query": pattern.num_queries, "key": pattern.num_keys, "value": pattern.num_keys}
    for (name, size), tensor in zip(sizes.items(), (query, key, value), strict=True):
        if tensor.dim() != 3 or tensor.size(0) != size:
            raise shape_error(f"'{name}'", f"[{size}, heads, channels] for {pattern}", tensor)
    if query.shape[1:] != key.shape[1:] or query.size(1) != value.size(1):
        got = f"{list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
        expected = "'query', 'key' and 'value' to agree in heads, and 'query' and 'key' in channels"
        raise ValueError(f"Expected {expected} (got {got})")
    check_share("dropout_p", dropout_p)
    if isinstance(scale, Tensor):  # Kernels take a number, which gets no gradient.
        raise TypeError(
            "Expected 'scale' to be a number (got a tensor); pass 'query * scale' and 'scale=1.0'"
        )
    if edge_bias is not None:
        if edge_bias.dtype == torch.bool:
            edge_bias = query.new_zeros(edge_bias.shape).masked_fill(~edge_bias, -math.inf)
        if not torch.is_floating_point(edge_bias):
            hint = "cast a mask with '.bool()', numbers with '.float()'"
            expected = "'edge_bias' to be Boolean or of a floating point type"
            raise TypeError(f"Expected {expected} (got {edge_bias.dtype}); {hint}")
        shape, size, heads = list(edge_bias.shape), pattern.bias_size, query.size(1)
        if shape not in ([size], [size, 1], [size, heads]):
            raise shape_error(
                "'edge_bias'", f"[{size}] or [{size}, {heads}] for {pattern}", edge_bias
            )
        edge_bias = edge_bias.unsqueeze(-1) if len(shape) == 1 else edge_bias
        edge_bias = edge_bias.expand(-1, heads)
    scale = max(query.size(2), 1) ** -0.5 if scale is None else scale
    return AttentionCall(query, key, value, pattern, scale, dropout_p, edge_bias, return_weights)
