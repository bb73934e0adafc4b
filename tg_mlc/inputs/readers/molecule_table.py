"""Reader of tables of SMILES and labels; its errors name row and column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from tg_mlc._csv_table import read_csv_table


class MoleculeTable(NamedTuple):
    """The columns of a table that matter: SMILES, labels ``[num_rows, num_labels]`` and the labels' names."""

    smiles: list[str]
    y: Tensor
    label_names: list[str]


def read_table(
    path: str | Path, smiles_column: str, label_columns: Sequence[str] | None = None, delimiter: str = ","
) -> MoleculeTable:
    """Reads a CSV file (as it is, or compressed as ``.gz``, ``.bz2`` or ``.xz``).

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged, a column is missing, a row has too few or too many cells, or a label is not
            0, 1 or blank.
    """
    if isinstance(label_columns, str):
        raise ValueError(f"Expected 'label_columns' to be a list of names (got the string '{label_columns}')")
    table = read_csv_table(path, delimiter, min_rows=0)
    others = [name for name in table.header if name != smiles_column]
    names = others if label_columns is None else list(label_columns)
    table.require(names, [smiles_column])
    smiles = [text.strip() for text in table.texts(smiles_column)]
    return MoleculeTable(smiles, torch.from_numpy(table.labels(names)).float(), names)
