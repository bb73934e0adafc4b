"""Hierarchies as pairs of child and parent: readers of files, and the edges among labels."""

from __future__ import annotations

import io
import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, get_args
from xml.etree import ElementTree

import torch

from tg_mlc._names import few, shorten
from tg_mlc._numbers import is_blank, parse_number
from tg_mlc._optional import require
from tg_mlc._options import check_choice
from tg_mlc.graphs.tables import Table, check_rows, open_lines, read_table, relation_of, role_of

if TYPE_CHECKING:
    import networkx as nx

logger = logging.getLogger(__name__)

Format = Literal["auto", "rcv1", "obo", "skos", "taxonomy", "pairs"]
Pairs = list[tuple[str, str | None]]  # (child, parent)
Lines = list[tuple[int, str]]  # (number, text)
Node = str | int
Parents = Mapping[Any, Any] | Iterable[tuple[Any, Any]]

#: Formats that are recognised by the beginning of the first line.
BEGINNINGS = {
    "rcv1": ("parent:",),
    "obo": ("format-version:", "[Term]"),
    "skos": ("<?xml", "<rdf"),
}
# A line is "parent: C15   child: C151   child-description: ACCOUNTS/EARNINGS", for instance.
RCV1_LINE = re.compile(r"\s*parent:\s*(\S+)\s+child:\s*(\S+)(?:\s+child-description:.*)?\s*")
_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_SKOS = "{http://www.w3.org/2004/02/skos/core#}"
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def read_parents(
    path_or_text: str | os.PathLike[str],
    format: Format = "auto",  # noqa: A002
    names: bool = False,
) -> Pairs:
    r"""Reads pairs :obj:`(child, parent)` from a file, for :func:`tg_mlc.graphs.tree`.

    ==================  ==========================================================================
    format              content
    ==================  ==========================================================================
    :obj:`"rcv1"`       lines :obj:`parent: C15  child: C151`, as :obj:`rcv1.topics.hier.orig`
    :obj:`"obo"`        terms of an ontology, as the `Gene Ontology <https://geneontology.org>`_'s
                        :obj:`go-basic.obo`, read by :obj:`obonet`
    :obj:`"skos"`       concepts of a thesaurus in RDF/XML, with broader and narrower ones
    :obj:`"taxonomy"`   one line per parent: the parent and its children, separated by tabs
    :obj:`"pairs"`      a child and its parent, or a child, a relation, and its parent
    ==================  ==========================================================================

    :obj:`"auto"` recognises the first three formats by their first line. A table holds pairs if
    its first line has column names, a relation such as :obj:`is_a`, or a delimiter other than a
    tab; otherwise it is a taxonomy. :doc:`The page on label graphs </label_graphs>` says more.

    Args:
        path_or_text (str or Path): The file, also as :obj:`.gz`, :obj:`.xz` or :obj:`.bz2`; or its
            text, if it has more than one line.
        format (str, optional): The format. It must be specified if either column may hold the
            parents: if all lines are two names separated by a tab, or if pairs without column
            names have fewer distinct names in the first column than in the second.
            (default: :obj:`"auto"`)
        names (bool, optional): If set to :obj:`True`, terms and concepts go by their names, not by
            their identifiers. (default: :obj:`False`)

    Returns:
        The pairs in the file's order. The parent is :obj:`None` if the file has none, or writes
        :obj:`None` or :obj:`NA`.

    Raises:
        FileNotFoundError: If there is no such file.
        ImportError: If the file is in OBO, and :obj:`obonet` is not installed.
        ValueError: If :obj:`format` is unknown, a line has another format, the file is empty, or
            either column may hold the parents.
    """
    check_choice("format", format, get_args(Format))
    name, numbered = open_lines(path_or_text)
    lines = list(numbered)
    start = lines[0][1].lstrip() if lines else ""
    recognised = [key for key, beginnings in BEGINNINGS.items() if start.startswith(beginnings)]
    match recognised[0] if format == "auto" and recognised else format:
        case "rcv1":
            return _read_rcv1(lines, name)
        case "obo":
            return _read_obo(lines, name, names)
        case "skos":
            return _read_skos("\n".join(line for _, line in lines), name, names)
    if start.startswith(("<", "{", "@prefix")):
        got = f"(got {start[:40]!r})"
        hint = "convert OWL or JSON to OBO, Turtle to RDF/XML, others to a table of pairs"
        raise ValueError(f"Expected {name} to be a table or an OBO file {got}; {hint}")
    table = read_table(name, iter(lines), "pairs of child and parent")
    roles = _find_roles(table)
    is_named = "child" in roles
    if not is_named and any(map(relation_of, table.header)):
        roles = ["relation" if relation_of(cell) else "" for cell in table.header]
        if len(roles) == 3 and roles.count("relation") == 1:
            roles[roles.index("")], roles[-1 - roles[::-1].index("")] = "child", "parent"
    has_pairs = format == "auto" and table.delimiter not in ("", "\t")
    if "child" in roles or format == "pairs" or has_pairs:
        roles = roles if "child" in roles else ["child", "parent"]
        return _read_pairs(table, roles, is_named, is_specified=format != "auto")
    return _read_taxonomy(table, is_specified=format != "auto")


