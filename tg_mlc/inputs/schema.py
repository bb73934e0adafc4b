"""Schema: what each column of a table is, how that was decided, and how its cells become numbers."""

from __future__ import annotations

import logging
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from difflib import get_close_matches
from itertools import compress, groupby
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np

from tg_mlc._names import few
from tg_mlc._numbers import TRUTHS, is_blank, is_missing, parse_number
from tg_mlc._options import argument, check_choice
from tg_mlc._warnings import warn
from tg_mlc.inputs.notations import (
    PLAIN,
    AmbiguousError,
    Date,
    Duration,
    Notation,
    Number,
    Truth,
    candidates,
    find_notation,
    is_misspelled,
    looks_like,
    notation_of,
    plain_numbers,
)

logger = logging.getLogger(__name__)

Role = Literal["number", "category", "text", "molecule", "dna", "id", "label", "ignored", "refused"]
#: Names the place of a cell by its row and column.
Where: TypeAlias = Callable[[int, str], str]
WHERE: Where = "row {}, column '{}'".format
INPUTS = ("number", "category")  #: the roles of columns that become columns of a matrix
MAX_VALUES = 100  #: of a category; a column with more is likely to name samples
MOST_ALIKE = 30  #: columns in a row that are printed although they are read alike
MIN_ROWS = 10  #: of a table; fewer may have other cells in all rows by chance
_ID = re.compile(
    r"(?:.*[ _-])?(?:index|idx|row|no|nr|number|num|key)|(?:row|index)[ _-].*|#", re.IGNORECASE
)
_KEY = re.compile(r"(?i:(?:.*[ _-])?(?:id|guid|uuid)s?|id[ _-].*)|\w*[a-z]I[Dd]")
_HASH = re.compile(r"[0-9a-fA-F-]{16,}")  # as of UUIDs
_MEASURED = re.compile(r"[-+~<>≤≥±($€£\[]*\s*\.?[0-9]")  # how texts that measure something begin
_OPEN = re.compile(r"[0-9]+ ?\+|[0-9]+ ?[-\u2013] ?[0-9]+")  # ends of what is counted, as 5+
_APART = re.compile(
    r"(?:.*[ _-])?(?:split|fold|weight|partition|is_?train|is_?test|subset)s?", re.IGNORECASE
)
_UNNAMED = re.compile(r"(?:Unnamed: [0-9]+(?:\.[0-9]+)*)?(?:_level_[0-9]+)?")


@dataclass
class Column:
    """One column of a table."""

    name: str
    role: Role
    reason: str = "as told"  #: how the role was decided
    #: how its numbers are written, as :meth:`Notation.to_dict` says
    notation: dict[str, Any] | None = None
    values: list[str] = field(default_factory=list)  #: of a category
    example: str = ""
    missing: int = 0  #: the number of cells that say nothing

    @property
    def features(self) -> list[str]:
        """The names of the columns of the matrix that this one becomes."""
        if self.role == "category":
            return [f"{self.name}={value}" for value in self.values]
        return [self.name] if self.role == "number" else []

    @property
    def notes(self) -> str:
        """How the column is read, in a few words."""
        if self.role == "category":
            return f"{len(self.values)} values: {', '.join(self.values[:5])}{', ...' if len(self.values) > 5 else ''}"
        if self.role == "number" and self.notation is not None:
            return str(notation_of(self.notation))
        return "see below" if self.role == "refused" else self.reason


@dataclass
class Hints:
    """A person's choices about columns, which are inferred otherwise."""

    ignore: Collection[str] = ()  #: columns to leave out
    #: columns whose values are names, even if they are written as numbers
    categorical: Collection[str] = ()
    ids: Collection[str] = ()  #: columns that name the rows
    decimal: str | None = None  #: the mark of decimals, a dot or a comma
    delimiter: str | None = None  #: the mark between the cells of the file
    schema: Schema | None = None  #: all of the columns
    #: what has them: a person changes a data frame instead
    of: Literal["table", "frame", "arff"] = "table"

    def check(self, names: Sequence[str]) -> None:
        """Refuses columns that are not there."""
        for name in (*self.ignore, *self.categorical, *self.ids):
            if name not in names:
                raise ValueError(f"Expected a column {name!r} {instead(name, names)}")

    def drop(self, name: str) -> str:
        """How to leave a column out."""
        option = "drop" if self.of == "arff" else "ignore"
        return (
            f"drop it: X.drop(columns=[{name!r}])"
            if self.of == "frame"
            else f"leave it out: {argument(option, [name])}"
        )

    def as_names(self, name: str) -> str:
        """How to have the cells of a column taken as names."""
        made = f"make them a category: X[{name!r}] = X[{name!r}].astype(str).astype('category')"
        return made if self.of == "frame" else f"pass {argument('categorical', [name])}"

    def __post_init__(self) -> None:
        for name in ("ignore", "categorical", "ids"):
            if isinstance(getattr(self, name), str):
                raise ValueError(
                    f"Expected '{name}' to be a list of columns (got the string {getattr(self, name)!r})"
                )
        check_choice("decimal", self.decimal, (None, ".", ","))
        beside = [name for name in ("categorical", "decimal") if getattr(self, name)]
        if self.schema is not None and beside:
            raise ValueError(
                f"Expected 'schema' or {beside}, not both (got both); change the roles in the schema"
            )


