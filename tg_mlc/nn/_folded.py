r"""Attention of many queries to few keys: what every query would be multiplied by is folded into the keys and values.

.. math::
    (\mathbf{W}^{q,k} \mathbf{u}_i)^{\top} \mathbf{k}^k_j
    = \mathbf{u}_i^{\top} (\mathbf{W}^{q,k \top} \mathbf{k}^k_j), \qquad
    \mathbf{W}^{c,k} \sum_j \alpha^k_{ij} \mathbf{v}^k_j
    = \sum_j \alpha^k_{ij} \mathbf{W}^{c,k} \mathbf{v}^k_j

The scores of all heads are then one product with the states themselves, and so are their messages with the weights.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch_geometric.nn import Linear

from tg_mlc.ops import Blocks
from tg_mlc.ops.attention.crossovers import folding_ratio
from tg_mlc.ops.attention.dense import pad
from tg_mlc.ops.attention.registry import is_forced
from tg_mlc.ops.dropout import dropout


def may_fold(states: Tensor, pattern: Blocks, query: Linear, out: Linear, heads: int, num_copies: int) -> bool:
    """Whether folding takes fewer multiplications, and nobody forces a backend or looks into the projections."""
    if states.device.type != "cpu" or torch.compiler.is_compiling() or is_forced():
        return False
    if not (_is_plain(query) and _is_plain(out)) or pattern.num_samples * pattern.max_queries != pattern.num_queries:
        return False
    sizes = (query.in_channels, query.out_channels // heads, out.in_channels // heads)
    return folding_ratio(pattern, heads, *sizes, num_copies) > 1.0


def folded_attention(
    states: Tensor,
    key: Tensor,
    value: Tensor,
    pattern: Blocks,
    query: Linear,
    out: Linear,
    scale: float,
    dropout_p: float,
    num_copies: int,
) -> Tensor:
    """What ``out`` makes of the messages to the targets, ``[num_queries, d]``.

    Args:
        states: The states that ``query`` would project, ``[num_queries / num_copies, d]``.
        key: The keys ``[num_keys, heads, C]``.
        value: The values ``[num_keys, heads, C_v]``.
        pattern: Who attends to whom; all samples have as many queries.
        query: The projection to queries.
        out: The projection of messages.
        scale: The factor on the scores.
        dropout_p: The probability with which a weight is dropped.
        num_copies: How many samples share the states.
    """
    heads, channels, batch = key.size(1), states.size(1), (pattern.num_samples, pattern.max_queries)
    keys = _fold(key * scale, query.weight.view(heads, -1, channels), pattern)
    values = _fold(value, out.weight.view(channels, heads, -1).permute(1, 2, 0), pattern)
    states = states.expand(num_copies, *states.shape).reshape(*batch, channels)
    score = _scores(states, keys, _offset(key * scale, query, pattern))
    weights = dropout(score.view(*batch, heads, _num_keys(pattern)).softmax(dim=-1), dropout_p)
    message = torch.bmm(weights.flatten(start_dim=2), values).flatten(end_dim=1)
    return message if out.bias is None else message + out.bias.to(message.dtype)


def _fold(x: Tensor, weight: Tensor, pattern: Blocks) -> Tensor:
    """``[num_keys, heads, C]`` times ``[heads, C, d]``, as ``[B, heads * max_keys, d]`` with zeros for padding."""
    folded = torch.bmm(x.transpose(0, 1), weight).transpose(0, 1)
    return pad(folded, pattern.key_ptr, _num_keys(pattern)).flatten(1, 2)


def _scores(states: Tensor, keys: Tensor, offset: Tensor | None) -> Tensor:
    if offset is None:
        return torch.bmm(states, keys.mT)
    return torch.baddbmm(offset, states, keys.mT)


def _offset(key: Tensor, query: Linear, pattern: Blocks) -> Tensor | None:
    """What is added to the scores of every key, ``[B, 1, heads * max_keys]``: those of a bias, and of padding."""
    size, heads = _num_keys(pattern), key.size(1)
    padded = pattern.num_samples * size != pattern.num_keys
    if query.bias is None and not padded:
        return None
    offset = key.new_zeros(pattern.num_samples, heads, size)
    if query.bias is not None:
        scores = (key * query.bias.view(heads, -1)).sum(dim=-1, keepdim=True)
        offset = pad(scores, pattern.key_ptr, size).squeeze(-1)
    if padded:
        # A sample without keys attends to one padded key, whose value is zero, so that it yields zeros and never NaN:
        present = torch.arange(size) < pattern.key_ptr.diff().clamp(min=1).unsqueeze(-1)
        offset = offset.masked_fill(~present.unsqueeze(1), -math.inf)
    return offset.flatten(1).unsqueeze(1)


def _num_keys(pattern: Blocks) -> int:
    return max(pattern.max_keys, 1)


def _is_plain(linear: Linear) -> bool:
    """Whether it is its weight and its bias, and nobody has put anything in its place or listens to it."""
    listeners = (linear._forward_pre_hooks, linear._forward_hooks, linear._backward_pre_hooks, linear._backward_hooks)
    return type(linear) is Linear and not any(listeners)
