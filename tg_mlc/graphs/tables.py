"""Tables of names, such as edge lists and hierarchies: their cells and the roles of columns."""

from __future__ import annotations

import csv
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from tg_mlc._files import read_lines
from tg_mlc._numbers import parse_number

logger = logging.getLogger(__name__)

PathLike = str | os.PathLike[str]
Lines = Iterator[tuple[int, str]]
Edge = tuple[str, str, str, float | None]  #: (line of the file, source, target, weight)

#: Words that name a role of a column. Further words in its name must be among NEUTRAL.
ROLES = {
    "child": "child children subclass subtopic subcategory narrower descendant hyponym subject",
    "parent": (
        "parent parents superclass supertopic supercategory broader ancestor hypernym object"
    ),
    "relation": "relation relations relationship predicate",
    "source": "source from src",
    "target": "target to dst dest destination",
    "first": "1 a",
    "second": "2 b",
    "weight": (
        "weight weights score strength confidence similarity correlation count frequency value"
    ),
}
NEUTRAL = (
    "id ids name names label labels code term terms node topic category class key uri iri title "
    "concept gene protein symbol string preferred entity interactor item combined"
)
#: Relations from a child to its parent, and from a parent to its child.
UPWARD = (
    "is_a isa part_of subclass_of sub_class_of subtype_of kind_of type_of instance_of member_of "
    "child_of belongs_to has_parent broader"
)
DOWNWARD = "parent_of has_part has_child has_subclass superclass_of super_class_of narrower"

#: Default columns of an edge; columns with synonymous names are accepted, too.
DEFAULT_COLUMNS = ("source", "target")


class Table(NamedTuple):
    """The lines of a text as cells."""

    name: str  #: the file in quotes, or "the text"
    delimiter: str  #: delimiter of the first line; a space for any white space, empty for none
    header: list[str]  #: cells of the first line, which may or may not name columns
    number: int  #: line number of the first line
    rows: Iterator[tuple[int, list[str]]]  #: numbers and cells of the lines after it

    def all_rows(self) -> Iterator[tuple[int, list[str]]]:
        """Returns all lines, for tables whose first line is no header."""
        return chain([(self.number, self.header)], self.rows)


def open_lines(path_or_text: PathLike) -> tuple[str, Lines]:
    """Returns the name of a file, or of a text of several lines, and its non-blank lines."""
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        lines = enumerate(path_or_text.splitlines(), start=1)
        return "the text", ((i, line) for i, line in lines if line.strip())
    return f"'{os.fspath(path_or_text)}'", read_lines(path_or_text)


def read_table(name: str, lines: Lines, holds: str, spaces: bool = False) -> Table:
    """Splits lines at the delimiter of the first line: a tab, else :obj:`,`, :obj:`;` or :obj:`|`
    outside of quotes, else white space if :obj:`spaces` is set.

    Lines that begin with :obj:`#` are comments, except a first line that names columns. If the
    header has one cell less than the next line, the first column holds row names, as R writes
    tables.
    """
    for number, line in lines:
        where = f"line {number} of {name}"
        is_comment = line.lstrip().startswith("#")
        content = line.lstrip("# ") if is_comment else line
        delimiter = _find_delimiter(content, where, spaces) if content else ""
        header = _split(content, delimiter, where)
        names_columns = len({*map(role_of, header)} - {None, ""}) > 1
        if not is_comment or names_columns:
            break
        _check_comment(line, delimiter, where)
    else:
        got = "(got no line of text; lines that begin with '#' are comments, unless quoted)"
        raise ValueError(f"Expected {name} to hold {holds} {got}")
    rows = _rows(name, lines, delimiter)
    if names_columns and (second_row := next(rows, None)) is not None:
        header = ["", *header] if len(second_row[1]) == len(header) + 1 else header
        rows = chain([second_row], rows)
    return Table(name, delimiter, header, number, rows)


def role_of(cell: str) -> str | None:
    """Returns the role of a column by its name: a key of :data:`ROLES`, :obj:`""` for a general
    name such as "id", or :obj:`None` for text that names no column, such as a label.

    Words may be joined as in :obj:`childName` or :obj:`child_name`.
    """
    pattern = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+"
    words = [word.lower() for word in re.findall(pattern, cell)]
    specific = [word for word in words if word not in NEUTRAL.split()]
    if len(specific) != 1 or (specific[0] in "12ab" and len(words) == 1):
        return "" if words and not specific else None
    return next((role for role, known in ROLES.items() if specific[0] in known.split()), None)


