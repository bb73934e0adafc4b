"""Schema: the role of each column of a table with its reason, and the notation of its cells."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

import numpy as np

from tg_mlc._names import closest, few
from tg_mlc._numbers import TRUTHS, is_blank, parse_number
from tg_mlc._options import argument, check_choice
from tg_mlc._warnings import warn
from tg_mlc.inputs.cells import (
    LARGEST,
    WHERE,
    Where,
    are_numbers,
    array_of,
    clean,
    numbers_of,
    one_hot,
    single_cells,
    texts_of,
)
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
)

logger = logging.getLogger(__name__)

Role = Literal["number", "category", "text", "molecule", "dna", "id", "label", "ignored", "refused"]
INPUTS = ("number", "category")  #: the roles of columns that become columns of a matrix
MAX_VALUES = 100  #: maximum number of values of a category; columns with more tend to be names
MAX_ALIKE = 30  #: maximum number of similar consecutive columns that are printed one by one
_SUGGESTED = 3  # Missing columns for which a similar name is searched, which takes long.
MIN_ROWS = 10  #: minimum number of rows for rules that chance could meet in fewer rows
_ID = re.compile(
    r"(?:.*[ _-])?(?:index|idx|row|no|nr|number|num|key)|(?:row|index)[ _-].*|#", re.IGNORECASE
)
_KEY = re.compile(r"(?i:(?:.*[ _-])?(?:id|guid|uuid)s?|id[ _-].*)|\w*[a-z]I[Dd]")
_HASH = re.compile(r"[0-9a-fA-F-]{16,}")  # UUIDs match, too.
_MEASURED = re.compile(r"[-+~<>≤≥±($€£\[]*\s*\.?[0-9]")  # the start of measured values
_OPEN = re.compile(r"[0-9]+ ?\+|[0-9]+ ?[-\u2013] ?[0-9]+")  # classes of counts, such as 5+
_WEIGHTS = re.compile(
    r"(?:.*[ _-])?(?:split|fold|weight|partition|is_?train|is_?test|subset)s?", re.IGNORECASE
)
_UNNAMED = re.compile(r"(?:Unnamed: [0-9]+(?:\.[0-9]+)*)?(?:_level_[0-9]+)?")
_CODES = "few whole numbers with gaps"
_BOOLEAN = Truth("false", "true")
#: Notations of typed columns, by the kind of their NumPy dtype.
_TYPED: dict[str, Notation] = {"M": Date(), "m": Duration(), "b": _BOOLEAN}


@dataclass
class Column:
    """One column of a table."""

    name: str
    role: Role
    reason: str = "as specified"  #: how the role was decided
    notation: dict[str, Any] | None = None  #: notation of its numbers, by :meth:`Notation.to_dict`
    values: list[str] = field(default_factory=list)  #: the values of a category
    example: str = ""
    missing: int = 0  #: the number of cells that are missing

    @property
    def features(self) -> list[str]:
        """The names of the matrix columns into which this column is converted."""
        if self.role == "category":
            return [f"{self.name}={value}" for value in self.values]
        return [self.name] if self.role == "number" else []

    @property
    def numbers(self) -> Notation:
        """The notation of the column's numbers."""
        return PLAIN if self.notation is None else notation_of(self.notation)

    @property
    def notes(self) -> str:
        """How the column is read, in a few words."""
        if self.role == "category":
            return f"{len(self.values)} values: {few(self.values, 5)}"
        if self.role == "number" and self.notation is not None:
            return str(self.numbers)
        return "see below" if self.role == "refused" else self.reason


