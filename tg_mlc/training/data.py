"""Batches of the parts of a split, in an order that depends only on seed and epoch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from numbers import Real
from typing import Any, cast

import numpy as np
import torch
from lightning.pytorch import LightningDataModule
from torch import Generator, Tensor
from torch.utils.data import (
    ConcatDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    default_collate,
)
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset as TorchDataset
from torch_geometric.data import Data, Dataset, InMemoryDataset
from torch_geometric.data.data import BaseData
from torch_geometric.loader import DataLoader
from torch_geometric.loader.dataloader import Collater

from tg_mlc._names import check_same_names, shorten
from tg_mlc._options import check_count, check_flag, check_number, check_share
from tg_mlc.data import MultiLabelDataset, Split, predefined_split, random_split, stratified_split
from tg_mlc.data.splits import PARTS
from tg_mlc.inference.batches import make_loader, makes_batches

_ON_NODES = "for labels on the nodes of one graph, see docs/node_labels.md"


class EpochSampler(Sampler[int]):
    """Draws every sample once, in an order that depends only on seed and epoch. Training can thus
    resume exactly.

    Several processes take turns in that order: together, their batches equal larger batches of a
    single process. A process with one batch fewer than others repeats a sample as its last batch.

    Args:
        num_samples (int): Number of samples.
        seed (int): A number of at least zero.
        shuffle (bool, optional): Whether to change the order of samples. (default: :obj:`True`)
        batch_size (int, optional): Number of samples per batch. (default: :obj:`1`)
        drop_last (bool, optional): Whether to skip the last samples of an epoch if they do not
            fill a batch of every process. (default: :obj:`False`)
        process (tuple, optional): Rank, and number of processes. (default: :obj:`(0, 1)`)

    Attributes:
        num_samples (int): The number of samples of an epoch.
        num_own_batches (int): The number of batches without a repeated sample.
        generator (torch.Generator): Source of the seeds of a data loader's workers.
    """

    def __init__(
        self,
        num_samples: int,
        seed: int,
        *,
        shuffle: bool = True,
        batch_size: int = 1,
        drop_last: bool = False,
        process: tuple[int, int] = (0, 1),
    ) -> None:
        if seed < 0:
            raise ValueError(f"Expected 'seed' to be at least 0 (got {seed})")
        self.total, self.seed, self.shuffle = num_samples, seed, shuffle
        self.process = rank, num_processes = process
        if drop_last:
            step_size = batch_size * num_processes
            if num_samples < step_size:
                expected = f"at least {step_size} training samples for one step with 'drop_last'"
                raise ValueError(f"Expected {expected} (got {num_samples}); lower 'batch_size'")
            num_samples -= num_samples % step_size
        self.num_samples = num_samples
        counts = [-(-len(range(r, num_samples, num_processes)) // batch_size) for r in (0, rank)]
        self.num_own_batches = counts[1]
        self.is_short = counts[1] < counts[0]
        self.generator = Generator()
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch. Lightning calls this method before each epoch."""
        self.epoch = epoch
        self.generator.manual_seed(int(self._random().integers(2**63)))

    def _random(self) -> np.random.Generator:
        return np.random.default_rng((self.seed, self.epoch))

    def __iter__(self) -> Iterator[int]:
        order = list(range(self.total))
        if self.shuffle:
            order = self._random().permutation(self.total).tolist()
        order, (rank, num_processes) = order[: self.num_samples], self.process
        return iter([*order[rank::num_processes], *order[: int(self.is_short)]])

    def __len__(self) -> int:
        rank, num_processes = self.process
        return len(range(rank, self.num_samples, num_processes)) + self.is_short


class _Samples(Dataset):
    """A PyG data set over a list or another data set, with targets of shape :math:`(1, L)`."""

    def __init__(self, samples: Any, name: str = "dataset") -> None:
        checked = samples if isinstance(samples, (list, tuple)) else []
        # Samples of a data set on disk are checked when they are read.
        if isinstance(samples, torch.utils.data.Dataset) and len(samples):  # type: ignore[arg-type]
            checked = [samples[0]]
        types = [type(sample).__name__ for sample in checked if not isinstance(sample, BaseData)]
        if types or not checked:
            empty = "an empty " if hasattr(samples, "__len__") and not len(samples) else ""
            got = empty + " of ".join([type(samples).__name__, *types[:1]])
            expected = f"Expected '{name}' to be a data set of PyG, or a list of Data"
            hint = "'from_arrays' and the other readers of 'tg_mlc.data' make one"
            hint = _ON_NODES if isinstance(samples, BaseData) else hint
            raise ValueError(f"{expected} (got {got}); {hint}")
        super().__init__()
        self.samples, self.label_names = samples, getattr(samples, "label_names", None)
        self.num_labels = _target_of(checked[0], 0).numel()
        for index in range(len(checked)):
            self.get(index)

    def len(self) -> int:
        return len(self.samples)

    def get(self, idx: int) -> BaseData:
        sample = copy(self.samples[idx])
        sample.y = _target_of(sample, idx)
        if (got := sample.y.numel()) != self.num_labels:
            expected = f"'y' of {self.num_labels} labels in every sample, as in the first one"
            hint = "pass NaN for unknown labels"
            raise ValueError(f"Expected {expected} (got {got} in sample {idx}); {hint}")
        return sample


