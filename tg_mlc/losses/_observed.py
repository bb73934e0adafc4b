"""Selection of what is known, shared by all losses."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tg_mlc._options import check_number


class Known(NamedTuple):
    """Logits and targets in one precision, both 0 where nothing is known."""

    logits: Tensor  #: ``[B, L]``
    target: Tensor  #: ``[B, L]``, smoothed
    mask: Tensor  #: ``[B, L]``, whether the target is known

    def mean(self, losses: Tensor) -> Tensor:
        """The mean of losses :math:`(B, L)` over what is known, zero if nothing is."""
        return torch.where(self.mask, losses, 0.0).sum() / self.mask.sum().clamp(min=1)


def read_known(logits: Tensor, y: Tensor, label_smoothing: float) -> Known:
    """Masks what is unknown among the inputs of a loss rather than in its result, as 0 * infinity in a gradient is NaN.
    Half-precision logits are promoted to float32.
    """
    if logits.shape != y.shape:
        raise ValueError(f"Expected logits and 'y' of one shape (got {tuple(logits.shape)} and {tuple(y.shape)})")
    check_number("label_smoothing", label_smoothing, below=1.0)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    mask = ~torch.isnan(y)
    target = torch.where(mask, y, 0.0).to(logits.dtype)
    return Known(torch.where(mask, logits, 0.0), target * (1.0 - label_smoothing) + 0.5 * label_smoothing, mask)