@dataclass
class Hints:
    """Specified properties of columns; other properties are inferred."""

    ignore: Collection[str] = ()  #: columns to skip
    #: columns whose values are names, even if they look like numbers
    categorical: Collection[str] = ()
    ids: Collection[str] = ()  #: columns that hold row names
    decimal: str | None = None  #: the decimal mark, a dot or a comma
    delimiter: str | None = None  #: delimiter of the file
    schema: Schema | None = None  #: a schema for all columns
    #: the source of the columns; for data frames, messages suggest changes instead of options
    of: Literal["table", "frame", "arff"] = "table"

    def check(self, names: Sequence[str]) -> None:
        """Raises ValueError if a specified column is missing."""
        for name in (*self.ignore, *self.categorical, *self.ids):
            if name not in names:
                raise ValueError(f"Expected a column {name!r} {instead(name, names)}")

    def drop(self, name: str) -> str:
        """Returns a hint on how to leave a column out."""
        if self.of == "frame":
            return f"drop it: X.drop(columns=[{name!r}])"
        return f"leave it out: {argument('drop' if self.of == 'arff' else 'ignore', [name])}"

    def as_names(self, name: str) -> str:
        """Returns a hint on how to have the cells of a column read as names."""
        message = f"make them a category: X[{name!r}] = X[{name!r}].astype(str).astype('category')"
        return message if self.of == "frame" else f"pass {argument('categorical', [name])}"

    def __post_init__(self) -> None:
        for option in ("ignore", "categorical", "ids"):
            if isinstance(value := getattr(self, option), str):
                got = f"the string {value!r}"
                raise ValueError(f"Expected '{option}' to be a list of columns (got {got})")
        check_choice("decimal", self.decimal, (None, ".", ","))
        specified = [option for option in ("categorical", "decimal") if getattr(self, option)]
        if self.schema is not None and specified:
            hint = "change the roles in the schema"
            raise ValueError(f"Expected 'schema' or {specified}, not both (got both); {hint}")