def _target_of(sample: BaseData, index: int) -> Tensor:
    """Returns the target of a sample as a row :math:`(1, L)`."""
    y = getattr(sample, "y", None)
    shape = list(y.shape) if isinstance(y, Tensor) else None
    if shape is None or 0 in shape or not (len(shape) == 1 or (len(shape) == 2 and shape[0] == 1)):
        expected = "'y' of shape [L] or [1, L] in every sample, one number for each label"
        got = f"{type(y).__name__ if shape is None else shape} in sample {index}"
        hint = "pass Data(..., y=torch.tensor([0.0, 1.0, float('nan')])), with NaN for unknown"
        raise ValueError(f"Expected {expected} (got {got}); {hint}")
    y = cast(Tensor, y).reshape(1, -1).float()
    if not ((y == 0) | (y == 1) | y.isnan()).all():
        got = f"{y.flatten().tolist()[:6]} in sample {index}"
        hint = "for classes, pass torch.nn.functional.one_hot(y, num_classes)"
        raise ValueError(f"Expected 'y' to hold 0, 1 and NaN (got {got}); {hint}")
    return y


def as_samples(dataset: Any, name: str = "dataset") -> Any:
    """Returns a PyG data set with targets :math:`(1, L)`, or a data set of batches as it is."""
    if isinstance(dataset, (_Samples, MultiLabelDataset)) or makes_batches(dataset):
        return dataset
    y = dataset._data.get("y") if isinstance(dataset, InMemoryDataset) else None
    if isinstance(y, Tensor) and y.dim() == 2 and y.is_floating_point():
        ptr = (dataset.slices or {}).get("y")
        if isinstance(ptr, Tensor) and torch.equal(ptr, torch.arange(ptr.numel())):
            return dataset
    return _Samples(dataset, name)


def targets_of(samples: Any) -> Tensor:
    """Returns the targets :math:`(N, L)` of the samples of :func:`as_samples`."""
    is_ready = isinstance(samples, MultiLabelDataset)
    return samples.y if is_ready else torch.cat([sample.y for sample in samples])


