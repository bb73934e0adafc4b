"""Graph attention, the one operator: validates a call, chooses a backend, runs it."""

from __future__ import annotations

import math
from typing import Literal, overload

import torch
from torch import Tensor

from tg_mlc._options import check_share
from tg_mlc.ops.attention import registry
from tg_mlc.ops.attention.backend import AttentionCall
from tg_mlc.ops.patterns import Pattern


@overload
def graph_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    pattern: Pattern,
    *,
    scale: float | None = ...,
    dropout_p: float = ...,
    edge_bias: Tensor | None = ...,
    return_weights: Literal[False] = ...,
    backend: str = ...,
) -> Tensor: ...


@overload
def graph_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    pattern: Pattern,
    *,
    scale: float | None = ...,
    dropout_p: float = ...,
    edge_bias: Tensor | None = ...,
    return_weights: Literal[True],
    backend: str = ...,
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
            in :func:`torch.nn.functional.scaled_dot_product_attention`: edges that are :obj:`False` do not attend.
            (default: :obj:`None`)
        return_weights (bool, optional): If set to :obj:`True`, returns the weights as well, before dropout, in the
            pattern's own layout; ``pattern.to_edge_list(weights)`` lowers them to a list of edges.
            (default: :obj:`False`)
        backend (str, optional): The backend to take, or :obj:`"auto"` for the one that was set
            (:func:`~tg_mlc.set_backend`), else the one that is fastest by measured crossovers.
            (default: :obj:`"auto"`)

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
    if backend == "auto":
        chosen, _ = registry.choose(call)
    else:
        chosen = registry.get(backend)
        if reason := chosen.refuse(call):
            raise ValueError(f"Backend '{backend}' cannot take this call: {reason}")
    out, weights = chosen.run(call)
    return out if weights is None else (out, weights)


def explain_choice(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    pattern: Pattern,
    *,
    scale: float | None = None,
    dropout_p: float = 0.0,
    edge_bias: Tensor | None = None,
    return_weights: bool = False,
) -> str:
    """Says in one sentence which backend :obj:`"auto"` takes for a call, and why.

    The arguments, their shapes and the errors are those of :func:`graph_attention`.

    Raises:
        TypeError: If the tensors are of types that :func:`graph_attention` refuses.
        ValueError: If their sizes disagree, or no backend that was set takes the call.
    """
    call = _validated(query, key, value, pattern, scale, dropout_p, edge_bias, return_weights)
    backend, reason = registry.choose(call)
    return f"{backend.name}: {pattern} {reason}"


def available_backends() -> list[str]:
    """The names of all backends."""
    return list(registry.BACKENDS)


def _validated(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    pattern: Pattern,
    scale: float | None,
    dropout_p: float,
    edge_bias: Tensor | None,
    return_weights: bool,
) -> AttentionCall:
    _check_sizes(query, key, value, pattern)
    check_share("dropout_p", dropout_p)
    if isinstance(scale, Tensor):  # kernels take a number, and would give it no gradient
        raise TypeError("Expected 'scale' to be a number (got a tensor); pass 'query * scale' and 'scale=1.0' instead")
    if edge_bias is not None:
        edge_bias = _expanded_bias(edge_bias, pattern, query)
    scale = max(query.size(2), 1) ** -0.5 if scale is None else scale
    return AttentionCall(query, key, value, pattern, scale, dropout_p, edge_bias, return_weights)


def _check_sizes(query: Tensor, key: Tensor, value: Tensor, pattern: Pattern) -> None:
    if not torch.is_floating_point(query) or not query.dtype == key.dtype == value.dtype:
        raise TypeError(
            f"Expected 'query', 'key' and 'value' to share a floating point type "
            f"(got {query.dtype}, {key.dtype} and {value.dtype})"
        )
    for name, tensor, size in (
        ("query", query, pattern.num_queries),
        ("key", key, pattern.num_keys),
        ("value", value, pattern.num_keys),
    ):
        if tensor.dim() != 3 or tensor.size(0) != size:
            raise ValueError(
                f"Expected '{name}' of shape [{size}, heads, channels] for {pattern} (got {list(tensor.shape)})"
            )
    if query.shape[1:] != key.shape[1:] or query.size(1) != value.size(1):
        raise ValueError(
            f"Expected 'query', 'key' and 'value' to agree in heads, and 'query' and 'key' in channels "
            f"(got {list(query.shape)}, {list(key.shape)} and {list(value.shape)})"
        )


def _expanded_bias(edge_bias: Tensor, pattern: Pattern, query: Tensor) -> Tensor:
    heads = query.size(1)
    if edge_bias.dtype == torch.bool:
        edge_bias = query.new_zeros(edge_bias.shape).masked_fill(~edge_bias, -math.inf)
    if not torch.is_floating_point(edge_bias):
        raise TypeError(
            f"Expected 'edge_bias' to be Boolean or of a floating point type (got {edge_bias.dtype}); "
            f"cast a mask with '.bool()', numbers with '.float()'"
        )
    bias = edge_bias.unsqueeze(-1) if edge_bias.dim() == 1 else edge_bias
    if bias.dim() != 2 or bias.size(0) != pattern.bias_size or bias.size(1) not in (1, heads):
        raise ValueError(
            f"Expected 'edge_bias' of shape [{pattern.bias_size}] or [{pattern.bias_size}, {heads}] "
            f"for {pattern} (got {list(edge_bias.shape)})"
        )
    return bias.expand(-1, heads)
