"""Call of the operator as backends receive it, and the description of a backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tg_mlc.ops.patterns import Pattern


@dataclass
class AttentionCall:
    """One validated call of :func:`~tg_mlc.ops.graph_attention`, as a backend receives it."""

    query: Tensor  #: ``[num_queries, heads, C]``
    key: Tensor  #: ``[num_keys, heads, C]``
    value: Tensor  #: ``[num_keys, heads, C_v]``
    pattern: Pattern
    scale: float
    dropout_p: float = 0.0
    edge_bias: Tensor | None = None  #: ``[pattern.bias_size, heads]``
    return_weights: bool = False

    @property
    def tensors(self) -> list[Tensor]:
        """All that may have derivatives."""
        return [tensor for tensor in (self.query, self.key, self.value, self.edge_bias) if tensor is not None]


Output = tuple[Tensor, Tensor | None]

#: Why to compute the edges alone, as :attr:`Backend.prefer` says it.
SPARSE = "is sparse, so only its edges are computed"


@dataclass(frozen=True)
class Backend:
    """One way to compute the operator."""

    name: str  #: the value of the argument :obj:`backend`
    run: Callable[[AttentionCall], Output]  #: output and, if asked for, weights ``[*pattern.weights_size, heads]``
    refuse: Callable[[AttentionCall], str | None]  #: why it cannot take a call; :obj:`None` if it can
    #: Why it is the one to take, as what follows the pattern's name in a sentence; :obj:`None` if another might be.
    prefer: Callable[[AttentionCall], str | None]


def accumulator(tensor: Tensor) -> torch.dtype:
    """The type to sum in: half precision is not enough."""
    return torch.promote_types(tensor.dtype, torch.float32)
