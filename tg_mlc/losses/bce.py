"""Binary cross-entropy over the known labels."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from tg_mlc._options import check_number
from tg_mlc.losses._observed import read_known


def masked_bce(
    logits: Tensor,
    y: Tensor,
    *,
    pos_weight: Tensor | Sequence[float] | float | None = None,
    label_smoothing: float = 0.0,
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
        pos_weight (Tensor, Sequence or float, optional): Weight of positive entries, one for all labels or one per
            label. As in PyTorch, the mean still divides by the number of entries. (default: :obj:`None`)
        label_smoothing (float, optional): With :math:`\epsilon`, targets become :math:`\epsilon / 2` and
            :math:`1 - \epsilon / 2`. (default: :obj:`0.0`)

    Shapes:
        - **input:** logits :math:`(B, L)`, targets :math:`(B, L)`
        - **output:** a scalar

    Raises:
        ValueError: If the shapes differ, :obj:`label_smoothing` is not in :math:`[0, 1)`, a weight is not a finite
            number of at least 0 (which is not checked of tensors), or there are neither one nor :math:`L` weights.
    """
    known = read_known(logits, y, label_smoothing)
    if pos_weight is not None:
        _check_pos_weight(pos_weight, logits.size(-1))
        pos_weight = torch.as_tensor(pos_weight, dtype=known.logits.dtype, device=logits.device)
    losses = F.binary_cross_entropy_with_logits(known.logits, known.target, pos_weight=pos_weight, reduction="none")
    return known.mean(losses)


def _check_pos_weight(pos_weight: Tensor | Sequence[float] | float, num_labels: int) -> None:
    weights = pos_weight if isinstance(pos_weight, Tensor | Sequence) else [pos_weight]
    if not isinstance(weights, Tensor):  # whose values would have to be waited for
        for weight in weights:
            check_number("pos_weight", weight)
    shape = list(weights.shape) if isinstance(weights, Tensor) else [len(weights)]
    if shape not in ([], [1], [num_labels]):
        raise ValueError(f"Expected 'pos_weight' to be one number or {num_labels}, one per label (got shape {shape})")
