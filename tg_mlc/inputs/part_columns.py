"""The columns of the parts of rows: which kind of input they hold, and their raw inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tg_mlc._frames import as_frame
from tg_mlc._numbers import is_missing
from tg_mlc._optional import require
from tg_mlc._options import argument, check_choice
from tg_mlc._warnings import collected_warnings
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.parts import KIND
from tg_mlc.inputs.cells import WHERE, Where, array_of, clean
from tg_mlc.inputs.kind import InputKind
from tg_mlc.inputs.registry import claimed, kinds_by_option
from tg_mlc.inputs.rows import text_of
from tg_mlc.inputs.schema import (
    INPUTS,
    Hints,
    Role,
    Schema,
    cells_of,
    check_unique,
    is_dense_frame,
    match_names,
)


class PartColumns(NamedTuple):
    """The kind of a part, and its columns."""

    kind: type[InputKind]
    names: list[str]

    def samples(
        self,
        inputs: PartInputs,
        y: np.ndarray,
        label_names: Sequence[str],
        schema: Schema,
        train: np.ndarray | None,
    ) -> MultiLabelDataset:
        """Returns the training samples of the part. :obj:`train` holds rows of the table."""
        own_train = None if train is None else np.flatnonzero(np.isin(inputs.rows, train))
        options: Any = {"train": own_train}
        if self.kind.reads_columns:
            own = Schema([c for c in schema.inputs if c.name in self.names])
            options["feature_names"] = own.feature_names
            dataset = self.kind.samples(own.matrix(inputs.raw), y, label_names, **options)
            dataset.schema = own
            return dataset
        [name] = self.names
        self.kind.check_column(name, inputs.raw)
        form = next((form.kind for form in self.kind.forms.values() if not form.is_matrix), None)
        try:
            X = self.kind.split(inputs.raw)
            return self.kind.samples(X, y, label_names, form, **options)
        except ValueError:
            for row, reason in self.kind.refused(inputs.raw).items():
                where = f"in row {inputs.rows[row]}, column '{name}'"
                raise ValueError(f"{reason} {where}") from None
            raise


class PartInputs(NamedTuple):
    """The raw inputs of a part."""

    raw: Any  #: inputs of the rows that have the part: a list, or a table of its columns
    rows: list[int]  #: these rows


def as_table(raw: Any) -> Any:
    """Returns rows as a data frame of pandas."""
    pandas = require("pandas", extra="data")
    if isinstance(raw, (list, tuple)) and raw and all(isinstance(row, Mapping) for row in raw):
        names = list(raw[0])
        if different := [row for row in raw if row.keys() != raw[0].keys()]:
            got = f"(got {names[:5]} and {[*different[0]][:5]})"
            raise ValueError(f"Expected rows with the same columns {got}; write None for blanks")
        return pandas.DataFrame({name: [row[name] for row in raw] for name in names})
    frame = as_frame(raw)
    if not is_dense_frame(frame):
        got = f"a {type(raw).__name__}"
        raise ValueError(f"Expected a data frame or a list of dictionaries (got {got})")
    return frame if hasattr(frame, "iloc") else pandas.DataFrame(cells_of(frame))


def as_names(value: str | Sequence[str]) -> list[str]:
    """Returns the columns that an option names: one, or several."""
    return [value] if isinstance(value, str) else list(value)


def part_kinds() -> dict[str, type[InputKind]]:
    """Returns the kinds that a part may have, by their options."""
    return {name: kind for name, kind in kinds_by_option().items() if kind.option != KIND}


def infer_columns(cells: Mapping[str, np.ndarray], hints: Hints) -> dict[str, list[str]]:
    """Returns the columns of each kind by its option, by the cells of columns."""
    schema = infer_schema(cells, hints)
    claims = {column.name: kind for column, kind in claimed(schema, cells)}
    options, columns = part_kinds(), dict[str, list[str]]()
    for column in schema.columns:
        if column.name in claims:
            kind = claims[column.name]
        elif column.role in INPUTS:
            kind = next(kind for kind in options.values() if kind.reads_columns)
        elif column.role == "refused":
            raise ValueError(column.reason)
        else:
            continue
        option = next(name for name, other in options.items() if other is kind)
        columns.setdefault(option, []).append(column.name)
    return columns


def infer_schema(cells: Mapping[str, np.ndarray], hints: Hints) -> Schema:
    """Returns the schema of columns if all were numbers or categories, without warnings."""
    with collected_warnings():
        return Schema.infer(cells, {}, hints, strict=False)


def columns_of(columns: Mapping[str, Any], header: Sequence[str]) -> dict[str, PartColumns]:
    """Returns the parts by their names, given the columns of each kind by its option.

    A part with one column has its name; a part with several columns is named by the option.

    Raises:
        ValueError: If an option is unknown, a column is missing or used twice, or a column has the
            name of another part.
    """
    kinds, parts = part_kinds(), dict[str, PartColumns]()
    for option, value in columns.items():
        check_choice("kind", option, tuple(kinds))
        kind, names = kinds[option], match_names(as_names(value), header)
        check_unique([*names, *(name for part in parts.values() for name in part.names)])
        for part in [option] if kind.reads_columns else names:
            if part in parts:
                got = f"'{part}', which names the columns of --{option} or the option itself"
                raise ValueError(f"Expected another name for the column (got {got}); rename it")
            parts[part] = PartColumns(kind, names if kind.reads_columns else [part])
    if not parts:
        raise ValueError("Expected columns of at least one kind (got none)")
    return parts


def schema_of(
    parts: Mapping[str, PartColumns],
    cells: Mapping[str, np.ndarray],
    hints: Hints,
    where: Where = WHERE,
    labels: Mapping[str, Role] | None = None,
) -> Schema:
    """Returns the schema of a table; columns that are no part and no label are skipped."""
    used = {name: part.kind for part in parts.values() for name in part.names}
    if skipped := [name for name in (*hints.ignore, *hints.ids) if name in used]:
        expected = f"columns of inputs that {argument('ignore')} and 'id' do not name"
        raise ValueError(f"Expected {expected} (got {skipped[:5]})")
    roles: dict[str, Role] = {name: "ignored" for name in cells if name not in used}
    roles |= {name: kind.role for name, kind in used.items() if not kind.reads_columns}
    # The features are chosen, but a specified schema has already decided what they are.
    is_chosen = hints.schema is None
    schema = Schema.infer(cells, {**roles, **(labels or {})}, hints, where, chosen=is_chosen)
    for column in schema.columns:
        if column.role == "ignored" and column.name in roles:
            column.reason = "not asked for"
    for part in parts.values():
        if part.kind.reads_columns and not {*part.names} & {c.name for c in schema.inputs}:
            raise ValueError(f"Expected a column of inputs among {part.names[:5]} (got none)")
    return schema


def read_parts(
    table: Any, parts: Mapping[str, PartColumns]
) -> tuple[dict[str, PartInputs], dict[int, str]]:
    """Returns the raw inputs of each part, and by row why it has none.

    Args:
        table (Any): A data frame, or a list of dictionaries.
        parts (dict): The parts by name.
    """
    inputs, reasons = (_of_frame if hasattr(table, "iloc") else _of_rows)(table, parts)
    has_any = {row for part in inputs.values() for row in part.rows}
    columns = [name for part in parts.values() for name in part.names]
    for row in range(len(table)):
        if row not in has_any:
            why = f"Expected a value in one of the columns {columns[:10]} (got none)"
            reasons.setdefault(row, why)
    return inputs, dict(sorted(reasons.items()))


def _of_frame(
    frame: Any, parts: Mapping[str, PartColumns]
) -> tuple[dict[str, PartInputs], dict[int, str]]:
    header, inputs = [clean(str(name)) for name in frame.columns], dict[str, PartInputs]()
    for part, (kind, columns) in parts.items():
        names = match_names(columns, header)
        check_unique([name for name in header if name in names])
        own = frame.iloc[:, [header.index(name) for name in names]].set_axis(names, axis=1)
        cells = [array_of(own[name]) for name in names]
        if kind.reads_columns:
            is_present = ~np.logical_and.reduce([blank_cells(column) for column in cells])
            rows = np.flatnonzero(is_present).tolist()
            inputs[part] = PartInputs(own.iloc[rows], rows)
        else:
            inputs[part] = _present([text_of(cell) for cell in cells[0].tolist()])
    return inputs, {}


def _of_rows(
    table: Sequence[Any], parts: Mapping[str, PartColumns]
) -> tuple[dict[str, PartInputs], dict[int, str]]:
    values: dict[str, list[Any]] = {part: [None] * len(table) for part in parts}
    reasons = dict[int, str]()
    for row, entry in enumerate(table):
        try:
            if not isinstance(entry, Mapping):
                got = "nothing" if is_missing(entry) else f"a {type(entry).__name__}"
                raise ValueError(f"Expected a row, as a dictionary of its columns (got {got})")
            keys = {clean(str(name)): name for name in entry}
            check_unique([clean(str(name)) for name in entry])
            for part, (kind, columns) in parts.items():
                names = match_names(columns, list(keys))
                cells = {name: entry[keys[name]] for name in names}
                texts = [text_of(cell) for cell in cells.values()]
                is_blank_part = all(text is None for text in texts)
                value = cells if kind.reads_columns else texts[0]
                values[part][row] = None if is_blank_part else value
        except ValueError as error:
            reasons[row] = str(error)
            for cells_of_part in values.values():
                cells_of_part[row] = None
    return {part: _present(cells) for part, cells in values.items()}, reasons


def _present(inputs: list[Any]) -> PartInputs:
    rows = [row for row, entry in enumerate(inputs) if entry is not None]
    return PartInputs([inputs[row] for row in rows], rows)


def blank_cells(cells: np.ndarray) -> np.ndarray:
    """Tells which cells of a column are missing or blank."""
    if cells.dtype.kind in "biufmM":
        return np.isnan(cells) if cells.dtype.kind in "fmM" else np.zeros(len(cells), bool)
    return np.array([text_of(cell) is None for cell in cells.tolist()], bool)


def presence_of(inputs: Mapping[str, PartInputs], num_rows: int) -> Tensor:
    """Returns whether rows have each part :math:`(N, P)`."""
    is_present = torch.zeros(num_rows, len(inputs), dtype=torch.bool)
    for index, part in enumerate(inputs.values()):
        is_present[part.rows, index] = True
    return is_present
