"""Text files of names, such as edge lists and hierarchies: their cells, and which column is which."""

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

#: The words that tell what a column holds. A name in the first line has one of them, and else words of NEUTRAL only.
ROLES = {
    "child": "child children subclass subtopic subcategory narrower descendant hyponym subject",
    "parent": "parent parents superclass supertopic supercategory broader ancestor hypernym object",
    "relation": "relation relations relationship predicate",
    "source": "source from src",
    "target": "target to dst dest destination",
    "first": "1 a",
    "second": "2 b",
    "weight": "weight weights score strength confidence similarity correlation count frequency value",
}
NEUTRAL = (
    "id ids name names label labels code term terms node topic category class key uri iri title concept gene protein "
    "symbol string preferred entity interactor item combined"
)
#: Relations from a child to its parent, and from a parent to its child; other relations are no hierarchy.
UPWARD = (
    "is_a isa part_of subclass_of sub_class_of subtype_of kind_of type_of instance_of member_of child_of belongs_to "
    "has_parent broader"
)
DOWNWARD = "parent_of has_part has_child has_subclass superclass_of super_class_of narrower"


#: The columns of an edge, unless a person names others or the first line others that mean the same.
DEFAULT_COLUMNS = ("source", "target")


class Table(NamedTuple):
    """The lines of a text as cells."""

    name: str  #: the file, in quotes, or "the text"
    delimiter: str  #: that of the first line, a space for any white space, or none
    header: list[str]  #: the cells of the first line, which may or may not name columns
    number: int  #: of the first line
    rows: Iterator[tuple[int, list[str]]]  #: the lines after it, and their numbers

    def all_rows(self) -> Iterator[tuple[int, list[str]]]:
        """All lines, where the first one names no columns."""
        return chain([(self.number, self.header)], self.rows)


def open_lines(path_or_text: PathLike) -> tuple[str, Lines]:
    """The name of a file, and its lines but blank ones with their numbers; or those of a text, if it has several."""
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        lines = enumerate(path_or_text.splitlines(), start=1)
        return "the text", ((i, line) for i, line in lines if line.strip())
    return f"'{os.fspath(path_or_text)}'", read_lines(path_or_text)


def read_table(name: str, lines: Lines, holds: str, spaces: bool = False) -> Table:
    """Divides lines at the delimiter of the first one: tabs, else the one of :obj:`,`, :obj:`;` and :obj:`|` that it
    has outside of quotes, else white space if :obj:`spaces` is set.

    Lines that begin with :obj:`#` are comments, unless it is the first line and names columns. A first line that names
    columns and has one cell less than the next has none for the names of rows, as R writes it.
    """
    for number, line in lines:
        is_comment = line.lstrip().startswith("#")
        bare = line.lstrip("# ") if is_comment else line
        delimiter = _find_delimiter(bare, f"line {number} of {name}", spaces) if bare else ""
        header = _split(bare, delimiter, f"line {number} of {name}")
        names_columns = len({*map(role_of, header)} - {None, ""}) > 1
        if not is_comment or names_columns:
            break
        _check_comment(line, delimiter, f"line {number} of {name}")
    else:
        hint = "lines that begin with '#' are comments, unless in double quotes"
        raise ValueError(f"Expected {name} to hold {holds} (got no line of text; {hint})")
    rows = _rows(name, lines, delimiter)
    if names_columns and (following := next(rows, None)) is not None:
        header = ["", *header] if len(following[1]) == len(header) + 1 else header
        rows = chain([following], rows)
    return Table(name, delimiter, header, number, rows)


def role_of(cell: str) -> str | None:
    """The role of a column of this name: one of :data:`ROLES`, none in particular (:obj:`""`), or :obj:`None` for text
    that names no column, such as a label. Its words may be joined as in :obj:`childName` or :obj:`child_name`.
    """
    words = [
        word.lower()
        for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+", cell)
    ]
    rest = [word for word in words if word not in NEUTRAL.split()]
    if len(rest) != 1 or (rest[0] in "12ab" and len(words) == 1):
        return "" if words and not rest else None
    return next((role for role, known in ROLES.items() if rest[0] in known.split()), None)


