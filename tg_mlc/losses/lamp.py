"""LaMP's loss: any of the losses, with terms for intermediate states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from tg_mlc._options import check_number
from tg_mlc.losses.bce import masked_bce


def lamp_loss(
    logits: Tensor,
    y: Tensor,
    intermediate: Sequence[Tensor] = (),
    intermediate_weight: float = 0.0,
    *,
    loss: Callable[..., Tensor] = masked_bce,
    **options: Any,
) -> Tensor:
    r"""The loss with intermediate terms from the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper.

    .. math::
        \mathcal{L} = \ell(\mathbf{z}, \mathbf{y}) + \lambda \sum_s \ell(\mathbf{z}^{(s)}, \mathbf{y})

    where :math:`\mathbf{z}^{(s)}` is the readout of the intermediate label state :math:`s`. The paper takes the binary
    cross-entropy as :math:`\ell` and chooses :math:`\lambda` from 0, 0.1, 0.2 and 0.3 on validation data.

    Args:
        logits (Tensor): Scores of the final label states before the sigmoid.
        y (Tensor): Targets: 0, 1, or NaN for unknown.
        intermediate (Sequence[Tensor], optional): Scores of the intermediate label states, the final ones left out.
            (default: :obj:`()`)
        intermediate_weight (float, optional): The weight :math:`\lambda`. (default: :obj:`0.0`)
        loss (Callable, optional): The loss :math:`\ell` of each term. (default: :func:`masked_bce`)
        **options (optional): Additional arguments of :obj:`loss`.

    Shapes:
        - **input:** logits :math:`(B, L)`, targets :math:`(B, L)`, intermediate logits :math:`(B, L)` each
        - **output:** a scalar

    Raises:
        ValueError: If :obj:`intermediate_weight` is not a finite number of at least 0, or :obj:`loss` refuses its
            arguments.
    """
    check_number("intermediate_weight", intermediate_weight)
    total = loss(logits, y, **options)
    if intermediate_weight > 0.0:
        for scores in intermediate:
            total = total + intermediate_weight * loss(scores, y, **options)
    return total
