"""Rows of an ARFF file: many plain ones at once with NumPy, any other one by one."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from tg_mlc._numbers import NUMBER, parse_number
from tg_mlc.inputs.readers._arff_header import Attribute, decode_line, shorten, split_cells, unquote

_PLAIN_PAIR = rf"[0-9]{{1,9}}[ \t]+{NUMBER}[ \t]*"
# Integers, which most sparse files hold, are parsed three times as fast.
_PLAIN_SPARSE: tuple[tuple[re.Pattern[bytes], type], ...] = (
    (re.compile(rb"\{(?:[0-9]{1,9} [0-9]{1,9}(?:,[0-9]{1,9} [0-9]{1,9})*)?\}"), np.int64),
    (re.compile(rf"\{{[ \t]*(?:{_PLAIN_PAIR}(?:,[ \t]*{_PLAIN_PAIR})*)?\}}".encode()), np.float64),
)
_PAIR = re.compile(
    r"""\s*([0-9]{1,18})\s+(?:('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*|([^\s,'"][^,]*))(,|\Z)""", re.DOTALL
)
_TO_SPACES = bytes.maketrans(b"{},", b"   ")
_PLAIN_DENSE = b"0123456789+-.eE, \t"


_LARGEST = float(np.finfo(np.float32).max)


class Columns:
    """The attributes that become columns, and the values that each may have."""

    def __init__(self, attributes: Sequence[Attribute], dropped: Sequence[bool]) -> None:
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
        raise ValueError(f"Expected {wanted} for attribute '{attribute.name}' (got {shorten(text)})")


class DenseRows:
    """Rows with a value for every attribute."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._blocks: list[np.ndarray] = []

    def add_plain(self, rows: list[bytes]) -> bool:
        """Adds rows of nothing but numbers all at once, or returns :obj:`False` for any others."""
        width, text = len(self.columns.kept), b",".join(rows)
        if not self.columns.plain or text.translate(None, _PLAIN_DENSE):
            return False
        values = _numbers(text, ",")
        if values is None or values.size != len(rows) * width or any(row.count(b",") != width - 1 for row in rows):
            return False
        values = values.reshape(len(rows), width)
        if allowed := self.columns.allow(values, slice(None)):
            self._blocks.append(values.astype(np.float32))
        return allowed

    def parse(self, row: bytes) -> list[float]:
        """The numbers of one row."""
        cells, width = split_cells(decode_line(row)), len(self.columns.attributes)
        if len(cells) != width:
            raise ValueError(f"Expected {width} values, one for each attribute (got {len(cells)}; is it cut off?)")
        return [self.columns.number(index, cells[index]) for index in self.columns.kept]

    def add(self, rows: list[list[float]]) -> None:
        """Adds rows that were parsed."""
        self._blocks.append(np.array(rows, dtype=np.float32))

    def matrix(self) -> np.ndarray:
        """All rows."""
        return np.concatenate(self._blocks)


class SparseRows:
    """Rows that name the attributes that are not zero."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # counts, indices and values
        for attribute in (columns.attributes[index] for index in columns.kept):
            first = next(iter(attribute.values), "") if attribute.values else ""
            if attribute.values and attribute.values[first] != 0:
                expected = f"the values of attribute '{attribute.name}' on line {attribute.line} to begin with the one"
                expected += " that means 0, which sparse rows leave out"
                raise ValueError(f"Expected {expected} (got '{first}'); write the rows as dense ones")

    def add_plain(self, rows: list[bytes]) -> bool:
        """Adds rows of nothing but numbers all at once, or returns :obj:`False` for any others."""
        columns = self.columns
        dtype = next((dtype for form, dtype in _PLAIN_SPARSE if all(map(form.fullmatch, rows))), None)
        if dtype is None or not columns.plain:
            return False
        counts = np.array([row.count(b",") + 1 if row.strip(b"{} \t") else 0 for row in rows])
        numbers = _numbers(b" ".join(rows).translate(_TO_SPACES), " ", dtype)
        if numbers is None or numbers.size != 2 * counts.sum():
            return False
        indices, values = numbers[::2].astype(np.int64), numbers[1::2]
        width = len(columns.attributes)
        repeated = np.diff(indices + np.repeat(np.arange(len(rows)), counts) * width) <= 0
        if (indices >= width).any() or repeated.any() or not columns.allow(values, indices):
            return False
        self._append(counts, indices, values)
        return True

    def parse(self, row: bytes) -> dict[int, float]:
        """The numbers of one row by their columns."""
        whole = decode_line(row)
        if not (whole.startswith("{") and whole.endswith("}")):
            raise ValueError(f"Expected a row in braces, as the first one is (got {shorten(whole)}; is it cut off?)")
        text, cells, position = whole[1:-1], dict[int, str](), 0
        comma = "," if text.strip() else ""
        while comma:
            match = _PAIR.match(text, position)
            if match is None:
                raise ValueError(f"Expected 'index value' between commas (got {shorten(text[position:])})")
            number, quoted, bare, comma = match.groups()
            index, position = int(number), match.end()
            if index >= len(self.columns.attributes):
                raise ValueError(f"Expected an index below {len(self.columns.attributes)} (got {index})")
            if index in cells:
                raise ValueError(f"Expected distinct indices (got {index} twice)")
            cells[index] = unquote(quoted) if quoted else bare.strip()
        column = self.columns.position
        return {column[i]: self.columns.number(i, cells[i]) for i in sorted(cells) if i in column}

    def add(self, rows: list[dict[int, float]]) -> None:
        """Adds rows that were parsed."""
        indices = [index for row in rows for index in row]
        values = [value for row in rows for value in row.values()]
        self._append(np.array([len(row) for row in rows]), np.array(indices, dtype=np.int64), np.array(values))

    def matrix(self) -> sp.csr_array:
        """All rows."""
        counts, indices, values = map(np.concatenate, zip(*self._blocks, strict=True))
        parts = values, indices, np.append(0, np.cumsum(counts))
        matrix = sp.csr_array(parts, shape=(len(counts), len(self.columns.kept)))
        matrix.eliminate_zeros()
        return matrix

    def _append(self, counts: np.ndarray, indices: np.ndarray, values: np.ndarray) -> None:
        self._blocks.append((counts.astype(np.int64), indices.astype(np.int32), values.astype(np.float32)))


def _numbers(text: bytes, separator: str, dtype: type = np.float64) -> np.ndarray | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # What NumPy does with a malformed text before 2.3.
        try:
            return np.fromstring(text, dtype=dtype, sep=separator)
        except (ValueError, DeprecationWarning):
            return None
