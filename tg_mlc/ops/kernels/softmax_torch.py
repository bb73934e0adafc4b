"""Softmax of dense rows of scores and its gradient, by PyTorch's operators: for where Numba is missing."""

from __future__ import annotations

import torch
from torch import Tensor


def forward(scores: Tensor, dropout_p: float, seed: int) -> Tensor:
    """Turns contiguous scores ``[..., n]`` into weights, and returns the logarithms of the sums."""
    lse = torch.logsumexp(scores, dim=-1, keepdim=True)
    lse.masked_fill_(lse == -torch.inf, 0.0)
    scores.sub_(lse).exp_().mul_(_factors(scores, dropout_p, seed))
    return lse


def backward(scores: Tensor, grad: Tensor, lse: Tensor, dropout_p: float, seed: int) -> None:
    """Turns contiguous scores into weights, and the gradient of these weights into that of the scores."""
    weight = scores.sub_(lse).clamp_(max=0.0).exp_().clone()  # rounding may put a score above the sum
    factors = _factors(scores, dropout_p, seed)
    scores.mul_(factors)
    total = torch.linalg.vecdot(scores, grad).unsqueeze(-1)
    grad.mul_(factors).sub_(total).mul_(weight)


def _factors(like: Tensor, dropout_p: float, seed: int) -> Tensor | float:
    """Factors of dropout on weights, the same in both passes."""
    if dropout_p in (0.0, 1.0):
        return 1.0 - dropout_p
    keep = torch.empty_like(like).bernoulli_(1.0 - dropout_p, generator=torch.Generator().manual_seed(seed))
    return keep.div_(1.0 - dropout_p)
