"""Batches of the three parts of a split, in an order that depends on the seed and the epoch
alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningDataModule
from torch import Generator, Tensor
from torch.utils.data import Sampler, Subset
from torch_geometric.data import Data, Dataset, InMemoryDataset
from torch_geometric.data.data import BaseData
from torch_geometric.loader import DataLoader

from tg_mlc._options import check_count
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.inference.batches import make_loader, makes_batches


class EpochSampler(Sampler[int]):
    """Draws every sample once, in an order that is a function of the seed and the epoch alone, for
    exact resuming.

    Several processes take turns in that order, so that their batches make up those of one process
    with larger ones. One that would have a batch less than others gets a sample of another process
    as its last batch.

    Args:
        num_samples (int): Number of samples.
        seed (int): A number of at least zero.
        shuffle (bool, optional): If :obj:`False`, the order is that of the samples, and workers
            alone have the seed. (default: :obj:`True`)
        batch_size (int, optional): Number of samples per batch. (default: :obj:`1`)
        process (tuple, optional): The number of this process, and how many there are. (default:
            :obj:`(0, 1)`)

    Attributes:
        num_own_batches (int): How many batches hold no sample of another process.
        generator (torch.Generator): Source of the seeds of a data loader's workers, a function of
            both as well.
    """

    def __init__(
        self,
        num_samples: int,
        seed: int,
        *,
        shuffle: bool = True,
        batch_size: int = 1,
        process: tuple[int, int] = (0, 1),
    ) -> None:
        if seed < 0:
            raise ValueError(f"Expected 'seed' to be at least 0 (got {seed})")
        self.num_samples = num_samples
        self.seed = seed
        self.shuffle = shuffle
        self.process = process
        shares = [
            -(-len(range(rank, num_samples, process[1])) // batch_size) for rank in (0, process[0])
        ]
        self.num_own_batches = shares[1]
        self.is_short = shares[1] < shares[0]
        self.generator = Generator()
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch; Lightning calls this before each."""
        self.epoch = epoch
        self.generator.manual_seed(int(self._random().integers(2**63)))

    def _random(self) -> np.random.Generator:
        return np.random.default_rng((self.seed, self.epoch))

    def __iter__(self) -> Iterator[int]:
        order = (
            self._random().permutation(self.num_samples).tolist()
            if self.shuffle
            else range(self.num_samples)
        )
        return iter([*order[self.process[0] :: self.process[1]], *order[: int(self.is_short)]])

    def __len__(self) -> int:
        return len(range(*self.process[:1], self.num_samples, self.process[1])) + self.is_short


class _Samples(Dataset):
    """The samples of a list, or of another data set, as a data set of PyG whose targets are of
    shape :math:`(1, L)`."""

    def __init__(self, samples: Any) -> None:
        given = samples if isinstance(samples, (list, tuple)) else []
        if isinstance(samples, torch.utils.data.Dataset) and len(samples):  # type: ignore[arg-type]
            given = [samples[0]]
        types = [type(sample).__name__ for sample in given if not isinstance(sample, BaseData)]
        if types or not given:
            empty = "an empty " if hasattr(samples, "__len__") and not len(samples) else ""
            got = empty + " of ".join([type(samples).__name__, *types[:1]])
            hint = "'from_arrays' and the other readers of 'tg_mlc.data' make one"
            raise ValueError(
                f"Expected 'dataset' to be a data set of PyG, or a list of Data (got {got}); {hint}"
            )
        super().__init__()
        self.samples, self.label_names = samples, getattr(samples, "label_names", None)
        self.num_labels = _target_of(given[0], 0).numel()
        # of a data set on disk, each is looked at when it is read
        for place, sample in enumerate(given):
            self._checked(sample, place)

    def len(self) -> int:
        return len(self.samples)

    def get(self, idx: int) -> BaseData:
        return self._checked(self.samples[idx], idx)

    def _checked(self, sample: BaseData, place: int) -> BaseData:
        y = _target_of(sample, place)
        if y.numel() != self.num_labels:
            raise ValueError(
                f"Expected 'y' of {self.num_labels} labels in every sample, as in the first one (got {y.numel()} in "
                f"sample {place}); pass NaN for labels that are unknown"
            )
        sample = copy(sample)
        sample.y = y
        return sample


def _target_of(sample: BaseData, place: int) -> Tensor:
    """The target of a sample as a row, :math:`(1, L)`."""
    y = getattr(sample, "y", None)
    if (
        not isinstance(y, Tensor)
        or y.numel() == 0
        or y.dim() not in (1, 2)
        or (y.dim() == 2 and y.size(0) != 1)
    ):
        got = f"{list(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
        raise ValueError(
            f"Expected 'y' of shape [L] or [1, L] in every sample, one number for each label (got {got} in sample "
            f"{place}); pass Data(..., y=torch.tensor([0.0, 1.0, float('nan')])), with NaN for an unknown label"
        )
    y = y.reshape(1, -1).float()
    if not ((y == 0) | (y == 1) | y.isnan()).all():
        raise ValueError(
            f"Expected 'y' to hold 0, 1 and NaN (got {y.flatten().tolist()[:6]} in sample {place}); for classes, "
            f"pass torch.nn.functional.one_hot(y, num_classes)"
        )
    return y