@dataclass
class Schema:
    """The columns of a table.

    It is inferred once from training rows, saved with a model, and holds for new rows.
    """

    columns: list[Column]

    @classmethod
    def infer(
        cls,
        frame: Mapping[str, Any],
        roles: Mapping[str, Role],
        hints: Hints | None = None,
        where: Where = WHERE,
        *,
        chosen: bool = False,
        strict: bool = True,
    ) -> Schema:
        """Decides what each column is, from arrays of cells by the names of columns and the roles that are known, such
        as those of labels. No column is left out if a person has :obj:`chosen` those of inputs. A column that cannot be
        read is refused, or only noted unless :obj:`strict`.
        """
        hints = hints or Hints()
        hints.check(list(frame))
        roles = {
            **roles,
            **dict.fromkeys(hints.ids, "id"),
            **dict.fromkeys(hints.ignore, "ignored"),
        }
        if hints.schema is not None:
            return hints.schema._told(frame, roles, chosen=chosen)
        columns = []
        for place, (name, cells) in enumerate(frame.items()):
            if name in roles:
                columns.append(Column(name, roles[name], **_seen(texts_of(cells))))
            else:
                try:
                    columns.append(_infer(name, cells, place, hints, where, chosen))
                except ValueError as error:
                    if strict:
                        raise
                    columns.append(Column(name, "refused", str(error), **_seen(texts_of(cells))))
        return cls(columns)

    @classmethod
    def of_names(cls, names: Iterable[str], columns: Collection[str]) -> Schema:
        """The schema of a matrix by the names of its columns, of which ``column=value`` is one of a category."""
        found: dict[str, Column] = {}
        for name in names:
            source = column_of(name, columns)
            if source == name:
                found[name] = Column(name, "number", notation=PLAIN.to_dict())
            else:
                found.setdefault(source, Column(source, "category")).values.append(
                    name[len(source) + 1 :]
                )
        return cls(list(found.values()))

    def _told(self, frame: Mapping[str, Any], roles: Mapping[str, Role], *, chosen: bool) -> Schema:
        """The columns of a table that this schema is of, of which a person names some beside it, whose roles win."""
        if chosen and (others := [name for name in frame if name not in roles]):
            raise ValueError(
                f"Expected 'schema' or the names of columns of inputs (got both, and {others[:5]})"
            )
        others = [] if chosen else [column.name for column in self.inputs]
        place = dict(zip(others, match_names(others, list(frame)), strict=True))
        columns = []
        for column in self.columns:
            name = place.get(column.name, column.name)
            role: Role = "ignored" if chosen and column.role in INPUTS else column.role
            told = {"role": roles[name], "reason": "as told"} if name in roles else {"role": role}
            columns.append(replace(column, name=name, **told))
        return Schema(columns)

    @property
    def inputs(self) -> list[Column]:
        """The columns that become those of a matrix."""
        return [column for column in self.columns if column.role in INPUTS]

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns of the matrix."""
        return [name for column in self.inputs for name in column.features]

    @property
    def is_plain(self) -> bool:
        """Tells whether the matrix has every column of the table as it is, so that a matrix may stand for a table."""
        return all(
            each.role == "number" and each.notation == PLAIN.to_dict() for each in self.columns
        )

    def matrix(
        self, frame: Mapping[str, Any], where: Where = WHERE, refused: dict[int, str] | None = None
    ) -> np.ndarray:
        """Returns the columns of a table, found by name, as a matrix of numbers: NaN where unknown, and 0 in all
        columns of a category.

        Args:
            frame (Mapping): Arrays of cells by the names of columns.
            where (callable, optional): Names the place of a cell. (default: :obj:`WHERE`)
            refused (dict, optional): Takes the reasons, by rows, of cells that cannot be read.
                (default: :obj:`None`, they are an error)

        Raises:
            ValueError: If a column is missing or there twice, or a cell cannot be read.
        """
        rows = len(next(iter(frame.values()))) if len(frame) else 0
        parts = [np.empty((rows, 0))]
        for column, name in self._found(frame):
            if column.role == "category":
                parts.append(_one_hot(column, frame[name]))
            else:
                parts.append(_numbers(column, frame[name], where, refused)[:, None])
        return np.concatenate(parts, axis=1)

    def matrix_of_rows(
        self, cells: Mapping[str, Sequence[Any]], refused: dict[int, str]
    ) -> np.ndarray:
        """Returns the matrix of rows that are read one by one: a cell is read by its own type, as in a table of its row
        alone, not by the type of its column.

        Args:
            cells (Mapping): Lists of cells by the names of columns.
            refused (dict): Takes the reasons, by rows, of cells that cannot be read.

        Raises:
            ValueError: If a column is missing or there twice.
        """
        rows = len(next(iter(cells.values()))) if len(cells) else 0
        parts = [np.empty((rows, 0))]
        numbers = list[Sequence[float]]()  # Columns side by side are read at once.
        for column, name in self._found(cells):
            if _are_numbers(column, cells[name]):
                numbers.append(cells[name])
                continue
            if numbers:
                parts.append(np.array(numbers, dtype=np.float64).T)
                numbers = []
            single = _single_cells(column, cells[name], refused)
            if column.role == "category":
                parts.append(_one_hot(column, single))
            else:
                parts.append(_numbers_by_cell(column, single, refused)[:, None])
        if numbers:
            parts.append(np.array(numbers, dtype=np.float64).T)
        return np.concatenate(parts, axis=1)

    def _found(self, frame: Mapping[str, Any]) -> Iterable[tuple[Column, str]]:
        """The columns of inputs, with their names in a new table."""
        inputs, names = self.inputs, [column.name for column in self.columns]
        found = match_names([column.name for column in inputs], list(frame), others=names)
        return zip(inputs, found, strict=True)

    def announce(self) -> None:
        """Says which columns are left out, and which are read in a way that is not obvious."""
        for line in self.summary():
            logger.info("%s", line)

    def summary(self) -> list[str]:
        """The columns in a few lines, for people."""
        left = [
            f"'{each.name}' ({each.reason})"
            for each in self.columns
            if each.role in ("id", "ignored")
        ]
        read = [
            f"'{each.name}' ({each.notes})"
            for each in self.inputs
            if each.role == "category" or _is_odd(each)
        ]
        numbers = [each.name for each in self.inputs if each.role == "number" and not _is_odd(each)]
        codes = [f"'{each.name}'" for each in self.inputs if each.reason == _CODES]
        lines = [f"Columns of numbers: {few(numbers, 8)}."] if numbers else []
        lines += [f"Columns read as categories or otherwise: {few(read, 8)}."] if read else []
        lines += [f"Left out: {few(left, 8)}."] if left else []
        if codes:
            lines.append(
                f"Columns of few whole numbers, taken as numbers: {few(codes, 8)}; if they are codes of categories, "
                f"name them as {argument('categorical')}, or write them as texts that are no numbers."
            )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Plain data, from which :meth:`from_dict` makes it again."""
        return {"columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Schema:
        """The schema of :meth:`to_dict`, also of a file that a person has changed."""
        columns = []
        for each in entry["columns"]:
            unknown = set(each) - set(Column.__dataclass_fields__)
            if unknown or "name" not in each or each.get("role") not in Role.__args__:  # type: ignore[attr-defined]
                raise ValueError(
                    f"Expected a column with a 'name' and one of the roles {Role.__args__} (got {each})"
                )  # type: ignore[attr-defined]
            if each["role"] == "refused":
                raise ValueError(
                    f"Expected another role of column '{each['name']}' (got 'refused': {each['reason']})"
                )
            columns.append(Column(**each))
        return cls(columns)

    def __str__(self) -> str:
        rows = []
        for (role, notes), run in groupby(self.columns, lambda each: (each.role, each.notes)):
            alike = list(run)
            shown = alike if len(alike) <= MOST_ALIKE else alike[:3]
            rows += [
                (each.name or "(no name)", role, notes, each.example, str(each.missing))
                for each in shown
            ]
            if shown != alike:
                missing = sum(each.missing for each in alike[3:])
                rows.append((f"({len(alike) - 3:,} more)", role, notes, "", str(missing)))
        header = ("column", "role", "read as", "example", "missing")
        widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (header, *rows)]
        return "\n".join(
            [
                *lines,
                *(f"Refused: {each.reason}." for each in self.columns if each.role == "refused"),
            ]
        )