def _read_rcv1(lines: Lines, name: str) -> Pairs:
    pairs: Pairs = []
    for number, line in lines:
        if (match := RCV1_LINE.fullmatch(line)) is None:
            expected = f"line {number} of {name} to read 'parent: ... child: ...'"
            raise ValueError(f"Expected {expected} (got {line[:80]!r})")
        pairs.append((match[2], _parent(match[1])))
    return pairs


def _read_obo(lines: Lines, name: str, by_name: bool) -> Pairs:
    """Reads the terms of an OBO file that are not obsolete, and their is_a and part_of parents."""
    obonet = require("obonet", extra="data")
    # obonet warns of files without a name, and needs an empty line before each stanza. It also
    # creates nodes for parents missing from the file; the empty comment marks actual terms.
    text = "name: hierarchy\n"
    text += "".join(f"\n{row}\ncomment: \n" if row[0] == "[" else f"{row}\n" for _, row in lines)
    try:
        graph = obonet.read_obo(io.StringIO(text))
    except (KeyError, TypeError, ValueError) as error:
        is_nameless = isinstance(error, KeyError)
        got = "a '[Term]' without 'id:'" if is_nameless else shorten(error).replace("\n", " ")
        raise ValueError(f"Expected {name} to be an OBO file (got {got}); mend it") from error
    name_of_term = {term: data.get("name", term) for term, data in graph.nodes(data=True) if data}
    if not name_of_term:
        raise ValueError(f"Expected {name} to hold '[Term]' and its 'id:' (got none)")
    current_of = {old: term for term in name_of_term for old in graph.nodes[term].get("alt_id", [])}
    name_of = name_of_term if by_name else {}
    pairs: Pairs = []
    for term in name_of_term:
        parents = []
        for _, target, relation in graph.out_edges(term, keys=True):
            parent = target if target in name_of_term else current_of.get(target, target)
            if relation == "is_a" and parent not in name_of_term:
                got = f"{parent!r} of {term!r}, which is missing or obsolete"
                raise ValueError(f"Expected {name} to hold each parent (got {got}); add it")
            if relation in ("is_a", "part_of"):
                parents.append(name_of.get(parent, parent))
        pairs += [(name_of.get(term, term), parent) for parent in parents or [None]]
    return pairs


def _read_skos(text: str, name: str, by_name: bool) -> Pairs:
    """Reads the concepts of a thesaurus in RDF/XML and their broader concepts."""
    if "<!ENTITY" in text:  # A few entities may stand for gigabytes of text.
        raise ValueError(f"Expected {name} to be without entities (got some); write them out")
    try:
        root = ElementTree.fromstring(text.encode())
    except ElementTree.ParseError as error:
        raise ValueError(f"Expected {name} to be a thesaurus in RDF/XML (got {error})") from error
    labels_of: dict[str, str] = {}
    pairs: Pairs = []
    for element in root.iter():
        concept = element.get(f"{_RDF}about")
        types = [node.get(f"{_RDF}resource") or "" for node in element.iter(f"{_RDF}type")]
        is_concept = element.tag == f"{_SKOS}Concept" or any(t.endswith("#Concept") for t in types)
        if concept is None or not is_concept:
            continue
        labels = element.findall(f"{_SKOS}prefLabel")
        by_language = {label.get(_LANGUAGE, "en"): label.text or "" for label in labels}
        default = next(iter(by_language.values()), labels_of.get(concept, concept))
        labels_of[concept] = by_language.get("en") or default
        pairs.append((concept, None))
        for relation in ("broader", "narrower"):
            for link in element.findall(f"{_SKOS}{relation}"):
                nested = [node.get(f"{_RDF}about") for node in link]
                target = link.get(f"{_RDF}resource") or next(iter(nested), None)
                pair = (concept, str(target))
                pairs.append(pair if relation == "broader" else pair[::-1])
    if not labels_of:
        hint = "convert OWL to OBO, others to a table with the columns child and parent"
        raise ValueError(f"Expected {name} to hold concepts of SKOS (got none); {hint}")
    ends = chain.from_iterable(pairs)
    if unknown := [end for end in ends if end is not None and end not in labels_of]:
        expected = f"broader and narrower concepts that {name} holds"
        raise ValueError(f"Expected {expected} (got {unknown[0]!r}); add it")
    name_of = labels_of if by_name else {}
    has_parent = {child for child, parent in pairs if parent is not None}
    unique = dict.fromkeys(pair for pair in pairs if pair[1] or pair[0] not in has_parent)
    return [(name_of.get(end, end), name_of.get(top or "", top)) for end, top in unique]


