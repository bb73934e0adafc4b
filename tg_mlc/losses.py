"""Multi-label losses that treat a NaN target as unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from tg_mlc._options import check_choice, check_number, check_share

__all__ = [
    "asymmetric_loss",
    "focal_loss",
    "lamp_loss",
    "listwise_loss",
    "masked_bce",
    "sequence_loss",
    "soft_f1_loss",
]


class Observed(NamedTuple):
    """Logits and targets in one precision, with a mask of observed targets."""

    logits: Tensor  #: ``[B, L]``, 0 where the target is unknown
    target: Tensor  #: ``[B, L]``, smoothed
    mask: Tensor  #: ``[B, L]``, whether the target is observed

    def mean(self, losses: Tensor) -> Tensor:
        """Returns the mean of losses :math:`(B, L)` over observed targets, or 0 without any."""
        return torch.where(self.mask, losses, 0.0).sum() / self.mask.sum().clamp(min=1)


def read_observed(logits: Tensor, y: Tensor, label_smoothing: float) -> Observed:
    """Masks unknown entries in the inputs. A mask on the loss could give 0 * infinity = NaN."""
    if logits.shape != y.shape:
        got = f"{tuple(logits.shape)} and {tuple(y.shape)}"
        raise ValueError(f"Expected logits and 'y' of one shape (got {got})")
    check_number("label_smoothing", label_smoothing, below=1.0)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    mask = ~torch.isnan(y)
    target = torch.where(mask, y, 0.0).to(logits.dtype)
    check_range("y", target, 1, "0, 1 or NaN (unknown), or a probability between 0 and 1")
    target = target * (1.0 - label_smoothing) + 0.5 * label_smoothing
    return Observed(torch.where(mask, logits, 0.0), target, mask)


def check_range(name: str, values: Tensor, most: int, expected: str) -> None:
    """Raises if a target is outside of [0, ``most``]; on a GPU by an asynchronous assertion."""
    traced = torch.compiler.is_compiling() or is_functorch_wrapped_tensor(values)
    if traced or values.is_meta or not values.numel():
        return
    least, greatest = torch.aminmax(values.detach())
    if values.is_cuda:
        valid = (least >= 0) & (greatest <= most)
        torch._assert_async(valid, f"Expected '{name}' to hold {expected}")
    elif least < 0 or greatest > most:
        index = ((values < 0) | (values > most)).nonzero()[0].tolist()
        got = f"{values[tuple(index)].item()} at {index}"
        raise ValueError(f"Expected '{name}' to hold {expected} (got {got})")


def masked_bce(
    logits: Tensor,
    y: Tensor,
    *,
    pos_weight: Tensor | Sequence[float] | float | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""The binary cross-entropy of logits, averaged over the observed labels.

    .. math::
        \mathcal{L} = - \frac{1}{|\mathcal{K}|} \sum_{(b, i) \in \mathcal{K}} w_i \, y_{bi} \log
        \sigma(z_{bi}) + (1 - y_{bi}) \log (1 - \sigma(z_{bi}))

    where :math:`\mathcal{K}` are the entries of :obj:`y` that are not NaN. Unknown entries get a
    gradient of zero; without an observed entry, the loss is zero. Half-precision logits are
    promoted to float32. An assertion checks targets on a GPU; compiled code does not check them.

    Args:
        logits (Tensor): Scores before the sigmoid.
        y (Tensor): Targets: 0, 1, a probability between them, or NaN for unknown.
        pos_weight (Tensor, Sequence or float, optional): Weight of positive entries, for all labels
            or per label. (default: :obj:`None`)
        label_smoothing (float, optional): With :math:`\epsilon`, targets become
            :math:`\epsilon / 2` and :math:`1 - \epsilon / 2`. (default: :obj:`0.0`)

    Shapes:
        - **input:** logits :math:`(B, L)`, targets :math:`(B, L)`
        - **output:** a scalar

    Raises:
        ValueError: If shapes differ, a target is neither NaN nor in :math:`[0, 1]`, an option is
            out of range, or the number of weights is neither 1 nor :math:`L`.
    """
    entries = read_observed(logits, y, label_smoothing)
    if pos_weight is not None:
        weights = pos_weight if isinstance(pos_weight, Tensor | Sequence) else [pos_weight]
        if not isinstance(weights, Tensor):  # Reading a tensor would wait for the device.
            for weight in weights:
                check_number("pos_weight", weight)
        shape = list(weights.shape) if isinstance(weights, Tensor) else [len(weights)]
        if shape not in ([], [1], [logits.size(-1)]):
            expected = f"'pos_weight' to be one number or {logits.size(-1)}, one per label"
            raise ValueError(f"Expected {expected} (got shape {shape})")
        pos_weight = torch.as_tensor(pos_weight, dtype=entries.logits.dtype, device=logits.device)
    options: Any = {"pos_weight": pos_weight, "reduction": "none"}
    bce = F.binary_cross_entropy_with_logits
    return entries.mean(bce(entries.logits, entries.target, **options))