def as_samples(dataset: Any) -> Any:
    """A data set of PyG whose targets are rows, :math:`(1, L)`, of any samples; one that makes
    batches stays."""
    y = dataset._data.get("y") if isinstance(dataset, InMemoryDataset) else None
    places = (
        (dataset.slices or {}).get("y")
        if isinstance(y, Tensor) and y.dim() == 2 and y.is_floating_point()
        else None
    )
    has_rows = isinstance(places, Tensor) and torch.equal(places, torch.arange(places.numel()))
    is_ready = (
        has_rows or isinstance(dataset, (_Samples, MultiLabelDataset)) or makes_batches(dataset)
    )
    return dataset if is_ready else _Samples(dataset)


class MultiLabelDataModule(LightningDataModule):
    """Loads the parts of a split of a PyG data set.

    Checkpoints hold the split's hash and the seed; training can only be resumed with the same.

    Args:
        dataset (Dataset or list of Data): Samples with :obj:`y` of shape :math:`(L)` or :math:`(1,
            L)`: 0, 1, or NaN for unknown. If a data set has ``__getitems__``, that makes a batch of
            many samples at once, as :class:`~tg_mlc.sequences.NextSetDataset` does.
        split (Split): Which of them to train, validate and test with.
        batch_size (int, optional): Number of samples per batch. (default: :obj:`32`)
        num_workers (int, optional): Number of processes that load batches; small samples are loaded
            fastest without. (default: :obj:`0`)
        seed (int, optional): Decides the order of the training samples. (default: :obj:`0`)

    Raises:
        ValueError: If :obj:`dataset` is something else, the split does not fit, or leaves nothing
            to train or validate with, or a size is less than 1.
    """

    def __init__(
        self,
        dataset: Dataset | Sequence[Data],
        split: Split,
        batch_size: int = 32,
        *,
        num_workers: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.dataset = as_samples(dataset)
        if not isinstance(split, Split):
            raise ValueError(
                f"Expected 'split' to be a Split (got {type(split).__name__}); see tg_mlc.data.random_split"
            )
        split.check_fits(len(self.dataset))
        if 0 in split.sizes[:2]:
            raise ValueError(
                f"Expected a split with samples to train and to validate with (got {split})"
            )
        check_count("batch_size", batch_size)
        self.split = split
        self.batch_size = batch_size
        self.num_workers = num_workers
        self.seed = seed

    def train_dataloader(self) -> DataLoader:
        """Returns the training samples, in the order of the epoch that a training has reached."""
        sampler = self._sampler(self.split.train)
        if self.trainer is not None:
            # Workers fetch the first batches of a resumed training before Lightning says which
            # epoch it is.
            sampler.set_epoch(self.trainer.fit_loop.epoch_progress.current.processed)  # type: ignore[attr-defined]
        return self._loader(self.split.train, sampler=sampler, generator=sampler.generator)

    def val_dataloader(self) -> DataLoader:
        """Returns the validation samples, in order."""
        sampler = self._sampler(self.split.val, shuffle=False)
        return self._loader(self.split.val, sampler=sampler, generator=sampler.generator)

    def test_dataloader(self) -> DataLoader:
        """Returns the test samples, in order."""
        return self._loader(self.split.test)

    def predict_dataloader(self) -> DataLoader:
        """Returns the test samples, in order."""
        return self.test_dataloader()

    def _sampler(self, part: Tensor, *, shuffle: bool = True) -> EpochSampler:
        of_trainer = (
            {}
            if self.trainer is None
            else {"process": (self.trainer.global_rank, self.trainer.world_size)}
        )
        return EpochSampler(
            part.numel(), self.seed, shuffle=shuffle, batch_size=self.batch_size, **of_trainer
        )

    def _loader(self, part: Tensor, **options: Any) -> Any:
        # Without a generator of its own a loader draws from the global one, and evaluation would
        # change training.
        options.setdefault("generator", Generator())
        options |= {"batch_size": self.batch_size, "num_workers": self.num_workers}
        return make_loader(self.part(part), **options)

    def part(self, indices: Tensor) -> Any:
        """Returns some of the samples; those of a data set that makes batches make batches, too."""
        return (
            self.dataset[indices]
            if isinstance(self.dataset, Dataset)
            else Subset(self.dataset, indices.tolist())
        )

    def state_dict(self) -> dict[str, Any]:
        """Returns what the order of the training samples depends on."""
        num_processes = 1 if self.trainer is None else self.trainer.world_size
        state = {"split": self.split.hash, "seed": self.seed, "batch_size": self.batch_size}
        return {**state, "num_processes": num_processes}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Refuses data with another split, seed or size of batches than those that a training began
        with."""
        present = self.state_dict()
        if changed := sorted(key for key, value in state_dict.items() if present[key] != value):
            raise ValueError(
                f"Expected the data of the checkpoint, {state_dict} (got {present}, which differs in {changed}); "
                f"resume with the same data, or start anew"
            )