_CODES = "few whole numbers with gaps"
_TIMES = ("date", "time", "duration")


def _is_odd(column: Column) -> bool:
    return column.notation is not None and column.notation != PLAIN.to_dict()


def instead(name: str, names: Sequence[str]) -> str:
    """The names that there are in place of a missing one, and which of them may be meant."""
    close = get_close_matches(name, names, 1)
    mark = next((mark for mark in ":~^;,|\t " if mark in names[0]), "") if len(names) == 1 else ""
    if mark:
        hint = f"; if {mark!r} stands between cells, pass {argument('delimiter', mark)}"
    elif names and all(parse_number(each) is not None for each in names):
        hint = "; does the file lack a line with the names of columns?"
    else:
        hint = f"; is {close[0]!r} meant?" if close else ""
    return f"(got the columns {list(names)[:20]}){hint}"


def match_names(
    wanted: Sequence[str],
    names: Sequence[str],
    source: str = "",
    others: Collection[str] | None = None,
) -> list[str]:
    """Returns the columns of a new table that have the names of old ones, or else differ in case and spaces alone.

    Args:
        wanted (Sequence[str]): The names of the old columns.
        names (Sequence[str]): Those of the new table.
        source (str, optional): The form of the table, for messages. (default: :obj:`""`)
        others (Collection[str], optional): All names of the old table. A wanted column must then not be there under a
            second spelling that the old table did not have. (default: :obj:`None`, the exact spelling wins)

    Raises:
        ValueError: If a column is missing, or several are spelled like one.
    """
    known, found, missing = set(names), list[str](), list[str]()
    is_exact = known.issuperset(wanted)
    if is_exact and len(known) == len(wanted):
        return list(wanted)
    folded = by_spelling(names) if others is not None or not is_exact else {}
    for name in wanted:
        alike = [name] if name in known else folded.get(_folded(name), [])
        if others is not None:
            alike = [
                one for one in folded.get(_folded(name), []) if one == name or one not in others
            ]
        if len(alike) > 1:
            raise ValueError(
                f"Expected one column {name!r} (got {alike}, which differ in case or spaces alone)"
            )
        found += alike
        missing += [] if alike else [name]
    if missing:
        of, unused = (
            f" in {source}" if source else "",
            [name for name in names if name not in found],
        )
        near = next((name for name in missing if get_close_matches(name, unused, 1)), missing[0])
        raise ValueError(f"Expected the columns {missing[:20]}{of} {instead(near, names)}")
    return found


