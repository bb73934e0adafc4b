"""Internals of PyTorch that the operator queries, all in this file."""

from torch._C._functorch import is_functorch_wrapped_tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

__all__ = ["is_functorch_wrapped_tensor", "statically_known_true"]
