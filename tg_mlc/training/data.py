"""Batches of the three parts of a split, in an order that depends on the seed and the epoch alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningDataModule
from torch import Generator, Tensor
from torch.utils.data import Sampler, Subset
from torch_geometric.data import Data, Dataset
from torch_geometric.loader import DataLoader

from tg_mlc._options import check_count
from tg_mlc.data import Split
from tg_mlc.saving.inference import make_loader


class EpochSampler(Sampler[int]):
    """Draws every sample once, in an order that is a function of the seed and the epoch alone, for exact resuming.

    Args:
        num_samples (int): Number of samples.
        seed (int): A number of at least zero.

    Attributes:
        generator (torch.Generator): Source of the seeds of a data loader's workers, a function of both as well.
    """

    def __init__(self, num_samples: int, seed: int) -> None:
        if seed < 0:
            raise ValueError(f"Expected 'seed' to be at least 0 (got {seed})")
        self.num_samples = num_samples
        self.seed = seed
        self.generator = Generator()
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch; Lightning calls this before each."""
        self.epoch = epoch
        self.generator.manual_seed(int(self._random().integers(2**63)))

    def _random(self) -> np.random.Generator:
        return np.random.default_rng((self.seed, self.epoch))

    def __iter__(self) -> Iterator[int]:
        return iter(self._random().permutation(self.num_samples).tolist())

    def __len__(self) -> int:
        return self.num_samples


class _Samples(Dataset):
    """The samples of a list, or of a part of a data set, as a data set of PyG."""

    def __init__(self, samples: Any) -> None:
        given = samples if isinstance(samples, (list, tuple)) else []
        if isinstance(samples, torch.utils.data.Dataset) and len(samples):  # type: ignore[arg-type]
            given = [samples[0]]
        types = [type(sample).__name__ for sample in given if not isinstance(sample, Data)]
        if types or not given:
            got = " of ".join([type(samples).__name__, *types[:1]])
            hint = "'from_arrays' and the other readers of 'tg_mlc.data' make one"
            raise ValueError(f"Expected 'dataset' to be a data set of PyG, or a list of Data (got {got}); {hint}")
        super().__init__()
        self.samples = samples

    def len(self) -> int:
        return len(self.samples)

    def get(self, idx: int) -> Data:
        sample: Data = self.samples[idx]
        return sample


class MultiLabelDataModule(LightningDataModule):
    """Loads the parts of a split of a PyG data set.

    Checkpoints hold the split's hash and the seed; training can only be resumed with the same.

    Args:
        dataset (Dataset or list of Data): Samples with :obj:`y` of shape :math:`(1, L)`: 0, 1, or NaN for unknown. If
            a data set has ``__getitems__``, that makes a batch of many samples at once, as
            :class:`~tg_mlc.sequences.NextSetDataset` does.
        split (Split): Which of them to train, validate and test with.
        batch_size (int, optional): Number of samples per batch. (default: :obj:`32`)
        num_workers (int, optional): Number of processes that load batches; small samples are loaded fastest without.
            (default: :obj:`0`)
        seed (int, optional): Decides the order of the training samples. (default: :obj:`0`)

    Raises:
        ValueError: If :obj:`dataset` is something else, the split does not fit, or leaves nothing to train or validate
            with, or a size is less than 1.
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
        whole = dataset
        while isinstance(whole, Subset):
            whole = whole.dataset
        self._makes_batches = hasattr(whole, "__getitems__")
        is_ready = self._makes_batches or isinstance(dataset, Dataset)
        self.dataset: Any = dataset if is_ready else _Samples(dataset)
        _check_fits(split, len(self.dataset))
        check_count("batch_size", batch_size)
        self.split = split
        self.batch_size = batch_size
        self.num_workers = num_workers
        self.seed = seed

    def train_dataloader(self) -> DataLoader:
        """Returns the training samples, in the order of the epoch that a training has reached."""
        sampler = EpochSampler(self.split.train.numel(), self.seed)
        if self.trainer is not None:
            # Workers fetch the first batches of a resumed training before Lightning says which epoch it is.
            sampler.set_epoch(self.trainer.fit_loop.epoch_progress.current.processed)  # type: ignore[attr-defined]
        return self._loader(self.split.train, sampler=sampler, generator=sampler.generator)

    def val_dataloader(self) -> DataLoader:
        """Returns the validation samples, in order."""
        return self._loader(self.split.val)

    def test_dataloader(self) -> DataLoader:
        """Returns the test samples, in order."""
        return self._loader(self.split.test)

    def predict_dataloader(self) -> DataLoader:
        """Returns the test samples, in order."""
        return self.test_dataloader()

    def _loader(self, part: Tensor, **options: Any) -> Any:
        # Without a generator of its own a loader draws from the global one, and evaluation would change training.
        options.setdefault("generator", Generator())
        options |= {"batch_size": self.batch_size, "num_workers": self.num_workers}
        samples = Subset(self.dataset, part.tolist()) if self._makes_batches else self.dataset[part]
        return make_loader(samples, **options)

    def state_dict(self) -> dict[str, Any]:
        """Returns what the order of the training samples depends on."""
        return {"split": self.split.hash, "seed": self.seed, "batch_size": self.batch_size}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Refuses data with another split, seed or size of batches than those that a training began with."""
        present = self.state_dict()
        if changed := sorted(key for key, value in state_dict.items() if present[key] != value):
            raise ValueError(
                f"Expected the data of the checkpoint, {state_dict} (got {present}, which differs in {changed}); "
                f"resume with the same data, or start anew"
            )


def _check_fits(split: Split, num_samples: int) -> None:
    if not isinstance(split, Split):
        raise ValueError(f"Expected 'split' to be a Split (got {type(split).__name__}); see tg_mlc.data.random_split")
    split.check_fits(num_samples)
    if 0 in split.sizes[:2]:
        raise ValueError(f"Expected a split with samples to train and to validate with (got {split})")
