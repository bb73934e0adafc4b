"""The reader of files that hold a hierarchy: the parent of every child."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from itertools import chain
from typing import Literal, get_args
from xml.etree import ElementTree

from tg_mlc._numbers import is_blank, parse_number
from tg_mlc._options import check_choice
from tg_mlc.graphs.tables import Table, check_rows, open_lines, read_table, relation_of, role_of

logger = logging.getLogger(__name__)

Form = Literal["auto", "rcv1", "obo", "skos", "taxonomy", "pairs"]
Parentage = list[tuple[str, str | None]]  # pairs of a child and its parent
_RDF, _SKOS = (
    "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}",
    "{http://www.w3.org/2004/02/skos/core#}",
)
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
# As in rcv1.topics.hier.orig: "parent: C15   child: C151   child-description: ACCOUNTS/EARNINGS".
RCV1_LINE = re.compile(r"\s*parent:\s*(\S+)\s+child:\s*(\S+)(?:\s+child-description:.*)?\s*")


def read_parents(
    path_or_text: str | os.PathLike[str], form: Form = "auto", names: bool = False
) -> Parentage:
    r"""Reads pairs :obj:`(child, parent)` from a file, for :func:`tg_mlc.graphs.tree`.

    A line of the form ``"rcv1"`` holds ``parent: C15  child: C151  child-description: ...``, as in RCV1's
    :obj:`rcv1.topics.hier.orig`; of ``"obo"``, a property of a term, as in the `Gene Ontology
    <https://geneontology.org>`_'s :obj:`go-basic.obo`; of ``"skos"``, an element of a thesaurus in RDF/XML, whose
    concepts have broader and narrower ones; of ``"taxonomy"``, the parent, then all its children, between tabs; and of
    ``"pairs"``, a child and its parent, or a child, a relation, and its parent. ``"auto"`` goes by the first line: that
    of an OBO file, of XML, or :obj:`parent:`, begins the first three forms; names of columns, a relation such as
    :obj:`is_a`, or another delimiter than a tab the last; anything else is a taxonomy. :doc:`The page on label graphs
    </label_graphs>` has a table of what is read.

    Args:
        path_or_text (str or Path): The file, also as :obj:`.gz`, :obj:`.xz` or :obj:`.bz2`; or its text, if it has
            more than one line.
        form (str, optional): The form of the lines. It has to be given where either column may hold the parents: where
            all lines are two words with a tab between, or where pairs without names of columns have fewer different
            names in the first than in the second. (default: :obj:`"auto"`)
        names (bool, optional): If set to :obj:`True`, the terms of an OBO file, or the concepts of a thesaurus,
            go by their names, not by their identifiers. (default: :obj:`False`)

    Returns:
        The pairs in the file's order; a parent called :obj:`None` or :obj:`NA`, or none at all, is :obj:`None`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If :obj:`form` is unknown, a line is not of the form, there is none, or the parents may stand in
            either column.
    """
    check_choice("form", form, get_args(Form))
    name, opened = open_lines(path_or_text)
    lines = list(opened)
    first = lines[0][1].lstrip() if lines else ""
    if form == "rcv1" or (form == "auto" and first.startswith("parent:")):
        pairs: Parentage = []
        for number, line in lines:
            if (found := RCV1_LINE.fullmatch(line)) is None:
                expected = f"line {number} of {name} to read 'parent: ... child: ... child-description: ...'"
                raise ValueError(f"Expected {expected} (got {line[:80]!r})")
            pairs.append((found[2], _parent(found[1])))
        return pairs
    if form == "obo" or (
        form == "auto" and (first.startswith("format-version:") or first.rstrip() == "[Term]")
    ):
        return _read_obo(lines, name, names)
    if form == "skos" or (form == "auto" and first.startswith(("<?xml", "<rdf"))):
        return _read_skos("\n".join(line for _, line in lines), name, names)
    if first.startswith(("<", "{", "@prefix")):
        raise ValueError(
            f"Expected {name} to be a table or an OBO file (got {first[:40]!r}); convert ontologies in OWL or JSON to "
            f"OBO, thesauri in Turtle to RDF/XML, and others to a table with the columns child and parent"
        )
    table = read_table(name, iter(lines), "pairs of child and parent")
    roles = _find_roles(table)
    is_named = "child" in roles and "parent" in roles
    if not is_named and any(map(relation_of, table.header)):
        roles = ["relation" if relation_of(cell) else "" for cell in table.header]
        if len(roles) == 3 and roles.count("relation") == 1:
            roles[roles.index("")], roles[-1 - roles[::-1].index("")] = "child", "parent"
    if (
        "child" in roles
        or form == "pairs"
        or (form == "auto" and table.delimiter not in ("", "\t"))
    ):
        return _read_pairs(
            table, roles if "child" in roles else ["child", "parent"], is_named, form
        )
    return _read_taxonomy(table, is_given=form != "auto")


def _read_obo(lines: Iterable[tuple[int, str]], name: str, by_name: bool) -> Parentage:
    """Reads the terms of an OBO file and what is above them; the few tags that hierarchies need are no reason for
    another package, and obonet, which makes a graph of all tags, reads no text that is not in a file.
    """
    terms: list[dict[str, list[tuple[int, str]]]] = []
    stanza: dict[str, list[tuple[int, str]]] = {}
    for number, line in lines:
        if line.startswith("["):
            stanza = {}
            terms += [stanza] if line.strip() == "[Term]" else []
        tag, _, value = line.strip().partition(":")
        stanza.setdefault(tag, []).append((number, re.sub(r"(^|\s)!.*", "", value).strip()))
    terms = [
        term for term in terms if "true" not in {value for _, value in term.get("is_obsolete", [])}
    ]
    if lost := [number for term in terms if "id" not in term for number, _ in term["[Term]"]]:
        raise ValueError(
            f"Expected line {lost[0]} of {name}, '[Term]', to have an 'id:' after it (got none)"
        )
    if not terms:
        raise ValueError(
            f"Expected {name} to hold '[Term]' and its 'id:', as an OBO file does (got none)"
        )
    known = {term["id"][0][1]: term.get("name", term["id"])[0][1] for term in terms}
    called = known if by_name else {}
    pairs: Parentage = []
    for term in terms:
        identifier = term["id"][0][1]
        above = [(number, ["is_a", *value.split()]) for number, value in term.get("is_a", [])]
        above += [(number, value.split()) for number, value in term.get("relationship", [])]
        if lost := [number for number, words in above if len(words) < 2]:
            raise ValueError(f"Expected line {lost[0]} of {name} to name a term (got none)")
        for number, words in above:
            if words[0] == "is_a" and words[1] not in known:
                expected = f"the parent on line {number} of {name} to be a term of the file"
                raise ValueError(
                    f"Expected {expected} (got {words[1]!r}, which is none, or obsolete); add it"
                )
        found = [words[1] for _, words in above if words[0] in ("is_a", "part_of")]
        child = called.get(identifier, identifier)
        pairs += [(child, called.get(parent, parent)) for parent in found] or [(child, None)]
    return pairs


def _read_skos(text: str, name: str, by_name: bool) -> Parentage:
    """Reads the concepts of a thesaurus in RDF/XML and what is broader than them."""
    if "<!ENTITY" in text:  # A few entities may stand for gigabytes of text.
        raise ValueError(
            f"Expected {name} to be without entities (got some); write the addresses out"
        )
    try:
        root = ElementTree.fromstring(text.encode())
    except ElementTree.ParseError as error:
        raise ValueError(f"Expected {name} to be a thesaurus in RDF/XML (got {error})") from error
    # the name of each concept, in English or without a language if it has such a one
    known: dict[str, str] = {}
    pairs: Parentage = []
    for concept in root.iter():
        identifier = concept.get(f"{_RDF}about")
        is_concept = concept.tag == f"{_SKOS}Concept" or any(
            (of_type.get(f"{_RDF}resource") or "").endswith("#Concept")
            for of_type in concept.iter(f"{_RDF}type")
        )
        if identifier is None or not is_concept:
            continue
        labels = {
            each.get(_LANGUAGE, "en"): each.text or ""
            for each in concept.findall(f"{_SKOS}prefLabel")
        }
        named = labels.get("en") or next(iter(labels.values()), known.get(identifier, identifier))
        known[identifier] = named
        pairs.append((identifier, None))
        for relation in ("broader", "narrower"):
            for each in concept.findall(f"{_SKOS}{relation}"):
                other = each.get(f"{_RDF}resource") or next(
                    (inner.get(f"{_RDF}about") for inner in each), None
                )
                ends = (identifier, str(other))
                pairs.append(ends if relation == "broader" else ends[::-1])
    if not known:
        hint = "convert ontologies in OWL to OBO, and others to a table with the columns child and parent"
        raise ValueError(f"Expected {name} to hold concepts of SKOS (got none); {hint}")
    if lost := [end for pair in pairs for end in pair if end is not None and end not in known]:
        raise ValueError(
            f"Expected broader and narrower concepts that {name} holds (got {lost[0]!r}); add it"
        )
    called = known if by_name else {}
    below = {child for child, parent in pairs if parent is not None}
    found = dict.fromkeys(pair for pair in pairs if pair[1] is not None or pair[0] not in below)
    return [(called.get(child, child), called.get(parent or "", parent)) for child, parent in found]


def _find_roles(table: Table) -> list[str]:
    """The role of each column, if the first line names them; a name beside :obj:`parent` alone is that of the child."""
    found = [role_of(cell) for cell in table.header]
    if len(found) == 2 and "" in found:  # The header may read "term, is_a".
        ends = {"up": "parent", "down": "child"}
        found = [
            ends.get(relation_of(cell) or "", role)
            for role, cell in zip(found, table.header, strict=True)
        ]
    roles = [role or "" for role in found]
    exact = [cell.lower() for cell in table.header]
    for end in ("child", "parent"):
        if roles.count(end) > 1 and exact.count(end) == 1:
            roles = [
                role if role != end or cell == end else ""
                for role, cell in zip(roles, exact, strict=True)
            ]
    if len(roles) == 2 and "" in found and ("child" in roles) != ("parent" in roles):
        roles[found.index("")] = "parent" if "child" in roles else "child"
    counts = roles.count("child"), roles.count("parent")
    are_names = len(roles) > 1 and (all(role is not None for role in found) or min(counts) > 0)
    if are_names and counts != (1, 1):
        expected = (
            f"line {table.number} of {table.name} to name one column 'child' and one 'parent'"
        )
        hint = "rename them; if these are labels, put 'child' and 'parent' in a line before"
        raise ValueError(f"Expected {expected} (got {table.header[:8]}); {hint}")
    return roles if counts == (1, 1) and are_names else [""] * len(roles)


def _read_taxonomy(table: Table, is_given: bool) -> Parentage:
    families: list[Parentage] = []
    for number, (parent, *children) in table.all_rows():
        got = f"(got {[parent, *children][:5]})"
        where = f"line {number} of {table.name}"
        if not parent or not children or not all(children):
            raise ValueError(
                f"Expected {where} to hold a parent and its children between tabs {got}"
            )
        if any(map(relation_of, children)):
            raise ValueError(
                f"Expected {where} to hold a parent and its children, without a relation {got}"
            )
        families.append([(child, _parent(parent)) for child in children])
    last = [
        family[-1][0]
        for family in families
        if len(family) == 2 and parse_number(str(family[0][1])) is None
    ]
    expected = f"line {table.number} of {table.name} to hold a parent and its children between tabs"
    if (
        not is_given
        and len(last) == len(families)
        and all(parse_number(name) is not None for name in last)
    ):
        hint = "name the columns 'child' and 'parent', or give the form 'taxonomy' if numbers are labels"
        raise ValueError(
            f"Expected {expected} (got {table.header[:5]}, a number in the last column); {hint}"
        )
    middle = [family[0][0] for family in families if len(family) == 2]
    if not is_given and len(middle) == len(families) > 2 * len(set(middle)):
        hint = "name the columns 'child', 'relation' and 'parent' if it is one, or give the form 'taxonomy'"
        raise ValueError(
            f"Expected {expected} (got {table.header[:5]}, in whose middle names return); {hint}"
        )
    if not is_given and all(len(family) == 1 for family in families):
        expected = f"'form' for two columns between tabs, as in {table.name}, of which either may hold the parents"
        hint = "give 'pairs' if children come first, 'taxonomy' if parents do"
        raise ValueError(f"Expected {expected} (got 'auto'); {hint}")
    return list(chain.from_iterable(families))


def _read_pairs(table: Table, roles: list[str], is_named: bool, form: Form) -> Parentage:
    columns = (
        [cell.lower() for cell in table.header]
        if is_named
        else [role or "relation" for role in roles]
    )
    child, parent = roles.index("child"), roles.index("parent")
    relation = roles.index("relation") if "relation" in roles else -1
    pairs: Parentage = []
    for number, cells in table.rows if is_named else table.all_rows():
        where = f"line {number} of {table.name}"
        if len(cells) != len(columns) or not cells[child]:
            expected = f"{where} to hold a child and its parent in the columns {columns[:5]}"
            hint = "put names with a delimiter in double quotes, and name other columns in the first line"
            raise ValueError(f"Expected {expected} (got {cells[:5]}); {hint}")
        ends = cells[child], cells[parent]
        if relation >= 0 and (way := relation_of(cells[relation])) != "up":
            if way is None:
                hint = "is_a and part_of lead to parents; leave other relations out of the file"
                raise ValueError(
                    f"Expected {where} to relate a child to its parent (got {cells[:5]}); {hint}"
                )
            ends = ends[1], ends[0]
        if any(map(relation_of, ends)):
            hint = "name the columns 'child', 'relation' and 'parent' in the first line"
            raise ValueError(
                f"Expected {where} to hold a child and its parent, no relation (got {cells[:5]}); {hint}"
            )
        pairs.append((ends[0], _parent(ends[1])))
    check_rows([(child, parent or child) for child, parent in pairs], table, is_named)
    _check_pairs(pairs, table.name, is_sure=form != "auto" or is_named or relation >= 0)
    return pairs


def _check_pairs(pairs: Parentage, name: str, is_sure: bool) -> None:
    """Refuses several parents in one cell, and parents in the column of children unless it is sure which is which."""
    known = [(child, parent) for child, parent in pairs if parent is not None]
    children, parents = ({pair[end] for pair in known} for end in (0, 1))
    for several in sorted(parents):
        parts = {part.strip() for part in re.split(r"[,;|]", several)}
        known_parts = parts & (children | parents)
        if len(parts) > 1 and (
            known_parts == parts or (known_parts and re.search(r"[;|]", several))
        ):
            hint = "write one line for each parent"
            raise ValueError(
                f"Expected one parent in each line of {name} (got {several!r}, names of others); {hint}"
            )
    hint = "name the columns 'child' and 'parent', or give the form 'pairs' if children come first, 'taxonomy' if"
    if not is_sure and len(children) < len(parents):
        got = f"fewer names in it, {len(children)}, than in the second, {len(parents)}"
        raise ValueError(
            f"Expected the first column of {name} to hold a child (got {got}); {hint} parents do"
        )
    if not is_sure and len(children) == len(parents) > 1:
        logger.warning(
            "Either column of %s may hold the parents, the second was taken; %s parents do",
            name,
            hint,
        )


def _parent(name: str) -> str | None:
    """The parent that a cell names, if it names one: a minus sign says none, and Na is sodium."""
    return None if name == "-" or (is_blank(name) and name != "Na") else name
