"""Data sets from ARFF files (Mulan, MEKA, mldr), and labels from Mulan's XML files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Literal, NamedTuple
from xml.etree import ElementTree

import numpy as np
import scipy.sparse as sp
from torch_geometric.data import Data

from tg_mlc._files import read_unpacked
from tg_mlc._options import check_choice
from tg_mlc.data import ArrayDataset
from tg_mlc.data.records import Records
from tg_mlc.inputs._arff_table import Arff, Matrix, meka_count, read_arff
from tg_mlc.inputs._features import read_matrix
from tg_mlc.inputs.checks import check_samples
from tg_mlc.inputs.hierarchies import pairs, with_hierarchy
from tg_mlc.inputs.kinds import announce_kind

_MAX_LABEL_BYTES = 2**26
_REASONS = {
    "bag": "the rows are sparse, or all values 0 and 1",
    "vector": "values are unknown, or the rows are dense, with values other than 0 and 1",
}


class LabelFile(NamedTuple):
    """The labels of an XML file."""

    names: list[str]  #: Names in the order of the file.
    #: Pairs (child, parent), as :func:`tg_mlc.graphs.tree` takes them.
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
        train (str or Path): All samples, or the training samples; may be compressed (.gz, .bz2,
            .xz).
        test (str or Path, optional): The test samples of the official split.
        labels (str or Path or list of str or int, optional): The attributes that are labels:
            Mulan's XML file, their names, or their number if they come first (negative: last). An
            attribute of more than two values becomes one label per value, ``name=value``. An
            attribute of Clus' type ``hierarchical`` becomes one label per path except roots; a
            label also applies if a path below it does, and the data set has the hierarchy as
            :obj:`label_graph`. (default: the number after ``-C`` in the relation, as MEKA and mldr
            write it, or the hierarchical attributes)
        kind (str, optional): The kind of the other attributes: :obj:`"bag"` (words) or
            :obj:`"vector"`. (default: a bag if no value is unknown and rows are sparse or only have
            values 0 and 1; the choice is printed)
        drop (list of str or str, optional): Attributes to skip, or :obj:`"text"` for all that
            cannot be read as numbers. Dates become days since 1970.
        transform (callable, optional): Applied to a sample at every access.
        encoding (str, optional): The encoding of text. (default: UTF-8)

    Warns:
        UserWarning: If weights of rows are ignored, a label has the same value in all samples, one
            input predicts a label almost perfectly, or a column of ids is skipped.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a file is malformed, the files do not fit together, or a label is not
            an attribute or has values that do not mean 0 and 1.
    """
    specified = read_label_xml(labels).names if isinstance(labels, str | Path) else labels
    table = read_arff(train, drop, labels=specified, encoding=encoding)
    if not table.labels:
        expected = f"'labels', because the relation {table.relation!r} has no '-C' that counts them"
        hint = "pass an XML file, a list of names, or their number, negative if they come last"
        raise ValueError(f"Expected {expected} (got {labels}); {hint}")
    test_table = None
    if test is not None:
        names_or_count = meka_count(table.relation) if specified is None else specified
        use_count = isinstance(names_or_count, int) and any(a.is_renamed for a in table.attributes)
        # If attributes share names, only the number of labels specifies the labels uniquely.
        test_labels = names_or_count if use_count else table.labels
        test_table = read_arff(test, drop, labels=test_labels, encoding=encoding)
    schema = table.schema()
    ids = {column.name for column in schema.columns if column.role == "id"}
    records = make_records(table, test_table, kind, ids)
    if kind is None:
        announce_kind(records.kind, _REASONS[records.kind])
    dataset = ArrayDataset(records.to_samples(), transform)
    dataset.schema = schema
    schema.announce()
    check_samples(dataset)
    parents = pairs(table.parents(table.labels))
    return with_hierarchy(dataset, parents) if parents else dataset


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
    """Reads Mulan's XML: ``<labels>`` of ``<label name=...>``, which may be nested in parents."""
    try:
        if b"<!DOCTYPE" in content:  # A few entities may expand to gigabytes.
            raise ValueError("Expected no document type (got one); delete its declaration")
        root, *labels = ElementTree.fromstring(content).iter()
        tags = [element.tag.rpartition("}")[2] for element in (root, *labels)]
        names = [label.get("name", "") for label in labels]
        if tags != ["labels"] + ["label"] * len(labels) or not labels or "" in names:
            expected = "<labels> of <label name=...>"
            raise ValueError(f"Expected {expected} (got {list(dict.fromkeys(tags))}, {names[:5]})")
        if len(set(names)) < len(names):
            repeated = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"Expected distinct labels (got '{repeated}' twice)")
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    parents = {
        child.get("name", ""): parent.get("name", "") for parent in labels for child in parent
    }
    return LabelFile(names, [(name, parents[name]) for name in names if name in parents])