def lamp_loss(
    logits: Tensor,
    y: Tensor,
    intermediate: Sequence[Tensor] = (),
    intermediate_weight: float = 0.0,
    *,
    loss: Callable[..., Tensor] = masked_bce,
    **options: Any,
) -> Tensor:
    r"""The loss on final and intermediate label states, from the `"Neural Message Passing for
    Multi-Label Classification" <https://arxiv.org/abs/1904.08049>`_ paper.

    .. math::
        \mathcal{L} = \ell(\mathbf{z}, \mathbf{y}) + \lambda \sum_s \ell(\mathbf{z}^{(s)},
        \mathbf{y})

    with the logits :math:`\mathbf{z}^{(s)}` of the intermediate label state :math:`s`. The paper
    uses the binary cross-entropy, and chooses :math:`\lambda` from 0 to 0.3 by validation.

    Args:
        logits (Tensor): Scores of the final label states before the sigmoid.
        y (Tensor): Targets: 0, 1, or NaN for unknown.
        intermediate (Sequence[Tensor], optional): Scores of intermediate states.
            (default: :obj:`()`)
        intermediate_weight (float, optional): The weight :math:`\lambda`. (default: :obj:`0.0`)
        loss (Callable, optional): The loss :math:`\ell` of each term. (default: :func:`masked_bce`)
        **options (optional): Additional arguments of :obj:`loss`.

    Shapes:
        - **input:** logits, targets and each intermediate logits :math:`(B, L)`
        - **output:** a scalar

    Raises:
        ValueError: If :obj:`intermediate_weight` is negative, or :obj:`loss` raises.
    """
    check_number("intermediate_weight", intermediate_weight)
    total = loss(logits, y, **options)
    if intermediate_weight > 0.0:
        for scores in intermediate:
            total = total + intermediate_weight * loss(scores, y, **options)
    return total


