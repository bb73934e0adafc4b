"""Data sets from ARFF files, as Mulan, MEKA and mldr write them: their labels, and their parts joined."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple
from xml.etree import ElementTree

import numpy as np
import scipy.sparse as sp
from torch_geometric.data import Data

from tg_mlc._files import read_unpacked
from tg_mlc._options import check_choice
from tg_mlc.data import ArrayDataset
from tg_mlc.data._label_values import read_labels
from tg_mlc.data.records import Records
from tg_mlc.inputs._arff_table import Arff, read_arff
from tg_mlc.inputs._features import read_matrix
from tg_mlc.inputs.kinds import announce_kind

_MAX_LABEL_BYTES = 2**26
_REASONS = {
    "bag": "the rows are sparse, or all values 0 and 1",
    "vector": "the rows are dense, with values other than 0 and 1",
}


class LabelFile(NamedTuple):
    """The labels that an XML file names."""

    names: list[str]  #: in the order of the file
    parents: list[tuple[str, str]]  #: pairs (child, parent), as :func:`tg_mlc.graphs.tree` takes them


def from_arff(
    train: str | Path,
    test: str | Path | None = None,
    labels: str | Path | Sequence[str] | int | None = None,
    kind: Literal["bag", "vector"] | None = None,
    drop: Sequence[str] | Literal["text"] = (),
    transform: Callable[[Data], Data] | None = None,
) -> ArrayDataset:
    """Makes a data set in memory from ARFF files.

    .. code-block:: python

        dataset = from_arff("enron-train.arff", "enron-test.arff", labels="enron.xml")
        dataset = from_arff("meka.arff")  # @relation 'meka: -C 6'

    Args:
        train (str or Path): All samples, or the training samples; may be compressed (.gz, .bz2, .xz).
        test (str or Path, optional): The test samples, which become those of the official split.
            (default: :obj:`None`)
        labels (str or Path or list of str or int, optional): The attributes that are labels: Mulan's XML file, their
            names, or how many stand first (or, negative, last). (default: :obj:`None`, the number that MEKA
            and mldr write after ``-C`` into the relation)
        kind (str, optional): The kind of the other attributes: :obj:`"bag"` (words) or :obj:`"vector"`.
            (default: :obj:`None`, a bag if the rows are sparse or all values 0 and 1; the choice is printed)
        drop (list of str or str, optional): Attributes to leave out, or :obj:`"text"` for all that are no
            numbers. (default: :obj:`()`)
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a file is malformed, the files do not fit together, or a label is no attribute or has
            values that are not known to mean 0 and 1.
    """
    names = read_label_xml(labels).names if isinstance(labels, str | Path) else labels
    records = make_records(read_arff(train, drop), None if test is None else read_arff(test, drop), names, kind)
    if kind is None:
        announce_kind(records.kind, _REASONS[records.kind])
    return ArrayDataset(records.to_samples(), transform)


def read_label_xml(path: str | Path) -> LabelFile:
    """Reads the names of the labels, and their hierarchy if there is one, from Mulan's XML file.

    .. code-block:: python

        names, parents = read_label_xml("enron.xml")
        label_graph = tg_mlc.graphs.tree(parents, names)

    Args:
        path (str or Path): The file, which may be compressed.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is malformed, or declares entities.
    """
    return parse_label_xml(read_unpacked(path, _MAX_LABEL_BYTES), f"'{path}'")


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


def make_records(
    train: Arff, test: Arff | None, labels: Sequence[str] | int | None, kind: Literal["bag", "vector"] | None
) -> Records:
    """Joins a training and a test part, and separates labels from features.

    The test part has the same attributes in any order, but values of unknown meaning in the same. Labels are named, or
    counted (negative: from the last), by MEKA in the relation if not here.
    """
    label_names = _label_names(train, labels)
    for name in filter(train.ordered.__contains__, label_names):
        got = f"{_values(train, name)} for '{name}'"
        hint = "write {0,1} instead, and 1 where the label applies"
        raise ValueError(f"Expected labels that mean 0 and 1, such as {{0,1}} or {{no,yes}} (got {got}); {hint}")
    table, rows = train.matrix, train.matrix.shape[0]
    if test is not None:
        others = _in_order(test, train)
        if sp.issparse(table) or sp.issparse(others):
            table = sp.csr_array(sp.vstack([sp.csr_array(table), sp.csr_array(others)]))
        else:
            table = np.concatenate([table, others])
    position = {name: index for index, name in enumerate(train.names)}
    targets = [position.pop(name) for name in label_names]
    if not position:
        raise ValueError(f"Expected attributes that are no labels (got {len(train.names)} labels alone)")
    feature_names = list(position)
    x = table[:, list(position.values())]
    kind = kind or ("bag" if sp.issparse(x) or np.isin(x, (0, 1)).all() else "vector")
    check_choice("kind", kind, ("bag", "vector"))
    x, _ = read_matrix(x, feature_names, None, sparse=kind == "bag")
    y, _ = read_labels(table[:, targets], label_names)
    each = np.arange(table.shape[0])
    parts = (None, None) if test is None else (each[:rows], each[rows:])
    return Records(x, y, label_names, feature_names, *parts)


def meka_count(relation: str) -> int | None:
    """The number of labels that MEKA and mldr write into ``@relation 'name: -C 6'``, negative if they come last."""
    match = re.search(r"-C\s+(-?[0-9]{1,9})(?:\s|$)", relation.partition(":")[2])
    return None if match is None else int(match[1])


def _label_names(train: Arff, labels: Sequence[str] | int | None) -> list[str]:
    if labels is None:
        labels = meka_count(train.relation)
        if labels is None:
            expected = f"'labels', because the relation {train.relation!r} has no '-C' that counts them"
            hint = "pass an XML file, a list of names, or their number, negative if they come last"
            raise ValueError(f"Expected {expected} (got None); {hint}")
    if isinstance(labels, int):
        if not 0 < abs(labels) < len(train.names):
            expected = f"between 1 and {len(train.names) - 1}, negative if they come last"
            raise ValueError(f"Expected the number of labels to be {expected} (got {labels})")
        return train.names[:labels] if labels > 0 else train.names[labels:]
    missing = sorted(set(labels) - set(train.names))
    if missing:
        got = f"{len(missing)} that are none, such as {missing[:3]}"
        hint = f"its last attributes are {train.names[-3:]}"
        raise ValueError(f"Expected every label to be an attribute of the table (got {got}); {hint}")
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"Expected 'labels' to be distinct and at least one (got {list(labels)[:5]})")
    return list(labels)


def _in_order(test: Arff, train: Arff) -> sp.csr_array | np.ndarray:
    """The columns of the test part in the order of the training part."""
    differing = sorted(set(train.names) ^ set(test.names))
    if differing:
        raise ValueError(f"Expected both files to have the same attributes (got {differing[:5]} in one alone)")
    for name in train.names:
        if train.ordered.get(name) != test.ordered.get(name):
            expected = f"both files to list the values of attribute '{name}' in the same order, which numbers them"
            got = f"{_values(train, name)} in the training and {_values(test, name)} in the test file"
            raise ValueError(f"Expected {expected} (got {got}); make their headers alike")
    if test.names == train.names:
        return test.matrix
    position = {name: index for index, name in enumerate(test.names)}
    return test.matrix[:, [position[name] for name in train.names]]


def _values(table: Arff, name: str) -> str:
    return f"{{{','.join(table.ordered[name])}}}" if name in table.ordered else "values of known meaning"
