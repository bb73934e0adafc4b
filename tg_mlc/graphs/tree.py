"""Label graphs from a hierarchy, and the reader of files that hold one: the parent of every child."""

from __future__ import annotations

import csv
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch

from tg_mlc._files import read_lines
from tg_mlc._options import check_choice
from tg_mlc.graphs.label_graph import LabelGraph, as_names

if TYPE_CHECKING:
    import networkx as nx

logger = logging.getLogger(__name__)

Form = Literal["auto", "rcv1", "taxonomy", "pairs"]
Parentage = list[tuple[str, str | None]]  # pairs of a child and its parent
Located = Iterable[tuple[str, str]]  # lines, and where they stand
# As in rcv1.topics.hier.orig: "parent: C15   child: C151   child-description: ACCOUNTS/EARNINGS".
RCV1_LINE = re.compile(r"\s*parent:\s*(\S+)\s+child:\s*(\S+)(?:\s+child-description:.*)?\s*")

Node = str | int
Parents = Mapping[Any, Any] | Iterable[tuple[Any, Any]]


def tree(
    parents: Parents,
    label_names: Sequence[str] | None = None,
    undirected: bool = True,
    root: Node | None = None,
    self_loops: bool = True,
    include_root: bool = False,
    ancestors: bool = False,
) -> LabelGraph:
    r"""The label graph of a hierarchy: a label attends to its parents and its children, as the RCV1 topics do in the
    `"Neural Message Passing for Multi-Label Classification" <https://arxiv.org/abs/1904.08049>`_ paper.

    A label may have several parents, so any hierarchy without cycles will do.

    Args:
        parents (dict or list of tuple): The parent, or list of parents, of each child; or pairs
            :obj:`(child, parent)`, as :func:`~tg_mlc.graphs.read_parents` reads them from a file. Children and
            parents are names, or indices of labels. A parent of :obj:`None` stands for none.
        label_names (list of str, optional): The labels in their order; those outside the hierarchy stay alone.
            (default: :obj:`None`, names in the order in which they appear, or indices :obj:`0` to :obj:`L - 1`)
        undirected (bool, optional): If set to :obj:`False`, messages go from parents to children only.
            (default: :obj:`True`)
        root (str or int, optional): A node above the hierarchy that is no label of its own, and is dropped with its
            edges. (default: :obj:`None`, the one top node that is not in :obj:`label_names`, if there is one;
            :obj:`source` names it)
        self_loops (bool, optional): If set to :obj:`False`, a label attends to itself only if it would receive
            nothing otherwise. (default: :obj:`True`)
        include_root (bool, optional): If set to :obj:`True`, the root stays, as one more label after all others.
            (default: :obj:`False`)
        ancestors (bool, optional): If set to :obj:`True`, parents of parents count as parents, and so on up.
            (default: :obj:`False`)

    Raises:
        ValueError: If the hierarchy has a cycle, or a node that is neither a label nor the root.
    """
    import networkx as nx

    label_names = None if label_names is None else as_names(label_names)
    hierarchy = _hierarchy(parents)
    by_index = len(hierarchy) > 0 and all(isinstance(node, int) for node in hierarchy)
    labels: list[Node] = list(label_names) if label_names is not None else [node for node in hierarchy if node != root]
    if by_index:
        labels = list(range(len(labels) if label_names is not None else max(map(int, labels), default=-1) + 1))
    top = _top(hierarchy, labels, root)
    if include_root:
        if top is None:
            raise ValueError("Expected 'parents' to have a root for 'include_root' (got none); name it with 'root'")
        labels += [] if top in labels else [top]
    named = [] if label_names is None and labels and not by_index else label_names
    position = {node: index for index, node in enumerate(labels)}
    related = nx.transitive_closure_dag(hierarchy) if ancestors else hierarchy
    edges = [(position[j], position[i]) for j, i in related.edges if j in position and i in position]
    dropped = "" if top is None or top in position else f", without the root {top!r}"
    if dropped and root is None and not edges:
        logger.warning(
            "The hierarchy joins no two labels, as %r is no label and was taken for its root; if it is one, write it "
            "as in 'label_names' (%s)", top, ", ".join(map(str, labels[:5])),
        )  # fmt: skip
    graph = LabelGraph(
        torch.tensor(edges, dtype=torch.long).view(-1, 2).t(),
        num_nodes=len(labels),
        label_names=None if named is None else [*named, *(str(node) for node in labels[len(named) :])],
        kind="tree",
        source=f"hierarchy of {len(edges)} {'ancestor-descendant' if ancestors else 'parent-child'} pairs{dropped}",
    )
    graph = graph.to_undirected() if undirected else graph
    return graph.add_self_loops(only_isolated=not self_loops)