def _find_roles(table: Table) -> list[str]:
    """Returns the role of each column, or empty strings if the first line is no header."""
    maybe_roles = [role_of(cell) for cell in table.header]
    if len(maybe_roles) == 2 and "" in maybe_roles:  # The header may read "term, is_a".
        role_of_direction = {"up": "parent", "down": "child"}
        relation_roles = [role_of_direction.get(relation_of(cell) or "") for cell in table.header]
        maybe_roles = [end or role for end, role in zip(relation_roles, maybe_roles, strict=True)]
    roles = [role or "" for role in maybe_roles]
    header = [cell.lower() for cell in table.header]
    for end in ("child", "parent"):
        if roles.count(end) > 1 and header.count(end) == 1:
            roles = ["" if role == end != header[i] else role for i, role in enumerate(roles)]
    if len(roles) == 2 and "" in maybe_roles and ("child" in roles) != ("parent" in roles):
        # If one of two columns has a known role, the other one has the opposite role.
        roles[maybe_roles.index("")] = "parent" if "child" in roles else "child"
    counts = roles.count("child"), roles.count("parent")
    if len(roles) < 2 or (None in maybe_roles and min(counts) == 0):
        return [""] * len(roles)
    if counts != (1, 1):
        where = f"line {table.number} of {table.name}"
        hint = "rename them; if these are labels, put 'child' and 'parent' in a line before"
        got = f"(got {table.header[:8]}); {hint}"
        raise ValueError(f"Expected {where} to name one column 'child' and one 'parent' {got}")
    return roles


def _read_taxonomy(table: Table, is_specified: bool) -> Pairs:
    families: list[Pairs] = []
    expected = f"of {table.name} to hold a parent and its children between tabs"
    for number, (parent, *children) in table.all_rows():
        got = f"(got {[parent, *children][:5]})"
        if not parent or not children or not all(children):
            raise ValueError(f"Expected line {number} {expected} {got}")
        if any(map(relation_of, children)):
            raise ValueError(f"Expected line {number} {expected}, without a relation {got}")
        families.append([(child, _parent(parent)) for child in children])
    if not is_specified:
        _check_families(families, table, expected)
    return list(chain.from_iterable(families))


def _check_families(families: list[Pairs], table: Table, expected: str) -> None:
    """Raises if lines of a taxonomy look like pairs, perhaps with a weight or a relation."""
    if all(len(family) == 1 for family in families):
        reason = "either of its two columns may hold the parents (got 'auto')"
        hint = "give 'pairs' if children come first, 'taxonomy' if parents do"
        raise ValueError(f"Expected 'format' to be specified for {table.name}: {reason}; {hint}")
    if any(len(family) != 2 for family in families):
        return
    got = f"(got {table.header[:5]}"
    parents, last_names = zip(*((family[0][1], family[1][0]) for family in families), strict=True)
    is_number = [parse_number(str(name)) is not None for name in last_names]
    if all(is_number) and all(parse_number(str(parent)) is None for parent in parents):
        got += ", a number in the last column); name the columns 'child' and 'parent', or"
        hint = "give the format 'taxonomy' if numbers are labels"
        raise ValueError(f"Expected line {table.number} {expected} {got} {hint}")
    if len(families) > 2 * len({family[0][0] for family in families}):
        got += ", whose middle column repeats names); if that column is a relation, name the"
        hint = "columns 'child', 'relation' and 'parent', else specify the format 'taxonomy'"
        raise ValueError(f"Expected line {table.number} {expected} {got} {hint}")


