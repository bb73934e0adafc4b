"""Batches of targets, each made at once."""

from __future__ import annotations

from typing import Any

from torch import Generator, Tensor
from torch.utils.data import DataLoader, Subset
from torch_geometric.data import Batch

from tg_mlc.training import MultiLabelDataModule


class NextSetDataModule(MultiLabelDataModule):
    """Loads the parts of a split of a :class:`NextSetDataset`, for :func:`~tg_mlc.training.fit`.

    Arguments, order and resuming are those of :class:`~tg_mlc.training.MultiLabelDataModule`; only that a batch is made
    of all of its targets at once.
    """

    def _loader(self, part: Tensor, **options: Any) -> DataLoader[Batch]:
        options.setdefault("generator", Generator())
        targets = Subset(self.dataset, part.tolist())
        return DataLoader(targets, self.batch_size, num_workers=self.num_workers, collate_fn=_as_it_is, **options)


def _as_it_is(batch: Batch) -> Batch:
    return batch
