"""Attention weights as matrices, for plots and comparisons."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.index import ptr2index

from tg_mlc.ops.checks import longest
from tg_mlc.ops.patterns import Blocks, Pattern, Shared


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

    Raises:
        ValueError: If the sizes of the weights are not those of the pattern.
    """
    if weights.shape[:-1] != pattern.weights_size:
        raise ValueError(
            f"Expected 'weights' of shape [{', '.join(map(str, pattern.weights_size))}, heads] for {pattern} "
            f"(got {list(weights.shape)})"
        )
    query_ptr, key_ptr = _ptrs(pattern)
    (key, query), weights = pattern.to_edge_list(weights)
    sample = ptr2index(query_ptr, output_size=pattern.num_queries)[query]
    place = (sample, query - query_ptr[sample], key - key_ptr[sample])
    out = weights.new_zeros(query_ptr.numel() - 1, longest(query_ptr), longest(key_ptr), weights.size(-1))
    return out.index_put(place, weights, accumulate=True).permute(0, 3, 1, 2)


def _ptrs(pattern: Pattern) -> tuple[Tensor, Tensor]:
    """Pointers to the queries and the keys of every sample."""
    if isinstance(pattern, Blocks):
        return pattern.query_ptr, pattern.key_ptr
    if isinstance(pattern, Shared):
        ptr = torch.arange(pattern.num_samples + 1, device=pattern.device) * pattern.num_nodes
        return ptr, ptr
    return (
        torch.tensor([0, pattern.num_queries], device=pattern.device),
        torch.tensor([0, pattern.num_keys], device=pattern.device),
    )
