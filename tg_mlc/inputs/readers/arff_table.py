"""Samples of ARFF tables: inputs and labels separated, training and test parts joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from tg_mlc._options import check_choice
from tg_mlc.data._label_values import read_labels
from tg_mlc.data.records import Records
from tg_mlc.inputs._inputs import read_inputs
from tg_mlc.inputs.readers.arff import Arff
from tg_mlc.inputs.readers.arff_labels import counted_labels, meka_count

Matrix: TypeAlias = sp.csr_array | np.ndarray


def make_records(
    train: Arff, test: Arff | None, labels: Sequence[str] | int | None, kind: Literal["bag", "vector"] | None
) -> Records:
    """Puts a training and a test part together, and parts labels from features.

    The test part has the same attributes in any order, but values of unknown meaning in the same. Labels are named, or
    counted as by :func:`~tg_mlc.inputs.readers.arff_labels.counted_labels`, if need be by MEKA in the relation.
    """
    label_names = _label_names(train, labels)
    _check_meaning(train, label_names)
    table, rows = train.matrix, train.matrix.shape[0]
    if test is not None:
        table = _stack(table, _in_order(test, train))
    position = {name: index for index, name in enumerate(train.names)}
    targets = [position.pop(name) for name in label_names]
    if not position:
        raise ValueError(f"Expected attributes that are no labels (got {len(train.names)} labels alone)")
    feature_names = list(position)
    x = table[:, list(position.values())]
    kind = kind or ("bag" if sp.issparse(x) or np.isin(x, (0, 1)).all() else "vector")
    check_choice("kind", kind, ("bag", "vector"))
    x, _ = read_inputs(x, kind, feature_names, None)
    y, _ = read_labels(table[:, targets], label_names)
    each = np.arange(table.shape[0])
    parts = (None, None) if test is None else (each[:rows], each[rows:])
    return Records(x, y, label_names, feature_names, *parts)


def _label_names(train: Arff, labels: Sequence[str] | int | None) -> list[str]:
    if labels is None:
        labels = meka_count(train.relation)
        if labels is None:
            expected = f"'labels', as the relation {train.relation!r} has no '-C' that counts them"
            hint = "pass an XML file, a list of names, or their number, negative if they come last"
            raise ValueError(f"Expected {expected} (got None); {hint}")
    if isinstance(labels, int):
        return counted_labels(train.names, labels)
    missing = sorted(set(labels) - set(train.names))
    if missing:
        got = f"{len(missing)} that are none, such as {missing[:3]}"
        hint = f"its last attributes are {train.names[-3:]}"
        raise ValueError(f"Expected every label to be an attribute of the table (got {got}); {hint}")
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"Expected 'labels' to be distinct and at least one (got {list(labels)[:5]})")
    return list(labels)


def _check_meaning(train: Arff, label_names: list[str]) -> None:
    for name in filter(train.ordered.__contains__, label_names):
        got = f"{_values(train, name)} for '{name}'"
        hint = "write {0,1} instead, and 1 where the label applies"
        raise ValueError(f"Expected labels that mean 0 and 1, such as {{0,1}} or {{no,yes}} (got {got}); {hint}")


def _in_order(test: Arff, train: Arff) -> Matrix:
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


def _stack(first: Matrix, second: Matrix) -> Matrix:
    if sp.issparse(first) or sp.issparse(second):
        return sp.csr_array(sp.vstack([sp.csr_array(first), sp.csr_array(second)]))
    return np.concatenate([first, second])
