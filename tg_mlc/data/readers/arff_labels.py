"""Labels among the attributes of an ARFF file, as Mulan's XML files name and MEKA's headers count them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from xml.parsers import expat

_MAX_DEPTH = 100


class LabelFile(NamedTuple):
    """The labels that an XML file names."""

    names: list[str]  #: in the order of the file
    parents: list[tuple[str, str]]  #: pairs (child, parent), as :func:`tg_mlc.graphs.tree` takes them


def parse_label_xml(content: bytes, name: str = "XML content") -> LabelFile:
    """Reads Mulan's XML file of labels, in which a label may stand within another one, its parent.

    .. code-block:: xml

        <labels xmlns="http://mulan.sourceforge.net/labels">
        <label name="sports"><label name="football"></label></label>
        <label name="science"></label>
        </labels>

    Args:
        content (bytes): The file.
        name (str, optional): How to call the file in messages.
    """
    reader = _Reader()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = reader.refuse
    try:
        parser.Parse(content, True)
        if not reader.names:
            raise ValueError("Expected at least one <label> (got none)")
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise ValueError(f"{name}, line {max(parser.CurrentLineNumber, 1)}: {error}") from None
    return LabelFile(list(reader.names), reader.parents)


def counted_labels(names: list[str], count: int) -> list[str]:
    """The first labels of a table, or with a negative count the last ones, as MEKA counts them."""
    if not 0 < abs(count) < len(names):
        expected = f"between 1 and {len(names) - 1}, negative if they come last"
        raise ValueError(f"Expected the number of labels to be {expected} (got {count})")
    return names[:count] if count > 0 else names[count:]


def meka_count(relation: str) -> int | None:
    """The number of labels that MEKA and mldr write into ``@relation 'name: -C 6'``, negative if they come last."""
    match = re.search(r"-C\s+(-?[0-9]{1,9})(?:\s|$)", relation.partition(":")[2])
    return None if match is None else int(match[1])


class _Reader:
    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.parents: list[tuple[str, str]] = []
        self._open: list[str] = []  # the labels that the current place is within, after the root element

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        wanted = "label" if self._open else "labels"
        if tag.rpartition(" ")[2] != wanted:
            raise ValueError(f"Expected <{wanted}> (got <{tag.rpartition(' ')[2]}>)")
        name = attributes.get("name", "") if self._open else tag
        if not name:
            raise ValueError("Expected <label> to have a name (got none)")
        if name in self.names:
            raise ValueError(f"Expected distinct labels (got '{name}' twice)")
        if len(self._open) > _MAX_DEPTH:
            raise ValueError(f"Expected labels within at most {_MAX_DEPTH} others (got more)")
        if self._open:
            self.names[name] = None
        if len(self._open) > 1:
            self.parents.append((name, self._open[-1]))
        self._open.append(name)

    def end(self, tag: str) -> None:
        self._open.pop()

    def refuse(self, *declaration: Any) -> None:
        raise ValueError("Expected no document type and no entities (got one); delete its declaration")
