"""Label sets as sequences of symbols: the labels :math:`0, ..., L - 1`, and a stop that also begins every sequence."""

from __future__ import annotations

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from tg_mlc._options import check_choice

LabelOrder = Literal["frequency", "reverse", "given", "random"]


def label_ranks(y: Tensor, order: LabelOrder) -> Tensor:
    r"""Places of all labels in an order.

    Args:
        y (torch.Tensor): The training labels: 0, 1, or NaN for unknown.
        order (str): :obj:`"frequency"` from the most to the least frequent label, :obj:`"reverse"` the other way
            round, :obj:`"given"` as the data set has them, :obj:`"random"` as PyTorch's generator draws it once.

    Shapes:
        - **input:** training labels :math:`(N, L)`
        - **output:** ranks :math:`(L)`

    Raises:
        ValueError: If :obj:`order` is unknown.
    """
    check_choice("label_order", order, get_args(LabelOrder))
    if order == "random":
        return torch.randperm(y.size(1))
    if order == "given":
        return torch.arange(y.size(1))
    labels = y.nansum(dim=0).argsort(descending=order == "frequency", stable=True)
    return labels.argsort()


def label_sequences(y: Tensor, ranks: Tensor) -> Tensor:
    r"""Sequences of the positive labels of every sample in an order, each filled up with at least one stop symbol.

    Args:
        y (torch.Tensor): The labels: 0, 1, or NaN for unknown, which are in no sequence.
        ranks (torch.Tensor): The place of every label in the order.

    Shapes:
        - **input:** labels :math:`(B, L)`, ranks :math:`(L)`
        - **output:** symbols :math:`(B, n)`, where no sample has more than :math:`n - 1` labels
    """
    stop = y.size(1)
    positive = y == 1
    length = int(positive.sum(dim=1).max()) + 1
    places = F.pad(torch.where(positive, ranks, stop), (0, 1), value=stop).sort(dim=1).values[:, :length]
    return F.pad(ranks.argsort(), (0, 1), value=stop)[places]


def shifted(symbols: Tensor, stop: int) -> Tensor:
    """The symbol before each: what a decoder is given to predict it, first of all the stop."""
    return F.pad(symbols[:, :-1], (1, 0), value=stop)


def next_log_probs(logits: Tensor, symbols: Tensor, unknown: Tensor | None = None) -> Tensor:
    r"""The log-probabilities of all symbols at each place of given sequences, where no label comes twice.

    Args:
        logits (torch.Tensor): The logits of all symbols at each place.
        symbols (torch.Tensor): The sequences.
        unknown (torch.Tensor, optional): Labels that nobody knows of a sample, a mask: they compete with no other, so
            that the loss says nothing about them. (default: :obj:`None`)

    Shapes:
        - **input:** logits :math:`(B, n, L + 1)`, symbols :math:`(B, n)`, mask :math:`(B, L)`
        - **output:** log-probabilities :math:`(B, n, L + 1)`
    """
    stop = logits.size(-1) - 1
    excluded = torch.zeros_like(logits, dtype=torch.bool).scatter_(2, shifted(symbols, stop).unsqueeze(-1), True)
    excluded = excluded.cumsum(dim=1) > 0
    if unknown is not None:
        excluded[..., :stop] |= unknown.unsqueeze(1)
    excluded[..., stop] = False
    return logits.float().masked_fill(excluded, -torch.inf).log_softmax(dim=-1)
