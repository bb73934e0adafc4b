"""Loss of the order of labels within a sample, beside that of each label by itself."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tg_mlc._options import check_number
from tg_mlc.losses._observed import read_known


def listwise_loss(logits: Tensor, y: Tensor, *, weight: float = 5.0, label_smoothing: float = 0.0) -> Tensor:
    r"""The binary cross-entropy of :func:`masked_bce`, plus the cross-entropy of the known labels of each sample as one
    distribution: ListNet of the `"Learning to Rank: From Pairwise Approach to Listwise Approach"
    <https://dl.acm.org/doi/10.1145/1273496.1273513>`_ paper.

    .. math::
        \mathcal{L} = \mathcal{L}_{\textrm{BCE}} - \frac{\lambda}{B L} \sum_{b} \sum_{i} \frac{y_{bi}}{\sum_j y_{bj}}
        \log \frac{e^{z_{bi}}}{\sum_j e^{z_{bj}}}

    All samples count alike in the second term, as they do in recall at :math:`k`; in the first one, large sets count
    more. Samples without a label have no second term.

    Args:
        logits (Tensor): Scores before the sigmoid.
        y (Tensor): Targets: 0, 1, or NaN for unknown.
        weight (float, optional): The weight :math:`\lambda`. (default: :obj:`5.0`)
        label_smoothing (float, optional): As in :func:`masked_bce`. (default: :obj:`0.0`)

    Shapes:
        - **input:** logits :math:`(B, L)`, targets :math:`(B, L)`
        - **output:** a scalar

    Raises:
        ValueError: If the shapes differ or an option is out of range.
    """
    check_number("weight", weight)
    known = read_known(logits, y, label_smoothing)
    share = known.target * known.mask
    share = share / share.sum(dim=1, keepdim=True).clamp(min=torch.finfo(share.dtype).tiny)
    # Not -inf, whose product with a share of zero is NaN.
    log_softmax = known.logits.masked_fill(~known.mask, torch.finfo(share.dtype).min / 2).log_softmax(dim=1)
    order = -torch.where(share > 0, share * log_softmax, 0.0).sum() / y.numel()
    each = known.mean(F.binary_cross_entropy_with_logits(known.logits, known.target, reduction="none"))
    return each + weight * order
