"""Graph attention, the one operator: validates a call, chooses a backend, runs it; and its weights as matrices."""

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
from tg_mlc.ops.patterns import Blocks, Pattern, longest


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
    r"""Multi-head attention of every query over the keys that a pattern gives it.

    .. math::
        \mathbf{o}_i = \sum_{j \in \mathcal{N}(i)} \alpha_{ij} \mathbf{v}_j, \qquad
        \alpha_{ij} = \textrm{softmax}_{j \in \mathcal{N}(i)} \left( s \, \mathbf{q}_i^{\top} \mathbf{k}_j + b_{ij}
        \right)

    A query without any neighbour gives zeros, and its gradients are zero; so does one whose edges all have a bias of
    :math:`-\infty`.

    Args:
        query (torch.Tensor): The queries.
        key (torch.Tensor): The keys.
        value (torch.Tensor): The values.
        pattern (Pattern): The edges along which queries attend: :class:`~tg_mlc.ops.Edges`,
            :class:`~tg_mlc.ops.Blocks` or :class:`~tg_mlc.ops.Shared`.
        scale (float, optional): The factor :math:`s` on the scores, :math:`1 / \sqrt{C}` if :obj:`None`. To learn it,
            multiply :obj:`query` by it instead. (default: :obj:`None`)
        dropout_p (float, optional): The probability with which a weight is dropped. (default: :obj:`0.0`)
        edge_bias (torch.Tensor, optional): A term :math:`b_{ij}` for every edge in the order of
            ``pattern.to_edge_index()``, or for every edge of the graph that samples share. A Boolean one is a mask, as
            in PyTorch's own attention: edges that are :obj:`False` do not attend. (default: :obj:`None`)
        return_weights (bool, optional): If set to :obj:`True`, returns the weights as well, before dropout, in the
            pattern's own layout; ``pattern.to_edge_list(weights)`` lowers them to edges. (default: :obj:`False`)
        backend (str, optional): The backend to take, or :obj:`"auto"` for the one that was set
            (:func:`~tg_mlc.set_backend`), else the fastest by measured crossovers. (default: :obj:`"auto"`)

    Shapes:
        - **query:** :math:`(N_q, H, C)`
        - **key:** :math:`(N_k, H, C)`
        - **value:** :math:`(N_k, H, C_v)`
        - **edge_bias:** :math:`(|\mathcal{E}|)` or :math:`(|\mathcal{E}|, H)`
        - **output:** :math:`(N_q, H, C_v)`; weights :math:`(|\mathcal{E}|, H)`, or
          :math:`(B, |\mathcal{E}|, H)` for a shared graph

    Raises:
        TypeError: If the tensors are not of one floating point type, :obj:`edge_bias` is neither of such a type nor
            Boolean, or :obj:`scale` is a tensor.
        ValueError: If their sizes disagree with one another or with the pattern, or if the backend refuses the call.
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
    """Says in one sentence which backend :obj:`"auto"` takes for a call, and why.

    The arguments, their shapes and the errors are those of :func:`graph_attention`. A layer says what its last call
    took by :meth:`AttentionConv.explain_choice() <tg_mlc.nn.AttentionConv.explain_choice>`.
    """
    call = _validated(query, key, value, pattern, return_weights=return_weights, **options)
    backend, reason = registry.choose(call.shape)
    return f"{backend.name}: {pattern} {reason}"


def available_backends() -> list[str]:
    """Returns the names of all backends."""
    return list(registry.BACKENDS)


def to_dense_weights(pattern: Pattern, weights: Tensor) -> Tensor:
    r"""Brings attention weights from the layout of their pattern to one matrix for each sample and head.

    Rows are queries and columns are keys. Pairs that do not attend are zero, and so is the padding of samples with
    fewer queries or keys than others. The weights of a pair that occurs more than once are summed.

    Args:
        pattern (Pattern): The pattern of the call. A list of :class:`~tg_mlc.ops.Edges` counts as one sample.
        weights (torch.Tensor): The weights that :func:`~tg_mlc.ops.graph_attention` returned for it.

    Shapes:
        - **weights:** :math:`(*, H)`, with the sizes :obj:`pattern.weights_size` in front
        - **output:** :math:`(B, H, L, S)` for at most :math:`L` queries and :math:`S` keys in a sample
    """
    if weights.shape[:-1] != pattern.weights_size:
        expected = (
            f"'weights' of shape [{', '.join(map(str, pattern.weights_size))}, heads] for {pattern}"
        )
        raise ValueError(f"Expected {expected} (got {list(weights.shape)})")
    if isinstance(pattern, Blocks):
        query_ptr, key_ptr = pattern.query_ptr, pattern.key_ptr
    else:
        graph, num_samples = pattern.shared()
        bounds = torch.arange(num_samples + 1, device=pattern.device)
        query_ptr, key_ptr = bounds * graph.num_queries, bounds * graph.num_keys
    (key, query), weights = pattern.to_edge_list(weights)
    sample = ptr2index(query_ptr, output_size=pattern.num_queries)[query]
    place = (sample, query - query_ptr[sample], key - key_ptr[sample])
    out = weights.new_zeros(
        query_ptr.numel() - 1, longest(query_ptr), longest(key_ptr), weights.size(-1)
    )
    return out.index_put(place, weights, accumulate=True).permute(0, 3, 1, 2)


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
        raise TypeError(
            f"Expected 'query', 'key' and 'value' to share a floating point type (got {got})"
        )
    sizes = {"query": pattern.num_queries, "key": pattern.num_keys, "value": pattern.num_keys}
    for (name, size), tensor in zip(sizes.items(), (query, key, value), strict=True):
        if tensor.dim() != 3 or tensor.size(0) != size:
            expected = f"'{name}' of shape [{size}, heads, channels] for {pattern}"
            raise ValueError(f"Expected {expected} (got {list(tensor.shape)})")
    if query.shape[1:] != key.shape[1:] or query.size(1) != value.size(1):
        got = f"{list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
        expected = "'query', 'key' and 'value' to agree in heads, and 'query' and 'key' in channels"
        raise ValueError(f"Expected {expected} (got {got})")
    check_share("dropout_p", dropout_p)
    if isinstance(scale, Tensor):  # kernels take a number, and would give it no gradient
        raise TypeError(
            "Expected 'scale' to be a number (got a tensor); pass 'query * scale' and 'scale=1.0' instead"
        )
    if edge_bias is not None:
        if edge_bias.dtype == torch.bool:
            edge_bias = query.new_zeros(edge_bias.shape).masked_fill(~edge_bias, -math.inf)
        if not torch.is_floating_point(edge_bias):
            hint = "cast a mask with '.bool()', numbers with '.float()'"
            expected = "'edge_bias' to be Boolean or of a floating point type"
            raise TypeError(f"Expected {expected} (got {edge_bias.dtype}); {hint}")
        given, heads = list(edge_bias.shape), query.size(1)
        edge_bias = edge_bias.unsqueeze(-1) if edge_bias.dim() == 1 else edge_bias
        if (
            edge_bias.dim() != 2
            or edge_bias.size(0) != pattern.bias_size
            or edge_bias.size(1) not in (1, heads)
        ):
            expected = f"'edge_bias' of shape [{pattern.bias_size}] or [{pattern.bias_size}, {heads}] for {pattern}"
            raise ValueError(f"Expected {expected} (got {given})")
        edge_bias = edge_bias.expand(-1, heads)
    scale = max(query.size(2), 1) ** -0.5 if scale is None else scale
    return AttentionCall(query, key, value, pattern, scale, dropout_p, edge_bias, return_weights)