def by_spelling(names: Iterable[str]) -> dict[str, list[str]]:
    """Names that differ in case and spaces alone, together."""
    folded: dict[str, list[str]] = {}
    for name in names:
        folded.setdefault(_folded(name), []).append(name)
    return folded


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()


def column_of(name: str, columns: Collection[str]) -> str:
    """The column that a name of a matrix is of, which may be missing; the name itself if it is a column."""
    if name in columns:
        return name
    return next((one for one in columns if name.startswith(f"{one}=")), name.partition("=")[0])


def is_dense_frame(X: Any) -> bool:
    """Tells whether inputs are a data frame whose columns a schema can read."""
    dtypes = list(X.dtypes) if hasattr(X, "columns") and hasattr(X, "dtypes") else []
    return bool(dtypes) and not any(
        type(dtype).__name__ == "SparseDtype" or getattr(dtype, "kind", "") == "c"
        for dtype in dtypes
    )


def is_mixed_frame(X: Any) -> bool:
    """Tells whether inputs are a data frame of which some columns have no numbers."""
    return is_dense_frame(X) and any(
        getattr(dtype, "kind", "O") not in "biuf" for dtype in X.dtypes
    )


def hints_of(frame: Any, names: Iterable[str]) -> Hints:
    """Tells that columns of a data frame, by their names, are categories if their type says so, of texts."""
    types = [
        (type(dtype).__name__, np.asarray(getattr(dtype, "categories", ())))
        for dtype in frame.dtypes
    ]
    of_texts = (kind == "CategoricalDtype" and values.dtype.kind in "OU" for kind, values in types)
    are_names = (
        found or kind in ("Categorical", "Enum")
        for found, (kind, _) in zip(of_texts, types, strict=True)
    )
    return Hints(categorical=list(compress(names, are_names)), of="frame")


