"""Soft F1: one minus the F1 of probabilities."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from tg_mlc._options import check_choice
from tg_mlc.losses._observed import read_known


def soft_f1_loss(
    logits: Tensor, y: Tensor, *, average: Literal["macro", "micro"] = "macro", label_smoothing: float = 0.0
) -> Tensor:
    r"""One minus the F1 of a batch with probabilities in place of decisions, as the sigmoid F1 of the `"sigmoidF1: A
    Smooth F1 Score Surrogate Loss for Multilabel Classification" <https://arxiv.org/abs/2108.10566>`_ paper with its
    :math:`\beta = 1` and :math:`\eta = 0`.

    .. math::
        \mathcal{L} = 1 - \frac{1}{|\mathcal{L}_+|} \sum_{i \in \mathcal{L}_+} \frac{2 \sum_b y_{bi} \, \sigma(z_{bi})}
        {\sum_b y_{bi} + \sigma(z_{bi})}

    over the labels :math:`\mathcal{L}_+` with a known entry in the batch. A label without a positive entry has an F1 of
    0 whatever its scores, so that large batches serve rare labels.

    Args:
        logits (Tensor): Scores before the sigmoid.
        y (Tensor): Targets: 0, 1, or NaN for unknown.
        average (str, optional): :obj:`"macro"` for the mean over labels, :obj:`"micro"` for the F1 of all entries
            together. (default: :obj:`"macro"`)
        label_smoothing (float, optional): As in :func:`masked_bce`. (default: :obj:`0.0`)

    Shapes:
        - **input:** logits :math:`(B, L)`, targets :math:`(B, L)`
        - **output:** a scalar

    Raises:
        ValueError: If the shapes differ or an option is out of range.
    """
    check_choice("average", average, ("macro", "micro"))
    known = read_known(logits, y, label_smoothing)
    p, target = (torch.where(known.mask, values, 0.0) for values in (known.logits.sigmoid(), known.target))
    dims = (0,) if average == "macro" else (0, 1)
    both, either = (p * target).sum(dims), (p + target).sum(dims)
    present = known.mask.any(dim=0) if average == "macro" else known.mask.any()
    # A saturated score may round to zero, where there is no F1.
    loss = 1.0 - 2.0 * both / either.clamp(min=torch.finfo(either.dtype).eps)
    return torch.where(present, loss, 0.0).sum() / present.sum().clamp(min=1)
