"""Reads inputs and labels from files, for training and for saved models."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from tg_mlc._optional import require
from tg_mlc.cli._options import InputColumns, RowsFile, SingleInput, TableOptions
from tg_mlc.data._label_values import read_labels
from tg_mlc.data.parts import KIND
from tg_mlc.graphs.hierarchy import ROOTS
from tg_mlc.inference import Model, Prediction, Query
from tg_mlc.inference.decisions import Calibration, Coherence
from tg_mlc.inference.flow import Reading
from tg_mlc.inputs import InputKind
from tg_mlc.inputs._arff_table import labels_of_arff
from tg_mlc.inputs.kind import FileOptions
from tg_mlc.inputs.kinds import kind_of_option, kinds_by_columns, parts_of_schema, splits_of
from tg_mlc.inputs.label_columns import find_labels, has_patterns
from tg_mlc.inputs.schema import Hints, Schema, match_names
from tg_mlc.inputs.smiles import STRUCTURE, is_sdf
from tg_mlc.inputs.tables import Table, read_blocks

MAX_SHOWN = 20  #: maximum number of unreadable rows that are reported one by one


class Inputs(NamedTuple):
    """The columns of inputs and labels in a file. Saved models store their training columns."""

    kind: str  #: the option that names the kind of input
    columns: list[str]  #: the columns of inputs
    labels: list[str]  #: the columns of labels, or the column of label lists
    separator: str | None  #: the separator in label lists
    delimiter: str | None = None  #: the delimiter of cells
    encoding: str | None = None  #: the encoding of characters
    #: the columns by the option of each kind, if a row has inputs of several kinds
    parts: dict[str, list[str]] | None = None

    @property
    def splits(self) -> tuple[str, ...]:
        """The ways to choose test rows."""
        return splits_of(self.parts) if self.parts else self.input_kind.splits

    @property
    def input_kind(self) -> type[InputKind]:
        """The kind of input."""
        return kind_of_option(self.kind)

    def blocks(self, path: str | Path) -> Iterator[Table]:
        """Yields the rows of a file in chunks."""
        return read_blocks(path, self.delimiter, self.encoding)

    def targets(self, table: Table, model: Model, unknown: dict[str, set[str]]) -> np.ndarray:
        """Returns the targets :math:`(N, L)` of some rows. If the model has a hierarchy, the
        ancestors of labels in label lists are present, too, and labels without a column follow from
        those below them.

        Args:
            table (Table): The rows.
            model (Model): The model, which defines the labels.
            unknown (dict): A dictionary to fill with names that the model does not know, by row.
        """
        label_names = model.label_names
        if self.separator is None and table.arff is not None:
            # One attribute may give several labels.
            y, own_names = table.targets(self.labels, None)
            return y[:, [own_names.index(name) for name in match_names(label_names, own_names)]]
        coherence = model.stage(Coherence)
        if self.separator is None and self.labels == label_names[: len(self.labels)]:
            y = np.full((len(table), len(label_names)), np.nan, np.float32)
            columns = match_names(self.labels, table.header, f"'{table.path}'")
            y[:, : len(self.labels)] = table.labels(columns)
            is_derived = np.arange(len(label_names)) >= len(self.labels)
            return y if coherence is None else coherence.derive(y, is_derived)
        sets = table.label_sets(self.labels[0], self.separator)
        for row, names in enumerate(sets):
            if unknown_names := (names or set()).difference(label_names, ROOTS):
                unknown[table.where(row)] = unknown_names
        known_names = [names and names.intersection(label_names) for names in sets]
        y, _ = read_labels(known_names, label_names)
        return y if coherence is None else coherence.with_ancestors(y)

    def label_columns(self, table: Table, label_names: list[str]) -> list[str]:
        """Returns the columns of a file that hold labels of a model."""
        allowed = label_names if self.separator is None else self.labels
        return [name for name in allowed if name in table.header]

    def given(self, table: Table, label_names: list[str], names: str) -> np.ndarray:
        """Returns the labels :math:`(N, L)` in the named columns; NaN for other columns and blank
        cells. A column of label lists only sets labels in the lists, to 1.
        """
        allowed = label_names if self.separator is None else self.labels
        present = self.label_columns(table, label_names)
        selected = present if names == "all" else split_names(names)
        if not selected or not {*selected} <= {*allowed}:
            got = f"{selected or 'none'} among the columns of '{table.path}'"
            hint = "; write the values into such columns of the file" if "=" in names else ""
            expected = f"--given to name columns of labels, such as {allowed[:5]}"
            raise ValueError(f"Expected {expected} (got {got}){hint}")
        values = np.full((len(table), len(label_names)), np.nan)
        if self.separator is None:
            columns = match_names(selected, table.header, f"'{table.path}'")
            values[:, [label_names.index(name) for name in selected]] = table.labels(columns)
            return values
        for row, label_set in enumerate(table.label_sets(selected[0], self.separator)):
            if unknown := sorted((label_set or set()).difference(label_names)):
                where = table.where(row)
                raise ValueError(f"Expected labels of the model in {where} (got {unknown[:5]})")
            values[row, [label_names.index(name) for name in label_set or ()]] = 1.0
        return values

    def raw(self, table: Table) -> Any:
        """Returns the raw inputs of some rows."""
        if not self.input_kind.reads_columns:
            columns = [STRUCTURE] if is_sdf(table.path) else self.columns[:1]
            return table.inputs(columns, single=True)
        schema = Schema.of_names(self.columns, table.header)
        return table.inputs([column.name for column in schema.inputs])


class Predictions:
    """The predictions of a file, in chunks of rows, with a progress bar.

    Unreadable rows are reported and counted.

    Args:
        model (Model): The model.
        inputs (Inputs): The inputs and labels of the file.
        path (str): The file.
        query (Query): The query for all rows.
        given (str, optional): Columns of given labels, as in :meth:`Inputs.given`.
            (default: :obj:`None`)
        stops (bool, optional): If set to :obj:`True`, an unreadable row is an error.
            (default: :obj:`False`)
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
        #: numbers of blocks to skip and of unreadable rows
        self.num_done, self.num_refused = 0, 0
        # An empty query raises errors for a metric or coverage before the file is read.
        model.answer([], query)

    def __iter__(self) -> Iterator[tuple[Table, Prediction]]:
        total = self._num_lines()
        with tqdm(total=total, desc="Predicting", unit="row", disable=None, leave=False) as bar:
            tables = self.inputs.blocks(self.path)
            for table in islice(tables, self.num_done):
                bar.update(len(table))
            for table in tables:
                prediction = self.of_rows(table)
                self.report(table, prediction)
                yield table, prediction
                bar.update(len(table))

    def of_rows(self, table: Table) -> Prediction:
        """Returns the prediction of some rows."""
        raw = self.inputs.raw(table)
        if self.given is None:
            return self.model.answer(raw, self.query)
        given = self.inputs.given(table, self.model.label_names, self.given)
        query, reading = replace(self.query, given=given), self.model.read(raw)
        has_unknown = np.isnan(given if reading.rows is None else given[reading.rows]).any()
        answer = self.model.answer if has_unknown else self.model.answer_given
        return answer(reading, query)

    def _num_lines(self) -> int | None:
        """Returns the number of lines of the file; None if they cannot be counted."""
        if self.path.suffix in (".gz", ".bz2", ".xz") or not self.path.is_file():
            return None
        with self.path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b""))

    def report(self, table: Table, result: Prediction | Reading) -> None:
        """Prints warnings and unreadable rows."""
        show_warnings(result)
        for row, reason in result.reasons.items():
            message = f"{table.where(row)}: {reason}"
            if self.stops:
                raise ValueError(f"Expected rows that can be read (got {message})")
            if self.num_refused < MAX_SHOWN:
                tqdm.write(f"tg-mlc: cannot read {message}", file=sys.stderr)
            self.num_refused += 1

    def status(self, outcome: str) -> int:
        """Prints the number of unreadable rows, and returns the exit status: 1 if there are any."""
        if self.num_refused:
            rows, are = ("row", "is") if self.num_refused == 1 else ("rows", "are")
            message = f"{rows} could not be read as {self.inputs.input_kind.noun} and {are}"
            print(f"tg-mlc: {self.num_refused} {message} {outcome}", file=sys.stderr)  # noqa: T201
        return int(self.num_refused > 0)