def _hierarchy(parents: Parents) -> nx.DiGraph[Node]:
    import networkx as nx

    hierarchy: nx.DiGraph[Node] = nx.DiGraph()
    for child, parent in _pairs(parents):
        hierarchy.add_node(child)
        if parent is not None:
            hierarchy.add_edge(parent, child)
    strange = [node for node in hierarchy if isinstance(node, bool) or not isinstance(node, str | int)]
    if strange or len({type(node) for node in hierarchy}) > 1:
        raise ValueError(f"Expected 'parents' to hold either names or indices (got {list(hierarchy)[:6]})")
    try:
        cycle = nx.find_cycle(hierarchy)
    except nx.NetworkXNoCycle:
        return hierarchy
    path = " -> ".join(str(edge[0]) for edge in [*cycle, cycle[0]])
    raise ValueError(f"Expected 'parents' to be without cycles (got {path}); take one of these pairs out")


def _pairs(parents: Parents) -> Iterator[tuple[Any, Any]]:
    if isinstance(parents, str | os.PathLike) or not isinstance(parents, Iterable):
        hint = "read them from a file with tg_mlc.graphs.read_parents"
        raise ValueError(f"Expected 'parents' to be a dict or pairs (child, parent) (got {parents!r}); {hint}")
    for item in parents.items() if isinstance(parents, Mapping) else parents:
        if isinstance(item, str) or not isinstance(item, Sequence) or len(item) != 2:
            raise ValueError(f"Expected 'parents' to hold pairs (child, parent) (got {item!r})")
        child, parent = item
        several = isinstance(parents, Mapping) and isinstance(parent, list | tuple | set | frozenset)
        yield from ((child, each) for each in (list(parent) if several else [parent]) or [None])


def _top(hierarchy: nx.DiGraph[Node], labels: Sequence[Node], root: Node | None) -> Node | None:
    if root is not None and root not in hierarchy:
        raise ValueError(f"Expected 'root' to be in 'parents' (got {root!r})")
    known = {*labels, root}
    strange = [node for node in hierarchy if node not in known]
    if root is None and len(strange) == 1 and hierarchy.in_degree(strange[0]) == 0:
        return strange[0]
    if strange:
        hint = "add them to 'label_names', or name the root with 'root'"
        raise ValueError(f"Expected every node of 'parents' to be a label or the root (got {strange[:5]}); {hint}")
    return root


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
    ``"auto"``     by the first line: :obj:`parent:` begins the first form; names of columns, or a comma without
                   a tab, the third; anything else is the second
    ============== ==================================================================================================

    Args:
        path_or_text (str or Path): The file, also as :obj:`.gz`, :obj:`.xz` or :obj:`.bz2`; or its text, if it has
            more than one line.
        form (str, optional): The form of the lines. Where all lines are two words with a tab between, it has to be
            given: a child with its parent looks like a parent with its one child. (default: :obj:`"auto"`)

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
    columns = {cell.strip().strip('"').lower() for cell in first.split("\t")}
    if form == "rcv1" or (form == "auto" and first.lstrip().startswith("parent:")):
        return [_rcv1_pair(line, where) for line, where in located]
    if form == "pairs" or (form == "auto" and ({"child", "parent"} <= columns or ("," in first and "\t" not in first))):
        return _table(located, "\t" if "\t" in first else ",")
    return _taxonomy(located, name, is_given=form != "auto")


def _rcv1_pair(line: str, where: str) -> tuple[str, str | None]:
    if (found := RCV1_LINE.fullmatch(line)) is None:
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
    return None if name.lower() in ("none", "") else name