@dataclass
class Schema:
    """The columns of a table, inferred once from training rows and saved with a model."""

    columns: list[Column]

    @classmethod
    def infer(
        cls,
        table: Mapping[str, Any],
        roles: Mapping[str, Role],
        hints: Hints | None = None,
        where: Where = WHERE,
        *,
        chosen: bool = False,
        strict: bool = True,
    ) -> Schema:
        """Infers the roles of the columns of a table, except columns in :obj:`roles`.

        Inputs that the user has :obj:`chosen` are not skipped. Unless :obj:`strict`, a column that
        cannot be read gets the role "refused" instead of an error.
        """
        hints = hints or Hints()
        hints.check(list(table))
        ids, ignored = dict.fromkeys(hints.ids, "id"), dict.fromkeys(hints.ignore, "ignored")
        roles = {**roles, **ids, **ignored}  # type: ignore[dict-item]
        if hints.schema is not None:
            return hints.schema._apply(table, roles, chosen=chosen)
        columns = []
        for index, (name, cells) in enumerate(table.items()):
            if name in roles:
                columns.append(Column(name, roles[name], **_facts(texts_of(cells))))
                continue
            try:
                columns.append(_infer(name, cells, index, hints, where, chosen))
            except ValueError as error:
                if strict:
                    raise
                columns.append(Column(name, "refused", str(error), **_facts(texts_of(cells))))
        return cls(columns)

    @classmethod
    def of_names(cls, names: Iterable[str], columns: Collection[str]) -> Schema:
        """Returns the schema of a matrix by its column names, ``column=value`` for categories."""
        by_name: dict[str, Column] = {}
        for name in names:
            source = column_of(name, columns)
            if source == name:
                by_name[name] = Column(name, "number", notation=PLAIN.to_dict())
            else:
                category = by_name.setdefault(source, Column(source, "category"))
                category.values.append(name.removeprefix(f"{source}="))
        return cls(list(by_name.values()))

    def _apply(self, table: Mapping[str, Any], roles: Mapping[str, Role], chosen: bool) -> Schema:
        """Applies this schema to a table. Roles that the caller passes override the schema's."""
        if chosen and (extra := [name for name in table if name not in roles]):
            expected = "'schema' or the names of columns of inputs"
            raise ValueError(f"Expected {expected} (got both, and {extra[:5]}); leave one out")
        names = [] if chosen else [column.name for column in self.inputs]
        new_names = dict(zip(names, match_names(names, list(table)), strict=True))
        columns = []
        for column in self.columns:
            name, reason = new_names.get(column.name, column.name), column.reason
            role: Role = "ignored" if chosen and column.role in INPUTS else column.role
            if name in roles:
                role, reason = roles[name], "as specified"
            columns.append(replace(column, name=name, role=role, reason=reason))
        return Schema(columns)

    @property
    def inputs(self) -> list[Column]:
        """The columns that become columns of a matrix."""
        return [column for column in self.columns if column.role in INPUTS]

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns of the matrix."""
        return [name for column in self.inputs for name in column.features]

    @property
    def is_plain(self) -> bool:
        """Whether the matrix has every column of the table unchanged, and may replace the table."""
        plain = (PLAIN.to_dict(), _BOOLEAN.to_dict())
        return all(column.role == "number" and column.notation in plain for column in self.columns)

    def matrix(
        self, table: Any, where: Where = WHERE, refused: dict[int, str] | None = None
    ) -> np.ndarray:
        """Returns the columns of a data frame, or of arrays or lists by name, as a matrix. Unknown
        numbers are NaN, and unknown categories 0 in all their columns. Unreadable cells raise, or
        add a reason to :obj:`refused` by row.
        """
        inputs, is_frame = self.inputs, hasattr(table, "columns")
        names = list(map(clean, map(str, table.columns))) if is_frame else list(table)
        old_names = [column.name for column in self.columns]
        matched = match_names([column.name for column in inputs], names, others=old_names)
        cells = cells_of(table, matched) if is_frame else table
        num_rows = len(table) if is_frame else len(next(iter(table.values()), ()))
        blocks = [np.empty((num_rows, 0))]
        pairs = [(column, cells[name]) for column, name in zip(inputs, matched, strict=True)]
        # Consecutive lists of Python numbers are read at once.
        for is_plain, group in groupby(pairs, _is_list_of_numbers):
            if is_plain:
                blocks.append(np.array([values for _, values in group], dtype=np.float64).T)
                continue
            for column, values in group:
                array = single_cells(column.name, values, where, refused)
                if column.role == "category":
                    blocks.append(one_hot(column.name, column.values, array))
                else:
                    numbers = numbers_of(column.name, column.numbers, array, where, refused)
                    blocks.append(numbers[:, None])
        return np.concatenate(blocks, axis=1)

    def announce(self) -> None:
        """Logs which columns are left out, and which are read in a way that is not obvious."""
        for line in self.summary():
            logger.info("%s", line)

    def summary(self) -> list[str]:
        """Describes the columns in a few lines, for people."""
        skipped = [f"'{c.name}' ({c.reason})" for c in self.columns if c.role in ("id", "ignored")]
        plain = [c.name for c in self.inputs if c.role == "number" and c.numbers == PLAIN]
        codes = [f"'{c.name}'" for c in self.inputs if c.reason == _CODES]
        other = [f"'{c.name}' ({c.notes})" for c in self.inputs if c.name not in plain]
        lines = [f"Columns of numbers: {few(plain, 8)}."] if plain else []
        lines += [f"Columns read as categories or otherwise: {few(other, 8)}."] if other else []
        lines += [f"Left out: {few(skipped, 8)}."] if skipped else []
        if codes:
            message = f"Columns of few whole numbers, taken as numbers: {few(codes, 8)}"
            hint = f"name them as {argument('categorical')}, or write them as texts"
            lines.append(f"{message}; if they are codes of categories, {hint} that are no numbers.")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Returns the schema as plain data for :meth:`from_dict`."""
        return {"columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Schema:
        """Makes a schema from the data of :meth:`to_dict`, which may have been edited by hand."""
        for column in entry["columns"]:
            _check_entry(column)
        return cls([Column(**column) for column in entry["columns"]])

    def __str__(self) -> str:
        rows = [("column", "role", "read as", "example", "missing")]
        for (role, notes), group in groupby(self.columns, lambda c: (c.role, c.notes)):
            similar = list(group)
            shown = similar if len(similar) <= MAX_ALIKE else similar[:3]
            rows += [(c.name or "(no name)", role, notes, c.example, str(c.missing)) for c in shown]
            if hidden := similar[len(shown) :]:
                missing = sum(column.missing for column in hidden)
                rows.append((f"({len(hidden):,} more)", role, notes, "", str(missing)))
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        refused = [f"Refused: {c.reason}." for c in self.columns if c.role == "refused"]
        return "\n".join([*lines, *refused])


def _check_entry(column: Any) -> None:
    """Raises ValueError if the data of a column cannot be read."""
    roles: tuple[str, ...] = Role.__args__  # type: ignore[attr-defined]
    entry = column if isinstance(column, Mapping) else {}
    unknown = set(entry) - set(Column.__dataclass_fields__)
    if unknown or not isinstance(entry.get("name"), str) or entry.get("role") not in roles:
        expected = f"a column with a 'name' and one of the roles {roles}"
        raise ValueError(f"Expected {expected} (got {str(column)[:80]})")
    name, values = entry["name"], entry.get("values", [])
    odd = (
        [value for value in values if not isinstance(value, str)]
        if isinstance(values, list)
        else [values]
    )
    if odd:
        expected = f"texts as the values of column '{name}'"
        hint = "write them in quotes, which keep leading zeros"
        raise ValueError(f"Expected {expected} (got {odd[0]!r:.40}); {hint}")
    if entry["role"] == "refused":
        got = f"'refused': {entry.get('reason')}"
        raise ValueError(f"Expected another role of column '{name}' (got {got})")
    for key, kind in {"reason": str, "example": str, "missing": int}.items():
        if not isinstance(entry.get(key, kind()), kind):
            expected = f"'{key}' of column '{name}' to be of type {kind.__name__}"
            raise ValueError(f"Expected {expected} (got {entry[key]!r:.40})")
    if (notation := entry.get("notation")) is not None:
        try:
            notation_of(notation)
        except (TypeError, ValueError, LookupError) as error:
            expected = f"'notation' of column '{name}' as tg_mlc wrote it"
            raise ValueError(f"Expected {expected} (got {str(notation)[:40]})") from error


def _is_list_of_numbers(pair: tuple[Column, Any]) -> bool:
    column, cells = pair
    is_list = isinstance(cells, list) and column.role == "number"
    return is_list and are_numbers(column.numbers, cells)


def instead(name: str, names: Sequence[str]) -> str:
    """Returns the end of a message that lists existing columns and suggests the likely one."""
    close = closest(name, names)
    only_name = names[0] if len(names) == 1 else ""
    delimiter = next((symbol for symbol in ":~^;,|\t " if symbol in only_name), "")
    hint = "" if close is None else f"; is {close!r} meant?"
    if delimiter:
        hint = f"; if {delimiter!r} stands between cells, pass {argument('delimiter', delimiter)}"
    elif names and all(parse_number(column) is not None for column in names):
        hint = "; does the file lack a line with the names of columns?"
    return f"(got the columns {list(names)[:20]}){hint}"


def match_names(
    wanted: Sequence[str],
    names: Sequence[str],
    source: str = "",
    others: Collection[str] | None = None,
) -> list[str]:
    """Returns the columns of a new table that match old names, except for case and spaces.

    An equal name is preferred. If :obj:`others`, all columns of the old table, are specified, a
    second spelling that the old table did not have is an error instead.
    """
    known = set(names)
    is_exact = known.issuperset(wanted)
    if is_exact and len(names) == len(wanted):
        return list(wanted)
    matches, missing = list[str](), list[str]()
    groups = by_spelling(names) if others is not None or not is_exact else {}
    for name in wanted:
        spellings = groups.get(folded(name), [])
        if others is not None:
            spellings = [column for column in spellings if column == name or column not in others]
        elif name in known:
            spellings = [name]
        if len(spellings) > 1:
            check_unique(spellings)
            got = f"{spellings[:5]}, which differ only in case or spaces"
            raise ValueError(f"Expected one column {name!r} (got {got})")
        matches += spellings
        missing += [] if spellings else [name]
    if missing:
        unused = sorted(known.difference(matches))
        shown = missing[:_SUGGESTED]
        misspelt = next((name for name in shown if closest(name, unused) is not None), missing[0])
        suffix = f" in {source}" if source else ""
        raise ValueError(f"Expected the columns {missing[:20]}{suffix} {instead(misspelt, names)}")
    return matches


def by_spelling(names: Iterable[str]) -> dict[str, list[str]]:
    """Groups names that differ only in case and spaces."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(folded(name), []).append(name)
    return groups


def folded(name: str) -> str:
    """Returns the name in lower case with single spaces, to compare names."""
    return " ".join(name.split()).casefold()


def column_of(name: str, columns: Collection[str]) -> str:
    """Returns the table column of a matrix column; the name itself if it is a table column."""
    if name in columns:
        return name
    return next((col for col in columns if name.startswith(f"{col}=")), name.partition("=")[0])


def is_dense_frame(X: Any) -> bool:
    """Returns whether inputs are a data frame whose columns a schema can read."""
    dtypes = list(X.dtypes) if hasattr(X, "columns") and hasattr(X, "dtypes") else []
    is_other = (type(d).__name__ == "SparseDtype" or getattr(d, "kind", "") == "c" for d in dtypes)
    return bool(dtypes) and not any(is_other)


def is_mixed_frame(X: Any) -> bool:
    """Returns whether inputs are a data frame with columns that are not numbers."""
    return is_dense_frame(X) and any(getattr(d, "kind", "O") not in "biuf" for d in X.dtypes)


def hints_of(frame: Any, names: Iterable[str]) -> Hints:
    """Returns hints that columns with a categorical dtype of texts are categories."""
    categorical = []
    for name, dtype in zip(names, frame.dtypes, strict=True):
        kind, values = type(dtype).__name__, np.asarray(getattr(dtype, "categories", ()))
        if kind in ("Categorical", "Enum") or (
            kind == "CategoricalDtype" and values.dtype.kind in "OU"
        ):
            categorical.append(name)
    return Hints(categorical=categorical, of="frame")


def cells_of(frame: Any, wanted: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Returns the cells of all or some columns of a data frame, by cleaned names."""
    names = [clean(str(name)) for name in frame.columns]
    check_unique(names if wanted is None else ())
    keys = zip(names, frame.columns, strict=True)
    used = None if wanted is None else {*wanted}
    return {name: array_of(frame[key]) for name, key in keys if used is None or name in used}


def repeated(names: Sequence[str]) -> list[str]:
    """Returns the names that occur more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def check_unique(names: Sequence[str]) -> None:
    """Raises ValueError if a name occurs more than once."""
    if duplicates := repeated(names):
        got = f"{duplicates[:5]} more than once"
        raise ValueError(f"Expected every column to be used once (got {got})")


def _facts(cells: Sequence[str]) -> dict[str, Any]:
    example = next((cell.strip() for cell in cells if not is_blank(cell)), "")
    return {"example": example[:40], "missing": sum(map(is_blank, cells))}


def _infer(
    name: str, cells: np.ndarray, index: int, hints: Hints, where: Where, chosen: bool
) -> Column:
    """Infers the role and notation of a column from its name and cells."""
    has_types = cells.dtype.kind in "biufmM"
    if has_types:
        known = cells[~np.isnan(cells)]  # NumPy takes NaT for NaN here.
        notation = _TYPED.get(cells.dtype.kind, PLAIN).to_dict()
        missing = len(cells) - len(known)
        column = Column(name, "number", "numbers", notation, missing=missing)
        first = known[:1].astype("m8[us]").tolist() if cells.dtype.kind == "m" else known[:1]
        column.example = "".join(map(str, first))
        is_named = name in hints.categorical
        spellings = [text.removesuffix(".0") for text in texts_of(cells)] if is_named else []
        texts = _Texts(name, spellings, hints, where)
    else:
        texts = _Texts.of(name, cells, hints, where)
        column = Column(name, "number", **_facts(texts.cells))
    unique = texts.unique
    if name in hints.categorical:
        return _category(column, unique, "as specified", hints)
    if column.missing == len(cells):
        return replace(column, role="ignored", reason="has no value")
    if not has_types:
        column = _read_texts(column, texts)
    values = numbers_of(name, column.numbers, cells, where) if column.role == "number" else None
    if _UNNAMED.fullmatch(name) and not chosen:
        if column.role == "id" or (values is not None and _all_differ(values)):
            return replace(column, role="id", reason="an index without a name")
        hint = f"name it, or {hints.drop(name)}"
        got = "no name for numbers or texts that repeat"
        raise ValueError(f"Expected a name for column {index + 1} (got {got}); {hint}")
    if chosen and column.role == "id" and len(unique) <= MAX_VALUES:
        return replace(column, role="category", values=sorted(unique))
    column = column if chosen else judge(column, values, len(cells), hints)
    if column.role == "number" and values is not None:
        _separate(column, values, hints)
    return column


def read_numbers(name: str, cells: np.ndarray, where: Where) -> tuple[str, np.ndarray]:
    """Returns the form of a column of texts (numbers, dates or times) and its numbers. Raises
    ValueError without a common form, with the cause :class:`AmbiguousError` if several forms are
    possible.
    """
    texts = _Texts.of(name, cells, Hints(), where)
    column = _read_texts(Column(name, "number", **_facts(texts.cells)), texts)
    if column.role != "number" or column.notation is None:
        raise ValueError(f"Expected numbers in column '{name}' (got texts)")
    return column.numbers.form, numbers_of(name, column.numbers, cells, where)


@dataclass(frozen=True)
class _Texts:
    """The cells of a column as texts, with its name, its hints, and their location in a file."""

    name: str
    cells: list[str]
    hints: Hints
    where: Where

    @classmethod
    def of(cls, name: str, cells: np.ndarray, hints: Hints, where: Where) -> _Texts:
        """Converts cells to texts. A cell ``-`` is missing among numbers or truth values."""
        try:
            cells = single_cells(name, cells, where)
        except ValueError as error:
            raise ValueError(f"{error}; {hints.drop(name)}") from None
        texts = [clean(cell) for cell in texts_of(cells)]
        others = {cell.lower() for cell in texts if cell != "-" and not is_blank(cell)}
        has_digits = all(any(map(str.isdigit, cell)) for cell in others)
        if others and "-" in texts and (has_digits or others in map(set, TRUTHS)):
            texts = ["" if cell == "-" else cell for cell in texts]
        return cls(name, texts, hints, where)

    @cached_property
    def unique(self) -> list[str]:
        """The different cells that are not blank."""
        return list(dict.fromkeys(cell for cell in self.cells if not is_blank(cell)))

    def place(self, cell: str) -> str:
        """Describes a cell and where it first occurs."""
        return f"{cell[:40]!r} in {self.where(self.cells.index(cell), self.name)}"


def judge(column: Column, values: np.ndarray | None, num_rows: int, hints: Hints) -> Column:
    """Marks a column that names the rows as id. Warns if it may number, split or weight rows."""
    name, drop = column.name, hints.drop(column.name)
    if _WEIGHTS.fullmatch(name) and num_rows >= MIN_ROWS:
        note = f"Column '{name}' seems, by its name, to split or weight the rows"
        warn(f"{note}. If so, {drop}")
    if values is None:
        return column
    if (reason := why_id(name, values)) is not None:
        return replace(column, role="id", reason=reason)
    is_number = isinstance(column.numbers, Number)
    if is_number and len(values) >= MIN_ROWS and (np.diff(values) == 1).all():
        warn(f"Column '{name}' goes up by one from row to row. If it numbers the rows, {drop}")
    known = np.unique(values[np.isfinite(values)])
    if is_number and len(known) > 2 and known[1] >= 0 and re.fullmatch("-9+", f"{known[0]:.15g}"):
        note = f"Column '{name}' has {known[0]:.15g} and no other number below 0"
        warn(f"{note}. If it marks missing values, leave these cells blank")
    is_few = len(values) >= 2 * MIN_ROWS and 3 <= len(known) <= 10 and np.ptp(known) >= len(known)
    if is_few and column.numbers == PLAIN and (known % 1 == 0).all():
        column.reason = _CODES
    return column


def why_id(name: str, values: np.ndarray) -> str | None:
    """Returns why a column of numbers is an id of the rows, or None if it is not one."""
    known = values[np.isfinite(values)]
    if not (known % 1 == 0).all() or np.isin(known, (0, 1)).all():
        return None
    differ, are_many = _all_differ(values), len(values) >= MIN_ROWS
    numbers = "another whole number in each row" if differ else "whole numbers"
    if _KEY.fullmatch(name) and (differ or are_many):
        return f"{numbers}, under the name of an id"
    is_id = differ and are_many and _ID.fullmatch(name) is not None
    return f"{numbers}, under the name of a number" if is_id else None


def _separate(column: Column, values: np.ndarray, hints: Hints) -> None:
    """Looks for values that are equal in single precision. Dates are then counted from the first
    one, and large whole numbers cause a warning.
    """
    is_date = isinstance(column.numbers, Date)
    known = np.unique(values[np.abs(values) < LARGEST])
    is_large = len(known) > 1 and np.abs(known[[0, -1]]).max() > 2**24 and (known % 1 == 0).all()
    equal = np.flatnonzero(np.diff(known.astype(np.float32)) == 0)
    if equal.size and is_date:
        column.notation = {**(column.notation or {}), "since": float(np.floor(known[0]))}
    elif equal.size and is_large:
        pair = " and ".join(f"{value:.15g}" for value in known[equal[0] : equal[0] + 2])
        note = f"Column '{column.name}' has whole numbers that 32-bit floats cannot tell apart"
        hint = f"{hints.as_names(column.name)}; otherwise, subtract the smallest"
        warn(f"{note}, such as {pair}. If they are names, {hint}")


def _all_differ(values: np.ndarray) -> bool:
    return len(values) > 1 and not np.isnan(values).any() and len(np.unique(values)) == len(values)


def _read_texts(column: Column, texts: _Texts) -> Column:
    """Decides whether texts are numbers, categories, or names of rows."""
    name, hints, unique = texts.name, texts.hints, texts.unique
    extra = f"{hints.as_names(name)} if these are names, or " if len(unique) <= MAX_VALUES else ""
    hint = extra + hints.drop(name)
    has_zeros = any(len(cell) > 1 and cell[0] == "0" for cell in unique)
    if has_zeros and all(cell.isdigit() for cell in unique):
        return _category(column, unique, "digits with leading zeros are names", hints)
    try:
        notation = find_notation(unique, hints.decimal, hints.delimiter)
    except AmbiguousError as error:
        got = f"{error}, such as {texts.place(unique[0])}"
        note = f"Expected cells that can be read in one way (got {got})"
        raise ValueError(f"{note}; {hint}") from error
    if notation is not None:
        _check_numbers(notation, texts)
        column.notation, column.reason = notation.to_dict(), "all cells are numbers"
        return column
    forms = [form for form in candidates(unique, hints.decimal) if not isinstance(form, Truth)]
    misfits = [[cell for cell in unique if form.parse(cell) is None] for form in forms]
    best_fit = min(zip(map(len, misfits), range(len(forms)), strict=True), default=None)
    outliers = [] if best_fit is None else misfits[best_fit[1]]
    filled = len(texts.cells) - column.missing
    are_few = 2 * len(outliers) <= len(unique)
    if outliers and are_few and all(map(_OPEN.fullmatch, outliers)) and 2 * len(unique) <= filled:
        return _category(column, unique, "numbers and open ends that repeat", hints)
    bad_cell = next(filter(is_misspelled, unique), outliers[0] if outliers and are_few else None)
    if bad_cell is not None:
        expected = PLAIN if best_fit is None else forms[best_fit[1]]
        raise ValueError(_expected_number(bad_cell, expected, len(outliers), texts) + hint)
    if len(unique) == filled > 1 and (_KEY.fullmatch(name) or all(map(_HASH.fullmatch, unique))):
        return replace(column, role="id", reason="another text in each row")
    num_digits = sum(_MEASURED.match(cell) is not None for cell in unique)
    if filled >= MIN_ROWS // 2 and num_digits * 2 >= len(unique) and 2 * len(unique) > filled:
        got = f"{len(unique)} texts in {filled} rows, such as {texts.place(unique[0])}"
        raise ValueError(f"Expected numbers, or texts that repeat (got {got}); {hint}")
    if len(unique) == filled >= MIN_ROWS:
        return replace(column, role="id", reason="another text in each row")
    return _category(column, unique, "texts that repeat", hints)


def _expected_number(cell: str, notation: Notation, num_others: int, texts: _Texts) -> str:
    """Returns the message about a cell that is not a number in a column of mostly numbers."""
    row, last_row, description = texts.cells.index(cell), len(texts.cells) - 1, looks_like(cell)
    is_word = description == "text" and not any(map(str.isdigit, cell))
    is_outer = num_others < 2 and row in (0, last_row) and is_word and last_row > 1
    reason = "holds units, or a second header" if row == 0 else "sums up the others"
    hint = f"delete that row if it {reason}, " if is_outer else ""
    where = texts.where(row, texts.name)
    expected = f"{notation}, or blank (missing), in {where}, as in most rows"
    return f"Expected {expected} (got {cell[:80]!r}, {description}); {hint}"


def _check_numbers(notation: Notation, texts: _Texts) -> None:
    """Raises for, or warns of, numbers that may have another meaning."""
    name, hints, unique = texts.name, texts.hints, texts.unique
    if isinstance(notation, Number) and notation.decimal == "," and hints.decimal is None:
        commas = [cell for cell in texts.cells if "," in cell]
        if commas and 2 * len(commas) < sum(not is_blank(cell) for cell in texts.cells):
            got = f"{texts.place(commas[0])}, perhaps with a decimal comma"
            hint = f"pass {argument('decimal', ',')}, or correct it"
            expected = "numbers with decimal points, as most cells are"
            raise ValueError(f"Expected {expected} (got {got}); {hint}")

    def all_match(pattern: str) -> bool:
        return notation == PLAIN and all(re.fullmatch(pattern, cell) for cell in unique)

    if hints.delimiter == ";" and len(unique) > 2 and all_match(r"[1-9][0-9]{0,2}\.[0-9]{3}"):
        note = f"Column '{name}' has three digits behind each dot, such as '{unique[0]}'"
        hint = f"If the dots stand between thousands, pass {argument('decimal', ',')}"
        warn(f"{note}, taken as decimals. {hint}")
    powers = [cell for cell in unique if re.fullmatch(r"[0-9]+[eE][0-9]+", cell)]
    if powers:
        note = f"Column '{name}' has cells such as '{powers[0]}', which are taken as numbers"
        warn(f"{note}. If they are names, {hints.as_names(name)}")
    if unique and all_match("(?:19|20)[0-9]{6}"):
        note = f"Column '{name}' has cells such as '{unique[0]}', taken as numbers"
        warn(f"{note}. If they are dates, write 2024-01-31")


def _category(column: Column, values: Collection[str], reason: str, hints: Hints) -> Column:
    name = column.name
    if len(values) > MAX_VALUES:
        expected = f"numbers, or at most {MAX_VALUES} different values, in column '{name}'"
        got = f"{len(values)}, such as {min(values)[:40]!r}"
        raise ValueError(f"Expected {expected} (got {got}); {hints.drop(name)}")
    groups = (list(group) for _, group in groupby(sorted(values, key=str.casefold), str.casefold))
    if similar := sorted(sorted(group) for group in groups if len(group) > 1):
        note = f"Column '{name}' has values that differ only in case and are treated as different"
        warn(f"{note}: {similar[:5]}")
    return replace(column, role="category", values=sorted(values), reason=reason, notation=None)
