"""Softmax of dense rows of scores and its gradient, by PyTorch's operators: for where Numba is missing."""

from __future__ import annotations

import torch
from torch import Tensor

from tg_mlc.ops.kernels.dropout_torch import kept


def forward(scores: Tensor, dropout_p: float, seed: int) -> Tensor:
    """Turns contiguous scores ``[..., n]`` into weights, and returns the logarithms of the sums."""
    lse = torch.logsumexp(scores, dim=-1, keepdim=True)
    lse.masked_fill_(lse == -torch.inf, 0.0)
    scores.sub_(lse).exp_()
    if dropout_p > 0.0:
        keep, factor = _kept(scores, dropout_p, seed)
        scores.mul_(keep).mul_(factor)
    return lse


def backward(scores: Tensor, grad: Tensor, lse: Tensor, dropout_p: float, seed: int) -> None:
    """Turns contiguous scores into weights, and the gradient of these weights into that of the scores."""
    weight = scores.sub_(lse).clamp_(max=0.0).exp_()  # rounding may put a score above the sum
    if dropout_p > 0.0:
        keep, factor = _kept(scores, dropout_p, seed)
        weight = scores.clone()
        scores.mul_(keep).mul_(factor)
        grad.mul_(keep).mul_(factor)
    total = torch.linalg.vecdot(weight, grad).unsqueeze(-1)
    grad.sub_(total).mul_(weight)


def _kept(like: Tensor, dropout_p: float, seed: int) -> tuple[Tensor, float]:
    """Mask of the weights that stay, the same in both passes, and their factor."""
    return kept(like, dropout_p, torch.Generator().manual_seed(seed))
