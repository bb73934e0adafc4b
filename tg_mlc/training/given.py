"""Known labels in training and prediction: drawn at random, left out of losses, returned as they were given."""

from __future__ import annotations

from copy import copy

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from tg_mlc.nn.given import given_in


def reveal(batch: Batch, max_share: float, generator: torch.Generator | None = None) -> Batch:
    """Label mask training from the `"General Multi-label Image Classification with Transformers"
    <https://arxiv.org/abs/2011.14027>`_ paper: a batch of which random labels are given.

    Of every sample a share is revealed that is drawn uniformly from 0 to :obj:`max_share`; the targets of these labels
    become NaN. Labels that are given already stay so, whether their targets are NaN or not.
    """
    y = batch.y
    device = y.device if generator is None else generator.device
    share = max_share * torch.rand(len(y), 1, generator=generator, device=device)
    drawn = torch.rand(y.shape, generator=generator, device=device) < share
    revealed = drawn.to(y.device) & ~y.isnan()
    batch = copy(batch)
    batch.given = torch.where(revealed, y, batch.get("given", torch.full_like(y, torch.nan)))
    batch.y = y.masked_fill(revealed, torch.nan)
    return batch


def without_given(model: nn.Module, batch: Batch) -> Batch:
    """The same batch with unknown targets where labels are given, as these are not to be predicted."""
    given = given_in(model, batch)
    if given is None:
        return batch
    batch = copy(batch)
    batch.y = batch.y.masked_fill(~given.isnan(), torch.nan)
    return batch


def as_given(scores: Tensor, given: Tensor | None) -> Tensor:
    """Scores with those of known labels as they were given."""
    return scores if given is None else torch.where(given.isnan(), scores, given.to(scores))
