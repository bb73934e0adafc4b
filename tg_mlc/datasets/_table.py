"""Reads tables of SMILES and 0/1 labels, and says where they are wrong."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
LABEL_VALUES = {"0": 0.0, "0.0": 0.0, "1": 1.0, "1.0": 1.0, "": float("nan"), "nan": float("nan")}


class MoleculeTable(NamedTuple):
    """The columns of a table that matter: SMILES, labels ``[num_rows, num_labels]`` and the labels' names."""

    smiles: list[str]
    y: Tensor
    label_names: list[str]


class _Row(NamedTuple):
    number: int
    line: int
    cells: list[str]


def read_table(path: str | Path, smiles_column: str, label_columns: Sequence[str] | None = None) -> MoleculeTable:
    """Reads a CSV file (as it is, or compressed as ``.gz``, ``.bz2`` or ``.xz``).

    Raises:
        ValueError: If a column is missing, a row has too few or too many cells, or a label is not 0, 1 or blank.
    """
    path = Path(path)
    with OPENERS.get(path.suffix, open)(path, mode="rt", newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        header = [name.strip() for name in next(reader, [])]
        names = _label_columns(path, header, smiles_column, label_columns)
        rows = list(_rows(path, reader, len(header)))
    places = [header.index(name) for name in names]
    smiles_at = header.index(smiles_column)
    labels = [[_label(path, row, header, place) for place in places] for row in rows]
    return MoleculeTable(
        smiles=[row.cells[smiles_at].strip() for row in rows],
        y=torch.tensor(labels, dtype=torch.float).view(len(rows), len(names)),
        label_names=names,
    )


def _label_columns(path: Path, header: list[str], smiles_column: str, label_columns: Sequence[str] | None) -> list[str]:
    if isinstance(label_columns, str):
        raise ValueError(f"Expected 'label_columns' to be a list of names (got the string '{label_columns}')")
    names = list(label_columns) if label_columns is not None else [name for name in header if name != smiles_column]
    missing = [name for name in (smiles_column, *names) if name not in header]
    if missing:
        raise ValueError(f"Expected the columns {missing} in '{path}' (got the columns {header})")
    used = [smiles_column, *names]
    repeated = sorted({name for name in used if used.count(name) > 1 or header.count(name) > 1})
    if repeated:
        raise ValueError(f"Expected every column to be used once (got {repeated} more than once in '{path}')")
    if not names:
        raise ValueError(f"Expected at least one label column in '{path}' (got the columns {header})")
    return names


def _rows(path: Path, reader: Any, width: int) -> Iterator[_Row]:
    filled = (cells for cells in reader if cells)
    for index, cells in enumerate(filled):
        if len(cells) != width:
            where = f"row {index} (line {reader.line_num}) of '{path}'"
            raise ValueError(f"Expected {width} cells, as in the header, in {where} (got {len(cells)})")
        yield _Row(index, reader.line_num, cells)


def _label(path: Path, row: _Row, header: list[str], place: int) -> float:
    text = row.cells[place].strip()
    value = LABEL_VALUES.get(text.lower())
    if value is None:
        where = f"row {row.number} (line {row.line}), column '{header[place]}' of '{path}'"
        raise ValueError(
            f"Expected a label to be 0, 1 or blank (unknown) in {where} (got '{text}'); "
            f"name the columns that are labels with 'label_columns'"
        )
    return value
