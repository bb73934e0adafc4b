"""Recomputation of a block's activations: when a block can be computed twice."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.parameter import is_lazy


def may_recompute(block: nn.Module) -> bool:
    """Tells whether a block trains, and would do the same the second time, when no lazy weights are left to draw and
    dropout would get other random numbers. A compiler decides by itself what to keep.
    """
    if not block.training or not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return False
    return not any(is_lazy(parameter) for parameter in block.parameters())
