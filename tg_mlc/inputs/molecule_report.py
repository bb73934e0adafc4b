"""Report on the rows of a table of molecules: kept, refused or duplicate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

NUM_SHOWN = 10


class InvalidMolecule(NamedTuple):
    """A row whose SMILES could not become a graph, and why."""

    row: int
    smiles: str
    reason: str


class DuplicateMolecule(NamedTuple):
    """A row whose canonical SMILES occurred before, in row ``first_row``."""

    row: int
    first_row: int
    smiles: str


@dataclass(frozen=True)
class MoleculeReport:
    """The outcome of each row of a table of molecules.

    Rows are counted from 0, without the header. Duplicates are kept in the data set: only their reader can know whether
    they are repeated measurements or mistakes.

    Args:
        num_rows (int): Number of rows read.
        invalid (list, optional): Rows left out because their SMILES could not become a graph.
        duplicates (list, optional): Rows whose canonical SMILES occurred before.
        filtered (list, optional): Rows left out by :obj:`pre_filter`.
    """

    num_rows: int
    invalid: list[InvalidMolecule] = field(default_factory=list)
    duplicates: list[DuplicateMolecule] = field(default_factory=list)
    filtered: list[int] = field(default_factory=list)

    @property
    def kept_rows(self) -> list[int]:
        """The row of each sample of the whole data set, in order."""
        left_out = {entry.row for entry in self.invalid} | set(self.filtered)
        return [row for row in range(self.num_rows) if row not in left_out]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain lists and numbers."""
        named = {"invalid": list(map(list, self.invalid)), "duplicates": list(map(list, self.duplicates))}
        return {**vars(self), **named, "filtered": list(self.filtered)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> MoleculeReport:
        """The inverse of :meth:`to_dict`."""
        invalid = [InvalidMolecule(*entry) for entry in values["invalid"]]
        duplicates = [DuplicateMolecule(*entry) for entry in values["duplicates"]]
        return cls(values["num_rows"], invalid, duplicates, values["filtered"])

    def __str__(self) -> str:
        counts = f"{len(self.invalid)} invalid, {len(self.duplicates)} duplicates, {len(self.filtered)} filtered"
        lines = [f"{self.num_rows} rows: {len(self.kept_rows)} kept ({counts})"]
        lines += _shorten([f"  row {row}: invalid SMILES '{smiles}': {why}" for row, smiles, why in self.invalid])
        lines += _shorten([f"  row {row}: the molecule of row {first} again" for row, first, _ in self.duplicates])
        return "\n".join(lines)


def _shorten(lines: list[str]) -> list[str]:
    hidden = len(lines) - NUM_SHOWN
    return [*lines[:NUM_SHOWN], f"  ... and {hidden} more"] if hidden > 0 else lines
