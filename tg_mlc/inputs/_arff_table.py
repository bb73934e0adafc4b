"""Tables in the attribute-relation file format (ARFF), as Weka, Mulan, MEKA, mldr and Clus write them."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Container, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from tg_mlc._files import MAX_BYTES, read_unpacked
from tg_mlc._names import shorten
from tg_mlc._numbers import NUMBER, TRUTHS, parse_number
from tg_mlc._optional import require
from tg_mlc.inputs.notations import Date, looks_like
from tg_mlc.inputs.schema import MAX_VALUES, instead

logger = logging.getLogger(__name__)

_BLOCK = 2**20  # bytes of text whose numbers are parsed at once
_LARGEST = float(np.finfo(np.float32).max)

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
# Every repeated part begins with a character that the part before cannot take, so that no text takes quadratic time.
_CELL = re.compile(rf"""\s*(?:({_QUOTED})\s*|([^\s,'"][^,]*)|)(,|\Z)""", re.DOTALL)
_SPACED_CELL = re.compile(rf"""(?:({_QUOTED})|([^\s'"]\S*))(\s+|\Z)""", re.DOTALL)
_PAIR = re.compile(rf"""\s*([0-9]{{1,18}})\s+(?:({_QUOTED})\s*|([^\s,'"][^,]*))(,|\Z)""", re.DOTALL)
_ATTRIBUTE = re.compile(rf"""@\w+\s+({_QUOTED}|[^\s{{'"][^\s{{]*)\s*(.*)""", re.DOTALL)
_COMMENT = re.compile(rf"({_QUOTED})|(?<!\S)%.*", re.DOTALL)
_WEIGHT = re.compile(rf"\{{[ \t]*{NUMBER}[ \t]*\}}")
_NUMERIC = frozenset({"numeric", "real", "integer"})
_ONE = {"1", "1.0", "+1", "+1.0", *(one for _, one in TRUTHS)}
_ZERO = {"0", "0.0", "-1", "-1.0", *(zero for zero, _ in TRUTHS)}
_NO_PATH = dict.fromkeys(("", "n", "none", "root"), 0.0)
#: The roots of hierarchies, among them the three of the Gene Ontology: they hold for all samples, and the literature
#: evaluates none of them.
ROOTS = frozenset(
    {"root", "GO0003674", "GO0005575", "GO0008150", "GO:0003674", "GO:0005575", "GO:0008150"}
)
_DATE = "yyyy-MM-dd'T'HH:mm:ss"  #: of attributes that name no format
_DATE_PARTS = {
    "yyyy": "%Y",
    "yy": "%y",
    "MMM": "%b",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
}
_DATE_PARTS |= {"SSS": "%f", "''": "'"}

_PLAIN_DENSE = b"0123456789+-.eE, \t"
_PLAIN_PAIR = rf"[0-9]{{1,9}}[ \t]+{NUMBER}[ \t]*"
# Integers, which most sparse files hold, are parsed three times as fast.
_PLAIN_SPARSE: tuple[tuple[re.Pattern[bytes], type], ...] = (
    (re.compile(rb"\{(?:[0-9]{1,9} [0-9]{1,9}(?:,[0-9]{1,9} [0-9]{1,9})*)?\}"), np.int64),
    (re.compile(rf"\{{[ \t]*(?:{_PLAIN_PAIR}(?:,[ \t]*{_PLAIN_PAIR})*)?\}}".encode()), np.float64),
)
_TO_SPACES = bytes.maketrans(b"{},", b"   ")


class Columns(NamedTuple):
    """The columns of 0 and 1 that an attribute stands for."""

    names: list[str]
    rows: np.ndarray  #: the columns for each number of the attribute
    #: of each column, if they form a hierarchy
    parents: Mapping[str, Sequence[str]] = MappingProxyType({})


class Arff(NamedTuple):
    """The table of an ARFF file."""

    names: list[str]  #: of the attributes, one per column
    #: float32, sparse if the rows of the file are; NaN where unknown
    matrix: sp.csr_array | np.ndarray
    relation: str  #: the file's own title
    labels: list[str]  #: the attributes that are labels
    #: The values of each attribute that are numbered by their order, because their meaning is unknown.
    ordered: Mapping[str, list[str]] = MappingProxyType({})
    #: The columns of 0 and 1 that each attribute with more than two values, or with paths, stands for.
    columns: Mapping[str, Columns] = MappingProxyType({})

    def without(self, names: Container[str]) -> Arff:
        """The table without some of the attributes."""
        kept = [place for place, name in enumerate(self.names) if name not in names]
        names_left = [self.names[place] for place in kept]
        return self._replace(names=names_left, matrix=self.matrix[:, kept]) if names else self


def read_arff(
    source: str | Path | bytes,
    drop: Sequence[str] | Literal["text"] = (),
    name: str | None = None,
    max_bytes: int = MAX_BYTES,
    *,
    labels: Sequence[str] | int | None = None,
    encoding: str = "utf-8",
) -> Arff:
    """Reads an ARFF file of numbers, with sparse rows (which stay sparse) or dense ones.

    Numeric attributes stay as they are, and dates are days since 1970. Nominal attributes become numbers: with one or
    two values by their meaning if they are spelled as in ``{NO,YES}`` or ``{True,False}`` or ``{-1,1}`` or
    ``{pos,neg}``, by their order otherwise. ``?`` becomes NaN. Cells stand between commas, and in rows without one
    between tabs or spaces; ``%`` after a space begins a comment. Attributes to leave out are named, or are
    :obj:`"text"`: strings, dates of other formats, and nominal ones of more than 100 values. Labels are named, or
    counted among all attributes of the file (negative: from the last); if not here, MEKA counts them in the relation,
    or else they are the ``hierarchical`` attributes of Clus.
    """
    content = source if isinstance(source, bytes) else read_unpacked(source, max_bytes)
    called = name or ("ARFF content" if isinstance(source, bytes) else f"'{source}'")
    try:
        if encoding.lower() not in ("utf-8", "utf8"):
            content = content.decode(encoding).encode()
        if b"\n" not in content:  # as old Macs write
            content = content.replace(b"\r", b"\n")
        relation, attributes, start, line = _read_header(content)
        found = _find_labels([each.name for each in attributes], relation, labels)
        found = found or [
            each.name
            for each in attributes
            if each.paths is not None and (drop == "text" or each.name not in drop)
        ]
        dropped = _dropped(attributes, drop, found)
        kept = [index for index, each in enumerate(attributes) if each.name not in dropped]
        if not kept:
            raise ValueError(
                f"line {line}: Expected an attribute to be left (got {len(attributes)} to drop)"
            )
        matrix = _read_rows(content, start, line, attributes, kept)
    except (UnicodeError, LookupError) as error:
        raise ValueError(
            f"{called}: Expected text in the encoding {encoding!r} (got {error})"
        ) from None
    except ValueError as error:
        raise ValueError(f"{called}, {error}") from None
    names = [attributes[index].name for index in kept]
    ordered = {
        each.name: list(each.values or ())
        for each in attributes
        if each.ordered and each.name in names
    }
    columns = {
        each.name: each.columns() for each in attributes if each.is_spread and each.name in names
    }
    return Arff(names, matrix, relation, found, ordered, columns)


def meka_count(relation: str) -> int | None:
    """The number of labels that MEKA and mldr write into ``@relation 'name: -C 6'``, negative if they come last."""
    found = re.findall(r"(?<![^\s:])-C\s*(-?[0-9]{1,9})(?!\S)", relation)
    return int(found[-1]) if found else None


class _Attribute(NamedTuple):
    """One attribute of an ARFF file."""

    name: str
    line: int
    #: the number of each value of a nominal attribute, in their order
    values: dict[str, float] | None = None
    text: str = ""  #: its type, if it is no number
    date: str = ""  #: the format of its dates
    #: each path of a hierarchical attribute, and those just above it
    paths: dict[str, list[str]] | None = None

    @property
    def ordered(self) -> bool:
        """Whether its values, of unknown meaning, are numbered by their order."""
        values = [value.lower() for value in self.values or ()] if self.paths is None else []
        known = _ONE.union(_ZERO).issuperset(values) and len(
            {value in _ONE for value in values}
        ) == len(values)
        return 0 < len(values) <= 2 and not known

    @property
    def is_spread(self) -> bool:
        """Whether its numbers stand for columns."""
        return self.paths is not None or len(self.values or ()) > 2

    @property
    def is_plain(self) -> bool:
        """Whether its values are written as the numbers they are."""
        return not (self.text or self.date) and (
            self.values is None or set(self.values) == {"0", "1"}
        )

    def columns(self) -> Columns:
        """The columns of its values or paths."""
        values = self.values or {}
        if self.paths is None:
            return Columns(
                [f"{self.name}={value}" for value in values], np.eye(len(values), dtype=np.float32)
            )
        parents = without_roots(self.paths)
        column = {path: i for i, path in enumerate(parents)}
        rows = np.zeros((len(values) + 1, len(column)), dtype=np.float32)
        for text, number in values.items():
            above = [] if text in _NO_PATH and text not in column else text.split("@")
            while above:
                path = above.pop().strip()
                if path in column and rows[int(number), column[path]] == 0:
                    rows[int(number), column[path]] = 1
                    above += parents[path]
        return Columns(list(column), rows, parents)

    def number(self, text: str) -> float:
        """The number that a text stands for."""
        if text == "?":
            return float("nan")
        if self.values is not None and text in self.values:
            return self.values[text]
        if self.paths is not None and self.values is not None:
            if wrong := [
                path for path in map(str.strip, text.split("@")) if path not in self.paths
            ]:
                expected = f"a path of attribute '{self.name}', or several with '@' between them"
                raise ValueError(f"Expected {expected} (got {shorten(wrong[0])!r})")
            return self.values.setdefault(text, len(self.values) + 1.0)
        number = Date(self.date).parse(text) if self.date else parse_number(text)
        fits = number in self.values.values() if self.values and self.is_plain else not self.values
        if number is not None and fits and abs(number) <= _LARGEST:
            return number
        wanted = f"a date as {self.date}" if self.date else "a number"
        wanted = wanted if self.values is None else f"one of {', '.join(self.values)}"
        looks = looks_like(text)
        got = f"{shorten(text)!r}{'' if looks == 'text' else f', {looks}'}"
        hint = "" if text else "; write ? for what is unknown"
        raise ValueError(f"Expected {wanted} for attribute '{self.name}' (got {got}){hint}")


def _read_header(content: bytes) -> tuple[str, list[_Attribute], int, int]:
    """The relation, the attributes, and the byte and the line at which the rows begin."""
    relation, attributes, line = "", dict[str, _Attribute](), 1
    stream = io.BytesIO(content)
    stream.seek(3 if content.startswith(b"\xef\xbb\xbf") else 0)
    try:
        for line, raw in enumerate(stream, start=1):
            text = _decode(raw)
            keyword = re.split(r"[\s'\"]", text, maxsplit=1)[0].lower()
            if keyword == "@data":
                if not attributes:
                    raise ValueError("Expected at least one '@attribute' before '@data' (got none)")
                return relation, list(attributes.values()), stream.tell(), line + 1
            if keyword == "@relation":
                relation = _unquote(text[len("@relation") :].strip())
            elif keyword == "@attribute":
                new = _read_attribute(text, line)
                if (first := attributes.setdefault(new.name, new)) is not new:
                    raise ValueError(
                        f"Expected distinct names (got '{new.name}' as on line {first.line})"
                    )
            elif text:
                raise ValueError(
                    f"Expected '@relation', '@attribute' or '@data' (got {shorten(text)!r})"
                )
        raise ValueError("Expected a line '@data' before the end of the file (it may be cut off)")
    except ValueError as error:
        raise ValueError(f"line {line}: {error}") from None


def _read_attribute(text: str, line: int) -> _Attribute:
    match = _ATTRIBUTE.match(text)
    if match is None:
        raise ValueError(f"Expected '@attribute name type' (got {shorten(text)!r})")
    name, kind = " ".join(_unquote(match[1]).splitlines()), match[2].strip()
    if not name:
        raise ValueError("Expected the attribute to have a name (got an empty one)")
    word, rest = [*kind.split(maxsplit=1), "", ""][:2]
    word, new = word.lower(), _Attribute(name, line)
    if word == "date":
        date = _read_date_format(_unquote(rest) or _DATE)
        new = new._replace(
            date=date or "", text="" if date else f"of type 'date' in the format {_unquote(rest)!r}"
        )
    elif word in ("string", "relational"):
        new = new._replace(text=f"of type '{word}'")
    elif word == "hierarchical" and rest:
        new = new._replace(values=dict(_NO_PATH), paths=_read_paths(rest))
    elif kind.startswith("{") and kind.endswith("}"):
        return _read_values(new, kind[1:-1])
    elif word not in _NUMERIC:
        raise ValueError(
            f"Expected a type of attribute '{name}', such as numeric or {{0,1}} (got {shorten(kind)!r})"
        )
    return new


def _read_date_format(pattern: str) -> str | None:
    """Java's format of dates in Python's words, or nothing if it holds others than the usual parts."""
    parts = [match[0] for match in re.finditer(r"''|'[^']*'|([a-zA-Z])\1*|[^a-zA-Z']+|'", pattern)]
    known = [
        _DATE_PARTS.get(part, None if part.isalpha() else part.strip("'").replace("%", "%%"))
        for part in parts
    ]
    return None if None in known else "".join(part for part in known if part)


def _read_values(new: _Attribute, text: str) -> _Attribute:
    values = [value for value in _split_cells(text) if value != "?"]
    if "" in values:
        raise ValueError(
            f"Expected the values of attribute '{new.name}' between commas (got an empty one)"
        )
    if len(values) > MAX_VALUES:
        return new._replace(text=f"nominal with {len(values)} values")
    numbered = new._replace(values={value: float(number) for number, value in enumerate(values)})
    if numbered.ordered or numbered.is_spread:
        return numbered
    return new._replace(values={value: float(value.lower() in _ONE) for value in values})


def _read_paths(text: str) -> dict[str, list[str]]:
    """Each path, and those just above it; if any begins with ``root/``, all are pairs of a parent and its child."""
    listed = [_unquote(path.strip()) for path in text.split(",")]
    paths: dict[str, list[str]] = {}
    if any(path.startswith("root/") for path in listed):
        for parent, _, child in (path.rpartition("/") for path in listed):
            paths.setdefault(child, []).append(parent)
        unknown = [
            (child, parent)
            for child, above in paths.items()
            for parent in above
            if parent not in paths
        ]
        if lost := [pair for pair in unknown if pair[1] != "root"]:
            got = f"'{lost[0][1]}' above '{lost[0][0]}', a parent without one"
            raise ValueError(
                f"Expected every name of a hierarchy to lie below 'root' (got {got}); add its parent"
            )
        try:
            TopologicalSorter(paths).prepare()
        except CycleError as error:
            raise ValueError(
                f"Expected a hierarchy without cycles (got {' -> '.join(error.args[1])})"
            ) from None
    else:
        for parts in (path.split("/") for path in listed):
            for i in range(len(parts)):
                paths.setdefault("/".join(parts[: i + 1]), ["/".join(parts[:i])] if i else [])
    return {
        path: [parent for parent in above if parent]
        for path, above in paths.items()
        if path != "root"
    }


def without_roots(parents: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """A hierarchy without its roots, which hold for everything."""
    return {
        name: [each for each in above if each not in ROOTS]
        for name, above in parents.items()
        if name not in ROOTS
    }


def labels_of_arff(path: str | Path) -> tuple[list[str], bool]:
    """The attributes that are labels, if the file says so, and whether it is one that lists names of a hierarchy."""
    relation, attributes, _, _ = _read_header(read_unpacked(path))
    paths = [each.name for each in attributes if each.paths is not None]
    labels = _find_labels([each.name for each in attributes], relation, None) or paths
    return labels, len(labels) == 1 and labels == paths


def read_arff_cells(path: Path) -> tuple[Any, dict[str, dict[str, list[str]]]]:
    """Reads the cells of an ARFF file as they are written, as a data frame of texts that are blank where unknown, and
    the names just above each name of each hierarchical attribute.
    """
    content = read_unpacked(path)
    try:
        _, attributes, start, line = _read_header(content)
        names, rows = [each.name for each in attributes], list[list[str]]()
        first = {
            place: next(iter(each.values or {"0": 0.0})) for place, each in enumerate(attributes)
        }
        for line, row in enumerate(content[start:].splitlines(), line):  # noqa: B020, B007 (for the error)
            if text := "" if row.lstrip().startswith(b"%") else _decode(row):
                is_sparse = text.startswith("{")
                cells = (_sparse_cells if is_sparse else _dense_cells)(text, len(names))
                rows.append([*({**first, **cells} if is_sparse else cells).values()])
    except ValueError as error:
        at = "" if str(error).startswith("line ") else f"line {line}: "
        raise ValueError(f"'{path}', {at}{error}") from None
    frame = (
        require("pandas", extra="data")
        .DataFrame(rows, columns=names, dtype=object)
        .replace("?", "")
    )
    parents = {
        each.name: without_roots(each.paths) for each in attributes if each.paths is not None
    }
    return frame, parents


def _find_labels(names: list[str], relation: str, labels: Sequence[str] | int | None) -> list[str]:
    labels = meka_count(relation) if labels is None else labels
    if labels is None:
        return []
    if isinstance(labels, int):
        if not 0 < abs(labels) < len(names):
            expected = f"between 1 and {len(names) - 1}, negative if they come last"
            raise ValueError(
                f"header: Expected the number of labels to be {expected} (got {labels})"
            )
        return names[:labels] if labels > 0 else names[labels:]
    if missing := sorted(set(labels) - set(names)):
        got = f"{len(missing)} that are none, such as {missing[:3]}"
        raise ValueError(
            f"header: Expected every label to be an attribute, unlike {got} {instead(missing[0], names)}"
        )
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(
            f"header: Expected 'labels' to be distinct and at least one (got {list(labels)[:5]})"
        )
    return list(labels)


def _dropped(
    attributes: Sequence[_Attribute], drop: Sequence[str] | str, labels: list[str]
) -> set[str]:
    unknown = (
        [] if isinstance(drop, str) else sorted(set(drop) - {each.name for each in attributes})
    )
    if unknown or (isinstance(drop, str) and drop != "text"):
        got = unknown or repr(drop)
        raise ValueError(
            f"header: Expected 'drop' to be \"text\" or a list of attributes (got {got})"
        )
    dropped = {each.name for each in attributes if each.text} if drop == "text" else set(drop)
    for each in attributes:
        where = f"line {each.line}: Expected"
        if each.name in labels and (each.text or each.name in dropped):
            got = f"'{each.name}'{f' {each.text}' if each.text else ', which is to be left out'}"
            raise ValueError(
                f"{where} labels of 0 and 1, or of at most {MAX_VALUES} values (got {got})"
            )
        if each.text and each.name not in dropped:
            wanted = f"a number, or one of at most {MAX_VALUES} values, for attribute '{each.name}'"
            hint = f"leave it out with drop=['{each.name}'], or all such with drop=\"text\""
            raise ValueError(f"{where} {wanted} (got one {each.text}); {hint}")
        if each.paths is not None and each.name not in dropped and each.name not in labels:
            hint = f"pass labels=['{each.name}'], or leave it out with drop=['{each.name}']"
            raise ValueError(
                f"{where} the hierarchical attribute '{each.name}' to be a label (got an input); {hint}"
            )
    if drop == "text":
        for each in (one for one in attributes if one.text):
            logger.info("Left out attribute '%s', which is %s", each.name, each.text)
    return dropped


def _read_rows(
    content: bytes, start: int, line: int, attributes: list[_Attribute], kept: list[int]
) -> sp.csr_array | np.ndarray:
    """All rows: many plain ones are read at once with NumPy, any other ones one by one."""
    is_plain = len(kept) == len(attributes) and all(each.is_plain for each in attributes)
    is_nominal = np.array([attributes[index].values is not None for index in kept])
    is_sparse: bool | None = None
    blocks, weights, first = list[Any](), list[int](), line
    while start < len(content):  # whole lines of about the same size together
        end = content.find(b"\n", start + _BLOCK) + 1 or len(content)
        lines = content[start:end].split(b"\n")
        rows = [
            (number, row)
            for number, row in enumerate(map(bytes.strip, lines), line)
            if row and row[:1] != b"%"
        ]
        line, start = line + len(lines) - 1, end
        if rows:
            if is_sparse is None and (is_sparse := rows[0][1].startswith(b"{")):
                _check_first_values([attributes[index] for index in kept], rows[0][0])
            read_plain = _plain_sparse if is_sparse else _plain_dense
            block = read_plain([row for _, row in rows], is_nominal) if is_plain else None
            block = (
                _read_cells(rows, attributes, kept, bool(is_sparse), weights)
                if block is None
                else block
            )
            types = (np.int64, np.int32, np.float32) if is_sparse else (np.float32,)
            blocks.append([part.astype(dtype) for part, dtype in zip(block, types, strict=True)])
    if not blocks:
        raise ValueError(
            f"line {first}: Expected at least one row after '@data' (got none; is the file cut off?)"
        )
    if weights:
        got = f"{len(weights)} rows have one, the first on line {weights[0]}"
        warnings.warn(
            f"Left out the weights of rows, because samples have none ({got})", stacklevel=4
        )
    joined = [np.concatenate(part) for part in zip(*blocks, strict=True)]
    if not is_sparse:
        return joined[0]
    counts, indices, values = joined
    matrix = sp.csr_array(
        (values, indices, np.append(0, np.cumsum(counts))), shape=(len(counts), len(kept))
    )
    matrix.eliminate_zeros()
    return matrix


def _check_first_values(attributes: list[_Attribute], line: int) -> None:
    """Refuses sparse rows, which leave out the first value of an attribute, if that does not mean 0."""
    for each in attributes:
        value = next(iter(each.values), "") if each.values else ""
        if each.values and each.values[value] != 0:
            expected = f"the values of attribute '{each.name}' on line {each.line} to begin with the one that means 0"
            got = f", which sparse rows leave out (got '{value}'); write the rows as dense ones"
            raise ValueError(f"line {line}: Expected {expected}{got}")


def _read_cells(
    rows: list[tuple[int, bytes]],
    attributes: list[_Attribute],
    kept: list[int],
    is_sparse: bool,
    weights: list[int],
) -> tuple[np.ndarray, ...]:
    """The numbers of rows of any form, as the two functions below give those of plain ones; adds lines with weights."""
    column, parsed, number = (
        {index: place for place, index in enumerate(kept)},
        list[dict[int, float]](),
        0,
    )
    try:
        for number, row in rows:
            if not (text := _decode(row)):
                continue
            at = text.rfind("{")
            if at > 0 and text[at - 1] in ", \t" and _WEIGHT.fullmatch(text, at):
                text = text[:at].rstrip().removesuffix(",").rstrip()
                weights.append(number)
            cells = (_sparse_cells if is_sparse else _dense_cells)(text, len(attributes))
            parsed.append(
                {column[i]: attributes[i].number(cells[i]) for i in sorted(cells) if i in column}
            )
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from None
    values = np.array([value for row in parsed for value in row.values()])
    if not is_sparse:
        return (values.reshape(len(parsed), len(kept)),)
    return np.array(list(map(len, parsed))), np.array([i for row in parsed for i in row]), values


def _plain_dense(rows: list[bytes], is_nominal: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Dense rows of nothing but numbers, or nothing if there are others."""
    width, text = len(is_nominal), b",".join(rows)
    if text.translate(None, _PLAIN_DENSE):
        return None
    values = _parse_numbers(text, ",")
    if (
        values is None
        or values.size != len(rows) * width
        or any(row.count(b",") != width - 1 for row in rows)
    ):
        return None
    values = values.reshape(len(rows), width)
    return (values,) if _fit(values, is_nominal) else None


def _plain_sparse(rows: list[bytes], is_nominal: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """The counts, indices and values of sparse rows of nothing but numbers, or nothing if there are others."""
    dtype = next((dtype for form, dtype in _PLAIN_SPARSE if all(map(form.fullmatch, rows))), None)
    if dtype is None:
        return None
    counts = np.array([row.count(b",") + 1 if row.strip(b"{} \t") else 0 for row in rows])
    numbers = _parse_numbers(b" ".join(rows).translate(_TO_SPACES), " ", dtype)
    if numbers is None or numbers.size != 2 * counts.sum():
        return None
    indices, values = numbers[::2].astype(np.int64), numbers[1::2]
    width = len(is_nominal)
    repeated = np.diff(indices + np.repeat(np.arange(len(rows)), counts) * width) <= 0
    if (indices >= width).any() or repeated.any() or not _fit(values, is_nominal[indices]):
        return None
    return counts, indices, values


def _fit(values: np.ndarray, is_nominal: np.ndarray) -> bool:
    fits = ~is_nominal | (values == 0) | (values == 1)
    return bool((fits & (np.abs(values) <= _LARGEST)).all())


def _dense_cells(text: str, width: int) -> dict[int, str]:
    cells = _split_cells(text, width)
    if len(cells) != width:
        raise ValueError(
            f"Expected {width} values, one for each attribute (got {len(cells)}; is it cut off?)"
        )
    return dict(enumerate(cells))


def _sparse_cells(row: str, width: int) -> dict[int, str]:
    if not (row.startswith("{") and row.endswith("}")):
        raise ValueError(
            f"Expected a row in braces, as the first one is (got {shorten(row)!r}; is it cut off?)"
        )
    text, cells, position = row[1:-1], dict[int, str](), 0
    comma = "," if text.strip() else ""
    while comma:
        match = _PAIR.match(text, position)
        if match is None:
            raise ValueError(
                f"Expected 'index value' between commas (got {shorten(text[position:])!r})"
            )
        number, quoted, bare, comma = match.groups()
        index, position = int(number), match.end()
        if index >= width:
            raise ValueError(f"Expected an index below {width} (got {index})")
        if index in cells:
            raise ValueError(f"Expected distinct indices (got {index} twice)")
        cells[index] = _unquote(quoted) if quoted else bare.strip()
    return cells


def _parse_numbers(text: bytes, separator: str, dtype: type = np.float64) -> np.ndarray | None:
    with warnings.catch_warnings():
        # NumPy's answer to a malformed text before 2.3
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text, dtype=dtype, sep=separator)
        except (ValueError, DeprecationWarning):
            return None


def _split_cells(text: str, width: int = 1) -> list[str]:
    """Splits at the commas that are not within quotes, or at spaces if there are none, and takes the quotes off."""
    has_quotes = "'" in text or '"' in text
    bare = re.sub(_QUOTED, "", text, flags=re.DOTALL) if has_quotes else text
    form = _CELL if width == 1 or "," in bare else _SPACED_CELL
    if not has_quotes:
        return [cell.strip() for cell in text.split(",")] if form is _CELL else text.split()
    cells, position, separator = [], 0, ","
    while separator:
        match = form.match(text, position)
        if match is None:
            raise ValueError(
                f"Expected values between commas, with closed quotes (got {shorten(text[position:])!r})"
            )
        quoted, bare, separator = match.groups()
        cells.append(_unquote(quoted) if quoted else (bare or "").strip())
        position = match.end()
    return cells


def _unquote(text: str) -> str:
    """Takes the quotes and the escapes off a quoted text; other text stays as it is."""
    if len(text) < 2 or text[0] not in "'\"" or text[-1] != text[0]:
        return text
    # A name with a line break could not be kept in a list of lines.
    return re.sub(
        r"\\(.)", lambda match: " " if match[1] in "nrt" else match[1], text[1:-1], flags=re.DOTALL
    )


def _decode(line: bytes) -> str:
    """A line without a comment."""
    try:
        text = line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        likely = "utf-16" if line[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin1"
        hint = f"pass its encoding, such as encoding='{likely}', or it is no text at all"
        raise ValueError(
            f"Expected text in UTF-8 (got the byte {line[error.start]:#04x}); {hint}"
        ) from None
    if "\0" in text:
        raise ValueError("Expected text (got a zero byte)")
    return _COMMENT.sub(lambda match: match[1] or "", text).strip() if "%" in text else text