def listwise_loss(
    logits: Tensor, y: Tensor, *, weight: float = 5.0, label_smoothing: float = 0.0
) -> Tensor:
    r"""The loss :func:`masked_bce`, plus a cross-entropy between distributions over the observed
    labels of each sample: ListNet of the `"Learning to Rank: From Pairwise Approach to Listwise
    Approach" <https://dl.acm.org/doi/10.1145/1273496.1273513>`_ paper.

    .. math::
        \mathcal{L} = \mathcal{L}_{\textrm{BCE}} - \frac{\lambda}{B L} \sum_{b} \sum_{i}
        \frac{y_{bi}}{\sum_j y_{bj}} \log \frac{e^{z_{bi}}}{\sum_j e^{z_{bj}}}

    All samples have equal weight in the second term, which is 0 for samples without a label.

    Args:
        logits, y, label_smoothing: As in :func:`masked_bce`, with its shapes and errors.
        weight (float, optional): The weight :math:`\lambda`. (default: :obj:`5.0`)
    """
    check_number("weight", weight)
    entries = read_observed(logits, y, label_smoothing)
    weights = entries.target * entries.mask
    weights = weights / weights.sum(dim=1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
    # The product of -inf and a weight of zero would be NaN.
    lowest = torch.finfo(weights.dtype).min / 2
    log_softmax = entries.logits.masked_fill(~entries.mask, lowest).log_softmax(dim=1)
    ranking = -torch.where(weights > 0, weights * log_softmax, 0.0).sum() / y.numel()
    bce = F.binary_cross_entropy_with_logits
    return entries.mean(bce(entries.logits, entries.target, reduction="none")) + weight * ranking


def sequence_loss(log_probs: Tensor, symbols: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    r"""The cross-entropy of label sequences, averaged over their symbols up to the first stop.

    .. math::
        \mathcal{L} = - \frac{1}{|\mathcal{S}|} \sum_{(b, i) \in \mathcal{S}} (1 - \epsilon) \log
        p_{bi}(y_{bi}) + \frac{\epsilon}{|\mathcal{A}_{bi}|} \sum_{s \in \mathcal{A}_{bi}} \log
        p_{bi}(s)

    with the set :math:`\mathcal{A}_{bi}` of symbols of nonzero probability at step :math:`i`.

    Args:
        log_probs (torch.Tensor): Log-probabilities of symbols, minus infinity if not allowed.
        symbols (torch.Tensor): Sequences of label indices; the index :math:`L` is the stop.
        label_smoothing (float, optional): The fraction :math:`\epsilon`. (default: :obj:`0.0`)

    Shapes:
        - **input:** log-probabilities :math:`(B, n, L + 1)`, symbols :math:`(B, n)`
        - **output:** a scalar

    Raises:
        ValueError: If :obj:`label_smoothing` or a symbol is out of range.
    """
    check_number("label_smoothing", label_smoothing, below=1.0)
    last = log_probs.size(-1) - 1
    check_range("symbols", symbols, last, f"numbers of labels, or {last} to stop")
    stops = symbols == last
    is_counted = (stops.cumsum(dim=1) - stops.long()) == 0
    losses = -log_probs.gather(2, symbols.unsqueeze(-1)).squeeze(-1)
    if label_smoothing > 0.0:
        excluded = log_probs.isneginf()
        uniform_losses = -log_probs.masked_fill(excluded, 0.0).sum(dim=-1) / (~excluded).sum(dim=-1)
        losses = (1.0 - label_smoothing) * losses + label_smoothing * uniform_losses
    return losses[is_counted].mean()


def focal_loss(
    logits: Tensor,
    y: Tensor,
    *,
    gamma: float = 2.0,
    alpha: float | None = 0.25,
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""The focal loss from the `"Focal Loss for Dense Object Detection"
    <https://arxiv.org/abs/1708.02002>`_ paper, averaged over the observed labels.

    .. math::
        \ell = - \alpha \, y \, (1 - p)^{\gamma} \log p - (1 - \alpha) (1 - y) \, p^{\gamma} \log (1
        - p), \qquad
        p = \sigma(z)

    Args:
        logits, y, label_smoothing: As in :func:`masked_bce`, with its shapes and errors.
        gamma (float, optional): Larger values down-weight easy entries. (default: :obj:`2.0`)
        alpha (float, optional): Weight :math:`\alpha` of positives. (default: :obj:`0.25`)
    """
    check_number("gamma", gamma)
    entries = read_observed(logits, y, label_smoothing)
    z, target = entries.logits, entries.target
    positive = _sigmoid_power(-z, gamma) * F.logsigmoid(z)
    negative = _sigmoid_power(z, gamma) * F.logsigmoid(-z)
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
        The paper's defaults suit pretrained networks: they scale the loss of negatives by 0.01 or
        less. Train with :func:`masked_bce` first (all three options 0), then raise
        :obj:`gamma_neg`. Scores are not probabilities, so thresholds have to be tuned.

    Args:
        logits, y, label_smoothing: As in :func:`masked_bce`, with its shapes and errors.
        gamma_neg (float, optional): Exponent :math:`\gamma_-`. (default: :obj:`4.0`)
        gamma_pos (float, optional): Exponent :math:`\gamma_+`. (default: :obj:`0.0`)
        margin (float, optional): Negatives below :math:`m` do not count. (default: :obj:`0.05`)
    """
    check_number("gamma_neg", gamma_neg)
    check_number("gamma_pos", gamma_pos)
    check_number("margin", margin, below=1.0)
    entries = read_observed(logits, y, label_smoothing)
    z, target = entries.logits, entries.target
    positive = _sigmoid_power(-z, gamma_pos) * F.logsigmoid(z)
    if margin == 0.0:  # log(1 - p) would be -inf where p rounds to 1.
        negative = _sigmoid_power(z, gamma_neg) * F.logsigmoid(-z)
    else:
        # With an exponent below 1, the gradient at 0 is infinite.
        shifted = (z.sigmoid() - margin).clamp(min=torch.finfo(z.dtype).tiny)
        negative = shifted**gamma_neg * (-shifted).log1p()
    return entries.mean(-target * positive - (1.0 - target) * negative)


def _sigmoid_power(z: Tensor, gamma: float) -> Tensor:
    """Returns a power of the sigmoid. Its gradient stays finite where the sigmoid is tiny."""
    return (gamma * F.logsigmoid(z)).exp()


def soft_f1_loss(
    logits: Tensor,
    y: Tensor,
    *,
    average: Literal["macro", "micro"] = "macro",
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""One minus the F1 of a batch, with probabilities in place of decisions: the sigmoid F1 of
    the `"sigmoidF1: A Smooth F1 Score Surrogate Loss for Multilabel Classification"
    <https://arxiv.org/abs/2108.10566>`_ paper with its :math:`\beta = 1` and :math:`\eta = 0`.

    .. math::
        \mathcal{L} = 1 - \frac{1}{|\mathcal{L}_+|} \sum_{i \in \mathcal{L}_+} \frac{2 \sum_b y_{bi}
        \, \sigma(z_{bi})} {\sum_b y_{bi} + \sigma(z_{bi})}

    over the labels :math:`\mathcal{L}_+` with an observed entry. A label without a positive entry
    has an F1 of 0, so rare labels need large batches.

    Args:
        logits, y, label_smoothing: As in :func:`masked_bce`, with its shapes and errors.
        average (str, optional): :obj:`"macro"` or :obj:`"micro"`. (default: :obj:`"macro"`)
    """
    check_choice("average", average, ("macro", "micro"))
    entries = read_observed(logits, y, label_smoothing)
    p = torch.where(entries.mask, entries.logits.sigmoid(), 0.0)
    target = torch.where(entries.mask, entries.target, 0.0)
    dims = (0,) if average == "macro" else (0, 1)
    intersection, total = (p * target).sum(dims), (p + target).sum(dims)
    present = entries.mask.any(dim=0) if average == "macro" else entries.mask.any()
    # Saturated scores may round to zero; the F1 would be 0 / 0.
    loss = 1.0 - 2.0 * intersection / total.clamp(min=torch.finfo(total.dtype).eps)
    return torch.where(present, loss, 0.0).sum() / present.sum().clamp(min=1)
