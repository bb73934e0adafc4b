"""Cross-entropy of sequences of symbols."""

from __future__ import annotations

from torch import Tensor

from tg_mlc._options import check_number


def sequence_loss(log_probs: Tensor, symbols: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    r"""The cross-entropy of label sequences, averaged over their symbols up to the first stop.

    .. math::
        \mathcal{L} = - \frac{1}{|\mathcal{S}|} \sum_{(b, i) \in \mathcal{S}} (1 - \epsilon) \log p_{bi}(y_{bi}) +
        \frac{\epsilon}{|\mathcal{A}_{bi}|} \sum_{s \in \mathcal{A}_{bi}} \log p_{bi}(s)

    with :math:`\mathcal{A}_{bi}` the symbols that may come at place :math:`i`, those of a probability above zero.

    Args:
        log_probs (torch.Tensor): The log-probabilities of all symbols at each place, minus infinity where a symbol may
            not come.
        symbols (torch.Tensor): The sequences, of labels and, last of all symbols, the stop.
        label_smoothing (float, optional): The share :math:`\epsilon` of the targets that is spread evenly.
            (default: :obj:`0.0`)

    Shapes:
        - **input:** log-probabilities :math:`(B, n, L + 1)`, symbols :math:`(B, n)`
        - **output:** a scalar

    Raises:
        ValueError: If :obj:`label_smoothing` is not in :math:`[0, 1)`.
    """
    check_number("label_smoothing", label_smoothing, below=1.0)
    stops = symbols == log_probs.size(-1) - 1
    counted = (stops.cumsum(dim=1) - stops.long()) == 0
    losses = -log_probs.gather(2, symbols.unsqueeze(-1)).squeeze(-1)
    if label_smoothing > 0.0:
        excluded = log_probs.isneginf()
        even = -log_probs.masked_fill(excluded, 0.0).sum(dim=-1) / (~excluded).sum(dim=-1)
        losses = (1.0 - label_smoothing) * losses + label_smoothing * even
    return losses[counted].mean()
