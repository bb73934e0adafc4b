"""Softmaxes that give zeros, never NaN, for a query without neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from torch import Tensor
from torch_geometric.utils import scatter


def softmax_of_rows(score: Tensor) -> Tensor:
    r"""The softmax over the last dimension; a row of :math:`-\infty` alone gives zeros, and its gradient is zero."""
    empty = score.isneginf().all(dim=-1, keepdim=True)  # and not a row that holds NaN
    return score.masked_fill(empty, 0.0).softmax(dim=-1).masked_fill(empty, 0.0)


def softmax_by_target(score: Tensor, target: Tensor, num_queries: int) -> Tensor:
    """The softmax over the edges of each target, differentiable as often as is asked for."""
    return softmax_of_groups(score, target, partial(scatter, index=target, dim=0, dim_size=num_queries))


def softmax_of_groups(score: Tensor, group: Tensor, summarise: Callable[..., Tensor]) -> Tensor:
    """The softmax over each group of rows, with a way to find the groups' maxima and sums."""
    highest = summarise(score.detach(), reduce="max")
    highest = highest.masked_fill(highest == -math.inf, 0.0)
    exp = (score - highest.index_select(0, group)).exp()
    total = summarise(exp, reduce="sum")
    return exp / total.masked_fill(total == 0.0, 1.0).index_select(0, group)