def cells_of(frame: Any) -> dict[str, np.ndarray]:
    """The cells of a data frame, of pandas or polars, by the names of columns without outer spaces."""
    names = [clean(str(name)) for name in frame.columns]
    if several := repeated(names):
        raise ValueError(
            f"Expected every column to be used once (got {several[:5]} more than once)"
        )
    cells = {}
    for name, own in zip(names, frame.columns, strict=True):
        series, options = frame[own], dict[str, Any]()
        kind, is_numpy = getattr(series.dtype, "kind", "O"), isinstance(series.dtype, np.dtype)
        if kind == "M" and getattr(series.dtype, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        elif kind in "biuf" and not is_numpy and hasattr(series, "isna") and series.isna().any():
            options = {"dtype": np.float64, "na_value": np.nan}
        cells[name] = np.asarray(series.to_numpy(**options))
    return cells


def repeated(names: Sequence[str]) -> list[str]:
    """The names that occur more than once."""
    return (
        []
        if len({*names}) == len(names)
        else [name for name, count in Counter(names).items() if count > 1]
    )


def texts_of(cells: np.ndarray) -> list[str]:
    """The texts of cells, blank where missing."""
    return [
        "" if is_missing(cell) else cell if type(cell) is str else str(cell)
        for cell in cells.tolist()
    ]


def clean(text: str) -> str:
    """A text without outer spaces, in the usual one of the ways in which Unicode writes accents."""
    text = text.strip()
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _seen(cells: Sequence[str]) -> dict[str, Any]:
    told = (cell.strip() for cell in cells if not is_blank(cell))
    return {"example": next(told, "")[:40], "missing": sum(map(is_blank, cells))}


def _infer(
    name: str, cells: np.ndarray, place: int, hints: Hints, where: Where, chosen: bool
) -> Column:
    """The rules, in their order."""
    has_types = cells.dtype.kind in "biufmM"
    if has_types:
        known = cells[~np.isnan(cells)]  # which knows NaT, too
        notation = {"M": Date(), "m": Duration()}.get(cells.dtype.kind, PLAIN)
        column = Column(
            name, "number", "numbers", notation.to_dict(), missing=len(cells) - len(known)
        )
        first = known[:1].astype("m8[us]").tolist() if cells.dtype.kind == "m" else known[:1]
        column.example = "".join(map(str, first))
        texts = [_whole(text) for text in texts_of(cells)] if name in hints.categorical else []
    else:
        texts = _single_texts(name, cells, where, hints)
        column = Column(name, "number", **_seen(texts))
    unique = list(dict.fromkeys(cell for cell in texts if not is_blank(cell)))
    if name in hints.categorical:
        return _category(column, unique, "as told", hints)
    if column.missing == len(cells):
        return replace(column, role="ignored", reason="has no value")
    if not has_types:
        column = _read_texts(column, texts, unique, hints, where)
    values = _numbers(column, cells, where, None) if column.role == "number" else None
    if _UNNAMED.fullmatch(name) and not chosen:
        if column.role == "id" or (values is not None and _differ(values)):
            return replace(column, role="id", reason="an index without a name")
        got = f"no name for numbers or texts that repeat); name it, or {hints.drop(name)}"
        raise ValueError(f"Expected a name for column {place + 1} (got {got}")
    if chosen and column.role == "id" and len(unique) <= MAX_VALUES:
        return replace(column, role="category", values=sorted(unique))
    column = column if chosen else judge(column, values, len(cells), hints)
    if column.role == "number" and values is not None:
        _keep_apart(column, values, hints)
    return column


def read_numbers(name: str, cells: np.ndarray, where: Where) -> tuple[str, np.ndarray]:
    """The form of :class:`~tg_mlc.inputs.notations.Notation` that all texts of a column have, and their numbers; a
    :class:`ValueError` if they have none, caused by an :class:`~tg_mlc.inputs.notations.AmbiguousError` if two.
    """
    hints = Hints()
    texts = _single_texts(name, cells, where, hints)
    unique = list(dict.fromkeys(cell for cell in texts if not is_blank(cell)))
    column = _read_texts(Column(name, "number", **_seen(texts)), texts, unique, hints, where)
    if column.role != "number" or column.notation is None:
        raise ValueError(f"Expected numbers in column '{name}' (got texts)")
    return str(column.notation["form"]), _numbers(column, cells, where, None)


def _single_texts(name: str, cells: np.ndarray, where: Where, hints: Hints) -> list[str]:
    """The texts of a column, of which a minus sign stands for nothing if all others are numbers."""
    for row, cell in enumerate(cells.tolist()):
        if isinstance(cell, (list, dict, set, np.ndarray)):
            got = f"{str(cell)[:60]} in {where(row, name)}"
            raise ValueError(f"Expected one value in every cell (got {got}); {hints.drop(name)}")
    texts = [clean(cell) for cell in texts_of(cells)]
    others = {cell.lower() for cell in texts if cell != "-" and not is_blank(cell)}
    are_numbers = all(any(map(str.isdigit, cell)) for cell in others)
    if others and "-" in texts and (are_numbers or others in map(set, TRUTHS)):
        return ["" if cell == "-" else cell for cell in texts]
    return texts


def judge(column: Column, values: np.ndarray | None, num_rows: int, hints: Hints) -> Column:
    """Leaves out or warns of columns that are likely to number, divide or weigh the rows."""
    if _APART.fullmatch(column.name) and num_rows >= MIN_ROWS:
        told = f"Column '{column.name}' has the name of one that divides or weighs the rows"
        _warn(f"{told}. If it does, {hints.drop(column.name)}")
    if values is None:
        return column
    if (reason := why_id(column.name, values)) is not None:
        return replace(column, role="id", reason=reason)
    is_number = column.notation is not None and column.notation["form"] == "number"
    if is_number and len(values) >= MIN_ROWS and (np.diff(values) == 1).all():
        _warn(
            f"Column '{column.name}' goes up by one from row to row. If it numbers the rows, {hints.drop(column.name)}"
        )
    known = np.unique(values[np.isfinite(values)])
    if is_number and len(known) > 2 and known[1] >= 0 and re.fullmatch("-9+", f"{known[0]:.15g}"):
        _warn(
            f"Column '{column.name}' has {known[0]:.15g} and no other number below 0. If it says that nothing is "
            "known, leave these cells blank"
        )
    is_few = len(values) >= 2 * MIN_ROWS and 3 <= len(known) <= 10
    if (
        column.notation == PLAIN.to_dict()
        and is_few
        and (known % 1 == 0).all()
        and (np.diff(known) > 1).any()
    ):
        column.reason = _CODES
    return column


def why_id(name: str, values: np.ndarray) -> str | None:
    """The reason why numbers name the rows, by the name of their column; nothing if they do not."""
    known = values[np.isfinite(values)]
    if not (known % 1 == 0).all() or np.isin(known, (0, 1)).all():
        return None
    differ, are_many = _differ(values), len(values) >= MIN_ROWS
    if _KEY.fullmatch(name) and (differ or are_many):
        return f"{'another whole number in each row' if differ else 'whole numbers'}, under the name of an id"
    is_id = differ and are_many and _ID.fullmatch(name) is not None
    return "another whole number in each row, under the name of a number" if is_id else None


def _keep_apart(column: Column, values: np.ndarray, hints: Hints) -> None:
    """Counts dates from the first one, or warns of whole numbers, if single precision takes two values for one."""
    is_date = column.notation is not None and column.notation["form"] == "date"
    known = np.unique(values[np.abs(values) < np.finfo(np.float32).max])
    if len(known) < 2 or not (
        is_date or (np.abs(known[[0, -1]]).max() > 2**24 and (known % 1 == 0).all())
    ):
        return
    same = np.flatnonzero(np.diff(known.astype(np.float32)) == 0)
    if same.size and is_date:
        column.notation = {**(column.notation or {}), "since": float(np.floor(known[0]))}
    elif same.size:
        pair = " and ".join(f"{value:.15g}" for value in known[same[0] : same[0] + 2])
        _warn(
            f"Column '{column.name}' has whole numbers that 32-bit floats cannot tell apart, such as {pair}. If they "
            f"are names, {hints.as_names(column.name)}; otherwise, subtract the smallest"
        )


def _differ(values: np.ndarray) -> bool:
    return len(values) > 1 and not np.isnan(values).any() and len(np.unique(values)) == len(values)


def _read_texts(
    column: Column, texts: list[str], unique: list[str], hints: Hints, where: Where
) -> Column:
    """Texts as numbers, categories, or names of rows."""
    name = column.name
    names = f"{hints.as_names(name)} if these are names, or " if len(unique) <= MAX_VALUES else ""
    hint = names + hints.drop(name)
    if all(cell.isdigit() for cell in unique) and any(
        len(cell) > 1 and cell[0] == "0" for cell in unique
    ):
        return _category(column, unique, "digits with leading zeros are names", hints)
    try:
        notation = find_notation(unique, hints.decimal, hints.delimiter)
    except AmbiguousError as error:
        got = f"{unique[0]!r} in {where(texts.index(unique[0]), name)}"
        raise ValueError(
            f"Expected cells that can be read in one way (got {error}, such as {got}); {hint}"
        ) from error
    if notation is not None:
        _check_numbers(name, notation, texts, unique, hints, where)
        column.notation, column.reason = notation.to_dict(), "all cells are numbers"
        return column
    ways = [way for way in candidates(unique, hints.decimal) if not isinstance(way, Truth)]
    best = max(
        ways, key=lambda way: sum(way.parse(cell) is not None for cell in unique), default=None
    )
    known = len(texts) - column.missing
    others = [cell for cell in unique if best is not None and best.parse(cell) is None]
    are_few = 2 * len(others) <= len(unique)
    if others and are_few and all(map(_OPEN.fullmatch, others)) and 2 * len(unique) <= known:
        return _category(column, unique, "numbers and open ends that repeat", hints)
    wrong = next(filter(is_misspelled, unique), others[0] if others and are_few else None)
    if wrong is not None:
        raise ValueError(f"{_expected_number(wrong, best, len(others), texts, where, name)}{hint}")
    if len(unique) == known > 1 and (_KEY.fullmatch(name) or all(map(_HASH.fullmatch, unique))):
        return replace(column, role="id", reason="another text in each row")
    num_digits = sum(_MEASURED.match(cell) is not None for cell in unique)
    if known >= MIN_ROWS // 2 and num_digits * 2 >= len(unique) and 2 * len(unique) > known:
        cell = unique[0]
        got = f"{len(unique)} texts in {known} rows, such as {cell[:40]!r} in {where(texts.index(cell), name)}"
        raise ValueError(f"Expected numbers, or texts that repeat (got {got}); {hint}")
    if len(unique) == known >= MIN_ROWS:
        return replace(column, role="id", reason="another text in each row")
    return _category(column, unique, "texts that repeat", hints)


def _expected_number(
    cell: str, notation: Notation | None, num_others: int, texts: list[str], where: Where, name: str
) -> str:
    """The message about a cell that is no number, although most cells of its column are."""
    row, is_word = texts.index(cell), looks_like(cell) == "text" and not any(map(str.isdigit, cell))
    expected = (
        f"Expected {notation or PLAIN}, or blank (missing), in {where(row, name)}, as in most rows"
    )
    told = "holds units, or a second header" if row == 0 else "sums up the others"
    is_outer = num_others < 2 and row in (0, len(texts) - 1) and is_word and len(texts) > 2
    hint = f"delete that row if it {told}, " if is_outer else ""
    return f"{expected} (got {cell[:80]!r}, {looks_like(cell)}); {hint}"


def _check_numbers(
    name: str, notation: Notation, texts: list[str], unique: list[str], hints: Hints, where: Where
) -> None:
    """Refuses or names numbers that may be meant as something else."""
    if isinstance(notation, Number) and notation.decimal == "," and hints.decimal is None:
        rows = [row for row, cell in enumerate(texts) if "," in cell]
        if rows and 2 * len(rows) < sum(not is_blank(cell) for cell in texts):
            got = f"{texts[rows[0]]!r} in {where(rows[0], name)}, perhaps with a decimal comma"
            hint = f"pass {argument('decimal', ',')}, or correct it"
            raise ValueError(
                f"Expected numbers with decimal points, as most cells are (got {got}); {hint}"
            )
    has_three = all(re.fullmatch(r"[1-9][0-9]{0,2}\.[0-9]{3}", cell) for cell in unique)
    if notation == PLAIN and hints.delimiter == ";" and has_three and len(unique) > 2:
        told = f"Column '{name}' has three digits behind each dot, such as '{unique[0]}', taken as decimals"
        _warn(f"{told}. If the dots stand between thousands, pass {argument('decimal', ',')}")
    powers = [cell for cell in unique if re.fullmatch(r"[0-9]+[eE][0-9]+", cell)]
    if powers:
        hint = f"If they are names, {hints.as_names(name)}"
        _warn(
            f"Column '{name}' has cells such as '{powers[0]}', which are taken as numbers. {hint}"
        )
    if (
        notation == PLAIN
        and unique
        and all(re.fullmatch(r"(?:19|20)[0-9]{6}", cell) for cell in unique)
    ):
        _warn(
            f"Column '{name}' has cells such as '{unique[0]}', taken as numbers. If they are dates, write 2024-01-31"
        )


def _category(column: Column, values: Collection[str], reason: str, hints: Hints) -> Column:
    if len(values) > MAX_VALUES:
        expected = f"numbers, or at most {MAX_VALUES} different values, in column '{column.name}'"
        got = f"{len(values)}, such as {min(values)[:40]!r}"
        raise ValueError(f"Expected {expected} (got {got}); {hints.drop(column.name)}")
    folded: dict[str, list[str]] = {}
    for value in sorted(values):
        folded.setdefault(value.casefold(), []).append(value)
    if alike := [found for found in folded.values() if len(found) > 1]:
        _warn(
            f"Column '{column.name}' has values that differ in case alone, taken as different: {alike[:5]}"
        )
    return replace(column, role="category", values=sorted(values), reason=reason, notation=None)


def _numbers(
    column: Column, cells: np.ndarray, where: Where, refused: dict[int, str] | None
) -> np.ndarray:
    """The numbers of a column, NaN where unknown."""
    if cells.dtype.kind == "M":
        since = (column.notation or {}).get("since", 0)
        return np.where(
            np.isnat(cells),
            np.nan,
            cells.astype("datetime64[ns]").astype(np.int64) / 86_400e9 - since,
        )
    if cells.dtype.kind == "m":
        return np.where(np.isnat(cells), np.nan, cells / np.timedelta64(1, "D"))
    # A number has lost what told a date: 5012022 is 05.01.2022 to a reader of thousands.
    is_read = cells.dtype.kind in "biuf" and (column.notation or {}).get("form") not in _TIMES
    numbers = cells.astype(np.float64) if is_read else _parsed(column, cells, where, refused)
    for row in np.flatnonzero(np.abs(numbers) > np.finfo(np.float32).max).tolist():
        expected, got = "Expected numbers that 32 bits can hold in", f"(got {numbers[row]:g})"
        if refused is None:
            raise ValueError(f"{expected} {where(row, column.name)} {got}")
        refused.setdefault(row, f"{expected} column '{column.name}' {got}")
    return numbers


def _single_cells(column: Column, cells: Sequence[Any], refused: dict[int, str]) -> np.ndarray:
    """An array of Python objects, without those that hold several values, which are refused."""
    array = np.fromiter(cells, dtype=object, count=len(cells))
    for row, cell in enumerate(cells):
        if isinstance(cell, (list, tuple, dict, set, np.ndarray)):
            refused.setdefault(
                row, f"Expected one value in column '{column.name}' (got a {type(cell).__name__})"
            )
            array[row] = None
    return array


def _are_numbers(column: Column, cells: Sequence[Any]) -> bool:
    """Tells whether cells are all numbers of Python that a column takes as they are."""
    if column.role != "number" or (column.notation or {}).get("form") in _TIMES:
        return False
    largest = float(np.finfo(np.float32).max)  # NumPy compares no number of hundreds of digits
    return {*map(type, cells)} <= {int, float} and all(
        -largest <= cell <= largest for cell in cells
    )


def _numbers_by_cell(column: Column, cells: np.ndarray, refused: dict[int, str]) -> np.ndarray:
    """The numbers of a column of Python objects, each read as in a column of its own type alone."""
    values = cells.tolist()
    is_time = (column.notation or {}).get("form") in _TIMES
    types = np.array([_type_of(cell, is_time=is_time) for cell in values])
    numbers = np.full(len(cells), np.nan)
    for dtype in dict.fromkeys(types.tolist()):
        rows, reasons = np.flatnonzero(types == dtype).tolist(), dict[int, str]()
        typed = np.fromiter((_plain(values[row], dtype) for row in rows), dtype, len(rows))
        numbers[rows] = _numbers(column, typed, WHERE, reasons)
        for row, reason in reasons.items():
            refused.setdefault(rows[row], reason)
    return numbers


def _type_of(cell: Any, *, is_time: bool) -> str:
    """The dtype of a column that has this cell alone; numbers say nothing where cells are dates or times."""
    if is_missing(cell):
        return "O" if is_time else "f8"
    if isinstance(cell, (Real, np.bool_)):
        return "O" if is_time else "f8"
    if isinstance(cell, (date, np.datetime64)):
        return "M8[us]"
    return "m8[us]" if isinstance(cell, (timedelta, np.timedelta64)) else "O"


def _plain(cell: Any, dtype: str) -> Any:
    """A cell as NumPy takes it: missing ones as NaN, and moments without a time zone, in UTC."""
    if dtype == "f8":
        try:
            return np.nan if is_missing(cell) else float(cell)
        except OverflowError:  # A whole number may have hundreds of digits.
            return np.inf
    if isinstance(cell, datetime) and cell.tzinfo is not None:
        return cell.astimezone(timezone.utc).replace(tzinfo=None)
    return cell


def _parsed(
    column: Column, cells: np.ndarray, where: Where, refused: dict[int, str] | None
) -> np.ndarray:
    """The numbers of texts."""
    notation = PLAIN if column.notation is None else notation_of(column.notation)
    texts = [clean(cell) for cell in texts_of(cells)]
    unique = list(dict.fromkeys(texts))
    number: dict[str, float | None] = dict.fromkeys(
        (cell for cell in unique if cell == "-" or is_blank(cell)), np.nan
    )
    known = [cell for cell in unique if cell not in number]
    plain = plain_numbers(known) if notation == PLAIN else None
    number |= zip(known, map(notation.parse, known) if plain is None else plain, strict=True)
    values = [number[cell] for cell in texts]
    if plain is None and None in number.values():
        # as finding one takes a thousand times as long as reading a cell
        reasons: dict[str, str] = {}
        for row, cell in enumerate(texts):
            if number[cell] is None and row not in (refused or ()):
                if cell not in reasons:
                    reasons[cell] = f"(got {cell[:80]!r}, {looks_like(cell)})"
                if refused is None:
                    place = where(row, column.name)
                    raise ValueError(
                        f"Expected {notation}, or blank (missing) in {place} {reasons[cell]}"
                    )
                refused[row] = f"Expected {notation} in column '{column.name}' {reasons[cell]}"
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _one_hot(column: Column, cells: np.ndarray) -> np.ndarray:
    """A column of 0 and 1 for each value of a category, matched without regard to case where nothing else fits."""
    place = {value: i for i, value in enumerate(column.values)}
    folded = {value.casefold(): i for value, i in reversed(place.items())} if place else {}
    code: dict[str, int] = {}
    texts = [clean(cell) for cell in texts_of(cells)]
    for cell in set(texts):
        code[cell] = place.get(cell, -1 if is_blank(cell) else folded.get(cell.casefold(), -2))
        # a typed column of whole numbers, of which some are missing
        if code[cell] == -2 and _whole(cell) in place:
            code[cell] = place[_whole(cell)]
    others = sorted(cell for cell, number in code.items() if number == -2)
    if others:
        names = ", ".join(map(repr, others[:5]))
        warn(
            f"Column '{column.name}' has values that training did not have, and that say nothing now: {names}"
        )
    return np.eye(len(place) + 1)[[max(code[cell], -1) for cell in texts], :-1]


def _whole(cell: str) -> str:
    return cell.removesuffix(".0")


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=2)
