"""Losses for rare labels: focal, asymmetric and soft F1."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from tg_mlc._options import check_choice, check_number, check_share
from tg_mlc.losses.cross_entropy import read_observed


def focal_loss(
    logits: Tensor, y: Tensor, *, gamma: float = 2.0, alpha: float | None = 0.25, label_smoothing: float = 0.0
) -> Tensor:
    r"""The focal loss from the `"Focal Loss for Dense Object Detection" <https://arxiv.org/abs/1708.02002>`_ paper,
    averaged over the observed labels.

    .. math::
        \ell = - \alpha \, y \, (1 - p)^{\gamma} \log p - (1 - \alpha) (1 - y) \, p^{\gamma} \log (1 - p), \qquad
        p = \sigma(z)

    Args:
        logits, y, label_smoothing: As in :func:`masked_bce`, with its shapes.
        gamma (float, optional): How far entries that are right already count less; 0 for not at all.
            (default: :obj:`2.0`, that of the paper)
        alpha (float, optional): Share :math:`\alpha` of the positive entries, without which both count fully.
            (default: :obj:`0.25`, that of the paper)

    Raises:
        ValueError: If the shapes differ or an option is out of range.
    """
    check_number("gamma", gamma)
    entries = read_observed(logits, y, label_smoothing)
    z, target = entries.logits, entries.target
    positive, negative = _sigmoid_power(-z, gamma) * F.logsigmoid(z), _sigmoid_power(z, gamma) * F.logsigmoid(-z)
    if alpha is not None:
        check_share("alpha", alpha)
        positive, negative = alpha * positive, (1.0 - alpha) * negative
    return entries.mean(-target * positive - (1.0 - target) * negative)


def asymmetric_loss(
    logits: Tensor,
    y: Tensor,
    *,
    gamma_neg: float = 4.0,
    gamma_pos: float = 0.0,
    margin: float = 0.05,
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""The asymmetric loss from the `"Asymmetric Loss For Multi-Label Classification"
    <https://arxiv.org/abs/2009.14119>`_ paper, averaged over the observed labels.

    .. math::
        \ell = - y \, (1 - p)^{\gamma_+} \log p - (1 - y) \, p_m^{\gamma_-} \log (1 - p_m), \qquad
        p_m = \max(p - m, 0), \quad p = \sigma(z)

    .. warning::
        The defaults are those of the paper, for networks that were trained before: negative entries then count a
        hundredth or less, and none of :math:`p < m`, so that from scratch scores may grow without order. Train with
        :func:`masked_bce` first, which this is where all three numbers are 0, and raise :obj:`gamma_neg` from there;
        scores are no probabilities, so that thresholds have to be tuned.

    Args:
        logits, y, label_smoothing: As in :func:`masked_bce`, with its shapes.
        gamma_neg (float, optional): How far negative entries that are right already count less.
            (default: :obj:`4.0`)
        gamma_pos (float, optional): The same for positive entries. (default: :obj:`0.0`)
        margin (float, optional): Probability :math:`m` up to which negative entries do not count.
            (default: :obj:`0.05`)

    Raises:
        ValueError: If the shapes differ or an option is out of range.
    """
    check_number("gamma_neg", gamma_neg)
    check_number("gamma_pos", gamma_pos)
    check_number("margin", margin, below=1.0)
    entries = read_observed(logits, y, label_smoothing)
    z, target = entries.logits, entries.target
    positive = _sigmoid_power(-z, gamma_pos) * F.logsigmoid(z)
    if margin == 0.0:  # the logarithm of 1 - p may be infinite
        negative = _sigmoid_power(z, gamma_neg) * F.logsigmoid(-z)
    else:
        shifted = (z.sigmoid() - margin).clamp(min=torch.finfo(z.dtype).tiny)  # the slope of a root is infinite at 0
        negative = shifted**gamma_neg * (-shifted).log1p()
    return entries.mean(-target * positive - (1.0 - target) * negative)


def _sigmoid_power(z: Tensor, gamma: float) -> Tensor:
    """A power of the sigmoid, with a finite slope however small it is."""
    return (gamma * F.logsigmoid(z)).exp()


def soft_f1_loss(
    logits: Tensor, y: Tensor, *, average: Literal["macro", "micro"] = "macro", label_smoothing: float = 0.0
) -> Tensor:
    r"""One minus the F1 of a batch with probabilities in place of decisions, as the sigmoid F1 of the `"sigmoidF1: A
    Smooth F1 Score Surrogate Loss for Multilabel Classification" <https://arxiv.org/abs/2108.10566>`_ paper with its
    :math:`\beta = 1` and :math:`\eta = 0`.

    .. math::
        \mathcal{L} = 1 - \frac{1}{|\mathcal{L}_+|} \sum_{i \in \mathcal{L}_+} \frac{2 \sum_b y_{bi} \, \sigma(z_{bi})}
        {\sum_b y_{bi} + \sigma(z_{bi})}

    over the labels :math:`\mathcal{L}_+` with an observed entry in the batch. A label without a positive entry has an
    F1 of 0 whatever its scores, so that large batches suit rare labels.

    Args:
        logits, y, label_smoothing: As in :func:`masked_bce`, with its shapes.
        average (str, optional): :obj:`"macro"` for the mean over labels, :obj:`"micro"` for the F1 of all entries
            together. (default: :obj:`"macro"`)

    Raises:
        ValueError: If the shapes differ or an option is out of range.
    """
    check_choice("average", average, ("macro", "micro"))
    entries = read_observed(logits, y, label_smoothing)
    p, target = (torch.where(entries.mask, values, 0.0) for values in (entries.logits.sigmoid(), entries.target))
    dims = (0,) if average == "macro" else (0, 1)
    both, either = (p * target).sum(dims), (p + target).sum(dims)
    present = entries.mask.any(dim=0) if average == "macro" else entries.mask.any()
    # A saturated score may round to zero, where there is no F1.
    loss = 1.0 - 2.0 * both / either.clamp(min=torch.finfo(either.dtype).eps)
    return torch.where(present, loss, 0.0).sum() / present.sum().clamp(min=1)
