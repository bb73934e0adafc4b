"""Batches of samples, and the logits and scores of networks for batches."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Subset
from torch_geometric.data import Batch, Data, Dataset
from torch_geometric.loader import DataLoader

from tg_mlc.data import MultiLabelDataset
from tg_mlc.nn.given import given_in


def batches_of(samples: MultiLabelDataset | Any, batch_size: int = 256) -> Any:
    """Returns samples in batches, in order."""
    if isinstance(samples, MultiLabelDataset) and len(samples) <= batch_size:
        batch = whole_batch(samples)
        if batch is not None:
            return [batch]
    # Without its own generator, a loader would change the state of the global generator.
    return make_loader(samples, batch_size=batch_size, generator=torch.Generator())


def whole_batch(samples: MultiLabelDataset) -> Batch | None:
    """Returns the batch of all samples of a data set in memory, which is collated already;
    :obj:`None` if only a loader can make the batch.

    A loader takes several times as long for the few samples of a request, because it separates
    them first.
    """
    data, slices = samples._data, samples.slices
    is_stored = type(samples).get is MultiLabelDataset.get and samples._indices is None
    if not is_stored or samples.transform is not None or type(data) is not Data or slices is None:
        return None
    if "x" not in slices or "num_nodes" in data:
        return None
    ptr, increments = slices["x"], dict[str, Tensor]()
    batch = Batch(_base_cls=Data)
    for key, value in data.to_dict().items():
        is_list = isinstance(value, list) and not any(isinstance(item, Tensor) for item in value)
        if not isinstance(value, Tensor) and not is_list:
            return None
        increments[key] = torch.zeros(len(ptr) - 1, dtype=torch.long)
        if key == "edge_index":
            increments[key] = ptr[:-1]
            batch[key] = value + ptr[:-1].repeat_interleave(slices[key].diff())
        elif isinstance(value, Tensor):
            if data.__cat_dim__(key, value) != 0 or data.__inc__(key, value) != 0:
                return None
            batch[key] = value.clone()  # A network may change it in place.
        else:
            batch[key] = value
    batch.batch = torch.arange(len(ptr) - 1).repeat_interleave(ptr.diff())
    batch.ptr = ptr.clone()
    batch._num_graphs, batch._slice_dict, batch._inc_dict = len(ptr) - 1, slices, increments
    return batch


def makes_batches(samples: Any) -> bool:
    """Returns whether a data set makes whole batches, as a NextSetDataset or its subsets do."""
    samples = whole(samples)
    return hasattr(samples, "__getitems__") and not isinstance(samples, Dataset)


def whole(samples: Any) -> Any:
    """Returns the data set that a :class:`~torch.utils.data.Subset` takes samples from."""
    while isinstance(samples, Subset):
        samples = samples.dataset
    return samples


def make_loader(samples: Any, **options: Any) -> Any:
    """Returns a loader of PyG's samples, or of whole batches if the data set makes batches."""
    if makes_batches(samples):
        return TorchDataLoader(samples, collate_fn=_unchanged, **options)
    return DataLoader(samples, **options)


def _unchanged(batch: Batch) -> Batch:  # A lambda cannot be sent to workers.
    return batch


def in_type_of(model: nn.Module, batch: Batch) -> Batch:
    """Returns a batch in the dtype of a model's weights, such as double precision."""
    dtype = next((w.dtype for w in model.parameters() if w.is_floating_point()), torch.float)
    if dtype == torch.float:
        return batch
    return copy.copy(batch).apply(lambda x: x.to(dtype) if x.is_floating_point() else x)


def outputs_of(model: nn.Module, batch: Batch) -> Tensor:
    """Returns a model's outputs. Raises unless there is a row for each sample of the batch."""
    outputs: Tensor = model(batch)
    if outputs.size()[:1] != (_size_of(batch),):
        raise rows_error(outputs, batch)
    return outputs


def _size_of(batch: Batch) -> int:
    """Returns the number of samples; a single sample has no number of graphs."""
    return int(getattr(batch, "num_graphs", 1))


def rows_error(outputs: Tensor, batch: Batch) -> ValueError:
    """Returns the error for outputs without a row for each sample of a batch."""
    expected = f"Expected a row of outputs for each of {_size_of(batch)} samples"
    reason = "'batch' does not count graphs without nodes at the end"
    hint = "pass ptr=data.ptr to LabelMessagePassing, and size=data.num_graphs to poolings"
    return ValueError(f"{expected} (got shape {list(outputs.shape)}): {reason}; {hint}")


def logits_of(model: nn.Module, batches: Iterable[Batch]) -> Tensor:
    """Returns the logits :math:`(N, L)` of batches on the CPU; the model may be on any device."""
    device = next(model.parameters()).device
    with torch.inference_mode():
        return torch.cat([outputs_of(model, batch.to(device)).cpu() for batch in batches])


def scores_of(objective: Any, model: nn.Module, batch: Batch) -> Tensor:
    """Returns the scores :math:`(B, L)` of a batch; given labels have 0 or 1."""
    scores, given = objective.scores(model, batch), given_in(model, batch)
    return scores if given is None else torch.where(given.isnan(), scores, given.to(scores))
