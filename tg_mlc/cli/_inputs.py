"""Inputs and labels of CSV files, for training and for a saved model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from tg_mlc.cli._options import TrainOptions
from tg_mlc.data import ArrayDataset, MultiLabelDataset
from tg_mlc.data._label_values import read_labels
from tg_mlc.data.records import Records, Tokens
from tg_mlc.inputs import MoleculeDataset, from_csv, molecule_from_smiles
from tg_mlc.inputs.fasta import LETTERS, letter_codes
from tg_mlc.inputs.tables import CSVTable, column_of, read_csv_blocks, read_csv_table
from tg_mlc.inputs.transforms import molecule_features
from tg_mlc.saving import Predictor

#: What a column can hold; without one, all columns but the labels are numbers.
KINDS = ("smiles", "text", "dna")
_TAB = (r"\t", "\t")  # which is hard to type
#: What raises a ValueError for an input that cannot be read.
_READERS: dict[str, Callable[[str], Any]] = {"smiles": molecule_from_smiles, "dna": letter_codes}


class Inputs(NamedTuple):
    """Where inputs and labels are in a file; a saved model knows this of the file that it was trained on."""

    kind: str  #: one of :obj:`KINDS`, or "rows"
    columns: list[str]  #: of inputs
    labels: list[str]  #: the columns of labels, or the one that lists names
    separator: str | None  #: what stands between names
    delimiter: str = ","  #: what stands between cells

    def dataset(self, path: Path, folder: Path) -> MultiLabelDataset:
        """The samples of a file for training, with what takes long kept in a folder."""
        if self.kind == "smiles":
            [column] = self.columns
            kept: Any = {"root": folder, "pre_transform": molecule_features()}
            return MoleculeDataset.from_csv(path, column, self.labels, delimiter=self.delimiter, **kept)
        if self.kind == "dna":
            return self._dna(read_csv_table(path, self.delimiter))
        labels: Any = self.labels if self.separator is None else self.labels[0]
        marks: Any = {"label_separator": self.separator, "delimiter": self.delimiter}
        if self.kind == "text":
            [column] = self.columns
            return from_csv(path, labels, text_column=column, kind="bag", **marks)
        return from_csv(path, labels, self.columns or None, kind="vector", **marks)

    def targets(self, table: CSVTable, label_names: list[str], others: dict[str, set[str]]) -> np.ndarray:
        """The labels of some rows, without other names, which are collected by row."""
        if self.separator is None:
            return table.labels(label_names)
        sets = table.label_sets(self.labels[0], self.separator)
        unknown = [found.difference(label_names) for found in sets]
        others.update((table.where(row), found) for row, found in enumerate(unknown) if found)
        return read_labels([found.intersection(label_names) for found in sets], label_names)[0]

    def raw(self, table: CSVTable) -> Any:
        """The raw inputs of some rows."""
        self.require(table, [])
        return table.named_features(self.columns) if self.kind == "rows" else table.texts(self.columns[0])

    def require(self, table: CSVTable, labels: list[str]) -> None:
        """Refuses a file that lacks columns of labels or inputs, of which nominal ones have a name for each value."""
        columns = list(dict.fromkeys(column_of(name, table.header) for name in self.columns))
        table.require(labels, columns, may_lack_labels=not labels)

    def _dna(self, table: CSVTable) -> ArrayDataset:
        table.require(self.labels, self.columns)
        tokens: Any = Tokens.of([letter_codes(text) for text in self.raw(table)])  # type: ignore[misc]
        return ArrayDataset(Records(tokens, table.labels(self.labels), self.labels, list(LETTERS)).to_samples())


class Scores:
    """The scores of the rows of a file, some at a time, with a bar that shows the time left; NaN for molecules and DNA
    that cannot be read, which are reported and counted.

    Args:
        predictor (Predictor): What scores.
        inputs (Inputs): Where inputs are.
        path (str): The file.
        batch_size (int): The number of samples at a time.
    """

    def __init__(self, predictor: Predictor, inputs: Inputs, path: str, batch_size: int) -> None:
        self.predictor, self.inputs, self.path, self.batch_size = predictor, inputs, Path(path), batch_size
        self.num_refused = 0

    def __iter__(self) -> Iterator[tuple[CSVTable, np.ndarray]]:
        with tqdm(total=_num_lines(self.path), desc="Predicting", unit="row", disable=None, leave=False) as bar:
            for table in read_csv_blocks(self.path, self.inputs.delimiter):
                raw = self.inputs.raw(table)
                kept = [row for row, text in enumerate(raw) if self._can_read(table, row, text)]
                scores = np.full((len(raw), len(self.predictor.label_names)), np.nan)
                if kept:
                    good = raw if len(kept) == len(raw) else [raw[row] for row in kept]
                    scores[kept] = self.predictor.scores(good, batch_size=self.batch_size)
                yield table, scores
                bar.update(len(raw))

    def status(self, what_became: str) -> int:
        """Says how many rows were refused and what became of them, and returns the exit status: 1 if there are any."""
        if self.num_refused:
            what = "DNA" if self.inputs.kind == "dna" else "a molecule"
            rows, are = ("row", "is") if self.num_refused == 1 else ("rows", "are")
            message = f"{self.num_refused} {rows} could not be read as {what} and {are} {what_became}"
            print(f"tg-mlc: {message}", file=sys.stderr)  # noqa: T201
        return int(self.num_refused > 0)

    def _can_read(self, table: CSVTable, row: int, text: Any) -> bool:
        try:
            check_input(self.inputs.kind, text)
        except ValueError as error:
            where = f"{table.where(row)}: '{text:.60}'"
            tqdm.write(f"tg-mlc: cannot read {where}: {error}", file=sys.stderr)
            self.num_refused += 1
            return False
        return True


def check_input(kind: str, text: Any) -> None:
    """Refuses a molecule or DNA that cannot be read."""
    if kind in _READERS:
        _READERS[kind](text)


def make_inputs(options: TrainOptions) -> Inputs:
    """Checks the options that say where inputs and labels are."""
    given = [kind for kind in (*KINDS, "features") if getattr(options, kind) is not None]
    if len(given) > 1:
        raise ValueError(f"Expected one of --smiles, --text, --dna and --features (got {given})")
    [kind] = given or ["features"]
    column, names, separator = getattr(options, kind), _split(options.labels), options.label_separator
    if separator is not None and (len(names) != 1 or kind in ("smiles", "dna")):
        raise ValueError(
            f"Expected --label_separator with one column of names in --labels, and texts or numbers (got {kind}, "
            f"{names})"
        )
    if separator is None:
        check_label_names(names, separator)
    marks = separator, options.delimiter.replace(*_TAB)
    if kind == "features":
        return Inputs("rows", _split(column or []), names, *marks)
    return Inputs(kind, [column], names, *marks)


def check_label_names(names: list[str], separator: str | None) -> None:
    """Refuses names that would leave open what "predict --csv" writes."""
    mark = separator or ";"
    for name in names:
        if name == "predicted" or mark in name:
            why = f"'predict --csv' lists predicted names in the column 'predicted', with '{mark}' between them"
            raise ValueError(f"Expected another name for the label '{name}', as {why}; rename it in the file")


def inputs_of(predictor: Predictor, model: str, delimiter: str | None) -> Inputs:
    """Where a model that the command line trained found its inputs; other files may have another delimiter."""
    if "inputs" not in predictor.facts:
        raise ValueError(
            f"Expected '{model}' to be trained by 'tg-mlc train', which writes down what its inputs are (got a model "
            f"that does not say so); use it with tg_mlc.load"
        )
    inputs = Inputs(**predictor.facts["inputs"])
    return inputs if delimiter is None else inputs._replace(delimiter=delimiter.replace(*_TAB))


def _split(names: str | list[str]) -> list[str]:
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def _num_lines(path: Path) -> int | None:
    if path.suffix in (".gz", ".bz2", ".xz"):
        return None
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b""))