def make_records(
    train: Arff,
    test: Arff | None,
    kind: Literal["bag", "vector"] | None,
    ignored: Collection[str] = (),
) -> Records:
    """Joins a training and a test table, whose attributes may be in different orders, and
    separates labels from features.
    """
    features = [name for name in train.names if name not in {*train.labels, *ignored}]
    if not features:
        got = f"{len(train.labels)} labels alone"
        raise ValueError(f"Expected attributes that are no labels (got {got})")
    y, label_names = train.targets(train.labels)
    feature_names, x = train.spread(features, unknown=0)
    parts: tuple[np.ndarray | None, np.ndarray | None] = (None, None)
    if test is not None:
        _check_same(train, test)
        test_y, names = test.targets(train.labels)
        y = np.concatenate([y, _in_order(names, test_y, label_names)])
        test_x = _in_order(*test.spread(features, unknown=0), feature_names)
        if sp.issparse(x) or sp.issparse(test_x):
            x = sp.csr_array(sp.vstack([sp.csr_array(x), sp.csr_array(test_x)]))
        else:
            x = np.concatenate([x, test_x])
        rows = np.arange(x.shape[0])
        parts = rows[: train.matrix.shape[0]], rows[train.matrix.shape[0] :]
    values = x.data if sp.issparse(x) else x
    may_be_bag = not np.isnan(values).any() and (sp.issparse(x) or np.isin(x, (0, 1)).all())
    kind = kind or ("bag" if may_be_bag else "vector")
    check_choice("kind", kind, ("bag", "vector"))
    x, _ = read_matrix(x, feature_names, None, sparse=kind == "bag")
    return Records(x, y, label_names, feature_names, *parts)


def _check_same(train: Arff, test: Arff) -> None:
    """Raises if the test file has other attributes, or numbers their values in another order."""
    expected = "both files to have the same attributes"
    differing = set(train.names) ^ set(test.names) or set(train.labels) ^ set(test.labels)
    if differing:
        raise ValueError(f"Expected {expected} (got {sorted(differing)[:5]} in one alone)")
    in_test = {attribute.name: attribute for attribute in test.attributes}
    for first, second in ((attr, in_test[attr.name]) for attr in train.attributes):
        orders = [list(a.values or ()) if a.is_ordered else None for a in (first, second)]
        if orders[0] != orders[1]:
            descriptions = [str(order or "values of known meaning") for order in orders]
            got = f"{descriptions[0]} in the training and {descriptions[1]} in the test file"
            expected = f"values of attribute '{first.name}' in the same order, which numbers them,"
            raise ValueError(f"Expected {expected} (got {got}); make their headers alike")


def _in_order(names: list[str], matrix: Matrix, order: list[str]) -> Matrix:
    """Returns the matrix with columns in the order of the names in :obj:`order`."""
    if differing := sorted(set(names) ^ set(order)):
        expected = "both files to have the same values of attributes"
        raise ValueError(f"Expected {expected} (got {differing[:5]} in one alone)")
    index = {name: position for position, name in enumerate(names)}
    return matrix if names == order else matrix[:, [index[name] for name in order]]
