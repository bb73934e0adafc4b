"""Reader of files of hierarchies: the parent of every child."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable
from itertools import chain
from typing import Literal, get_args

from tg_mlc._files import read_lines
from tg_mlc._options import check_choice

Form = Literal["auto", "rcv1", "taxonomy", "pairs"]
Parentage = list[tuple[str, str | None]]  # pairs of a child and its parent
Located = Iterable[tuple[str, str]]  # lines, and where they stand

# As in rcv1.topics.hier.orig: "parent: C15   child: C151   child-description: ACCOUNTS/EARNINGS".
RCV1_LINE = re.compile(r"\s*parent:\s*(\S+)\s+child:\s*(\S+)(?:\s+child-description:.*)?\s*")
NO_PARENT = {"none", ""}


def read_parents(path_or_text: str | os.PathLike[str], form: Form = "auto") -> Parentage:
    r"""Reads pairs :obj:`(child, parent)` from a file, for :func:`tg_mlc.graphs.tree`.

    ============== ==================================================================================================
    form           what a line holds
    ============== ==================================================================================================
    ``"rcv1"``     ``parent: C15  child: C151  child-description: ...``, as in :obj:`rcv1.topics.hier.orig` of the
                   `"RCV1: A New Benchmark Collection for Text Categorization Research"
                   <https://jmlr.org/papers/v5/lewis04a.html>`_ paper
    ``"taxonomy"`` the parent, then all its children, between tabs
    ``"pairs"``    a child and its parent, between tabs or commas, in double quotes where a name has one of these. A
                   first line that names columns :obj:`child` and :obj:`parent` may put them in any order among others.
    ``"auto"``     told by the first line: :obj:`parent:` begins the first form; names of columns, or a comma without
                   a tab, the third; anything else is the second
    ============== ==================================================================================================

    Args:
        path_or_text (str or Path): The file, also as :obj:`.gz`, :obj:`.xz` or :obj:`.bz2`; or its text, if it has
            more than one line.
        form (str, optional): The form of the lines. Where all lines are two words with a tab between, it has to be
            given, as a child with its parent looks like a parent with its one child. (default: :obj:`"auto"`)

    Returns:
        The pairs in the file's order; a parent called :obj:`None`, or none at all, is :obj:`None`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If :obj:`form` is unknown, a line is not of the form, there is none, or the parents may stand in
            either column.
    """
    check_choice("form", form, get_args(Form))
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        name, lines = "the text", [(i, line) for i, line in enumerate(path_or_text.splitlines(), 1) if line.strip()]
    else:
        name, lines = f"'{os.fspath(path_or_text)}'", list(read_lines(path_or_text))
    located = [(line, f"line {number} of {name}") for number, line in lines]
    if not located:
        raise ValueError(f"Expected {name} to hold pairs of child and parent (got no line of text)")
    first = located[0][0]
    match _recognise(first) if form == "auto" else form:
        case "rcv1":
            return [_rcv1_pair(line, where) for line, where in located]
        case "taxonomy":
            return _taxonomy(located, name, is_given=form != "auto")
        case _:
            return _table(located, "\t" if "\t" in first else ",")


def _recognise(line: str) -> Form:
    if line.lstrip().startswith("parent:"):
        return "rcv1"
    names = {cell.strip().strip('"').lower() for cell in line.split("\t")}
    return "pairs" if {"child", "parent"} <= names or ("," in line and "\t" not in line) else "taxonomy"


def _rcv1_pair(line: str, where: str) -> tuple[str, str | None]:
    found = RCV1_LINE.fullmatch(line)
    if found is None:
        expected = f"{where} to read 'parent: ... child: ... child-description: ...'"
        raise ValueError(f"Expected {expected} (got {line[:80]!r})")
    return found[2], _parent(found[1])


def _taxonomy(lines: Located, name: str, is_given: bool) -> Parentage:
    families: list[Parentage] = []
    for line, where in lines:
        parent, *children = [cell.strip() for cell in line.split("\t")]
        if not parent or not children or not all(children):
            raise ValueError(f"Expected {where} to hold a parent and its children between tabs (got {line[:80]!r})")
        families.append([(child, _parent(parent)) for child in children])
    if not is_given and all(len(family) == 1 for family in families):
        expected = f"'form' for two columns between tabs, as in {name}, of which either may hold the parents"
        hint = "give 'pairs' if children come first, 'taxonomy' if parents do"
        raise ValueError(f"Expected {expected} (got 'auto'); {hint}")
    return list(chain.from_iterable(families))


def _table(lines: Located, delimiter: str) -> Parentage:
    columns, pairs = ["child", "parent"], []
    for i, (line, where) in enumerate(lines):
        try:
            cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True))
        except csv.Error as error:
            expected = "double quotes around whole cells, and two for one within"
            raise ValueError(f"Expected {where} to have {expected} (got {line[:80]!r}, {error})") from error
        cells = [cell.strip() for cell in cells]
        if i == 0 and {"child", "parent"} <= {cell.lower() for cell in cells}:
            columns = [cell.lower() for cell in cells]
            continue
        if len(cells) != len(columns) or not cells[columns.index("child")]:
            expected = f"{where} to hold a child and its parent, by tab or comma, in the columns {columns[:5]}"
            hint = "put names with a comma in double quotes, and name other columns in the first line"
            raise ValueError(f"Expected {expected} (got {cells[:5]}); {hint}")
        pairs.append((cells[columns.index("child")], _parent(cells[columns.index("parent")])))
    return pairs


def _parent(name: str) -> str | None:
    return None if name.lower() in NO_PARENT else name
