"""Batches of samples, and what networks make of them."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Subset
from torch_geometric.data import Batch, Dataset
from torch_geometric.loader import DataLoader

from tg_mlc.data import MultiLabelDataset
from tg_mlc.nn.given import given_in


def batches_of(samples: MultiLabelDataset | Any, batch_size: int = 256) -> Any:
    """Samples in batches, in order."""
    # Without a generator of its own, a loader draws from the global one.
    return make_loader(samples, batch_size=batch_size, generator=torch.Generator())


def makes_batches(samples: Any) -> bool:
    """Tells whether a data set makes whole batches, as a NextSetDataset or a part of one does."""
    samples = whole(samples)
    return hasattr(samples, "__getitems__") and not isinstance(samples, Dataset)


def whole(samples: Any) -> Any:
    """Returns the data set that samples are a :class:`~torch.utils.data.Subset` of, or the samples themselves."""
    while isinstance(samples, Subset):
        samples = samples.dataset
    return samples


def make_loader(samples: Any, **options: Any) -> Any:
    """Loads PyG's samples one by one, or whole batches from a data set that makes these."""
    if makes_batches(samples):
        return TorchDataLoader(samples, collate_fn=_as_it_is, **options)
    return DataLoader(samples, **options)


def _as_it_is(batch: Batch) -> Batch:  # Workers cannot take a lambda.
    return batch


def in_type_of(model: nn.Module, batch: Batch) -> Batch:
    """A batch whose numbers are of the type of a model's weights, such as double precision."""
    dtype = next(
        (weight.dtype for weight in model.parameters() if weight.is_floating_point()), torch.float
    )
    if dtype == torch.float:
        return batch
    return copy.copy(batch).apply(
        lambda value: value.to(dtype) if value.is_floating_point() else value
    )


def logits_of(model: nn.Module, batches: Iterable[Batch]) -> Tensor:
    """The logits :math:`(N, L)` of samples in batches, by a model on any device."""
    device = next(model.parameters()).device
    with torch.inference_mode():
        return torch.cat([model(batch.to(device)).cpu() for batch in batches])


def scores_of(objective: Any, model: nn.Module, batch: Batch) -> Tensor:
    """The scores :math:`(B, L)` of a batch, in which labels that are given have 0 or 1, as they were given."""
    scores, given = objective.scores(model, batch), given_in(model, batch)
    return scores if given is None else torch.where(given.isnan(), scores, given.to(scores))
