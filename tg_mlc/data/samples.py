"""Samples in PyG's collated format, and their files, which are written atomically, read without
running pickled code, and named after the settings of their data set.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from tg_mlc._files import read_tensors, replace_when_done, sha256

FORMAT = 2
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_DAMAGED = OSError, EOFError, RuntimeError, ValueError, KeyError, TypeError, pickle.UnpicklingError


class DamagedError(RuntimeError):
    """Raised for processed samples that cannot be used. The cure depends on the interface."""

    def __init__(self, reason: str, cure: str = "pass force_reload=True") -> None:
        super().__init__(f"{reason}; {cure} to build it again")
        self.reason = reason


class Samples(NamedTuple):
    """All samples of a data set in PyG's collated format, with names, report and split."""

    data: Data
    slices: dict[str, Tensor] | None
    label_names: list[str]
    report: dict[str, Any] | None
    kind: str | None = None  #: The kind of input, *e.g.* "bag".
    feature_names: list[str] | None = None
    num_features: int | None = None  #: The number of words, or of entries of a vector.
    train: Tensor | None = None  #: The rows of the official training part.
    test: Tensor | None = None  #: The rows of the official test part.

    @classmethod
    def collate(
        cls, samples: Sequence[Data], label_names: Sequence[str], report: dict[str, Any] | None
    ) -> Samples:
        """Collates a list of samples."""
        if not samples:
            expected = "at least one sample in the data set"
            raise ValueError(f"Expected {expected} (got none); see its report for the reasons")
        data, slices = InMemoryDataset.collate(list(samples))
        return cls(data, slices, list(label_names), report)

    def save(self, path: str | Path) -> None:
        """Writes a file that :meth:`load` can read."""
        # Reading one string is a hundred times as fast as reading a list of strings.
        names = None if self.feature_names is None else "\n".join(self.feature_names)
        content = {**self._asdict(), "data": self.data.to_dict(), "feature_names": names}
        content["format"] = FORMAT
        with replace_when_done(path) as unfinished:
            torch.save(content, unfinished)
            try:
                torch.load(unfinished, weights_only=True)
            except pickle.UnpicklingError as error:
                expected = "samples of tensors, numbers and strings, which need no pickled code"
                got = f"others, perhaps of 'pre_transform'): {error}"
                raise TypeError(f"Expected {expected} (got {got}") from error

    @classmethod
    def load(cls, path: str | Path) -> Samples:
        """Reads a saved file. Raises RuntimeError if it is damaged or of another version."""
        try:
            content = read_tensors(path)
            if not isinstance(content, dict) or content.get("format") != FORMAT:
                raise ValueError("unknown format")
            names = content["feature_names"]
            content["feature_names"] = None if names is None else names.split("\n")
            content["data"] = Data.from_dict(content["data"])
            return cls(**{field: content[field] for field in cls._fields})
        except _DAMAGED as error:
            expected = f"'{path}' to be a processed data set of this version"
            got = f"a file that cannot be used: {error!r}"
            raise DamagedError(f"Expected {expected} (got {got})") from error


def settings_key(*settings: Any) -> str | None:
    """Returns a hash of settings that is the same in every run. Objects are described by class and
    attributes. Returns None if a setting is a function, whose name does not identify its code.
    """
    try:
        text = _describe(settings)
    except RecursionError:  # An object refers to itself.
        return None
    return None if _ADDRESS.search(text) else sha256(text.encode())[:16]


def _describe(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_describe, value))}]"
    if isinstance(value, (set, frozenset)):
        # The order of a set differs between runs.
        return f"set {sorted(map(_describe, value))}"
    if isinstance(value, dict):
        return f"dict {_describe(list(value.items()))}"
    if isinstance(value, (Tensor, np.ndarray)):
        return f"{value.dtype} {value.tolist()}"  # Printing shortens large arrays.
    if isinstance(value, type) or not hasattr(value, "__dict__"):
        return repr(value)
    # The default repr contains an address, which differs between runs.
    printed = str(type(value)) if repr(value) == object.__repr__(value) else repr(value)
    return f"{printed} {_describe(vars(value))}"
