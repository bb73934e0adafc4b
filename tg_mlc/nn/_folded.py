r"""Attention of many queries to few keys, with the projections of queries and messages folded into keys and values.

.. math::
    (\mathbf{W}^{q,k} \mathbf{u}_i)^{\top} \mathbf{k}^k_j
    = \mathbf{u}_i^{\top} (\mathbf{W}^{q,k \top} \mathbf{k}^k_j), \qquad
    \mathbf{W}^{c,k} \sum_j \alpha^k_{ij} \mathbf{v}^k_j
    = \sum_j \alpha^k_{ij} \mathbf{W}^{c,k} \mathbf{v}^k_j

The scores of all heads are then one product with the states themselves, and so are their messages with the weights.
Where all samples share the states, queries are projected once, which costs less than to fold them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch_geometric.nn import Linear

from tg_mlc.ops import Blocks
from tg_mlc.ops.attention.crossovers import folding_ratio
from tg_mlc.ops.attention.dense import pad
from tg_mlc.ops.attention.registry import forced
from tg_mlc.ops.dropout import dropout
from tg_mlc.ops.runtime import is_plain


def may_fold(states: Tensor, pattern: Blocks, query: Linear, out: Linear, heads: int, num_copies: int) -> bool:
    """Tells whether folding takes fewer multiplications, and nobody forces a backend or looks into the projections."""
    if states.device.type != "cpu" or torch.compiler.is_compiling() or forced():
        return False
    regular = pattern.num_samples * pattern.max_queries == pattern.num_queries
    plain = is_plain(query, Linear) and is_plain(out, Linear)
    if not (regular and plain and num_copies in (1, pattern.num_samples)):
        return False
    sizes = (query.in_channels, query.out_channels // heads, out.in_channels // heads)
    return folding_ratio(pattern, heads, *sizes, shared=num_copies > 1) > 1.0


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
    """Messages to the targets as ``out`` projects them, ``[num_queries, d]``, from the states that ``query`` would
    project, ``[num_queries / num_copies, d]``. All samples have as many queries, and states of their own or the same.
    """
    channels, heads = out.weight.size(0), value.size(1)
    score = (_scores if num_copies == 1 else _shared_scores)(states, key * scale, pattern, query)
    weights = dropout(score.softmax(dim=-1), dropout_p)
    values = _fold(value, out.weight.view(channels, heads, -1).permute(1, 2, 0), pattern)
    message = torch.bmm(weights.flatten(start_dim=2), values).flatten(end_dim=1)
    return message if out.bias is None else message + out.bias.to(message.dtype)


def _scores(states: Tensor, key: Tensor, pattern: Blocks, query: Linear) -> Tensor:
    """``[B, max_queries, heads, max_keys]``."""
    heads, shape = key.size(1), (pattern.num_samples, pattern.max_queries)
    keys = _fold(key, query.weight.view(heads, -1, states.size(1)), pattern)
    offset = _offset(key, query.bias, pattern)
    states = states.view(*shape, states.size(1))
    score = torch.bmm(states, keys.mT) if offset is None else torch.baddbmm(offset, states, keys.mT)
    return score.view(*shape, heads, _num_keys(pattern))


def _shared_scores(states: Tensor, key: Tensor, pattern: Blocks, query: Linear) -> Tensor:
    """``[B, max_queries, heads, max_keys]`` of states that all samples share."""
    queries = query(states).view(states.size(0), *key.shape[1:])
    score = torch.einsum("lhc,bhsc->blhs", queries, pad(key, pattern.key_ptr, _num_keys(pattern)))
    absent = _absent(pattern)
    return score if absent is None else score.masked_fill(absent.unsqueeze(1), -math.inf)


def _fold(x: Tensor, weight: Tensor, pattern: Blocks) -> Tensor:
    """``[num_keys, heads, C]`` times ``[heads, C, d]``, as ``[B, heads * max_keys, d]`` with zeros for padding."""
    folded = torch.bmm(x.transpose(0, 1), weight).transpose(0, 1)
    return pad(folded, pattern.key_ptr, _num_keys(pattern)).flatten(1, 2)


def _offset(key: Tensor, bias: Tensor | None, pattern: Blocks) -> Tensor | None:
    """Offsets to the scores of every key, ``[B, 1, heads * max_keys]``: those of a bias, and of padding."""
    absent, offset = _absent(pattern), None
    if bias is not None:
        scores = (key * bias.view(key.size(1), -1)).sum(dim=-1, keepdim=True)
        offset = pad(scores, pattern.key_ptr, _num_keys(pattern)).squeeze(-1)
    elif absent is not None:
        offset = key.new_zeros(pattern.num_samples, key.size(1), _num_keys(pattern))
    if offset is None:
        return None
    return (offset if absent is None else offset.masked_fill(absent, -math.inf)).flatten(1).unsqueeze(1)


def _absent(pattern: Blocks) -> Tensor | None:
    """Mask of the keys that are padding, ``[B, 1, max_keys]``, if any is. A sample without keys attends to one of them,
    whose value is zero, so that it yields zeros and never NaN.
    """
    size = _num_keys(pattern)
    if pattern.num_samples * size == pattern.num_keys:
        return None
    return torch.arange(size) >= pattern.key_ptr.diff().clamp(min=1).view(-1, 1, 1)


def _num_keys(pattern: Blocks) -> int:
    return max(pattern.max_keys, 1)
