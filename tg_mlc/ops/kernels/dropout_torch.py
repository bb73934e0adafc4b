"""Dropout of which four entries share the 64 bits of one draw, as PyTorch's own draws 64 for each on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor

#: What 16 bits can tell apart.
_STEPS = 2**16


def kept(like: Tensor, p: float, generator: torch.Generator | None = None) -> tuple[Tensor, float]:
    """Mask of the entries to keep (ones and zeros of one byte), and their factor."""
    dropped = round(p * _STEPS)
    if dropped == _STEPS:
        return torch.zeros(like.shape, dtype=torch.uint8, device=like.device), 1.0
    size = like.numel()
    draws = torch.empty((size + 3) // 4, dtype=torch.long, device=like.device).random_(
        -(2**63), None, generator=generator
    )
    keep = draws.view(torch.int16)[:size] >= dropped - _STEPS // 2
    return keep.view(torch.uint8).view(like.shape), _STEPS / (_STEPS - dropped)
