"""Samples in PyG's collated form, and their file: written at once or not at all, read without running code."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from tg_mlc._files import read_tensors, replace_when_done

FORMAT = 2


class Samples(NamedTuple):
    """All samples of a data set in PyG's collated form, with what belongs to them."""

    data: Data
    slices: dict[str, Tensor] | None
    label_names: list[str]
    report: dict[str, Any] | None
    kind: str | None = None  #: what the input of a sample is, *e.g.* "bag"
    feature_names: list[str] | None = None
    num_features: int | None = None  #: the number of words, or of a vector's entries
    train: Tensor | None = None  #: rows of the official training part
    test: Tensor | None = None  #: rows of the official test part

    @classmethod
    def collate(cls, samples: Sequence[Data], label_names: Sequence[str], report: dict[str, Any] | None) -> Samples:
        """Collates a list of samples."""
        if not samples:
            raise ValueError("Expected at least one sample in the data set (got none); see its report for the reasons")
        data, slices = InMemoryDataset.collate(list(samples))
        return cls(data, slices, list(label_names), report)

    def save(self, path: str | Path) -> None:
        """Writes a file that :meth:`load` can read."""
        # One string is read a hundred times as fast as a list of them.
        names = None if self.feature_names is None else "\n".join(self.feature_names)
        content = {**self._asdict(), "data": self.data.to_dict(), "feature_names": names, "format": FORMAT}
        with replace_when_done(path) as unfinished:
            torch.save(content, unfinished)
            try:
                torch.load(unfinished, weights_only=True)
            except pickle.UnpicklingError as error:
                expected = "samples of tensors, numbers and strings, which can be stored without pickled code"
                raise TypeError(f"Expected {expected} (got others, perhaps of 'pre_transform'): {error}") from error

    @classmethod
    def load(cls, path: str | Path) -> Samples:
        """Reads the file back.

        Raises:
            RuntimeError: If the file is damaged or was written by another version.
        """
        try:
            content = read_tensors(path)
            if not isinstance(content, dict) or content.get("format") != FORMAT:
                raise ValueError("unknown format")
            names = content["feature_names"]
            content["feature_names"] = None if names is None else names.split("\n")
            content["data"] = Data.from_dict(content["data"])
            return cls(**{field: content[field] for field in cls._fields})
        except (OSError, EOFError, RuntimeError, ValueError, KeyError, TypeError, pickle.UnpicklingError) as error:
            raise RuntimeError(
                f"Expected '{path}' to be a processed data set of this version (got a file that cannot be used: "
                f"{error!r}); pass 'force_reload=True' to build it again"
            ) from error