class MultiLabelDataModule(LightningDataModule):
    """Loads the parts of a split. Resuming needs the same split, seed and batch size.

    Args:
        dataset (Dataset or list of Data): Samples with :obj:`y` of shape :math:`(L)` or
            :math:`(1, L)`: 0, 1, or NaN for unknown. If a data set has a method
            ``__getitems__``, it makes the batches (see :class:`~tg_mlc.sequences.NextSetDataset`).
        split (Split): The samples to train, validate and test with.
        batch_size (int, optional): Number of samples per batch. (default: :obj:`32`)
        num_workers (int, optional): Number of processes that load batches; zero is fastest for
            small samples. (default: :obj:`0`)
        seed (int, optional): Seed of the order of training samples. (default: :obj:`0`)
        shuffle (bool, optional): Whether to change the order of training samples in every epoch.
            (default: :obj:`True`)
        drop_last (bool, optional): Whether to skip the last training samples of an epoch if they
            do not fill a batch, *e.g.* because a batch norm needs two. (default: :obj:`False`)

    Raises:
        ValueError: If :obj:`dataset` has another type, the split does not fit or has no training or
            validation samples, or :obj:`batch_size` is less than 1.
    """

    def __init__(
        self,
        dataset: Dataset | Sequence[Data],
        split: Split,
        batch_size: int = 32,
        *,
        num_workers: int = 0,
        seed: int = 0,
        shuffle: bool = True,
        drop_last: bool = False,
    ) -> None:
        super().__init__()
        self.dataset = as_samples(dataset)
        kind = type(split).__name__
        if not isinstance(split, Split):
            raise ValueError(f"Expected 'split' to be a Split (got {kind}); see tg_mlc.data")
        split.check_fits(len(self.dataset))
        if 0 in split.sizes[:2]:
            expected = "Expected a split with samples to train and to validate with"
            raise ValueError(f"{expected} (got {split})")
        check_count("batch_size", batch_size)
        check_flag("shuffle", shuffle)
        check_flag("drop_last", drop_last)
        self.split, self.seed, self.shuffle, self.drop_last = split, seed, shuffle, drop_last
        self.batch_size, self.num_workers = batch_size, num_workers

    def setup(self, stage: str) -> None:
        """Raises if training samples fill no batch, before Lightning asks for loaders: an error
        there would leave data loaders of the whole process changed (as of Lightning 2.6).
        """
        if stage == "fit":
            self._training_sampler()

    def _training_sampler(self) -> EpochSampler:
        return self._sampler(self.split.train, shuffle=self.shuffle, drop_last=self.drop_last)

    def train_dataloader(self) -> DataLoader:
        """Returns the training samples, in the order of the current epoch of the training."""
        sampler = self._training_sampler()
        if self.trainer is not None:
            # In a resumed training, workers load batches before Lightning sets the epoch.
            progress = self.trainer.fit_loop.epoch_progress.current
            sampler.set_epoch(progress.processed)  # type: ignore[attr-defined]
        return self._loader(self.split.train, sampler)

    def val_dataloader(self) -> DataLoader:
        """Returns the validation samples, in order."""
        return self._loader(self.split.val, self._sampler(self.split.val, shuffle=False))

    def test_dataloader(self) -> DataLoader:
        """Returns the test samples, in order."""
        return self._loader(self.split.test)

    def predict_dataloader(self) -> DataLoader:
        """Returns the test samples, in order."""
        return self.test_dataloader()

    def _sampler(self, indices: Tensor, **options: Any) -> EpochSampler:
        options["batch_size"] = self.batch_size
        if self.trainer is not None:
            options["process"] = self.trainer.global_rank, self.trainer.world_size
        return EpochSampler(indices.numel(), self.seed, **options)

    def _loader(self, indices: Tensor, sampler: EpochSampler | None = None) -> Any:
        # Without this generator, validation would change the global random state.
        generator = Generator() if sampler is None else sampler.generator
        sizes = {"batch_size": self.batch_size, "num_workers": self.num_workers}
        return make_loader(self.part(indices), sampler=sampler, generator=generator, **sizes)

    def part(self, indices: Tensor) -> Any:
        """Returns the samples with these indices, as a data set."""
        is_dataset = isinstance(self.dataset, Dataset)
        return self.dataset[indices] if is_dataset else Subset(self.dataset, indices.tolist())

    def state_dict(self) -> dict[str, Any]:
        """Returns all settings that determine the order of training samples."""
        num_processes = 1 if self.trainer is None else self.trainer.world_size
        state = {"split": self.split.hash, "seed": self.seed, "batch_size": self.batch_size}
        state |= {"shuffle": self.shuffle, "drop_last": self.drop_last}
        return {**state, "num_processes": num_processes}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Raises if split, seed or batch size differ from the checkpoint."""
        current = self.state_dict()
        if changed := [key for key, value in state_dict.items() if current[key] != value]:
            stored, got = ({key: state[key] for key in changed} for state in (state_dict, current))
            expected = f"Expected the data of the checkpoint, with {shorten(stored)}"
            hint = "resume with the same data, or start anew"
            raise ValueError(f"{expected} (got {shorten(got)}); {hint}")


def _are_parts(data: Any) -> bool:
    """Tells whether data are the parts of a split, such as three lists, and not samples."""
    types = (TorchDataLoader, TorchDataset, list, tuple)
    return isinstance(data, (list, tuple)) and any(isinstance(part, types) for part in data)


def split_off(data: Any, fraction: float, options: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns the samples to train with, and a random fraction for conformal prediction or None."""
    check_number("coverage_share", fraction, below=1.0)
    if not fraction:
        return data, None
    is_divided = isinstance(data, (MultiLabelDataModule, TorchDataLoader)) or _are_parts(data)
    if is_divided or "split" in options:
        expected = f"Expected samples that are not divided yet for coverage_share={fraction:g}"
        hint = "keep some out of these, and pass them to 'conformalize' of the model"
        raise ValueError(f"{expected} (got loaders, parts, a data module or a 'split'); {hint}")
    samples = as_samples(data)
    split = random_split(len(samples), (1 - fraction, 0.0, fraction), options.get("seed", 0))
    if isinstance(samples, Dataset):
        return samples[split.train], samples[split.test]
    return Subset(samples, split.train.tolist()), Subset(samples, split.test.tolist())