def given_values(given: str) -> dict[str, str]:
    """Returns the values by label of a text such as ``nausea=1,rash=0``."""
    values = {}
    for pair in given.split(","):
        name, _, value = pair.rpartition("=")
        if not name or value.strip() not in ("0", "1"):
            expected = "--given as in nausea=1,rash=0, with 1 or 0 for each label"
            raise ValueError(f"Expected {expected} (got '{pair:.60}')")
        values[name.strip()] = value.strip()
    return values


def show_warnings(result: Prediction | Reading) -> None:
    """Prints the warnings of a prediction or reading. Each is printed once per command."""
    for message in result.warnings:
        warnings.warn(message, stacklevel=2)


def calibration_of(model: Model) -> str:
    """Returns a text on whether and how the probabilities of each label are calibrated."""
    calibration = model.stage(Calibration)
    if calibration is None:
        return "not calibrated for each label; for that, train with --calibrate"
    numbers = calibration.methods.items()
    methods = [f"{n} {'as it was' if name == 'identity' else f'by {name}'}" for name, n in numbers]
    return f"calibrated for each label ({', '.join(methods)})"


def make_inputs(columns: InputColumns, table: TableOptions) -> tuple[Inputs, TableOptions]:
    """Returns the inputs and labels of a file for training, and the options of the file with the
    labels that an ARFF file names.
    """
    path, kinds = table.path, kinds_by_columns()
    if table.labels is None:
        table = _with_labels(table)
    parts = dict[str, list[str]]()
    for option, value in columns.given.items():
        values = value if isinstance(value, list) else [value]
        is_list = kinds[option].reads_columns
        parts[option] = [name for v in values for name in (split_names(v) if is_list else [v])]
    if is_sdf(path) and not parts:
        parts = {"smiles": [STRUCTURE]}
    schema = file_options(table).hints.schema
    parts = parts or ({} if schema is None else parts_of_schema(schema))
    default_option = next(name for name, input_kind in kinds.items() if input_kind.reads_columns)
    option = next(iter(parts), default_option)
    kind, labels = kinds[option], split_names(table.labels)
    inputs = [name for names in parts.values() for name in names]
    is_mixed = len(parts) > 1 or (len(inputs) > 1 and not kind.reads_columns)
    if table.label_separator is not None and len(labels) != 1:
        expected = "--label_separator with one column of names in --labels"
        raise ValueError(f"Expected {expected} (got {labels})")
    if has_patterns(labels):
        header = next(read_blocks(path, table.delimiter, table.encoding)).header
        other_options = (table.ignore, table.id, table.categorical)
        used_names = [name for names in other_options for name in split_names(names)]
        labels = find_labels(labels, header, [*inputs, *used_names])
    if table.label_separator is None:
        check_label_names(labels, None)
    if is_mixed:
        return Inputs(KIND, inputs, labels, table.label_separator, parts=parts), table
    return Inputs(kind.option, inputs, labels, table.label_separator), table


