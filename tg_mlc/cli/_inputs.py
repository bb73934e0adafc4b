"""Inputs and labels of files, for training and for a saved model."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from tg_mlc._optional import require
from tg_mlc.cli._options import FileFlags, InputColumns, SingleInput, TrainOptions
from tg_mlc.data._label_values import read_labels
from tg_mlc.inference import Model, Prediction, Query
from tg_mlc.inference.decisions import Calibration, Coherence
from tg_mlc.inputs import InputKind
from tg_mlc.inputs._arff_table import ROOTS, labels_of_arff
from tg_mlc.inputs.kind import FileOptions
from tg_mlc.inputs.kinds import kind_of_option, kinds_by_columns
from tg_mlc.inputs.schema import Hints, Schema, match_names
from tg_mlc.inputs.tables import Table, read_blocks

_TAB = (r"\t", "\t")  # Users write \t for a tab.


class Inputs(NamedTuple):
    """The places of inputs and labels in a file; a saved model knows those of the file that it was trained on."""

    kind: str  #: the option that names the kind
    columns: list[str]  #: of inputs
    labels: list[str]  #: the columns of labels, or the one that lists names
    separator: str | None  #: the mark between names
    delimiter: str | None = None  #: the mark between cells
    encoding: str | None = None  #: how characters are stored

    @property
    def input_kind(self) -> type[InputKind]:
        """The kind of input."""
        return kind_of_option(self.kind)

    def targets(self, table: Table, model: Model, others: dict[str, set[str]]) -> np.ndarray:
        """Returns the targets :math:`(N, L)` of some rows; where names are listed, all labels above them in a hierarchy
        apply, too.

        Args:
            table (Table): The rows.
            model (Model): The model, whose labels they are.
            others (dict): Gets the listed names that the model does not know, by row.
        """
        label_names = model.label_names
        if self.separator is None and table.arff is not None:  # An attribute may be several labels.
            y, names = table.targets(self.labels, None)
            return y[:, [names.index(name) for name in match_names(label_names, names)]]
        if self.separator is None and self.labels == label_names:
            return table.labels(match_names(label_names, table.header, f"'{table.path}'"))
        sets = table.label_sets(self.labels[0], self.separator)
        unknown = [(names or set()).difference(label_names, ROOTS) for names in sets]
        others.update((table.where(row), names) for row, names in enumerate(unknown) if names)
        y = read_labels([names and names.intersection(label_names) for names in sets], label_names)[
            0
        ]
        coherence = model.stage(Coherence)
        return y if self.separator is None or coherence is None else coherence.with_ancestors(y)

    def given(self, table: Table, label_names: list[str], names: str) -> np.ndarray:
        """The labels :math:`(N, L)` that the named columns of labels give, NaN for others and where a cell is blank; of
        a column that lists names, these alone.
        """
        wanted = label_names if self.separator is None else self.labels
        chosen = (
            [name for name in wanted if name in table.header]
            if names == "all"
            else split_names(names)
        )
        if not chosen or not {*chosen} <= {*wanted}:
            got = f"{chosen or 'none'} among the columns of '{table.path}'"
            hint = "; write the values into such columns of the file" if "=" in names else ""
            raise ValueError(
                f"Expected --given to name columns of labels, such as {wanted[:5]} (got {got}){hint}"
            )
        values = np.full((len(table), len(label_names)), np.nan)
        if self.separator is None:
            found = table.labels(match_names(chosen, table.header, f"'{table.path}'"))
            values[:, [label_names.index(name) for name in chosen]] = found
            return values
        for row, listed in enumerate(table.label_sets(chosen[0], self.separator)):
            if unknown := sorted((listed or set()).difference(label_names)):
                raise ValueError(
                    f"Expected labels that the model knows in {table.where(row)} (got {unknown[:5]})"
                )
            values[row, [label_names.index(name) for name in listed or ()]] = 1.0
        return values

    def raw(self, table: Table) -> Any:
        """The raw inputs of some rows."""
        if not self.input_kind.reads_columns:
            return table.inputs(self.columns[:1], single=True)
        schema = Schema.of_names(self.columns, table.header)
        return table.inputs([column.name for column in schema.inputs])


class Predictions:
    """The predictions of the rows of a file, some rows at a time, with a bar that shows the time left.

    Rows that cannot be read are reported and counted.

    Args:
        model (Model): The model.
        inputs (Inputs): The places of inputs and labels in the file.
        path (str): The file.
        query (Query): The question about all rows.
        given (str, optional): Columns of labels whose values are given, as of :meth:`Inputs.given`.
            (default: :obj:`None`)
        stops (bool, optional): If set to :obj:`True`, a row that cannot be read is an error. (default: :obj:`False`)
    """

    def __init__(
        self,
        model: Model,
        inputs: Inputs,
        path: str,
        query: Query,
        *,
        given: str | None = None,
        stops: bool = False,
    ) -> None:
        self.model, self.inputs, self.path, self.query = model, inputs, Path(path), query
        self.given, self.stops = given, stops
        #: blocks of the file to skip, and rows that could not be read
        self.num_done, self.num_refused = 0, 0
        # A metric or coverage that the model lacks is refused before the file is read.
        model.answer([], query)

    def __iter__(self) -> Iterator[tuple[Table, Prediction]]:
        with tqdm(
            total=self._num_lines(), desc="Predicting", unit="row", disable=None, leave=False
        ) as bar:
            tables = read_blocks(self.path, self.inputs.delimiter, self.inputs.encoding)
            for table in islice(tables, self.num_done):
                bar.update(len(table))
            for table in tables:
                prediction = self.of_rows(table)
                self._report(table, prediction)
                yield table, prediction
                bar.update(len(table))

    def of_rows(self, table: Table) -> Prediction:
        """Returns the prediction of some rows."""
        raw = self.inputs.raw(table)
        if self.given is None:
            return self.model.answer(raw, self.query)
        given = self.inputs.given(table, self.model.label_names, self.given)
        query, reading = replace(self.query, given=given), self.model.read(raw)
        is_open = np.isnan(given if reading.rows is None else given[reading.rows]).any()
        return (
            self.model.answer(reading, query)
            if is_open
            else self.model.answer_given(reading, query)
        )

    def _num_lines(self) -> int | None:
        """The number of lines of the file, if it can be counted."""
        if self.path.suffix in (".gz", ".bz2", ".xz") or not self.path.is_file():
            return None
        with self.path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b""))

    def _report(self, table: Table, prediction: Prediction) -> None:
        """Tells warnings and rows that cannot be read."""
        show_warnings(prediction)
        for row, reason in prediction.reasons.items():
            if self.stops:
                raise ValueError(
                    f"Expected rows that can be read (got {table.where(row)}: {reason})"
                )
            if self.num_refused < MOST_SHOWN:
                tqdm.write(f"tg-mlc: cannot read {table.where(row)}: {reason}", file=sys.stderr)
            self.num_refused += 1

    def status(self, what_became: str) -> int:
        """Says how many rows were refused and what became of them, and returns the exit status: 1 if there are any."""
        if self.num_refused:
            rows, are = ("row", "is") if self.num_refused == 1 else ("rows", "are")
            message = (
                f"{self.num_refused} {rows} could not be read as {self.inputs.input_kind.noun}"
            )
            print(f"tg-mlc: {message} and {are} {what_became}", file=sys.stderr)  # noqa: T201
        return int(self.num_refused > 0)


def given_values(given: str) -> dict[str, str]:
    """The labels of ``nausea=1,rash=0``."""
    pairs = [pair.rpartition("=") for pair in given.split(",")]
    if wrong := [
        name + mark + value
        for name, mark, value in pairs
        if not name or value.strip() not in ("0", "1")
    ]:
        raise ValueError(
            f"Expected --given as in nausea=1,rash=0, with 1 or 0 for each label (got '{wrong[0]:.60}')"
        )
    return {name.strip(): value.strip() for name, _, value in pairs}


def show_warnings(prediction: Prediction) -> None:
    """Tells the warnings of a prediction, each once in a command."""
    for message in prediction.warnings:
        warnings.warn(message, stacklevel=2)


def calibration_of(model: Model) -> str:
    """Says whether probabilities are calibrated for each label, and by what."""
    calibration = model.stage(Calibration)
    if calibration is None:
        return "not calibrated for each label"
    numbers = calibration.methods.items()
    methods = [
        f"{number} as it was" if name == "identity" else f"{number} by {name}"
        for name, number in numbers
    ]
    return f"calibrated for each label ({', '.join(methods)})"


MOST_SHOWN = 20  #: rows that are named because they cannot be read; all of them are counted


def one_file(csv: str | None, arff: str | None) -> str:
    """The file of --csv or --arff."""
    if csv is None and arff is None:
        raise ValueError("Expected --csv, or --arff, with the file (got none)")
    if csv is not None and arff is not None:
        raise ValueError(f"Expected one of --csv and --arff (got --csv {csv}, --arff {arff})")
    if arff is not None and ".arff" not in map(str.lower, Path(arff).suffixes):
        raise ValueError(
            f"Expected a name that ends in .arff, perhaps compressed, for --arff (got '{arff}')"
        )
    return str(csv or arff)


def resolve(options: TrainOptions, file: FileFlags) -> tuple[TrainOptions, FileFlags]:
    """Options with the file and the labels that an ARFF file names itself."""
    options = replace(options, csv=one_file(options.csv, options.arff))
    if options.labels is None:
        if options.arff is None:
            raise ValueError("Expected --labels to name the columns of labels (got none)")
        labels, are_paths = labels_of_arff(options.arff)
        if not labels:
            hint = "write '-C' and their number into the relation, as MEKA does, or name them: --labels"
            raise ValueError(
                f"Expected '{options.arff}' to say which attributes are labels (got none); {hint}"
            )
        options = replace(options, labels=labels)
        file = replace(file, label_separator="@") if are_paths else file
    return options, file


def make_inputs(options: TrainOptions, columns: InputColumns, file: FileFlags) -> Inputs:
    """Checks the options that say where inputs and labels are."""
    kinds = kinds_by_columns()
    if len(columns.given) > 1:
        *first, last = (f"--{option}" for option in vars(columns))
        raise ValueError(f"Expected one of {', '.join(first)} and {last} (got {[*columns.given]})")
    default = next(name for name, each in kinds.items() if each.reads_columns)
    option, value = next(iter(columns.given.items()), (default, list[str]()))
    kind, names = kinds[option], split_names(options.labels or [])
    inputs = split_names(value) if kind.reads_columns else [str(value)]
    if file.label_separator is not None and (len(names) != 1 or not kind.lists_labels):
        expected = "--label_separator with one column of names in --labels, and texts or numbers"
        raise ValueError(f"Expected {expected} (got {option}, {names})")
    if file.label_separator is None:
        check_label_names(names, None)
    return Inputs(kind.option, inputs, names, file.label_separator)


def file_options(file: FileFlags) -> FileOptions:
    """How a file is to be read."""
    left, ids, names = (
        split_names(value or []) for value in (file.ignore, file.id, file.categorical)
    )
    schema = None
    if file.schema is not None:
        yaml = require("yaml", extra="data")
        try:
            schema = Schema.from_dict(yaml.safe_load(Path(file.schema).read_text(encoding="utf-8")))
        except (OSError, yaml.YAMLError, TypeError, KeyError, ValueError) as error:
            expected = f"'{file.schema}' to be a schema of 'tg-mlc data check --write'"
            raise ValueError(f"Expected {expected} (got {error})") from error
    hints = Hints(left, names, ids, file.decimal, schema=schema)
    delimiter = None if file.delimiter is None else file.delimiter.replace(*_TAB)
    return FileOptions(
        file.label_separator,
        file.label_paths,
        delimiter,
        file.encoding,
        file.max_lost,
        hints,
        file.hierarchy,
    )


def check_label_names(names: list[str], separator: str | None) -> None:
    """Refuses names that would leave open what "predict --csv" writes."""
    mark = separator or ";"
    for name in names:
        if name in ("predicted", "reason") or mark in name:
            why = f"'predict --csv' writes the columns 'predicted', with '{mark}' between names, and 'reason'"
            raise ValueError(
                f"Expected another name for the label '{name}', because {why}; rename it in the file"
            )


def inputs_of(model: Model, folder: str, delimiter: str | None, encoding: str | None) -> Inputs:
    """Where a model that the command line trained found its inputs; other files may have another delimiter."""
    if "inputs" not in model.facts:
        expected = (
            f"'{folder}' to be trained by 'tg-mlc train', which writes down what its inputs are"
        )
        raise ValueError(
            f"Expected {expected} (got a model that does not say so); use it with tg_mlc.load"
        )
    inputs = Inputs(**model.facts["inputs"])
    return inputs._replace(
        delimiter=None if delimiter is None else delimiter.replace(*_TAB), encoding=encoding
    )


def one_input(inputs: Inputs, csv: str | None, single: SingleInput) -> str | None:
    """Returns the input that an option holds, which the model has to take; :obj:`None` if there is a file."""
    options = [*single.given, *(["csv"] if csv is not None else [])]
    if len(options) != 1 or not {*options} <= {inputs.kind, "csv"}:
        expected = "csv" if inputs.input_kind.reads_columns else f"{inputs.kind} or --csv"
        got = ", ".join(f"--{name}" for name in options) or "none"
        raise ValueError(f"Expected --{expected} for a model of {inputs.kind} (got {got})")
    if csv is not None:
        return None
    value: str = single.given[inputs.kind]
    try:
        inputs.input_kind.check(value)
    except ValueError as error:
        expected = f"an input that can be read for --{inputs.kind}"
        raise ValueError(f"Expected {expected} (got '{value:.60}': {error})") from error
    return value


def split_names(names: str | list[str]) -> list[str]:
    """Names between commas."""
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
