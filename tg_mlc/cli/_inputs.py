"""Inputs and labels of files, for training and for a saved model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from tg_mlc._optional import require
from tg_mlc.cli.train import FileFlags, TrainOptions
from tg_mlc.data._label_values import read_labels
from tg_mlc.inference import Predictor
from tg_mlc.inputs import InputKind
from tg_mlc.inputs._arff_table import ROOTS, labels_of_arff
from tg_mlc.inputs.kind import FileOptions
from tg_mlc.inputs.kinds import kind_of_option, kinds_by_columns
from tg_mlc.inputs.schema import Hints, Schema, match_names
from tg_mlc.inputs.tables import Table, read_blocks

_TAB = (r"\t", "\t")  # which is hard to type


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

    def targets(self, table: Table, label_names: list[str], others: dict[str, set[str]]) -> np.ndarray:
        """The labels of some rows, without other names, which are collected by row."""
        if self.separator is None and self.labels == label_names:
            return table.labels(match_names(label_names, table.header, f"'{table.path}'"))
        sets = table.label_sets(self.labels[0], self.separator)
        unknown = [(found or set()).difference(label_names, ROOTS) for found in sets]
        others.update((table.where(row), found) for row, found in enumerate(unknown) if found)
        return read_labels([found and found.intersection(label_names) for found in sets], label_names)[0]

    def given(self, table: Table, label_names: list[str], names: str) -> np.ndarray:
        """The labels :math:`(N, L)` that the named columns of labels give, NaN for others and where a cell is blank; of
        a column that lists names, these alone.
        """
        wanted = label_names if self.separator is None else self.labels
        chosen = [name for name in wanted if name in table.header] if names == "all" else split_names(names)
        if not chosen or not {*chosen} <= {*wanted}:
            got = f"{chosen or 'none'} among the columns of '{table.path}'"
            hint = "; write the values into such columns of the file" if "=" in names else ""
            raise ValueError(f"Expected --given to name columns of labels, such as {wanted[:5]} (got {got}){hint}")
        values = np.full((len(table), len(label_names)), np.nan)
        if self.separator is None:
            found = table.labels(match_names(chosen, table.header, f"'{table.path}'"))
            values[:, [label_names.index(name) for name in chosen]] = found
            return values
        for row, listed in enumerate(table.label_sets(chosen[0], self.separator)):
            if unknown := sorted((listed or set()).difference(label_names)):
                raise ValueError(f"Expected labels that the model knows in {table.where(row)} (got {unknown[:5]})")
            values[row, [label_names.index(name) for name in listed or ()]] = 1.0
        return values

    def raw(self, table: Table) -> Any:
        """The raw inputs of some rows."""
        if not self.input_kind.reads_columns:
            return table.documents(match_names(self.columns[:1], table.header, f"'{table.path}'")[0])
        columns = [column.name for column in Schema.of_names(self.columns, table.header).inputs]
        found = match_names(columns, table.header, f"'{table.path}'")
        return require("pandas", extra="data").DataFrame(table.cells(found))


class Scores:
    """The scores of the rows of a file, some at a time, with a bar that shows the time left.

    Rows that cannot be read have NaN, and are reported and counted, or an error if it :obj:`stops` there. Labels that
    the file gives, in columns that :obj:`given` names as of :meth:`Inputs.given`, have the last place.
    """

    def __init__(
        self,
        predictor: Predictor,
        inputs: Inputs,
        path: str,
        batch_size: int,
        *,
        stops: bool = False,
        given: str | None = None,
        coherent: bool | None = None,
    ) -> None:
        self.predictor, self.inputs, self.path, self.batch_size = predictor, inputs, Path(path), batch_size
        self.stops, self.given, self.coherent = stops, given, coherent
        self.num_done, self.num_refused = 0, 0  #: blocks of the file to pass over, and rows that could not be read

    def __iter__(self) -> Iterator[tuple[Table, np.ndarray, dict[int, str], np.ndarray | None]]:
        total = None  # of lines
        if self.path.suffix not in (".gz", ".bz2", ".xz") and self.path.is_file():
            with self.path.open("rb") as file:
                total = sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b""))
        with tqdm(total=total, desc="Predicting", unit="row", disable=None, leave=False) as bar:
            tables = read_blocks(self.path, self.inputs.delimiter, self.inputs.encoding)
            for table in islice(tables, self.num_done):
                bar.update(len(table))
            for table in tables:
                names, raw = self.predictor.label_names, self.inputs.raw(table)
                known = None if self.given is None else self.inputs.given(table, names, self.given)
                if known is not None and not np.isnan(known).any():
                    scores, refused = known.copy(), self.predictor.unreadable(raw)  # nothing is left to predict
                    scores[[*refused]] = np.nan
                else:
                    scores, refused = self.predictor.readable_scores(raw, known, self.batch_size, self.coherent)
                for row, reason in refused.items():
                    if self.stops:
                        raise ValueError(f"Expected rows that can be read (got {table.where(row)}: {reason})")
                    if self.num_refused < MOST_SHOWN:
                        tqdm.write(f"tg-mlc: cannot read {table.where(row)}: {reason}", file=sys.stderr)
                    self.num_refused += 1
                yield table, scores, refused, known
                bar.update(len(table))

    def status(self, what_became: str) -> int:
        """Says how many rows were refused and what became of them, and returns the exit status: 1 if there are any."""
        if self.num_refused:
            rows, are = ("row", "is") if self.num_refused == 1 else ("rows", "are")
            message = f"{self.num_refused} {rows} could not be read as {self.inputs.input_kind.noun}"
            print(f"tg-mlc: {message} and {are} {what_became}", file=sys.stderr)  # noqa: T201
        return int(self.num_refused > 0)


def given_values(given: str) -> dict[str, str]:
    """The labels of ``nausea=1,rash=0``."""
    pairs = [pair.rpartition("=") for pair in given.split(",")]
    if wrong := [name + mark + value for name, mark, value in pairs if not name or value.strip() not in ("0", "1")]:
        raise ValueError(f"Expected --given as in nausea=1,rash=0, with 1 or 0 for each label (got '{wrong[0]:.60}')")
    return {name.strip(): value.strip() for name, _, value in pairs}


def calibration_of(predictor: Predictor) -> str:
    """Whether probabilities are calibrated for each label, and by what, in words."""
    counts = predictor.scorer.calibration_methods.items()
    how = ", ".join(f"{number} by {name}" if name != "identity" else f"{number} as it was" for name, number in counts)
    return f"calibrated for each label ({how})" if how else "not calibrated for each label"


MOST_SHOWN = 20  #: rows that are named because they cannot be read; all of them are counted


def one_file(csv: str | None, arff: str | None) -> str:
    """The file of --csv or --arff."""
    if csv is None and arff is None:
        raise ValueError("Expected --csv, or --arff, with the file (got none)")
    if csv is not None and arff is not None:
        raise ValueError(f"Expected one of --csv and --arff (got --csv {csv}, --arff {arff})")
    if arff is not None and ".arff" not in map(str.lower, Path(arff).suffixes):
        raise ValueError(f"Expected a name that ends in .arff, perhaps compressed, for --arff (got '{arff}')")
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
            raise ValueError(f"Expected '{options.arff}' to say which attributes are labels (got none); {hint}")
        options = replace(options, labels=labels)
        file = replace(file, label_separator="@") if are_paths else file
    return options, file


def make_inputs(options: TrainOptions, file: FileFlags) -> Inputs:
    """Checks the options that say where inputs and labels are."""
    options_of = kinds_by_columns()
    given = [option for option in options_of if getattr(options, option, None) is not None]
    if len(given) > 1:
        raise ValueError(f"Expected one of --smiles, --text, --dna and --features (got {given})")
    [option] = given or ["features"]
    kind = options_of[option]
    columns, names = split_names(getattr(options, option) or []), split_names(options.labels or [])
    if file.label_separator is not None and (len(names) != 1 or not kind.lists_labels):
        expected = "--label_separator with one column of names in --labels, and texts or numbers"
        raise ValueError(f"Expected {expected} (got {option}, {names})")
    if file.label_separator is None:
        check_label_names(names, None)
    columns = columns if kind.reads_columns else [getattr(options, option)]
    return Inputs(kind.option, columns, names, file.label_separator)


def file_options(file: FileFlags) -> FileOptions:
    """How a file is to be read."""
    left, ids, names = (split_names(value or []) for value in (file.ignore, file.id, file.categorical))
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
        file.label_separator, file.label_paths, delimiter, file.encoding, file.max_lost, hints, file.hierarchy
    )


def check_label_names(names: list[str], separator: str | None) -> None:
    """Refuses names that would leave open what "predict --csv" writes."""
    mark = separator or ";"
    for name in names:
        if name in ("predicted", "reason") or mark in name:
            why = f"'predict --csv' writes the columns 'predicted', with '{mark}' between names, and 'reason'"
            raise ValueError(f"Expected another name for the label '{name}', because {why}; rename it in the file")


def inputs_of(predictor: Predictor, model: str, delimiter: str | None, encoding: str | None) -> Inputs:
    """Where a model that the command line trained found its inputs; other files may have another delimiter."""
    if "inputs" not in predictor.facts:
        expected = f"'{model}' to be trained by 'tg-mlc train', which writes down what its inputs are"
        raise ValueError(f"Expected {expected} (got a model that does not say so); use it with tg_mlc.load")
    inputs = Inputs(**predictor.facts["inputs"])
    return inputs._replace(delimiter=None if delimiter is None else delimiter.replace(*_TAB), encoding=encoding)


def one_input(inputs: Inputs, csv: str | None, **options: str | None) -> str | None:
    """The one input among options named by kinds, which the model has to take; :obj:`None` if there is a file."""
    found = {name: value for name, value in options.items() if value is not None}
    wanted = "csv" if inputs.input_kind.reads_columns else f"{inputs.kind} or --csv"
    if len(found) + (csv is not None) != 1 or not found.keys() <= {inputs.kind}:
        got = ", ".join(f"--{name}" for name in [*found, *(["csv"] if csv is not None else [])]) or "none"
        raise ValueError(f"Expected --{wanted} for a model of {inputs.kind} (got {got})")
    if csv is not None:
        return None
    [value] = found.values()
    try:
        inputs.input_kind.check(value)
    except ValueError as error:
        expected = f"an input that can be read for --{inputs.kind}"
        raise ValueError(f"Expected {expected} (got '{value:.60}': {error})") from error
    return value


def split_names(names: str | list[str]) -> list[str]:
    """Names between commas."""
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
