"""Inputs and labels of CSV files, for training and for a saved model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from tg_mlc.cli.train import TrainOptions
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data._label_values import read_labels
from tg_mlc.inputs import InputKind
from tg_mlc.inputs.kinds import KINDS, kind_of_option
from tg_mlc.inputs.tables import CSVTable, column_of, read_csv_blocks
from tg_mlc.saving import Predictor

_TAB = (r"\t", "\t")  # which is hard to type


class Inputs(NamedTuple):
    """The places of inputs and labels in a file; a saved model knows those of the file that it was trained on."""

    kind: str  #: the option that names the kind
    columns: list[str]  #: of inputs
    labels: list[str]  #: the columns of labels, or the one that lists names
    separator: str | None  #: the mark between names
    delimiter: str = ","  #: the mark between cells

    @property
    def input_kind(self) -> type[InputKind]:
        """The kind of input."""
        return kind_of_option(self.kind)

    def dataset(self, path: Path, folder: Path) -> MultiLabelDataset:
        """The samples of a file for training, with what takes long kept in a folder."""
        marks = self.separator, self.delimiter
        return self.input_kind.from_csv(path, self.columns, self.labels, *marks, folder)

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
        several = self.input_kind.reads_columns
        return table.named_features(self.columns) if several else table.texts(self.columns[0])

    def require(self, table: CSVTable, labels: list[str]) -> None:
        """Refuses a file that lacks columns of labels or inputs, of which nominal ones have a name for each value."""
        columns = list(dict.fromkeys(column_of(name, table.header) for name in self.columns))
        table.require(labels, columns, may_lack_labels=not labels)


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
            rows, are = ("row", "is") if self.num_refused == 1 else ("rows", "are")
            message = (
                f"{self.num_refused} {rows} could not be read as {self.inputs.input_kind.noun} and {are} {what_became}"
            )
            print(f"tg-mlc: {message}", file=sys.stderr)  # noqa: T201
        return int(self.num_refused > 0)

    def _can_read(self, table: CSVTable, row: int, text: Any) -> bool:
        try:
            self.inputs.input_kind.check(text)
        except ValueError as error:
            where = f"{table.where(row)}: '{text:.60}'"
            tqdm.write(f"tg-mlc: cannot read {where}: {error}", file=sys.stderr)
            self.num_refused += 1
            return False
        return True


def make_inputs(options: TrainOptions) -> Inputs:
    """Checks the options that say where inputs and labels are."""
    options_of = {("features" if kind.reads_columns else kind.option): kind for kind in KINDS}
    given = [option for option in options_of if getattr(options, option, None) is not None]
    if len(given) > 1:
        raise ValueError(f"Expected one of --smiles, --text, --dna and --features (got {given})")
    [option] = given or ["features"]
    kind = options_of[option]
    columns, names, separator = _split(getattr(options, option) or []), _split(options.labels), options.label_separator
    if separator is not None and (len(names) != 1 or not kind.lists_labels):
        raise ValueError(
            f"Expected --label_separator with one column of names in --labels, and texts or numbers (got {option}, "
            f"{names})"
        )
    if separator is None:
        check_label_names(names, separator)
    delimiter = options.delimiter.replace(*_TAB)
    return Inputs(
        kind.option, columns if kind.reads_columns else [getattr(options, option)], names, separator, delimiter
    )


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
