"""Tables in the attribute-relation file format (ARFF), as Weka, Mulan, MEKA and mldr write them."""

from __future__ import annotations

import io
import logging
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from typing_extensions import Self

from tg_mlc._files import MAX_BYTES, read_unpacked
from tg_mlc._numbers import NUMBER, parse_number
from tg_mlc.inputs.tables import MAX_VALUES

logger = logging.getLogger(__name__)

_BLOCK = 2**20  # bytes of text whose numbers are parsed at once
_LARGEST = float(np.finfo(np.float32).max)

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
# Every repeated part begins with a character that the part before cannot take, so that no text takes quadratic time.
_CELL = re.compile(rf"""\s*(?:({_QUOTED})\s*|([^\s,'"][^,]*)|)(,|\Z)""", re.DOTALL)
_PAIR = re.compile(rf"""\s*([0-9]{{1,18}})\s+(?:({_QUOTED})\s*|([^\s,'"][^,]*))(,|\Z)""", re.DOTALL)
_ATTRIBUTE = re.compile(rf"""@\w+\s+({_QUOTED}|[^\s{{'"][^\s{{]*)\s*(.*)""", re.DOTALL)
_NOMINAL = re.compile(r"\{(.*)\}\s*(?:%.*)?", re.DOTALL)
_NUMERIC = frozenset({"numeric", "real", "integer"})
_TEXT = frozenset({"string", "date", "relational"})
_ONE = frozenset({"1", "1.0", "+1", "+1.0", "true", "t", "yes", "y", "on", "present", "pos", "positive", "relevant"})
_ZERO = frozenset({"0", "0.0", "-1", "-1.0", "false", "f", "no", "n", "off", "absent", "neg", "negative", "irrelevant"})

_PLAIN_DENSE = b"0123456789+-.eE, \t"
_PLAIN_PAIR = rf"[0-9]{{1,9}}[ \t]+{NUMBER}[ \t]*"
# Integers, which most sparse files hold, are parsed three times as fast.
_PLAIN_SPARSE: tuple[tuple[re.Pattern[bytes], type], ...] = (
    (re.compile(rb"\{(?:[0-9]{1,9} [0-9]{1,9}(?:,[0-9]{1,9} [0-9]{1,9})*)?\}"), np.int64),
    (re.compile(rf"\{{[ \t]*(?:{_PLAIN_PAIR}(?:,[ \t]*{_PLAIN_PAIR})*)?\}}".encode()), np.float64),
)
_TO_SPACES = bytes.maketrans(b"{},", b"   ")


class Arff(NamedTuple):
    """The table of an ARFF file."""

    names: list[str]  #: of the attributes, one per column
    matrix: sp.csr_array | np.ndarray  #: float32, sparse if the rows of the file are; NaN where unknown
    relation: str  #: the file's own title
    #: The values of each attribute that are numbered by their order, because their meaning is unknown.
    ordered: Mapping[str, list[str]] = MappingProxyType({})


