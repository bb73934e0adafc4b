"""Split of a data set into training, validation and test samples."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Split:
    """The indices of training, validation and test samples, sorted and disjoint.

    .. code-block:: python

        split = random_split(len(dataset), seed=0)
        train_dataset = dataset[split.train]

    Args:
        train (torch.Tensor): Indices of the training samples, ``long``.
        val (torch.Tensor): Indices of the validation samples, ``long``.
        test (torch.Tensor): Indices of the test samples, ``long``.
        name (str): How the split was made.
        report (str, optional): What its maker has to say about it, *e.g.* which labels lack a class in which part.

    Raises:
        ValueError: If an index is negative or occurs twice, or if a part is no one-dimensional ``long`` tensor.
    """

    train: Tensor
    val: Tensor
    test: Tensor
    name: str
    report: str | None = None

    def __post_init__(self) -> None:
        for part in PARTS:
            indices = _as_indices(getattr(self, part), part)
            object.__setattr__(self, part, indices)
        _check_disjoint(dict(zip(PARTS, self.parts, strict=True)))

    @classmethod
    def from_assignment(cls, part_of: np.ndarray, name: str, report: str | None = None) -> Split:
        """Makes a split from the part of each sample.

        Args:
            part_of (numpy.ndarray): 0, 1 or 2 for each sample; samples of any other number are in no part.
            name (str): How the split was made.
            report (str, optional): As above. (default: :obj:`None`)
        """
        train, val, test = (torch.from_numpy(np.flatnonzero(part_of == part)) for part in range(len(PARTS)))
        return cls(train, val, test, name, report)

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """The indices of the three parts in the order training, validation, test."""
        return self.train, self.val, self.test

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The number of samples of the three parts."""
        return self.train.numel(), self.val.numel(), self.test.numel()

    @property
    def num_samples(self) -> int:
        """The number of samples of all parts."""
        return sum(self.sizes)

    def check_fits(self, num_samples: int, of: str = "'dataset'") -> None:
        """Refuses samples that are too few for the split, and warns if some are in none of its parts: it may have been
        made of other samples.

        Args:
            num_samples (int): The number of samples that are to be divided.
            of (str, optional): What holds them, for the message. (default: :obj:`"'dataset'"`)

        Raises:
            ValueError: If the split names a sample that is not there.
        """
        highest = max((int(part[-1]) for part in self.parts if part.numel() > 0), default=-1)
        if highest >= num_samples:
            got = f"{num_samples} samples, and sample {highest} in the split"
            raise ValueError(f"Expected {of} to hold all samples that 'split' divides (got {got}); give all of them")
        if self.num_samples < num_samples:
            left_out = num_samples - self.num_samples
            warnings.warn(
                f"The split leaves out {left_out} of {num_samples} samples of {of}; if it should not, make it of all",
                stacklevel=4,  # the line that called what checks its arguments
            )

    @property
    def hash(self) -> str:
        """The SHA-256 of the three sets of indices: equal for equal splits, whatever their names."""
        digest = hashlib.sha256()
        for part in self.parts:
            digest.update(part.numel().to_bytes(8, "little"))
            digest.update(part.numpy().astype("<i8").tobytes())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Split) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        train, val, test = self.sizes
        return f"Split(name='{self.name}', train={train}, val={val}, test={test}, hash='{self.hash[:12]}')"


def _as_indices(indices: Tensor | Sequence[int], part: str) -> Tensor:
    indices = torch.as_tensor(indices).cpu()
    if indices.numel() == 0:
        return torch.empty(0, dtype=torch.long)
    if indices.dtype not in {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8} or indices.dim() != 1:
        got = f"shape {list(indices.shape)}, {indices.dtype}"
        raise ValueError(f"Expected '{part}' to be a one-dimensional tensor of integers (got {got})")
    if indices.min() < 0:
        raise ValueError(f"Expected '{part}' to hold indices of at least 0 (got {int(indices.min())})")
    return indices.long().sort().values


def _check_disjoint(parts: dict[str, Tensor]) -> None:
    indices = torch.cat(list(parts.values())).sort().values
    repeated = indices[1:][indices[1:] == indices[:-1]]
    if repeated.numel() > 0:
        index = int(repeated[0])
        owners = [part for part, members in parts.items() if index in members]
        raise ValueError(f"Expected every sample once, in one part (got sample {index} more than once, in {owners})")