def relation_of(cell: str) -> str | None:
    """Returns :obj:`"up"` for a relation of a child to its parent, such as :obj:`rdfs:subClassOf`,
    :obj:`"down"` for one of a parent to its child, and :obj:`None` for any other text.
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.split(r"[:#/]", cell.strip("<> "))[-1])
    relation = re.sub(r"[\W_]+", "_", spaced).lower()
    return "up" if relation in UPWARD.split() else "down" if relation in DOWNWARD.split() else None


def find_pair(header: Sequence[str]) -> tuple[int, int] | None:
    """Returns the columns of source and target, if the first line of a table names them."""
    roles = [role_of(cell) for cell in header]
    for source, target in (("source", "target"), ("parent", "child"), ("first", "second")):
        if source in roles and target in roles:
            return roles.index(source), roles.index(target)
    return None


def is_index(cell: str) -> bool:
    """Tells whether a column with this name is likely to number the rows."""
    return not cell or cell.lower() == "index" or cell.startswith("Unnamed: ")


def read_edges(
    path_or_text: PathLike, columns: tuple[str, str] | None = None, weight_column: str | None = None
) -> tuple[str, list[Edge]]:
    """Returns the name of a file and its edges, for :meth:`tg_mlc.graphs.LabelGraph.from_edges`.

    Columns are found by their names unless they are specified.
    """
    table = read_table(*open_lines(path_or_text), holds="edges", spaces=columns is not None)
    is_named, source, target, weight = _edge_columns(table, columns, weight_column)
    edges: list[Edge] = []
    for number, cells in table.rows if is_named else table.all_rows():
        where = f"line {number} of {table.name}"
        if len(cells) != len(table.header) or not (cells[source] and cells[target]):
            expected = f"{where} to hold {len(table.header)} cells with two labels"
            hint = "put names with a delimiter in double quotes"
            raise ValueError(f"Expected {expected} (got {cells[:8]}); {hint}")
        value = None if weight < 0 else parse_number(cells[weight])
        if weight >= 0 and value is None:
            got = f"(got {cells[weight][:40]!r})"
            raise ValueError(f"Expected {where} to hold a number as the weight {got}")
        edges.append((where, cells[source], cells[target], value))
    is_sure = find_pair(table.header) is not None or columns is not None
    check_rows([edge[1:3] for edge in edges], table, is_sure)
    return table.name, edges


def _edge_columns(
    table: Table, columns: tuple[str, str] | None, weight_column: str | None
) -> tuple[bool, int, int, int]:
    """Returns whether there is a header, and the columns of source, target and weight (or -1)."""
    header, where = table.header, f"line {table.number} of {table.name}"
    roles = [role_of(cell) for cell in header]
    pair = find_pair(header)
    if columns is not None and (columns != DEFAULT_COLUMNS or {*columns} <= {*header}):
        pair = (_index_of(columns[0], header, where), _index_of(columns[1], header, where))
    if pair is None:
        got = f"(got {header[:8]})"
        if any(roles) or all(role == "" for role in roles):
            hint = "call them 'source' and 'target', and perhaps 'weight'"
            raise ValueError(f"Expected {where} to name the two columns of an edge {got}; {hint}")
        if len(header) not in (2, 3) or (len(header) == 3 and parse_number(header[2]) is None):
            hint = "begin the file with the names of columns, as in 'source,target,weight'"
            raise ValueError(f"Expected {where} to hold two labels, perhaps a weight {got}; {hint}")
        return False, 0, 1, 2 if len(header) == 3 else -1
    weights = [i for i, role in enumerate(roles) if role == "weight"]
    if weight_column is not None:
        weights = [_index_of(weight_column, header, where)]
    if len(weights) > 1:
        got = f"(got {[header[i] for i in weights]})"
        raise ValueError(f"Expected one column of weights in {where} {got}; rename the others")
    return True, *pair, weights[0] if weights else -1


def check_rows(pairs: Sequence[tuple[str, str]], table: Table, is_named: bool) -> None:
    """Raises if a file only holds a header. Warns if its first line may be an unknown header,
    because no other line has its names.
    """
    if not pairs:
        raise ValueError(f"Expected {table.name} to hold pairs of names (got only a header)")
    first, *others = pairs
    if not is_named and len(others) > 1 and set(first).isdisjoint(chain.from_iterable(others)):
        message = "Line %d of %s has %r and %r, which no other line has; delete names of columns"
        logger.warning(message, table.number, table.name, *first)


def _index_of(column: str, header: Sequence[str], where: str) -> int:
    if column not in header:
        got = f"(got {[*header][:8]}); pass 'columns'"
        raise ValueError(f"Expected {where} to name the column {column!r} {got}")
    return header.index(column)


def _find_delimiter(line: str, where: str, spaces: bool) -> str:
    if "\t" in line:
        return "\t"
    unquoted = re.sub(r'"[^"]*"', "", line)
    delimiters = [delimiter for delimiter in ",;|" if delimiter in unquoted]
    if len(delimiters) > 1:
        got = f"(got {' and '.join(map(repr, delimiters))})"
        hint = "put names that hold one of them in double quotes"
        raise ValueError(f"Expected one delimiter in {where} {got}; {hint}")
    return delimiters[0] if delimiters else " " if spaces else ""


def _split(line: str, delimiter: str, where: str) -> list[str]:
    if '"' not in line:  # Lines without quotes are split without the csv module, which is slower.
        cells = line.split(delimiter.strip(" ") or None) if delimiter else [line]
        return [cell.strip() for cell in cells]
    reader = csv.reader([line], delimiter=delimiter or "\t", skipinitialspace=True, strict=True)
    try:
        return [cell.strip() for cell in next(reader)]
    except csv.Error as error:
        expected = f"{where} to have double quotes around whole cells, and two for one within"
        raise ValueError(f"Expected {expected} (got {line[:80]!r}, {error})") from error


def _rows(
    name: str, lines: Iterable[tuple[int, str]], delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    for number, line in lines:
        if line.lstrip().startswith("#"):
            _check_comment(line, delimiter, f"line {number} of {name}")
            continue
        yield number, _split(line, delimiter, f"line {number} of {name}")


def _check_comment(line: str, delimiter: str, where: str) -> None:
    if delimiter.strip(" ") and delimiter in line and re.match(r"\s*#+\w", line):
        hint = "put a space after '#' if it is one, and names that begin with '#' in double quotes"
        raise ValueError(f"Expected {where} to be a comment or a row (got {line[:80]!r}); {hint}")
