"""Data sets from ARFF files, as Mulan, MEKA and mldr write them: their labels, and their parts joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple
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
from tg_mlc.inputs.checks import check_samples
from tg_mlc.inputs.hierarchies import pairs, with_hierarchy
from tg_mlc.inputs.kinds import announce_kind
from tg_mlc.inputs.notations import PLAIN, Truth
from tg_mlc.inputs.schema import INPUTS, Column, Hints, Role, Schema, judge

_MAX_LABEL_BYTES = 2**26
_REASONS = {
    "bag": "the rows are sparse, or all values 0 and 1",
    "vector": "values are unknown, or the rows are dense, with values other than 0 and 1",
}


class LabelFile(NamedTuple):
    """The labels that an XML file names."""

    names: list[str]  #: in the order of the file
    #: pairs (child, parent), as :func:`tg_mlc.graphs.tree` takes them
    parents: list[tuple[str, str]]


def from_arff(
    train: str | Path,
    test: str | Path | None = None,
    labels: str | Path | Sequence[str] | int | None = None,
    kind: Literal["bag", "vector"] | None = None,
    drop: Sequence[str] | Literal["text"] = (),
    transform: Callable[[Data], Data] | None = None,
    *,
    encoding: str = "utf-8",
) -> ArrayDataset:
    """Makes a data set in memory from ARFF files.

    Args:
        train (str or Path): All samples, or the training samples; may be compressed (.gz, .bz2, .xz).
        test (str or Path, optional): The test samples, those of the official split. (default: :obj:`None`)
        labels (str or Path or list of str or int, optional): The attributes that are labels: Mulan's XML file, their
            names, or how many stand first (or, negative, last) among all attributes of the file. One of more than two
            values becomes a label for each of them, ``name=value``; one of Clus' type ``hierarchical`` a label for each
            path but roots, which applies with all paths below it, and the data set has their :obj:`label_graph`.
            (default: :obj:`None`, the number that MEKA and mldr write after ``-C`` into the relation, or the
            hierarchical attributes)
        kind (str, optional): The kind of the other attributes: :obj:`"bag"` (words) or :obj:`"vector"`.
            (default: :obj:`None`, a bag if no value is unknown, and the rows are sparse or all values 0 and 1; the
            choice is printed)
        drop (list of str or str, optional): Attributes to leave out, or :obj:`"text"` for all that are no
            numbers. Dates are numbers, of days since 1970. (default: :obj:`()`)
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
        encoding (str, optional): How characters are stored, such as :obj:`"latin1"`. (default: UTF-8)

    Warns:
        UserWarning: If rows have weights, which are left out, a label has one value in all samples, or an input alone
            tells a label; numbers of rows under the name of an id are left out.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a file is malformed, the files do not fit together, or a label is no attribute or has
            values that are not known to mean 0 and 1.
    """
    names = read_label_xml(labels).names if isinstance(labels, str | Path) else labels
    first = read_arff(train, drop, labels=names, encoding=encoding)
    if not first.labels:
        expected = f"'labels', because the relation {first.relation!r} has no '-C' that counts them"
        hint = "pass an XML file, a list of names, or their number, negative if they come last"
        raise ValueError(f"Expected {expected} (got {labels}); {hint}")
    second = None if test is None else read_arff(test, drop, labels=first.labels, encoding=encoding)
    schema = arff_schema(first)
    ids = {column.name for column in schema.columns if column.role == "id"}
    records = make_records(
        first.without(ids), None if second is None else second.without(ids), kind
    )
    if kind is None:
        announce_kind(records.kind, _REASONS[records.kind])
    dataset = ArrayDataset(records.to_samples(), transform)
    dataset.schema = schema
    schema.announce()
    check_samples(dataset)
    parents = [
        pair
        for name in first.labels
        if name in first.columns
        for pair in pairs(first.columns[name].parents)
    ]
    return with_hierarchy(dataset, parents) if parents else dataset


def arff_schema(table: Arff, hints: Hints | None = None) -> Schema:
    """The schema of an ARFF file, with the role of each attribute."""
    hints = hints or Hints(of="arff")
    hints.check(table.names)
    is_sparse = sp.issparse(table.matrix)
    matrix: Any = sp.csc_array(table.matrix) if is_sparse else table.matrix
    columns = []
    for index, name in enumerate(table.names):
        cells = matrix[:, [index]].data if is_sparse else matrix[:, index]
        known, missing = cells[~np.isnan(cells)], int(np.isnan(cells).sum())
        values = (
            [each.removeprefix(f"{name}=") for each in table.columns[name].names]
            if name in table.columns
            else []
        )
        role: Role = "label" if name in table.labels else "category" if values else "number"
        role = "ignored" if name in hints.ignore else role
        words = [word.lower() for word in table.ordered.get(name, ())]
        notation = (
            None
            if role != "number"
            else Truth(*words).to_dict()
            if len(words) == 2
            else PLAIN.to_dict()
        )
        example = f"{known[0]:g}" if len(known) else "0"
        column = Column(name, role, "attribute of the header", notation, values, example, missing)
        is_judged = role in INPUTS and not is_sparse  # whose names are words of texts
        columns.append(
            judge(column, None if values else cells, len(cells), hints) if is_judged else column
        )
    return Schema(columns)


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
    """Reads Mulan's XML file of labels: ``<labels>`` of ``<label name=...>``, each perhaps within its parent."""
    try:
        if b"<!DOCTYPE" in content:  # entities may stand for gigabytes
            raise ValueError("Expected no document type (got one); delete its declaration")
        root, *labels = ElementTree.fromstring(content).iter()
        tags = [element.tag.rpartition("}")[2] for element in (root, *labels)]
        names = [label.get("name", "") for label in labels]
        if tags != ["labels"] + ["label"] * len(labels) or not labels or "" in names:
            raise ValueError(
                f"Expected <labels> of <label name=...> (got {list(dict.fromkeys(tags))}, {names[:5]})"
            )
        if len(set(names)) < len(names):
            repeated = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"Expected distinct labels (got '{repeated}' twice)")
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    parents = {child: parent for parent in labels for child in parent}
    pairs = [
        (child.get("name", ""), parents[child].get("name", ""))
        for child in labels
        if child in parents
    ]
    return LabelFile(names, pairs)