def _read_pairs(table: Table, roles: list[str], is_named: bool, is_specified: bool) -> Pairs:
    columns = table.header if is_named else [role or "relation" for role in roles]
    child, parent = roles.index("child"), roles.index("parent")
    relation = roles.index("relation") if "relation" in roles else -1
    pairs: Pairs = []
    for number, cells in table.rows if is_named else table.all_rows():
        where, got = f"line {number} of {table.name}", f"(got {cells[:5]})"
        if len(cells) != len(columns) or not cells[child]:
            names = [column.lower() for column in columns[:5]]
            expected = f"{where} to hold a child and its parent in the columns {names}"
            hint = "put names with a delimiter in double quotes, and name further columns in line 1"
            raise ValueError(f"Expected {expected} {got}; {hint}")
        ends = cells[child], cells[parent]
        if relation >= 0 and (direction := relation_of(cells[relation])) != "up":
            if direction is None:
                hint = "is_a and part_of lead to parents; drop the lines of other relations"
                raise ValueError(f"Expected {where} to relate a child to its parent {got}; {hint}")
            ends = ends[1], ends[0]
        if any(map(relation_of, ends)):
            expected = f"{where} to hold a child and its parent, no relation"
            hint = "name the columns 'child', 'relation' and 'parent' in the first line"
            raise ValueError(f"Expected {expected} {got}; {hint}")
        pairs.append((ends[0], _parent(ends[1])))
    check_rows([(child, parent or child) for child, parent in pairs], table, is_named)
    _check_pairs(pairs, table.name, is_sure=is_specified or is_named or relation >= 0)
    return pairs


def _check_pairs(pairs: Pairs, name: str, is_sure: bool) -> None:
    """Raises if a cell holds several parents, or the first column seems to hold the parents."""
    linked = [(child, parent) for child, parent in pairs if parent is not None]
    children, parents = ({pair[end] for pair in linked} for end in (0, 1))
    for cell in sorted(parents):
        parts = {part.strip() for part in re.split(r"[,;|]", cell)}
        known_parts = parts & (children | parents)
        if len(parts) > 1 and (known_parts == parts or (known_parts and re.search(r"[;|]", cell))):
            got = f"(got {shorten(repr(cell))}, which lists several names of the hierarchy)"
            expected = f"one parent in each line of {name}"
            raise ValueError(f"Expected {expected} {got}; write one line for each parent")
    hint = "name the columns 'child' and 'parent', or give the format 'pairs'"
    if not is_sure and len(children) < len(parents):
        expected = f"the first column of {name} to hold children, so at least as many names"
        got = f"{len(children)} names in it, {len(parents)} in the second"
        raise ValueError(f"Expected {expected} (got {got}); {hint} or 'taxonomy'")
    if not is_sure and len(children) == len(parents) > 1:
        message = "Either column of %s may hold the parents, the second was taken; %s"
        logger.warning(message, name, f"{hint} or 'taxonomy'")


def _parent(name: str) -> str | None:
    """Returns the parent, or None for a minus sign or a blank cell. "Na" (sodium) is a name."""
    return None if name == "-" or (is_blank(name) and name != "Na") else name


def label_edges(
    parents: Parents,
    label_names: list[str] | None,
    root: Node | None = None,
    *,
    include_root: bool = False,
    ancestors: bool = False,
) -> dict[str, Any]:
    """Returns arguments of a :class:`LabelGraph` whose edges lead from parents to children, for
    arguments of :func:`tg_mlc.graphs.tree`.
    """
    import networkx as nx

    hierarchy = _hierarchy(parents)
    by_index = len(hierarchy) > 0 and all(isinstance(node, int) for node in hierarchy)
    nodes: list[Any] = [node for node in hierarchy if node != root]
    labels = nodes if label_names is None else [*label_names]
    if by_index:
        labels = list(range(max(nodes, default=-1) + 1 if label_names is None else len(labels)))
    top = _top(hierarchy, labels, root)
    if include_root and top is None:
        expected = "'parents' to have a root for 'include_root'"
        raise ValueError(f"Expected {expected} (got none); name it with 'root'")
    labels += [top] if include_root and top not in labels else []
    spellings: dict[str, str] = {}
    for name in map(str, dict.fromkeys([*labels, *hierarchy])):
        first = spellings.setdefault(" ".join(name.casefold().split()), name)
        if first != name:
            message = "Names %r and %r of the hierarchy differ in case or space only; are they one?"
            logger.warning(message, first, name)

    index_of = {node: index for index, node in enumerate(labels)}
    # The nearest ancestors of each node that are labels (or all such ancestors), in order.
    above: dict[Node, dict[Node, None]] = {}
    for node in nx.topological_sort(hierarchy):
        above[node] = {}
        for parent in hierarchy.predecessors(node):
            above[node] |= {parent: None} if parent in index_of else above[parent]
            above[node] |= above[parent] if ancestors else {}
    children = [node for node in hierarchy if node in index_of]
    edges = [(index_of[parent], index_of[child]) for child in children for parent in above[child]]
    without_root = top is not None and top not in index_of
    unknown = [node for node in hierarchy if node not in index_of and node != top]
    relation = "ancestor-descendant" if ancestors else "parent-child"
    source = f"hierarchy of {len(edges)} {relation} pairs"
    source += f", without the root {top!r}" if without_root else ""
    source += f", past {len(unknown)} that are no labels" if unknown else ""
    missing = [label for label in labels if label not in hierarchy]
    if without_root and root is None and not edges:
        message = (
            "The hierarchy joins no two labels, as %r is no label and was taken for its root; "
            "if it is one, write it as in 'label_names' (%s)"
        )
        logger.warning(message, top, few([*map(str, labels)]))
    elif unknown and missing:
        message = (
            f"{len(missing)} of {len(labels)} labels are not in the hierarchy and stay alone (%s); "
            f"{len(unknown)} of its names are no labels (%s)"
        )
        logger.warning(message, few([*map(str, missing)]), few([*map(str, unknown)]))

    specified = label_names or []
    names = [*specified, *map(str, labels[len(specified) :])]
    edge_index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t().contiguous()
    return {
        "edge_index": edge_index,
        "parent_index": edge_index,
        "num_nodes": len(labels),
        "label_names": None if label_names is None and (by_index or not labels) else names,
        "kind": "tree",
        "source": source,
    }


