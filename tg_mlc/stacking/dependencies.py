"""Which labels surely depend on each other beyond the inputs, and how strongly."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tg_mlc.graphs import LabelGraph

#: The probability that any of the found pairs is chance, at most.
LEVEL = 0.01

_NUMBERS = 2**24  # Numbers of pairs in memory at a time.
_TINY = 1e-30  # Sums of labels that are never known are zero.


@torch.no_grad()
def sure_dependencies(base_logits: Tensor, y: Tensor, label_graph: LabelGraph) -> LabelGraph:
    r"""Returns the pairs of labels that surely depend on each other beyond the inputs, each once
    from lower to higher index, weighted by the correlation of their residuals.

    With :math:`p = \operatorname{sigmoid}(b)`, the sum :math:`S_{ij} = \sum_n (y_{ni} - p_{ni})
    (y_{nj} - p_{nj})` over samples in which both labels are known has mean 0 and variance
    :math:`V_{ij} = \sum_n p_{ni} (1 - p_{ni}) p_{nj} (1 - p_{nj})` if the labels are independent
    given the inputs. No term is larger than 1, so Bennett's inequality holds for any number of
    samples, and for rare labels, whose sums are far from Gaussian:

    .. math::
        P(|S_{ij}| \geq s) \leq 2 \exp \big( s - (V_{ij} + s) \ln (1 + s / V_{ij}) \big)

    A pair is sure if this bound, times the number :math:`L (L - 1) / 2` of pairs, is at most
    :obj:`LEVEL`. All pairs count even on a sparse label graph, because its edges may have been
    chosen by the same residuals. Where residuals are larger than probabilities claim, the variance
    of a label is scaled up to their mean square.

    Args:
        base_logits (Tensor): Held-out logits :math:`(N, L)`.
        y (Tensor): Targets :math:`(N, L)`: 0, 1, or NaN for unknown.
        label_graph (LabelGraph): The pairs to look at.
    """
    known, p = (~y.isnan()).to(base_logits), base_logits.sigmoid()
    residual = torch.where(y.isnan(), 0.0, y - p)
    square, variance = residual.square(), known * p * (1 - p)
    variance *= (square.sum(dim=0) / variance.sum(dim=0).clamp(min=_TINY)).clamp(min=1)
    source, target = label_graph.to_undirected().edge_index
    pairs = torch.stack([source, target])[:, source < target]
    total = _products(residual, residual, pairs)
    spread, size = _products(variance, variance, pairs).clamp(min=_TINY), total.abs()
    nats = (spread + size) * torch.log1p(size / spread) - size
    num_labels = y.size(1)
    is_sure = nats >= math.log(max(1, num_labels * (num_labels - 1)) / LEVEL)
    pairs, total = pairs[:, is_sure], total[is_sure]
    squares = _products(square, known, pairs) * _products(known, square, pairs)
    weight = total / squares.sqrt()
    return LabelGraph(pairs, num_nodes=num_labels, edge_weight=weight, kind="dependencies")


def _products(left: Tensor, right: Tensor, pairs: Tensor) -> Tensor:
    """Returns the inner products of columns of two matrices :math:`(N, L)`, for pairs of labels."""
    num_labels = left.size(1)
    if 4 * pairs.size(1) >= num_labels**2:
        return (left.t() @ right)[tuple(pairs)]
    chunks = torch.split(pairs, max(1, _NUMBERS // max(1, len(left))), dim=1)
    return torch.cat([(left[:, i] * right[:, j]).sum(dim=0) for i, j in chunks])