def _with_labels(table: TableOptions) -> TableOptions:
    if table.arff is None:
        raise ValueError("Expected --labels to name the columns of labels (got none)")
    labels, are_paths = labels_of_arff(table.arff)
    if not labels:
        hint = "write '-C' and their number into the relation, as MEKA does, or name them: --labels"
        expected = f"'{table.arff}' to say which attributes are labels (got none)"
        raise ValueError(f"Expected {expected}; {hint}")
    separator = "@" if are_paths else table.label_separator
    return replace(table, labels=labels, label_separator=separator)


def file_options(table: TableOptions) -> FileOptions:
    """Returns the options for reading a file."""
    schema = None
    if table.schema is not None:
        yaml = require("yaml", extra="data")
        try:
            text = Path(table.schema).read_text(encoding="utf-8")
            schema = Schema.from_dict(yaml.safe_load(text))
        except (OSError, yaml.YAMLError, TypeError, KeyError, ValueError) as error:
            expected = f"'{table.schema}' to be a schema of 'tg-mlc data check --write'"
            raise ValueError(f"Expected {expected} (got {error})") from error
    ignore, categorical, ids = map(split_names, (table.ignore, table.categorical, table.id))
    hints = Hints(ignore, categorical, ids, table.decimal, schema=schema)
    names = [field.name for field in fields(FileOptions) if field.name not in ("hints", "parts")]
    return FileOptions(hints=hints, **{name: getattr(table, name) for name in names})


def check_label_names(names: list[str], separator: str | None) -> None:
    """Raises ValueError for label names that "predict --csv" cannot write unambiguously."""
    delimiter = separator or ";"
    for name in names:
        if name in ("predicted", "reason") or delimiter in name:
            columns = f"'predicted', with '{delimiter}' between names, and 'reason'"
            got = f"one of the columns of 'predict --csv', {columns}); rename it in the file"
            raise ValueError(f"Expected another name for the label '{name}' (got {got}")


def inputs_of(model: Model, folder: str, file: RowsFile) -> Inputs:
    """Returns the inputs and labels of a model, with the delimiter of a new file. A model that was
    trained in Python reads its training columns by name, else a column that is named like its kind.
    """
    kind, columns, saved = model.kind, list[str](), model.facts.get("inputs")
    if saved is None:
        if kind is not None and (kind.reads_columns or kind.command_option is not None):
            columns = kind.training_columns() or [kind.option] * (not kind.reads_columns)
        if kind is None or not columns:
            expected = f"'{folder}' to be trained by 'tg-mlc train', which saves the input columns"
            got = "(got a model without them)"
            raise ValueError(f"Expected {expected} {got}; use it with tg_mlc.load")
        check_label_names(model.label_names, None)
        saved = Inputs(kind.option, columns, model.label_names, None)._asdict()
    return Inputs(**saved)._replace(delimiter=file.delimiter, encoding=file.encoding)


def one_input(inputs: Inputs, file: RowsFile, single: SingleInput) -> str | None:
    """Returns the value of the option for one input; :obj:`None` if a file is specified."""
    options = [*single.given, *(["csv"] if file.is_given else [])]
    if len(options) != 1 or not {*options} <= {inputs.kind, "csv"}:
        expected = "csv" if inputs.input_kind.reads_columns else f"{inputs.kind} or --csv"
        got = ", ".join(f"--{name}" for name in options) or "none"
        raise ValueError(f"Expected --{expected} for a model of {inputs.kind} (got {got})")
    if file.is_given:
        return None
    value: str = single.given[inputs.kind]
    try:
        inputs.input_kind.check(value)
    except ValueError as error:
        expected = f"an input that can be read for --{inputs.kind}"
        raise ValueError(f"Expected {expected} (got '{value:.60}': {error})") from error
    return value


def split_names(names: str | list[str] | None) -> list[str]:
    """Returns the names in a comma-separated string or in a list."""
    if isinstance(names, str):
        return [name.strip() for name in names.split(",")]
    return list(names or ())
