"""Labels among the attributes of an ARFF file, as Mulan's XML files name and MEKA's headers count them."""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree import ElementTree


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
    """
    try:
        if b"<!DOCTYPE" in content:  # entities may stand for gigabytes
            raise ValueError("Expected no document type (got one); delete its declaration")
        root, *labels = ElementTree.fromstring(content).iter()
        tags = [element.tag.rpartition("}")[2] for element in (root, *labels)]
        names = [label.get("name", "") for label in labels]
        if tags != ["labels"] + ["label"] * len(labels) or not labels or "" in names:
            raise ValueError(f"Expected <labels> of <label name=...> (got {list(dict.fromkeys(tags))}, {names[:5]})")
        if len(set(names)) < len(names):
            repeated = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"Expected distinct labels (got '{repeated}' twice)")
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    parents = {child: parent for parent in labels for child in parent}
    pairs = [(child.get("name", ""), parents[child].get("name", "")) for child in labels if child in parents]
    return LabelFile(names, pairs)


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
