"""Binary cross-entropy over the known labels, alone and with LaMP's intermediate terms."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from tg_mlc._options import check_number


def masked_bce(
    logits: Tensor, y: Tensor, *, pos_weight: Tensor | float | None = None, label_smoothing: float = 0.0
) -> Tensor:
    r"""The binary cross-entropy of logits, averaged over the known labels.

    .. math::
        \mathcal{L} = - \frac{1}{|\mathcal{K}|} \sum_{(b, i) \in \mathcal{K}} w_i \, y_{bi} \log \sigma(z_{bi}) +
        (1 - y_{bi}) \log (1 - \sigma(z_{bi}))

    with :math:`\mathcal{K}` the entries of :obj:`y` that are not NaN. Unknown entries get a gradient of exactly zero;
    if nothing is known, the loss is zero. Half-precision logits are promoted to float32 first. Nothing here waits for
    the device, so values of :obj:`y` are not checked (and may be soft targets).

    Args:
        logits (Tensor): Scores before the sigmoid.
        y (Tensor): Targets: 0, 1, or NaN for unknown.
        pos_weight (Tensor or float, optional): Weight of positive entries, one for all labels or one per label. As in
            PyTorch, the mean still divides by the number of entries. (default: :obj:`None`)
        label_smoothing (float, optional): With :math:`\epsilon`, targets become :math:`\epsilon / 2` and
            :math:`1 - \epsilon / 2`. (default: :obj:`0.0`)

    Shapes:
        - **input:** logits :math:`(B, L)`, targets :math:`(B, L)`
        - **output:** a scalar

    Raises:
        ValueError: If the shapes differ or :obj:`label_smoothing` is not in :math:`[0, 1)`.
    """
    _check(logits, y, label_smoothing)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    known = ~torch.isnan(y)
    # Masking the inputs rather than the result keeps NaN and infinity out of the gradient (0 * inf is NaN).
    target = torch.where(known, y, 0.0).to(logits.dtype)
    logits = torch.where(known, logits, 0.0)
    target = target * (1.0 - label_smoothing) + 0.5 * label_smoothing
    if pos_weight is not None:
        pos_weight = torch.as_tensor(pos_weight, dtype=logits.dtype, device=logits.device)
    losses = F.binary_cross_entropy_with_logits(logits, target, pos_weight=pos_weight, reduction="none")
    return torch.where(known, losses, 0.0).sum() / known.sum().clamp(min=1)


def lamp_loss(
    logits: Tensor,
    y: Tensor,
    intermediate: Sequence[Tensor] = (),
    intermediate_weight: float = 0.0,
    *,
    pos_weight: Tensor | float | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""The loss with intermediate terms from the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper.

    .. math::
        \mathcal{L} = \textrm{BCE}(\mathbf{z}, \mathbf{y}) + \lambda \sum_s \textrm{BCE}(\mathbf{z}^{(s)}, \mathbf{y})

    where :math:`\mathbf{z}^{(s)}` is the readout of the intermediate label state :math:`s` and each term is
    :func:`masked_bce`. The paper chooses :math:`\lambda` from 0, 0.1, 0.2 and 0.3 on validation data.

    Args:
        logits (Tensor): Scores of the final label states before the sigmoid.
        y (Tensor): Targets: 0, 1, or NaN for unknown.
        intermediate (Sequence[Tensor], optional): Scores of the intermediate label states, the final ones left out.
            (default: :obj:`()`)
        intermediate_weight (float, optional): The weight :math:`\lambda`. (default: :obj:`0.0`)
        pos_weight (Tensor or float, optional): As in :func:`masked_bce`. (default: :obj:`None`)
        label_smoothing (float, optional): As in :func:`masked_bce`. (default: :obj:`0.0`)

    Shapes:
        - **input:** logits :math:`(B, L)`, targets :math:`(B, L)`, intermediate logits :math:`(B, L)` each
        - **output:** a scalar

    Raises:
        ValueError: If a shape differs from that of :obj:`y`, :obj:`intermediate_weight` is not a finite number of at
            least 0, or :obj:`label_smoothing` is not in :math:`[0, 1)`.
    """
    check_number("intermediate_weight", intermediate_weight)

    def bce(scores: Tensor) -> Tensor:
        return masked_bce(scores, y, pos_weight=pos_weight, label_smoothing=label_smoothing)

    loss = bce(logits)
    if intermediate_weight > 0.0:
        for scores in intermediate:
            loss = loss + intermediate_weight * bce(scores)
    return loss


def _check(logits: Tensor, y: Tensor, label_smoothing: float) -> None:
    if logits.shape != y.shape:
        raise ValueError(f"Expected logits and 'y' of one shape (got {tuple(logits.shape)} and {tuple(y.shape)})")
    check_number("label_smoothing", label_smoothing, below=1.0)