def relation_of(cell: str) -> str | None:
    """:obj:`"up"` for a relation of a child to its parent, as :obj:`is_a` or :obj:`rdfs:subClassOf`, :obj:`"down"` for
    one of a parent to its child, and :obj:`None` for any other text.
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.split(r"[:#/]", cell.strip("<> "))[-1])
    relation = re.sub(r"[\W_]+", "_", spaced).lower()
    return "up" if relation in UPWARD.split() else "down" if relation in DOWNWARD.split() else None


def find_pair(header: Sequence[str]) -> tuple[int, int] | None:
    """The columns of the two ends of an edge, source first, if the first line of a table names them."""
    roles = [role_of(cell) for cell in header]
    for ends in (("source", "target"), ("parent", "child"), ("first", "second")):
        if ends[0] in roles and ends[1] in roles:
            return roles.index(ends[0]), roles.index(ends[1])
    return None


def is_index(cell: str) -> bool:
    """Whether a name is that of a column that only counts the rows."""
    return not cell or cell.lower() == "index" or cell.startswith("Unnamed: ")


def read_edges(
    path_or_text: PathLike, columns: tuple[str, str] | None = None, weight_column: str | None = None
) -> tuple[str, list[tuple[str, str, str, float | None]]]:
    """Reads edges as ``(where, source, target, weight)``, for :meth:`tg_mlc.graphs.LabelGraph.from_edges`, and returns
    the name of the file with them; columns are found by their names unless they are given.
    """
    table = read_table(*open_lines(path_or_text), holds="edges", spaces=columns is not None)
    header, where = table.header, f"line {table.number} of {table.name}"
    pair, weight = find_pair(header), -1
    if columns is not None and (columns != DEFAULT_COLUMNS or {*columns} <= {*header}):
        pair = (_place(columns[0], header, where), _place(columns[1], header, where))
    if pair is None:
        if any(role_of(cell) for cell in header) or all(role_of(cell) == "" for cell in header):
            hint = "call them 'source' and 'target', and perhaps 'weight'"
            raise ValueError(
                f"Expected {where} to name the two columns of an edge (got {header[:8]}); {hint}"
            )
        if len(header) not in (2, 3) or (len(header) == 3 and parse_number(header[2]) is None):
            hint = "begin the file with the names of columns, as in 'source,target,weight'"
            raise ValueError(
                f"Expected {where} to hold two labels and perhaps a weight (got {header[:8]}); {hint}"
            )
        pair, weight = (0, 1), len(header) - 1 if len(header) == 3 else -1
        rows = table.all_rows()
    else:
        weights = [i for i, cell in enumerate(header) if role_of(cell) == "weight"]
        if weight_column is not None:
            weights = [_place(weight_column, header, where)]
        if len(weights) > 1:
            got = [header[i] for i in weights]
            raise ValueError(
                f"Expected one column of weights in {where} (got {got}); rename the others"
            )
        weight, rows = weights[0] if weights else -1, table.rows
    edges = []
    for number, cells in rows:
        where = f"line {number} of {table.name}"
        if len(cells) != len(header) or not (cells[pair[0]] and cells[pair[1]]):
            expected = (
                f"{where} to hold {len(header)} cells with two labels, as line {table.number}"
            )
            raise ValueError(
                f"Expected {expected} (got {cells[:8]}); put names with a delimiter in double quotes"
            )
        value = None if weight < 0 else parse_number(cells[weight])
        if weight >= 0 and value is None:
            raise ValueError(
                f"Expected {where} to hold a number as the weight (got {cells[weight][:40]!r})"
            )
        edges.append((where, cells[pair[0]], cells[pair[1]], value))
    check_rows(
        [edge[1:3] for edge in edges],
        table,
        is_named=find_pair(header) is not None or columns is not None,
    )
    return table.name, edges


def check_rows(pairs: Sequence[tuple[str, str]], table: Table, is_named: bool) -> None:
    """Refuses a file of the names of columns alone, and warns of a first line that may name them in other words,
    because its names occur in no other line.
    """
    if not pairs:
        raise ValueError(
            f"Expected {table.name} to hold pairs of names (got the names of columns alone)"
        )
    first, *others = pairs
    if not is_named and len(others) > 1 and set(first).isdisjoint(chain.from_iterable(others)):
        told = (
            "Line %d of %s has %r and %r, which no other line has; delete it if they name columns"
        )
        logger.warning(told, table.number, table.name, *first)


def _place(column: str, header: Sequence[str], where: str) -> int:
    if column not in header:
        raise ValueError(
            f"Expected {where} to name the column {column!r} (got {[*header][:8]}); pass 'columns'"
        )
    return header.index(column)


def _find_delimiter(line: str, where: str, spaces: bool) -> str:
    if "\t" in line:
        return "\t"
    unquoted = re.sub(r'"[^"]*"', "", line)
    found = [mark for mark in ",;|" if mark in unquoted]
    if len(found) > 1:
        hint = "put names that hold one of them in double quotes"
        raise ValueError(
            f"Expected one delimiter in {where} (got {' and '.join(map(repr, found))}); {hint}"
        )
    return found[0] if found else " " if spaces else ""


def _split(line: str, delimiter: str, where: str) -> list[str]:
    if '"' not in line:  # nearly all lines of a large file
        return [
            cell.strip()
            for cell in (line.split(delimiter.strip(" ") or None) if delimiter else [line])
        ]
    try:
        cells = next(
            csv.reader([line], delimiter=delimiter or "\t", skipinitialspace=True, strict=True)
        )
    except csv.Error as error:
        expected = "double quotes around whole cells, and two for one within"
        raise ValueError(
            f"Expected {where} to have {expected} (got {line[:80]!r}, {error})"
        ) from error
    return [cell.strip() for cell in cells]


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
