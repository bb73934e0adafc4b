"""Tables in the attribute-relation file format (ARFF), as Weka, Mulan, MEKA, mldr and Clus write
them.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from graphlib import CycleError, TopologicalSorter
from itertools import count, groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from tg_mlc._files import MAX_BYTES, read_unpacked
from tg_mlc._names import few, shorten
from tg_mlc._numbers import NUMBER, TRUTHS, parse_number
from tg_mlc._options import argument
from tg_mlc._warnings import warn
from tg_mlc.data._label_values import read_labels
from tg_mlc.graphs.hierarchy import ROOTS
from tg_mlc.inputs.cells import clean, texts_of
from tg_mlc.inputs.notations import PLAIN, Date, Notation, Truth, looks_like
from tg_mlc.inputs.schema import (
    INPUTS,
    MAX_VALUES,
    Column,
    Hints,
    Role,
    Schema,
    instead,
    judge,
)

logger = logging.getLogger(__name__)

_BLOCK = 2**20  # Bytes of text whose numbers are parsed at once.
_LARGEST = float(np.finfo(np.float32).max)

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
# Each repeated part begins with a character that the part before it cannot match, which prevents
# quadratic time.
_CELL = re.compile(rf"""\s*(?:({_QUOTED})\s*|([^\s,'"][^,]*)|)(,|\Z)""", re.DOTALL)
_SPACED_CELL = re.compile(rf"""(?:({_QUOTED})|([^\s'"]\S*))(\s+|\Z)""", re.DOTALL)
_PAIR = re.compile(rf"""\s*([0-9]{{1,18}})\s+(?:({_QUOTED})\s*|([^\s,'"][^,]*))(,|\Z)""", re.DOTALL)
_ATTRIBUTE = re.compile(rf"""@\w+\s+({_QUOTED}|[^\s{{'"][^\s{{]*)\s*(.*)""", re.DOTALL)
_COMMENT = re.compile(rf"({_QUOTED})|(?<!\S)%.*", re.DOTALL)
_WEIGHT = re.compile(rf"\{{[ \t]*{NUMBER}[ \t]*\}}")
_NUMERIC = frozenset({"numeric", "real", "integer"})
_ONE = {"1", "1.0", "+1", "+1.0", *(one for _, one in TRUTHS)}
_ZERO = {"0", "0.0", "-1", "-1.0", *(zero for zero, _ in TRUTHS)}
_NO_PATH = dict.fromkeys(("", "n", "none", "root"), 0.0)  # Texts of cells without a path.
_DATE = "yyyy-MM-dd'T'HH:mm:ss"  #: The default format of date attributes.
_EPOCH = datetime(1970, 1, 1)
_DATE_PARTS = {"yyyy": "%Y", "yy": "%y", "MMM": "%b", "MM": "%m", "dd": "%d", "HH": "%H"}
_DATE_PARTS |= {"mm": "%M", "ss": "%S", "SSS": "%f", "''": "'"}

_PLAIN_DENSE = b"0123456789+-.eE, \t"
_PLAIN_PAIR = rf"[0-9]{{1,9}}[ \t]+{NUMBER}[ \t]*"
# Most sparse files hold integers, which are parsed three times as fast.
_PLAIN_SPARSE: tuple[tuple[re.Pattern[bytes], type], ...] = (
    (re.compile(rb"\{(?:[0-9]{1,9} [0-9]{1,9}(?:,[0-9]{1,9} [0-9]{1,9})*)?\}"), np.int64),
    (re.compile(rf"\{{[ \t]*(?:{_PLAIN_PAIR}(?:,[ \t]*{_PLAIN_PAIR})*)?\}}".encode()), np.float64),
)
_TO_SPACES = bytes.maketrans(b"{},", b"   ")

Matrix: TypeAlias = sp.csr_array | np.ndarray


@dataclass(eq=False)
class Attribute:
    """One attribute of an ARFF file."""

    name: str
    line: int = 0
    #: Numbers that encode the nominal values, in order, or the texts in the rows.
    values: dict[str, float] | None = None
    text: str = ""  #: A description of the type if cells are not numbers; else empty.
    date: str = ""  #: The format of dates; empty for other attributes.
    #: The paths of a hierarchical attribute, with their parent paths.
    paths: dict[str, list[str]] | None = None
    is_renamed: bool = False  #: Whether it was renamed because others share its name.

    @property
    def is_ordered(self) -> bool:
        """Whether its one or two values have no known meaning, so that their order encodes them."""
        if self.text or self.paths is not None or len(self.values or ()) not in (1, 2):
            return False
        values = [value.lower() for value in self.values or ()]
        is_known = _ONE.union(_ZERO).issuperset(values)
        return not is_known or len({value in _ONE for value in values}) < len(values)

    @property
    def is_spread(self) -> bool:
        """Whether each value or path of the attribute becomes a column."""
        return not self.text and (self.paths is not None or len(self.values or ()) > 2)

    @property
    def is_plain(self) -> bool:
        """Whether its cells are parsed as plain numbers."""
        return not (self.text or self.date) and self.values in (None, {"0": 0.0, "1": 1.0})

    @property
    def notation(self) -> Notation:
        """The notation of cells, for an attribute that becomes one column."""
        if self.date:
            return Date(self.date)
        if self.is_plain or len(self.values or ()) != 2:
            return PLAIN
        words = sorted(self.values or (), key=(self.values or {}).__getitem__)
        return Truth(*map(str.lower, words))

    @property
    def parents(self) -> dict[str, list[str]]:
        """The paths except roots, with their parent paths."""
        return {
            path: [parent for parent in parents if parent not in ROOTS]
            for path, parents in (self.paths or {}).items()
            if path not in ROOTS
        }

    def spread(self, numbers: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Returns names and columns of 0 and 1 for its values or paths, NaN where unknown."""
        values, codes = self.values or {}, np.nan_to_num(numbers).astype(np.int64)
        if self.paths is None:
            names, encodings = [f"{self.name}={value}" for value in values], np.eye(len(values))
        else:
            parents = self.parents
            names, column = list(parents), {path: index for index, path in enumerate(parents)}
            encodings = np.zeros((len(values) + 1, len(column)))
            for text, number in values.items():
                pending = [] if text in _NO_PATH and text not in column else text.split("@")
                while pending:
                    path = pending.pop().strip()
                    if path in column and encodings[int(number), column[path]] == 0:
                        encodings[int(number), column[path]] = 1
                        pending += parents[path]
        columns = encodings[codes]
        columns[np.isnan(numbers)] = np.nan
        return names, columns

    def cells(self, numbers: np.ndarray) -> np.ndarray:
        """Converts numbers to the cells of a table: texts (including dates) or numbers."""
        if self.date:
            cells = np.full(len(numbers), None)
            for row in np.flatnonzero(~np.isnan(numbers)):
                moment = _EPOCH + timedelta(milliseconds=round(numbers[row] * 86_400_000))
                cells[row] = moment.strftime(self.date)
            return cells
        are_words = len(self.values or ()) == 2 and None in map(parse_number, self.values or ())
        if self.text or self.is_spread or are_words:
            texts = {number: text for text, number in (self.values or {}).items()}
            texts |= {0.0: ""} if self.text or self.paths is not None else {}
            return np.array(list(map(texts.get, numbers.tolist())), dtype=object)
        return numbers.astype(np.int64) if (numbers % 1 == 0).all() else numbers

    def number(self, text: str) -> float:
        """Returns the number that encodes the text of a cell."""
        if text == "?":
            return float("nan")
        if self.values is not None and text in self.values:
            return self.values[text]
        if self.paths is not None:
            paths = map(str.strip, text.split("@"))
            unknown = next((path for path in paths if path not in self.paths), None)
            if unknown is not None:
                expected = f"a path of attribute '{self.name}', or several with '@' between them"
                raise ValueError(f"Expected {expected} (got {shorten(unknown)!r})")
        if self.values is not None and (self.text or self.paths is not None):
            return self.values.setdefault(text, len(self.values) + 1.0)
        number = Date(self.date).parse(text) if self.date else parse_number(text)
        valid = number in self.values.values() if self.values and self.is_plain else not self.values
        if number is not None and valid and abs(number) <= _LARGEST:
            return number
        expected = f"a date as {self.date}" if self.date else "a number"
        expected = expected if self.values is None else f"one of {few(list(self.values), 8)}"
        description = looks_like(text)
        got = f"{shorten(text)!r}{'' if description == 'text' else f', {description}'}"
        hint = "" if text else "; write ? for what is unknown"
        raise ValueError(f"Expected {expected} for attribute '{self.name}' (got {got}){hint}")


class Arff(NamedTuple):
    """The table of an ARFF file."""

    attributes: list[Attribute]  #: attributes, one per column of the matrix
    #: The numbers of all cells, sparse if the rows of the file are; NaN where unknown.
    matrix: Matrix
    relation: str  #: The title of the file.
    labels: list[str]  #: The attributes that are labels.

    @property
    def names(self) -> list[str]:
        """The names of the attributes."""
        return [attribute.name for attribute in self.attributes]

    def rows(self, start: int, stop: int) -> Arff:
        """Returns the table of the rows from :obj:`start` up to :obj:`stop`."""
        return self._replace(matrix=self.matrix[start:stop])

    def cells(self) -> list[np.ndarray]:
        """Returns the cells of each attribute as a column of a table."""
        matrix: Any = self.matrix
        matrix = matrix.toarray() if sp.issparse(matrix) else matrix
        return [attr.cells(matrix[:, index]) for index, attr in enumerate(self.attributes)]

    def spread(self, names: Iterable[str], unknown: float = np.nan) -> tuple[list[str], Matrix]:
        """Converts attributes to columns. Hierarchies, and attributes of over two values, become
        a column of 0 and 1 for each path or value, with :obj:`unknown` for unknown cells.
        """
        index_of = {name: position for position, name in enumerate(self.names)}
        is_sparse, columns, blocks = sp.issparse(self.matrix), list[str](), list[Any]()
        indexed = [(index_of[name], self.attributes[index_of[name]]) for name in names]
        for is_spread, group in groupby(indexed, lambda pair: pair[1].is_spread):
            indices, attributes = zip(*group, strict=True)
            matrix: Any = self.matrix[:, list(indices)]
            if not is_spread:
                columns += [attribute.name for attribute in attributes]
                blocks.append(matrix)
                continue
            numbers = matrix.toarray() if is_sparse else matrix
            for attribute, codes in zip(attributes, numbers.T, strict=True):
                names_of_values, one_hot = attribute.spread(codes)
                one_hot[np.isnan(one_hot)] = unknown
                columns += names_of_values
                blocks.append(sp.csr_array(one_hot) if is_sparse else one_hot)
        return columns, sp.hstack(blocks, format="csr") if is_sparse else np.hstack(blocks)

    def declares(self, labels: Sequence[str] | str, *, lists_names: bool) -> bool:
        """Tells whether the header declares all labels, as attributes or as paths. Otherwise, cells
        list the names of labels.
        """
        names = [labels] if isinstance(labels, str) else labels
        attributes = [attribute for attribute in self.attributes if attribute.name in names]
        has_paths = any(attribute.paths is not None for attribute in attributes)
        return has_paths or not (lists_names or any(attribute.text for attribute in attributes))

    def targets(self, labels: Sequence[str]) -> tuple[np.ndarray, list[str]]:
        """Returns labels :math:`(N, L)`, NaN where unknown, and their names."""
        for attribute in self.attributes:
            if attribute.name in labels and attribute.is_ordered:
                expected = "labels that mean 0 and 1, such as {0,1} or {no,yes}"
                got = f"{{{','.join(attribute.values or ())}}} for '{attribute.name}'"
                hint = "write {0,1} instead, and 1 where the label applies"
                raise ValueError(f"Expected {expected} (got {got}); {hint}")
        names, y = self.spread(labels)
        return read_labels(y, names)

    def parents(self, labels: Collection[str]) -> dict[str, list[str]]:
        """Returns the labels of a hierarchy with their parent labels."""
        attributes = (attr for attr in self.attributes if attr.name in labels)
        return {path: parents for attr in attributes for path, parents in attr.parents.items()}

    def schema(
        self,
        hints: Hints | None = None,
        labels: Sequence[str] | None = None,
        inputs: Collection[str] = (),
        *,
        strict: bool = True,
    ) -> Schema:
        """Infers the schema from the header or, for texts, from cells. Specified :obj:`inputs` are
        never skipped. Unless :obj:`strict`, unreadable texts get the role "refused".
        """
        hints = hints or Hints(of="arff")
        hints.check(self.names)
        labels = self.labels if labels is None else labels
        roles: dict[str, Role] = {
            **dict.fromkeys(hints.ids, "id"),
            **dict.fromkeys(hints.ignore, "ignored"),
            **dict.fromkeys(labels, "label"),
        }
        is_sparse = sp.issparse(self.matrix)
        matrix: Any = sp.csc_array(self.matrix) if is_sparse else self.matrix
        columns = []
        for index, attribute in enumerate(self.attributes):
            name = attribute.name
            if is_sparse:  # Cells that are not stored are 0.
                cells = matrix.data[matrix.indptr[index] : matrix.indptr[index + 1]]
            else:
                cells = matrix[:, index]
            known = cells[~np.isnan(cells)]
            missing = len(cells) - len(known)
            column = Column(name, "number", "attribute of the header", missing=missing)
            column.example = "".join(texts_of(attribute.cells(known[:1]))) or "0"
            if name in roles:
                column.role = roles[name]
            elif inputs and name not in inputs:
                column.role, column.reason = "ignored", "not asked for"
            elif attribute.paths is not None:
                _refuse_input(attribute)
            elif attribute.text or name in hints.categorical:
                numbers = matrix[:, [index]].toarray()[:, 0] if is_sparse else cells
                texts = {name: attribute.cells(numbers)}
                categorical = [name] if name in hints.categorical else ()
                text_hints = replace(hints, ignore=(), ids=(), schema=None, categorical=categorical)
                chosen = bool(inputs)
                [column] = Schema.infer(texts, {}, text_hints, chosen=chosen, strict=strict).columns
            elif attribute.is_spread:
                column.role, column.values = "category", list(attribute.values or ())
            else:
                column.notation = attribute.notation.to_dict()
            is_header = column.reason == "attribute of the header"
            # Columns of sparse rows are usually words, and are not judged.
            if column.role in INPUTS and is_header and not (is_sparse or inputs):
                is_number = column.role == "number"
                column = judge(column, cells if is_number else None, len(cells), hints)
            columns.append(column)
        return Schema(columns)


def _refuse_input(attribute: Attribute) -> None:
    name = attribute.name
    expected = f"line {attribute.line}: Expected the hierarchical attribute '{name}' to be a label"
    hint = f"pass {argument('labels', [name])}, or leave it out: {argument('drop', [name])}"
    raise ValueError(f"{expected} (got an input); {hint}")


def read_arff(
    source: str | Path | bytes,
    drop: Sequence[str] | Literal["text"] = (),
    name: str | None = None,
    max_bytes: int = MAX_BYTES,
    *,
    labels: Sequence[str] | int | None = None,
    encoding: str = "utf-8",
    keep_text: bool = False,
) -> Arff:
    """Reads an ARFF file, or its content. Sparse rows stay sparse.

    Dates are days since 1970, and ``?`` is NaN. Nominal attributes of one or two values with known
    meaning, such as ``{NO,YES}``, ``{-1,1}`` or ``{pos,neg}``, become 0 and 1; other values are
    numbered in the order of the header. Delimiters of cells are commas, or tabs or spaces in
    rows without commas; ``%`` after a space begins a comment. Attributes that share a name are read
    as ``name``, ``name.1``, ..., labels first.

    :obj:`drop` names attributes, or is :obj:`"text"` for strings, dates of unusual formats, and
    nominal attributes of more than 100 values; these raise unless they are dropped or
    :obj:`keep_text` is set. :obj:`labels` are names or a number (negative: the last ones); by
    default, MEKA's number in the relation, or the ``hierarchical`` attributes of Clus.
    """
    content = source if isinstance(source, bytes) else read_unpacked(source, max_bytes)
    title = name or ("ARFF content" if isinstance(source, bytes) else f"'{source}'")
    try:
        if encoding.lower() not in ("utf-8", "utf8"):
            content = content.decode(encoding).encode()
        if b"\n" not in content:  # Files of old Macs have carriage returns as line ends.
            content = content.replace(b"\r", b"\n")
        relation, attributes, start, line_number = _read_header(content)
        label_names = _find_labels(attributes, relation, labels)
        if labels is None and meka_count(relation) is None and drop != "text":
            label_names = [label for label in label_names if label not in drop]
        dropped = _dropped(attributes, drop, label_names, keep_text=keep_text)
        selected = [index for index, attr in enumerate(attributes) if attr.name not in dropped]
        if not selected:
            got = f"{len(attributes)} to drop"
            raise ValueError(f"line {line_number}: Expected an attribute to be left (got {got})")
        matrix = _read_rows(content, start, line_number, attributes, selected)
    except (UnicodeError, LookupError) as error:
        expected = f"text in the encoding {encoding!r}"
        raise ValueError(f"{title}: Expected {expected} (got {error})") from None
    except ValueError as error:
        raise ValueError(f"{title}, {error}") from None
    return Arff([attributes[index] for index in selected], matrix, relation, label_names)


def meka_count(relation: str) -> int | None:
    """Returns the number of labels in ``@relation 'name: -C 6'`` of MEKA and mldr, negative if
    labels come last, or None.
    """
    counts = re.findall(r"(?<![^\s:])-C\s*(-?[0-9]{1,9})(?!\S)", relation)
    return int(counts[-1]) if counts else None


def labels_of_arff(path: str | Path) -> tuple[list[str], bool]:
    """Returns the labels that a file declares, and whether they are one hierarchical attribute."""
    relation, attributes, _, _ = _read_header(read_unpacked(path))
    labels = _find_labels(attributes, relation, None)
    paths = [attribute.name for attribute in attributes if attribute.paths is not None]
    return labels, len(labels) == 1 and labels == paths


def _read_header(content: bytes) -> tuple[str, list[Attribute], int, int]:
    """Returns the relation, the attributes, and the byte and line at which rows begin."""
    relation, attributes, line_number = "", list[Attribute](), 1
    stream = io.BytesIO(content)
    stream.seek(3 if content.startswith(b"\xef\xbb\xbf") else 0)
    try:
        for line_number, line in enumerate(stream, start=1):
            text = _decode(line)
            keyword = re.split(r"[\s'\"]", text, maxsplit=1)[0].lower()
            if keyword == "@data":
                if not attributes:
                    raise ValueError("Expected at least one '@attribute' before '@data' (got none)")
                return relation, attributes, stream.tell(), line_number + 1
            if keyword == "@relation":
                relation = _unquote(text[len("@relation") :].strip())
            elif keyword == "@attribute":
                attributes.append(_read_attribute(text, line_number))
            elif text:
                expected = "'@relation', '@attribute' or '@data'"
                raise ValueError(f"Expected {expected} (got {shorten(text)!r})")
        raise ValueError("Expected a line '@data' before the end of the file (it may be cut off)")
    except ValueError as error:
        raise ValueError(f"line {line_number}: {error}") from None


def _read_attribute(text: str, line: int) -> Attribute:
    match = _ATTRIBUTE.match(text)
    if match is None:
        raise ValueError(f"Expected '@attribute name type' (got {shorten(text)!r})")
    name, declared = clean(" ".join(_unquote(match[1]).splitlines())), match[2].strip()
    if not name:
        raise ValueError("Expected the attribute to have a name (got an empty one)")
    type_name, details = [*declared.split(maxsplit=1), "", ""][:2]
    type_name, attribute = type_name.lower(), Attribute(name, line)
    if type_name == "date":
        pattern = _unquote(details) or _DATE
        attribute.date = _read_date_format(pattern) or ""
        attribute.text = "" if attribute.date else f"of type 'date' in the format {pattern!r}"
    elif type_name in ("string", "relational"):
        attribute.text = f"of type '{type_name}'"
    elif type_name == "hierarchical" and details:
        attribute.values, attribute.paths = dict(_NO_PATH), _read_paths(details)
    elif declared.startswith("{") and declared.endswith("}"):
        _read_values(attribute, declared[1:-1])
    elif type_name not in _NUMERIC:
        expected = f"a type of attribute '{name}', such as numeric or {{0,1}}"
        raise ValueError(f"Expected {expected} (got {shorten(declared)!r})")
    attribute.values = {} if attribute.text else attribute.values
    return attribute


def _read_date_format(pattern: str) -> str | None:
    """Converts Java's date format to Python's; :obj:`None` if it has unusual parts."""
    parts = [match[0] for match in re.finditer(r"''|'[^']*'|([a-zA-Z])\1*|[^a-zA-Z']+|'", pattern)]
    literals = [None if part.isalpha() else part.strip("'").replace("%", "%%") for part in parts]
    converted = [_DATE_PARTS.get(part, text) for part, text in zip(parts, literals, strict=True)]
    return None if None in converted else "".join(part for part in converted if part)


def _read_values(attribute: Attribute, text: str) -> None:
    values = [value for value in _split_cells(text) if value != "?"]
    if "" in values:
        expected = f"the values of attribute '{attribute.name}' between commas"
        raise ValueError(f"Expected {expected} (got an empty one)")
    if len(values) > MAX_VALUES:
        attribute.text = f"nominal with {len(values)} values"
        return
    attribute.values = {value: float(number) for number, value in enumerate(values)}
    if not (attribute.is_ordered or attribute.is_spread):
        attribute.values = {value: float(value.lower() in _ONE) for value in values}


def _read_paths(text: str) -> dict[str, list[str]]:
    """Returns the paths with their parent paths. If any text begins with ``root/``, all texts are
    pairs ``parent/child``.
    """
    declared = [_unquote(path.strip()) for path in text.split(",")]
    paths: dict[str, list[str]] = {}
    if not any(path.startswith("root/") for path in declared):
        for parts in (path.split("/") for path in declared):
            for i in range(len(parts)):
                paths.setdefault("/".join(parts[: i + 1]), ["/".join(parts[:i])] if i else [])
        return paths
    for parent, _, child in (path.rpartition("/") for path in declared):
        paths.setdefault(child, []).append(parent)
    for child, parents in paths.items():
        missing = next((name for name in parents if name not in paths and name != "root"), None)
        if missing is not None:
            got = f"'{missing}' above '{child}', a parent without one"
            expected = "every name of a hierarchy to lie below 'root'"
            raise ValueError(f"Expected {expected} (got {got}); add its parent")
    try:
        TopologicalSorter(paths).prepare()
    except CycleError as error:
        cycle = " -> ".join(error.args[1])
        raise ValueError(f"Expected a hierarchy without cycles (got {cycle})") from None
    paths.pop("root", None)
    return {path: list(filter(None, parents)) for path, parents in paths.items()}


def _find_labels(
    attributes: Sequence[Attribute], relation: str, labels: Sequence[str] | int | None
) -> list[str]:
    """Returns the names of labels, after renaming attributes that share a name."""
    number = labels if isinstance(labels, int) else meka_count(relation)
    limit = len(attributes) - 1
    if number is None:
        chosen = [attr for attr in attributes if attr.paths is not None]
    elif 0 < abs(number) <= limit:
        chosen = list(attributes[:number] if number > 0 else attributes[number:])
    elif labels is None or isinstance(labels, int):
        expected = f"the number of labels to be between 1 and {limit}, negative if they come last"
        raise ValueError(f"header: Expected {expected} (got {number})")
    else:
        chosen = []
    _rename_repeated(attributes, chosen)
    if labels is None or isinstance(labels, int):
        return [attribute.name for attribute in chosen]
    names = [attribute.name for attribute in attributes]
    if missing := sorted(set(labels) - set(names)):
        expected = f"every label to be an attribute, unlike {len(missing)}, such as {missing[:3]}"
        raise ValueError(f"header: Expected {expected} {instead(missing[0], names)}")
    if not labels or len(set(labels)) < len(labels):
        got = few(list(labels), 5)
        raise ValueError(f"header: Expected 'labels' to be distinct and at least one (got {got})")
    return list(labels)


def _rename_repeated(attributes: Sequence[Attribute], labels: Sequence[Attribute]) -> None:
    """Renames attributes that share a name. Labels keep their names if possible."""
    declared, used, renamed = {attr.name for attr in attributes}, set[str](), list[str]()
    label_ids = set(map(id, labels))
    others = (attr for attr in attributes if id(attr) not in label_ids)
    for attribute in [*labels, *others]:
        if (name := attribute.name) in used:
            candidates = (f"{name}.{number}" for number in count(1))
            attribute.name = next(new for new in candidates if new not in declared | used)
            attribute.is_renamed = True
            renamed.append(f"'{attribute.name}' (line {attribute.line})")
        used.add(attribute.name)
    if renamed:
        message = "Attributes that share a name with another one are read as"
        warn(f"{message} {few(renamed, 5)}", stacklevel=5)


def _dropped(
    attributes: Sequence[Attribute],
    drop: Sequence[str] | str,
    labels: Sequence[str],
    *,
    keep_text: bool,
) -> set[str]:
    """Returns the names of attributes to drop. Raises if another attribute cannot be read."""
    unknown = [] if isinstance(drop, str) else sorted(set(drop) - {a.name for a in attributes})
    if unknown or (isinstance(drop, str) and drop != "text"):
        expected, got = '"text" or a list of attributes', few(unknown, 5) if unknown else repr(drop)
        raise ValueError(f"header: Expected 'drop' to be {expected} (got {got})")
    dropped = {attr.name for attr in attributes if attr.text} if drop == "text" else set(drop)
    if keep_text:
        return dropped
    for attribute in attributes:
        name, where = attribute.name, f"line {attribute.line}: Expected"
        is_dropped = name in dropped
        if name in labels and (attribute.text or is_dropped):
            got = f"'{name}'{f' {attribute.text}' if attribute.text else ', which is in drop'}"
            expected = f"labels of 0 and 1, or of at most {MAX_VALUES} values"
            raise ValueError(f"{where} {expected} (got {got})")
        if attribute.text and not is_dropped:
            expected = f"a number, or one of at most {MAX_VALUES} values, for attribute '{name}'"
            hint = f"leave it out: {argument('drop', [name])}, or all such attributes: drop='text'"
            raise ValueError(f"{where} {expected} (got one {attribute.text}); {hint}")
        if attribute.paths is not None and not is_dropped and name not in labels:
            _refuse_input(attribute)
        if attribute.text:
            logger.info("Left out attribute '%s', which is %s", name, attribute.text)
    return dropped


def _read_rows(
    content: bytes, start: int, line_number: int, attributes: list[Attribute], selected: list[int]
) -> Matrix:
    """Reads all rows: blocks of plain rows with NumPy, all other rows one by one."""
    is_plain = len(selected) == len(attributes) and all(attr.is_plain for attr in attributes)
    is_nominal = np.array([attributes[index].values is not None for index in selected])
    is_sparse: bool | None = None
    blocks, weights, first_line = list[Any](), list[int](), line_number
    # Sparse rows omit the first value of an attribute, which may not mean 0.
    first_values = {i: next(iter((attributes[i].values or {"": 0.0}).items())) for i in selected}
    omitted = {i: text for i, (text, number) in first_values.items() if number != 0}
    while start < len(content):  # A block ends with a whole line.
        end = content.find(b"\n", start + _BLOCK) + 1 or len(content)
        lines = content[start:end].split(b"\n")
        numbered = enumerate(map(bytes.strip, lines), line_number)
        rows = [(number, row) for number, row in numbered if row and row[:1] != b"%"]
        line_number, start = line_number + len(lines) - 1, end
        if not rows:
            continue
        is_sparse = rows[0][1].startswith(b"{") if is_sparse is None else is_sparse
        block = None
        if is_plain and not (is_sparse and omitted):
            read_plain = _read_plain_sparse if is_sparse else _read_plain_dense
            block = read_plain([row for _, row in rows], is_nominal)
        if block is None:
            default = omitted if is_sparse else None
            block = _read_cells(rows, attributes, selected, default, weights)
        blocks.append(block)
    if not blocks:
        expected, got = "at least one row after '@data'", "got none; is the file cut off?"
        raise ValueError(f"line {first_line}: Expected {expected} ({got})")
    if weights:
        got = f"{len(weights)} rows have one, the first on line {weights[0]}"
        warn(f"Left out the weights of rows, because samples have none ({got})", stacklevel=4)
    joined = [np.concatenate(arrays) for arrays in zip(*blocks, strict=True)]
    if not is_sparse:
        return joined[0]
    counts, indices, values = joined
    ptr = np.append(0, np.cumsum(counts))
    shape = (len(counts), len(selected))
    matrix = sp.csr_array((values.astype(np.float64), indices.astype(np.int32), ptr), shape=shape)
    matrix.eliminate_zeros()
    return matrix


def _read_cells(
    rows: list[tuple[int, bytes]],
    attributes: list[Attribute],
    selected: list[int],
    omitted: dict[int, str] | None,
    weights: list[int],
) -> tuple[np.ndarray, ...]:
    """Reads rows of any format. Returns arrays like the readers of plain dense or sparse rows.

    Appends the line numbers of weights to :obj:`weights`. Rows are dense if :obj:`omitted` is None.
    """
    column = {index: position for position, index in enumerate(selected)}
    readers = [attributes[index].number for index in selected]
    counts, indices, values, number = list[int](), list[int](), list[float](), 0
    try:
        for number, row in rows:
            if not (text := _decode(row)):
                continue
            brace = text.rfind("{")
            if brace > 0 and text[brace - 1] in ", \t" and _WEIGHT.fullmatch(text, brace):
                text = text[:brace].rstrip().removesuffix(",").rstrip()
                weights.append(number)
            if omitted is None:
                dense = _split_cells(text, len(attributes))
                if len(dense) != len(attributes):
                    expected = f"{len(attributes)} values, one for each attribute"
                    raise ValueError(f"Expected {expected} (got {len(dense)}; is it cut off?)")
                values += [parse(dense[i]) for i, parse in zip(selected, readers, strict=True)]
                counts.append(len(selected))
                continue
            cells = {**omitted, **_sparse_cells(text, len(attributes))}
            stored = sorted(column[index] for index in cells if index in column)
            values += [readers[position](cells[selected[position]]) for position in stored]
            indices += stored
            counts.append(len(stored))
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from None
    if omitted is None:
        return (np.array(values, dtype=np.float64).reshape(len(counts), len(selected)),)
    return np.array(counts), np.array(indices), np.array(values)


def _read_plain_dense(rows: list[bytes], is_nominal: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Returns dense rows of numbers, or None if any cell is not a number."""
    width, text = len(is_nominal), b",".join(rows)
    if text.translate(None, _PLAIN_DENSE):
        return None
    values = _parse_numbers(text, ",")
    if values is None or any(row.count(b",") != width - 1 for row in rows):
        return None
    values = values.reshape(-1, width) if values.size == len(rows) * width else values
    return (values,) if values.ndim == 2 and _fit(values, is_nominal) else None


def _read_plain_sparse(rows: list[bytes], is_nominal: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Returns the counts, indices and values of sparse rows of numbers, or None if any cell is
    not a number.
    """
    dtype = next((dtype for row, dtype in _PLAIN_SPARSE if all(map(row.fullmatch, rows))), None)
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


def _sparse_cells(row: str, width: int) -> dict[int, str]:
    if not (row.startswith("{") and row.endswith("}")):
        expected = "a row in braces, as the first one is"
        raise ValueError(f"Expected {expected} (got {shorten(row)!r}; is it cut off?)")
    text, cells, position = row[1:-1], dict[int, str](), 0
    comma = "," if text.strip() else ""
    while comma:
        match = _PAIR.match(text, position)
        if match is None:
            expected = "'index value' between commas"
            raise ValueError(f"Expected {expected} (got {shorten(text[position:])!r})")
        number, quoted, unquoted, comma = match.groups()
        index, position = int(number), match.end()
        if index >= width:
            raise ValueError(f"Expected an index below {width} (got {index})")
        if index in cells:
            raise ValueError(f"Expected distinct indices (got {index} twice)")
        cells[index] = _unquote(quoted) if quoted else unquoted.strip()
    return cells


def _parse_numbers(text: bytes, separator: str, dtype: type = np.float64) -> np.ndarray | None:
    with warnings.catch_warnings():
        # NumPy before 2.3 only warns of a malformed text.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text, dtype=dtype, sep=separator)
        except (ValueError, DeprecationWarning):
            return None


def _split_cells(text: str, width: int = 1) -> list[str]:
    """Splits a row at commas outside of quotes, or at spaces if there are no commas, and removes
    quotes.
    """
    has_quotes = "'" in text or '"' in text
    outside_quotes = re.sub(_QUOTED, "", text, flags=re.DOTALL) if has_quotes else text
    pattern = _CELL if width == 1 or "," in outside_quotes else _SPACED_CELL
    if not has_quotes:
        return [cell.strip() for cell in text.split(",")] if pattern is _CELL else text.split()
    cells, position, separator = [], 0, ","
    while separator:
        match = pattern.match(text, position)
        if match is None:
            expected = "values between commas, with closed quotes"
            raise ValueError(f"Expected {expected} (got {shorten(text[position:])!r})")
        quoted, unquoted, separator = match.groups()
        cells.append(_unquote(quoted) if quoted else (unquoted or "").strip())
        position = match.end()
    return cells


def _unquote(text: str) -> str:
    """Removes quotes and escapes of a quoted text; other text is unchanged."""
    if len(text) < 2 or text[0] not in "'\"" or text[-1] != text[0]:
        return text
    # Line breaks become spaces, because names are stored one per line.
    return re.sub(r"(?s)\\(.)", lambda match: " " if match[1] in "nrt" else match[1], text[1:-1])


def _decode(line: bytes) -> str:
    """Decodes a line and removes its comment."""
    try:
        text = line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        likely = "utf-16" if line[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin1"
        hint = f"pass its encoding, such as {argument('encoding', likely)}, or it is no text at all"
        got = f"the byte {line[error.start]:#04x}"
        raise ValueError(f"Expected text in UTF-8 (got {got}); {hint}") from None
    if "\0" in text:
        raise ValueError("Expected text (got a zero byte)")
    return _COMMENT.sub(lambda match: match[1] or "", text).strip() if "%" in text else text