def data_module(data: Any, options: dict[str, Any]) -> MultiLabelDataModule:
    """Returns a data module of samples, of a loader, or of the three parts of a split."""
    if isinstance(data, MultiLabelDataModule):
        if options:
            expected = f"Expected {sorted(options)} to be options of the MultiLabelDataModule"
            raise ValueError(f"{expected} (got them in 'fit')")
        return data
    if _are_parts(data):
        if len(data) != len(PARTS) or {"val", "test", "split"} & {*options}:
            expected = "three parts (training, validation, test) without 'val', 'test', 'split'"
            raise ValueError(f"Expected {expected} (got {len(data)} and {sorted(options)})")
        data, *held_out = data
        options = {**options, **dict(zip(PARTS[1:], held_out, strict=True))}
    if isinstance(data, TorchDataLoader):
        options, data = {**_options_of(data), **options}, _samples_of(data)
    samples = as_samples(data)
    parts = {name: options.pop(name) for name in PARTS[1:] if name in options}
    if parts and "split" in options:
        raise ValueError(f"Expected either 'split' or {sorted(parts)} (got both)")
    if "split" not in options:
        samples, options["split"] = _divided(samples, parts, options.get("seed", 0))
    return MultiLabelDataModule(samples, **options)


def _divided(samples: Any, parts: Mapping[str, Any], seed: int) -> tuple[Any, Split]:
    """Returns all samples and their split, given fractions or samples to validate and test."""
    others = {name: part for name, part in parts.items() if not isinstance(part, Real)}
    # Whoever passes validation samples has divided the samples already.
    default = {"val": 0.1, "test": 0.0 if "val" in others else 0.1}
    val, test = (0.0 if name in others else parts.get(name, default[name]) for name in PARTS[1:])
    check_share("val", val)
    check_share("test", test)
    check_share("val + test", val + test)
    split = stratified_split(targets_of(samples), (1 - val - test, val, test), seed)
    if not others:
        return samples, split
    sources = [samples]
    indices: dict[str, Tensor] = dict(zip(PARTS, split.parts, strict=True))
    size = len(samples)
    for name, part in others.items():
        sources.append(as_samples(_samples_of(part), name))
        indices[name] = torch.arange(size, size := size + len(sources[-1]))
    train, val_indices, test_indices = indices.values()
    return _joined(sources), predefined_split(train, val_indices, test_indices, size)


def _joined(sources: list[Any]) -> Any:
    """Returns the samples of several data sets as one."""
    if any(map(makes_batches, sources)):
        expected = "fractions or a 'split' for a data set that makes batches"
        raise ValueError(f"Expected {expected} (got 'val' or 'test' as samples)")
    names = [getattr(source, "label_names", None) for source in sources]
    known = [own for own in names if own is not None]
    for own in known:
        check_same_names(own, known[0], "'val' and 'test'", "the training samples")
    samples = _Samples(ConcatDataset(sources))
    samples.label_names = known[0] if known else None
    for source in sources:
        first = _target_of(source[0], 0).numel()
        if first != samples.num_labels:
            expected = f"{samples.num_labels} labels in 'val' and 'test', as in training samples"
            raise ValueError(f"Expected {expected} (got {first})")
    return samples


def _samples_of(data: Any) -> Any:
    """Returns the samples of a loader. Raises if new batches would differ from its batches."""
    if not isinstance(data, TorchDataLoader):
        return data
    is_of_pyg = type(data).__module__.startswith("torch_geometric.loader")
    sampler = data.sampler
    is_plain = type(sampler) is SequentialSampler or (
        type(sampler) is RandomSampler
        and not sampler.replacement
        and len(sampler) == len(data.dataset)  # type: ignore[arg-type]
    )
    is_collated = type(data.collate_fn) is Collater or data.collate_fn is default_collate
    has_extras = getattr(data, "follow_batch", None) or getattr(data, "exclude_keys", None)
    reasons = {
        "no 'batch_size'": data.batch_size is None,
        "a sampler": not is_plain,
        "'follow_batch' or 'exclude_keys'": has_extras,
        "a 'collate_fn'": not (is_collated or makes_batches(data.dataset)),
    }
    if got := [reason for reason, applies in reasons.items() if applies]:
        hint = "pass its samples, and make in 'forward' or in the samples what a batch lacks"
        hint = _ON_NODES if is_of_pyg and not isinstance(data, DataLoader) else hint
        expected = "loaders with 'batch_size', 'shuffle' and 'drop_last' alone"
        loader = f"a {type(data).__name__} with {', '.join(got)}"
        raise ValueError(f"Expected {expected} (got {loader}); {hint}")
    return data.dataset


def _options_of(loader: Any) -> dict[str, Any]:
    """Returns the options of a loader of training samples. Warns if it does not shuffle."""
    _samples_of(loader)
    if not (shuffles := isinstance(loader.sampler, RandomSampler)):
        reason = "so that every epoch has the same batches; pass shuffle=True to it"
        warnings.warn(f"The loader of training samples does not shuffle, {reason}", stacklevel=4)
    names = ("batch_size", "num_workers", "drop_last")
    return {"shuffle": shuffles, **{name: getattr(loader, name) for name in names}}