def read_arff(
    source: str | Path | bytes,
    drop: Sequence[str] | Literal["text"] = (),
    name: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Arff:
    """Reads an ARFF file of numbers, with sparse rows (which stay sparse) or dense ones.

    Numeric attributes stay as they are. Nominal attributes with one or two values become 0 and 1: by their meaning if
    they are spelled as in ``{NO,YES}`` or ``{True,False}`` or ``{-1,1}`` or ``{pos,neg}``, by their order otherwise.
    Nominal attributes with three to 100 values become a column ``name=value`` of 0 and 1 for each. ``?`` becomes NaN,
    and 0 in all columns of a nominal attribute with more than two values. Attributes to leave out are named, or are
    :obj:`"text"`: all that are no numbers and have no such columns.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is damaged or no ARFF file, has no rows, or :obj:`drop` leaves no attribute, leaves one that
            is no number, or names one that is not there.
    """
    content = source if isinstance(source, bytes) else read_unpacked(source, max_bytes)
    called = name or ("ARFF content" if isinstance(source, bytes) else f"'{source}'")
    try:
        relation, attributes, start, line = _read_header(content)
        columns = _Columns(attributes, _dropped(attributes, drop))
        if not columns.kept:
            raise ValueError(f"line {line}: Expected an attribute to be left (got {len(attributes)} to drop)")
        names, matrix = columns.spread(_read_rows(content, start, line, columns))
        return Arff(names, matrix, relation, columns.ordered)
    except ValueError as error:
        raise ValueError(f"{called}, {error}") from None


class _Attribute(NamedTuple):
    """One column of an ARFF file."""

    name: str
    line: int
    values: dict[str, float] | None = None  #: the number of each value of a nominal attribute, in their order
    text: str = ""  #: its type, if it is no number
    ordered: bool = False  #: whether its values, of unknown meaning, are numbered by their order

    @property
    def plain(self) -> bool:
        """Tells whether its values are written as the numbers they are."""
        return not self.text and (self.values is None or set(self.values) == {"0", "1"})


def _read_header(content: bytes) -> tuple[str, list[_Attribute], int, int]:
    """The relation, the attributes, and the byte and the line at which the rows begin."""
    relation, attributes = "", dict[str, _Attribute]()
    stream = io.BytesIO(content)
    stream.seek(3 if content.startswith(b"\xef\xbb\xbf") else 0)
    with _Place(1) as place:
        for place.line, raw in enumerate(stream, start=1):
            text = _decode(raw)
            keyword = re.split(r"[\s'\"]", text, maxsplit=1)[0].lower()
            if keyword == "@data":
                if not attributes:
                    raise ValueError("Expected at least one '@attribute' before '@data' (got none)")
                return relation, list(attributes.values()), stream.tell(), place.line + 1
            if keyword == "@relation":
                relation = _unquote(text[len("@relation") :].strip())
            elif keyword == "@attribute":
                new = _read_attribute(text, place.line)
                if (first := attributes.setdefault(new.name, new)) is not new:
                    raise ValueError(f"Expected distinct names (got '{new.name}' as on line {first.line})")
            elif text and not text.startswith("%"):
                raise ValueError(f"Expected '@relation', '@attribute' or '@data' (got {_shorten(text)})")
        raise ValueError("Expected a line '@data' before the end of the file (it may be cut off)")


def _read_attribute(text: str, line: int) -> _Attribute:
    match = _ATTRIBUTE.match(text)
    if match is None:
        raise ValueError(f"Expected '@attribute name type' (got {_shorten(text)})")
    name, kind = " ".join(_unquote(match[1]).splitlines()), match[2]
    if not name:
        raise ValueError("Expected the attribute to have a name (got an empty one)")
    word = (kind.split(maxsplit=1) or [""])[0].lower()
    if word in _NUMERIC:
        return _Attribute(name, line)
    if word in _TEXT:
        return _Attribute(name, line, text=f"of type '{word}'")
    nominal = _NOMINAL.fullmatch(kind)
    if nominal is None:
        raise ValueError(f"Expected a type of attribute '{name}', such as numeric or {{0,1}} (got {_shorten(kind)})")
    values = _split_cells(nominal[1])
    if "" in values:
        raise ValueError(f"Expected the values of attribute '{name}' between commas (got an empty one)")
    if len(values) > MAX_VALUES:
        return _Attribute(name, line, text=f"nominal with {len(values)} values")
    ones = [value.lower() in _ONE for value in values]
    known = all(one or value.lower() in _ZERO for one, value in zip(ones, values, strict=True))
    if len(values) <= 2 and known and len(set(ones)) == len(values):
        return _Attribute(name, line, {value: float(one) for one, value in zip(ones, values, strict=True)})
    return _Attribute(
        name, line, {value: float(number) for number, value in enumerate(values)}, ordered=len(values) <= 2
    )


def _dropped(attributes: Sequence[_Attribute], drop: Sequence[str] | str) -> list[bool]:
    if drop == "text":
        for attribute in (one for one in attributes if one.text):
            logger.info("Left out attribute '%s', which is %s", attribute.name, attribute.text)
        return [bool(attribute.text) for attribute in attributes]
    unknown = set(drop) - {attribute.name for attribute in attributes}
    if isinstance(drop, str) or unknown:
        got = sorted(unknown) or repr(drop)
        raise ValueError(f"header: Expected 'drop' to be \"text\" or a list of attributes (got {got})")
    for attribute in attributes:
        if attribute.text and attribute.name not in drop:
            wanted = f"a number, or one of at most {MAX_VALUES} values,"
            expected = f"line {attribute.line}: Expected {wanted} for attribute '{attribute.name}'"
            hint = f"leave it out with drop=['{attribute.name}'], or all such with drop=\"text\""
            raise ValueError(f"{expected} (got one {attribute.text}); {hint}")
    return [attribute.name in drop for attribute in attributes]


class _Columns:
    """The attributes that become columns, and the values that each may have."""

    def __init__(self, attributes: Sequence[_Attribute], dropped: Sequence[bool]) -> None:
        self.attributes = attributes
        self.kept = [index for index, is_dropped in enumerate(dropped) if not is_dropped]
        self.position = {index: column for column, index in enumerate(self.kept)}
        kept = [attributes[i] for i in self.kept]
        self.names = [attribute.name for attribute in kept]
        self.ordered = {attribute.name: list(attribute.values or ()) for attribute in kept if attribute.ordered}
        #: whether rows of plain numbers can be read all at once
        self.plain = len(kept) == len(attributes) and all(attribute.plain for attribute in kept)
        self._is_nominal = np.array([attribute.values is not None for attribute in kept])
        #: the values of attributes of more than two, whose numbers become columns
        self._values = {i: list(each.values) for i, each in enumerate(kept) if each.values and len(each.values) > 2}

    def allow(self, values: np.ndarray, columns: np.ndarray | slice) -> bool:
        """Tells whether all numbers may stand in these columns."""
        fits = ~self._is_nominal[columns] | (values == 0) | (values == 1)
        return bool((fits & (np.abs(values) <= _LARGEST)).all())

    def spread(self, matrix: sp.csr_array | np.ndarray) -> tuple[list[str], sp.csr_array | np.ndarray]:
        """The names and the columns of the table, with one column of 0 and 1 for each of more than two values."""
        if not self._values:
            return self.names, matrix
        table = matrix if isinstance(matrix, np.ndarray) else sp.csc_array(matrix)
        names, parts, start = list[str](), list[sp.csc_array | np.ndarray](), 0
        for i, values in self._values.items():
            codes = table[:, [i]] if isinstance(table, np.ndarray) else table[:, [i]].toarray()
            parts += [table[:, start:i], (codes == np.arange(len(values))).astype(np.float32)]  # all 0 where unknown
            names += [*self.names[start:i], *(f"{self.names[i]}={value}" for value in values)]
            start = i + 1
        parts.append(table[:, start:])
        names += self.names[start:]
        return names, np.hstack(parts) if isinstance(matrix, np.ndarray) else sp.hstack(parts, format="csr")

    def number(self, index: int, text: str) -> float:
        """The number that a text stands for in an attribute."""
        attribute = self.attributes[index]
        if text == "?":
            return float("nan")
        if attribute.values is not None and text in attribute.values:
            return attribute.values[text]
        number = parse_number(text)
        fits = number in attribute.values.values() if attribute.values and attribute.plain else not attribute.values
        if number is not None and fits and abs(number) <= _LARGEST:
            return number
        wanted = "a number" if attribute.values is None else f"one of {', '.join(attribute.values)}"
        raise ValueError(f"Expected {wanted} for attribute '{attribute.name}' (got {_shorten(text)})")


def _read_rows(content: bytes, start: int, line: int, columns: _Columns) -> sp.csr_array | np.ndarray:
    table: _Rows | None = None
    first = line
    while start < len(content):  # whole lines of about the same size together
        end = content.find(b"\n", start + _BLOCK) + 1 or len(content)
        lines = content[start:end].split(b"\n")
        rows = [
            (number, row)
            for number, row in enumerate(map(bytes.strip, lines), first)
            if row and not row.startswith(b"%")
        ]
        first, start = first + len(lines) - 1, end
        if rows and table is None:
            with _Place(rows[0][0]):
                table = (_SparseRows if rows[0][1].startswith(b"{") else _DenseRows)(columns)
        if rows and table is not None and not table.add_plain([row for _, row in rows]):
            table.add(rows)
    if table is None:
        raise ValueError(f"line {line}: Expected at least one row after '@data' (got none; is the file cut off?)")
    return table.matrix()


class _Rows(ABC):
    """Rows: many plain ones are read at once with NumPy, any other ones one by one."""

    def __init__(self, columns: _Columns) -> None:
        self.columns = columns
        self._blocks: list[Any] = []

    @abstractmethod
    def add_plain(self, rows: list[bytes]) -> bool:
        """Adds rows of nothing but numbers all at once, or returns :obj:`False` for any others."""

    @abstractmethod
    def add(self, rows: list[tuple[int, bytes]]) -> None:
        """Adds rows of any form with the numbers of their lines."""

    @abstractmethod
    def matrix(self) -> sp.csr_array | np.ndarray:
        """All rows."""


class _DenseRows(_Rows):
    """Rows with a value for every attribute."""

    def add_plain(self, rows: list[bytes]) -> bool:
        width, text = len(self.columns.kept), b",".join(rows)
        if not self.columns.plain or text.translate(None, _PLAIN_DENSE):
            return False
        values = _parse_numbers(text, ",")
        if values is None or values.size != len(rows) * width or any(row.count(b",") != width - 1 for row in rows):
            return False
        values = values.reshape(len(rows), width)
        if allowed := self.columns.allow(values, slice(None)):
            self._blocks.append(values.astype(np.float32))
        return allowed

    def add(self, rows: list[tuple[int, bytes]]) -> None:
        width, numbers = len(self.columns.attributes), []
        with _Place() as place:
            for place.line, row in rows:
                cells = _split_cells(_decode(row))
                if len(cells) != width:
                    expected = f"Expected {width} values, one for each attribute"
                    raise ValueError(f"{expected} (got {len(cells)}; is it cut off?)")
                numbers.append([self.columns.number(index, cells[index]) for index in self.columns.kept])
        self._blocks.append(np.array(numbers, dtype=np.float32))

    def matrix(self) -> np.ndarray:
        return np.concatenate(self._blocks)


class _SparseRows(_Rows):
    """Rows that name the attributes that are not zero, as counts, indices and values."""

    def __init__(self, columns: _Columns) -> None:
        super().__init__(columns)
        for attribute in (columns.attributes[index] for index in columns.kept):
            first = next(iter(attribute.values), "") if attribute.values else ""
            if attribute.values and attribute.values[first] != 0:
                expected = f"the values of attribute '{attribute.name}' on line {attribute.line} to begin with the one"
                expected += " that means 0, which sparse rows leave out"
                raise ValueError(f"Expected {expected} (got '{first}'); write the rows as dense ones")

    def add_plain(self, rows: list[bytes]) -> bool:
        columns = self.columns
        dtype = next((dtype for form, dtype in _PLAIN_SPARSE if all(map(form.fullmatch, rows))), None)
        if dtype is None or not columns.plain:
            return False
        counts = np.array([row.count(b",") + 1 if row.strip(b"{} \t") else 0 for row in rows])
        numbers = _parse_numbers(b" ".join(rows).translate(_TO_SPACES), " ", dtype)
        if numbers is None or numbers.size != 2 * counts.sum():
            return False
        indices, values = numbers[::2].astype(np.int64), numbers[1::2]
        width = len(columns.attributes)
        repeated = np.diff(indices + np.repeat(np.arange(len(rows)), counts) * width) <= 0
        if (indices >= width).any() or repeated.any() or not columns.allow(values, indices):
            return False
        self._append(counts, indices, values)
        return True

    def add(self, rows: list[tuple[int, bytes]]) -> None:
        parsed = []
        with _Place() as place:
            for place.line, row in rows:
                parsed.append(self._parse(_decode(row)))
        indices = np.array([index for numbers in parsed for index in numbers], dtype=np.int64)
        self._append(np.array(list(map(len, parsed))), indices, np.array([v for row in parsed for v in row.values()]))

    def _parse(self, row: str) -> dict[int, float]:
        """The numbers of one row by their columns."""
        if not (row.startswith("{") and row.endswith("}")):
            raise ValueError(f"Expected a row in braces, as the first one is (got {_shorten(row)}; is it cut off?)")
        text, cells, position = row[1:-1], dict[int, str](), 0
        comma = "," if text.strip() else ""
        while comma:
            match = _PAIR.match(text, position)
            if match is None:
                raise ValueError(f"Expected 'index value' between commas (got {_shorten(text[position:])})")
            number, quoted, bare, comma = match.groups()
            index, position = int(number), match.end()
            if index >= len(self.columns.attributes):
                raise ValueError(f"Expected an index below {len(self.columns.attributes)} (got {index})")
            if index in cells:
                raise ValueError(f"Expected distinct indices (got {index} twice)")
            cells[index] = _unquote(quoted) if quoted else bare.strip()
        column = self.columns.position
        return {column[i]: self.columns.number(i, cells[i]) for i in sorted(cells) if i in column}

    def matrix(self) -> sp.csr_array:
        counts, indices, values = map(np.concatenate, zip(*self._blocks, strict=True))
        parts = values, indices, np.append(0, np.cumsum(counts))
        matrix = sp.csr_array(parts, shape=(len(counts), len(self.columns.kept)))
        matrix.eliminate_zeros()
        return matrix

    def _append(self, counts: np.ndarray, indices: np.ndarray, values: np.ndarray) -> None:
        self._blocks.append((counts.astype(np.int64), indices.astype(np.int32), values.astype(np.float32)))


def _parse_numbers(text: bytes, separator: str, dtype: type = np.float64) -> np.ndarray | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # NumPy's answer to a malformed text before 2.3
        try:
            return np.fromstring(text, dtype=dtype, sep=separator)
        except (ValueError, DeprecationWarning):
            return None


def _split_cells(text: str) -> list[str]:
    """Splits at the commas that are not within quotes, and takes the quotes off."""
    if "'" not in text and '"' not in text:
        return [cell.strip() for cell in text.split(",")]
    cells, position, comma = [], 0, ","
    while comma:
        match = _CELL.match(text, position)
        if match is None:
            raise ValueError(f"Expected values between commas, with closed quotes (got {_shorten(text[position:])})")
        quoted, bare, comma = match.groups()
        cells.append(_unquote(quoted) if quoted else (bare or "").strip())
        position = match.end()
    return cells


def _unquote(text: str) -> str:
    """Takes the quotes and the escapes off a quoted text; other text stays as it is."""
    if len(text) < 2 or text[0] not in "'\"" or text[-1] != text[0]:
        return text
    # A name with a line break could not be kept in a list of lines.
    return re.sub(r"\\(.)", lambda match: " " if match[1] in "nrt" else match[1], text[1:-1], flags=re.DOTALL)


def _decode(line: bytes) -> str:
    try:
        text = line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        hint = "convert the file, for example with 'iconv -f latin1 -t utf-8', or it is no text at all"
        raise ValueError(f"Expected text in UTF-8 (got the byte {line[error.start]:#04x}); {hint}") from None
    if "\0" in text:
        raise ValueError("Expected text (got a zero byte)")
    return text


def _shorten(text: str, length: int = 40) -> str:
    return repr(text if len(text) <= length else f"{text[:length]}...")


class _Place:
    """Puts the number of the line before the message of an error."""

    def __init__(self, line: int = 0) -> None:
        self.line = line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ValueError):
            raise ValueError(f"line {self.line}: {error}") from None