def make_records(train: Arff, test: Arff | None, kind: Literal["bag", "vector"] | None) -> Records:
    """Joins a training and a test part, with attributes in any order, and separates labels from features."""
    for name in filter(train.ordered.__contains__, train.labels):
        got = f"{_values(train, name)} for '{name}'"
        hint = "write {0,1} instead, and 1 where the label applies"
        raise ValueError(
            f"Expected labels that mean 0 and 1, such as {{0,1}} or {{no,yes}} (got {got}); {hint}"
        )
    features = [name for name in train.names if name not in set(train.labels)]
    if not features:
        raise ValueError(
            f"Expected attributes that are no labels (got {len(train.names)} labels alone)"
        )
    label_names, y = _spread(train, train.labels, np.nan)
    feature_names, x = _spread(train, features, 0)
    if both := sorted(set(label_names) & set(feature_names)):
        raise ValueError(
            f"Expected no column of a label among the inputs (got {both[:5]}); rename an attribute"
        )
    parts: tuple[np.ndarray | None, np.ndarray | None] = (None, None)
    if test is not None:
        if differing := sorted(set(train.names) ^ set(test.names)):
            raise ValueError(
                f"Expected both files to have the same attributes (got {differing[:5]} in one alone)"
            )
        for name in train.names:
            if train.ordered.get(name) != test.ordered.get(name):
                expected = f"both files to list the values of attribute '{name}' in the same order, which numbers them"
                got = f"{_values(train, name)} in the training and {_values(test, name)} in the test file"
                raise ValueError(f"Expected {expected} (got {got}); make their headers alike")
        y = _stack(y, _spread(test, train.labels, np.nan, label_names)[1])
        x = _stack(x, _spread(test, features, 0, feature_names)[1])
        rows = np.arange(x.shape[0])
        parts = rows[: train.matrix.shape[0]], rows[train.matrix.shape[0] :]
    values = x.data if sp.issparse(x) else x
    may_be_bag = not np.isnan(values).any() and (sp.issparse(x) or np.isin(x, (0, 1)).all())
    kind = kind or ("bag" if may_be_bag else "vector")
    check_choice("kind", kind, ("bag", "vector"))
    x, _ = read_matrix(x, feature_names, None, sparse=kind == "bag")
    y, _ = read_labels(y, label_names)
    return Records(x, y, label_names, feature_names, *parts)


def _spread(
    table: Arff, attributes: Sequence[str], unknown: float, order: list[str] | None = None
) -> tuple[list[str], sp.csr_array | np.ndarray]:
    """Attributes with a column of 0 and 1 for each of more than two values or for each path, and the columns' names."""
    position = {name: index for index, name in enumerate(table.names)}
    names, parts = list[str](), list[Any]()
    for is_spread, group in groupby(attributes, table.columns.__contains__):
        picked = list(group)
        if not is_spread:
            names += picked
            parts.append(table.matrix[:, [position[name] for name in picked]])
        for name in picked if is_spread else ():
            numbers: Any = table.matrix[:, [position[name]]]
            codes = (numbers.toarray() if sp.issparse(numbers) else numbers)[:, 0]
            columns = table.columns[name].rows[np.nan_to_num(codes).astype(np.int64)]
            columns[np.isnan(codes)] = unknown
            names += table.columns[name].names
            parts.append(sp.csr_array(columns) if sp.issparse(table.matrix) else columns)
    matrix = parts[0]
    if len(parts) > 1:
        matrix = sp.hstack(parts, format="csr") if sp.issparse(table.matrix) else np.hstack(parts)
    if order is not None and names != order:
        if differing := sorted(set(names) ^ set(order)):
            raise ValueError(
                f"Expected both files to have the same attributes (got {differing[:5]} in one alone)"
            )
        place = {name: index for index, name in enumerate(names)}
        return order, matrix[:, [place[name] for name in order]]
    return names, matrix


def _stack(
    above: sp.csr_array | np.ndarray, below: sp.csr_array | np.ndarray
) -> sp.csr_array | np.ndarray:
    if sp.issparse(above) or sp.issparse(below):
        return sp.csr_array(sp.vstack([sp.csr_array(above), sp.csr_array(below)]))
    return np.concatenate([above, below])


def _values(table: Arff, name: str) -> str:
    return (
        f"{{{','.join(table.ordered[name])}}}"
        if name in table.ordered
        else "values of known meaning"
    )
