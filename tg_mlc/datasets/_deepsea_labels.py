"""Names of DeepSEA's outputs, and which of them a data set takes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tg_mlc._files import FilePath, read_names

# Open chromatin, and histones, modified (H3K4me3) or not of the usual kind (H2AZ); all others are proteins that bind.
_NOT_FACTOR = re.compile(r"DNase$|H[234][AB]?K\d|H2AZ$")


class DeepSEAOutput(NamedTuple):
    """The cell and the target that one of DeepSEA's outputs was measured on."""

    cell: str
    target: str  #: a protein that binds, a histone mark, or DNase
    treatment: str

    @property
    def is_factor(self) -> bool:
        """Tells whether the target is a protein that binds to DNA: a transcription factor, in DeepSEA's words."""
        return _NOT_FACTOR.match(self.target) is None


class Selection(NamedTuple):
    """Labels, each the union of one or more outputs."""

    names: list[str]
    columns: np.ndarray  #: the outputs of all labels, one label after another
    starts: np.ndarray  #: where in :obj:`columns` those of each label begin

    def take(self, bits: np.ndarray) -> np.ndarray:
        """The labels ``[N, L]`` in uint8, from the bits ``[N, B]`` of all outputs."""
        outputs = np.unpackbits(bits, axis=1)[:, self.columns]
        if len(self.starts) == len(self.columns):
            return outputs
        labels: np.ndarray = np.maximum.reduceat(outputs, self.starts, axis=1)
        return labels

    def any(self, bits: np.ndarray) -> np.ndarray:
        """Tells whether any label ``[N]`` is 1."""
        chosen = np.zeros(8 * bits.shape[1], dtype=bool)
        chosen[self.columns] = True
        return np.asarray((bits & np.packbits(chosen)).any(axis=1))


def read_outputs(path: FilePath) -> list[DeepSEAOutput]:
    """Reads a file of lines ``cell|target|treatment``."""
    outputs = []
    for number, name in enumerate(read_names(path), start=1):
        fields = [field.strip() for field in name.split("|")]
        if len(fields) != 3 or not all(fields):
            raise ValueError(f"Expected 'cell|target|treatment' in line {number} of '{path!s}' (got '{name[:80]}')")
        outputs.append(DeepSEAOutput(*fields))
    return outputs


def select_outputs(
    outputs: Sequence[DeepSEAOutput], cells: Sequence[str] | None, factors_only: bool, per_target: bool
) -> Selection:
    """Chooses outputs and what they are labels of."""
    known = list(dict.fromkeys(output.cell for output in outputs))
    if isinstance(cells, str) or not set(known if cells is None else cells) <= set(known):
        raise ValueError(f"Expected 'cells' to be a list of some of {known} (got {cells!r})")
    members: dict[str, list[int]] = {}
    for column, (name, output) in enumerate(zip(unique_names(outputs), outputs, strict=True)):
        if (cells is None or output.cell in cells) and (output.is_factor or not factors_only):
            members.setdefault(output.target if per_target else name, []).append(column)
    if not members:
        raise ValueError(f"Expected at least one label (got none for cells={cells}, factors_only={factors_only})")
    starts = np.cumsum([0, *map(len, members.values())])[:-1]
    return Selection(list(members), np.concatenate([*members.values()]), starts)


def unique_names(outputs: Sequence[DeepSEAOutput]) -> list[str]:
    """The names of outputs, with a number where several have the same: ``"K562|YY1|None (2)"`` is the second."""
    seen: Counter[str] = Counter()
    names = []
    for name in map("|".join, outputs):
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names