def ancestors_of(parents: Parents, label_names: Sequence[str]) -> list[str]:
    """Returns the ancestors of labels that are no labels, in the order of the hierarchy."""
    import networkx as nx

    hierarchy = _hierarchy(parents)
    ancestors = set[Node]()
    for name in hierarchy.nodes & {*label_names}:
        ancestors |= nx.ancestors(hierarchy, name)
    ancestors -= {*label_names}
    return [str(node) for node in hierarchy if node in ancestors]


def _hierarchy(parents: Parents) -> nx.DiGraph[Node]:
    """Returns the hierarchy as a graph from parents to children."""
    import networkx as nx

    if isinstance(parents, str | os.PathLike) or not isinstance(parents, Iterable):
        got = f"(got {shorten(repr(parents))})"
        hint = "read them from a file with tg_mlc.graphs.read_parents"
        raise ValueError(f"Expected 'parents' to be a dict or pairs (child, parent) {got}; {hint}")
    hierarchy: nx.DiGraph[Node] = nx.DiGraph()
    for item in parents.items() if isinstance(parents, Mapping) else parents:
        if isinstance(item, str) or not isinstance(item, Sequence) or len(item) != 2:
            got = shorten(repr(item))
            raise ValueError(f"Expected 'parents' to hold pairs (child, parent) (got {got})")
        child, value = item
        is_list = isinstance(parents, Mapping) and isinstance(value, list | tuple | set | frozenset)
        hierarchy.add_node(child)
        pairs = ((parent, child) for parent in (value if is_list else [value]))
        hierarchy.add_edges_from(pair for pair in pairs if pair[0] is not None)
    types = {type(node) for node in hierarchy}
    are_nodes = all(issubclass(t, str | int) and t is not bool for t in types)
    if not are_nodes or len(types) > 1:
        got = shorten(list(hierarchy)[:6])
        raise ValueError(f"Expected 'parents' to hold either names or indices (got {got})")
    try:
        cycle = nx.find_cycle(hierarchy)
    except nx.NetworkXNoCycle:
        return hierarchy
    path = " -> ".join(str(edge[0]) for edge in [*cycle, cycle[0]])
    raise ValueError(f"Expected 'parents' to be without cycles (got {path}); drop one of the pairs")


def _top(hierarchy: nx.DiGraph[Node], labels: Sequence[Node], root: Node | None) -> Node | None:
    """Returns the node above the hierarchy: the root, or the only top node that is no label."""
    if root is not None and root not in hierarchy:
        raise ValueError(f"Expected 'root' to be in 'parents' (got {root!r})")
    labels_and_root = {*labels, root}
    unknown = [node for node in hierarchy if node not in labels_and_root]
    inner = [node for node in unknown if hierarchy.out_degree(node) > 0]
    tops = [node for node in inner if hierarchy.in_degree(node) == 0]
    top = tops[0] if root is None and len(tops) == 1 else root
    if invalid := [node for node in unknown if isinstance(node, int) and node != top]:
        hint = "add names to 'label_names', or name the root with 'root'"
        expected = "every index in 'parents' to be a label or the root"
        raise ValueError(f"Expected {expected} (got {invalid[:5]}); {hint}")
    return top
