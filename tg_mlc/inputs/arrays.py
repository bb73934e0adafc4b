"""Data sets from arrays, sparse matrices, data frames and lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from tg_mlc._frames import as_frame, check_same_rows, in_order
from tg_mlc._numbers import as_list
from tg_mlc.data import MultiLabelDataset, predefined_split
from tg_mlc.data._label_values import read_labels
from tg_mlc.data.bags import with_attribute
from tg_mlc.data.parts import KIND
from tg_mlc.inputs._features import read_frame
from tg_mlc.inputs.checks import check_samples
from tg_mlc.inputs.kind import num_rows
from tg_mlc.inputs.kinds import announce_kind, components_of, infer_kind, kind_named
from tg_mlc.inputs.mixed import Mixed
from tg_mlc.inputs.schema import is_mixed_frame


def from_arrays(
    X: Any,
    Y: Any = None,
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    kind: str | Mapping[str, Any] | None = None,
    train: Any = None,
    test: Any = None,
    transform: Callable[[Data], Data] | None = None,
    *,
    like: MultiLabelDataset | None = None,
) -> MultiLabelDataset:
    """Makes a data set of inputs and labels in memory.

    Args:
        X (Any): One input per sample: a matrix (NumPy, PyTorch, SciPy sparse, pandas or polars)
            with one row per sample, a list (or column of a data frame) of matrices with one row per
            vector of a sample, such as embeddings of tokens, or a list of lists of words. Words are
            strings, or word indices from 0. If all lists are whole numbers and have the same
            length, they may be rows or words, and :obj:`kind` is required. Columns of strings (or
            categories) in a data frame become columns of 0 and 1, one for each value, as in
            :func:`from_csv`.
        Y (Any): The labels of every sample: a matrix of 0, 1 and NaN (unknown) of any of these
            types, or a list (or column) with a set (or list) of label names per sample, or
            :obj:`None` if they are unknown. (default: :obj:`None`, all labels are unknown;
            needs :obj:`like` or :obj:`label_names`)
        label_names (list of str, optional): Names of the labels, in the order of their columns.
            Names of a data frame's columns reorder the columns; other names rename them.
            (default: the columns of a data frame, the sorted names that occur in sets, else
            ``label_0``, ``label_1``, ...)
        feature_names (list of str, optional): Names of the columns of :obj:`X`, used as
            :obj:`label_names` is, or the vocabulary. Words outside the vocabulary become word 0,
            ``<unk>``, in a sequence, and are skipped in a bag. (default: the columns of a data
            frame, or the words that occur, the most frequent first)
        kind (str, optional): The kind of input: :obj:`"bag"` (unordered words with weights; if
            lists, words that are present), :obj:`"vector"`, :obj:`"embeddings"` (several
            vectors), :obj:`"sequence"` (words in order), or :obj:`"mixed"` (a data frame with
            columns of several kinds). A dictionary has the column, or columns, of each kind of a
            data frame: :obj:`{"text": "note", "smiles": "drug", "features": ["age", "city"]}`.
            (default: inferred if possible, and printed)
        train (array, optional): Rows of the training part, or a mask. The vocabulary is
            built from training rows only.
        test (array, optional): Rows of the test part, or a mask. With :obj:`train` and :obj:`test`,
            the data set has an ``official_split()``.
        transform (callable, optional): Applied to a sample at every access.
        like (MultiLabelDataset, optional): The samples that a model was trained on. New samples get
            the same labels, words (or columns) and kind. Columns of a data frame are matched by
            name, in any order; columns of other matrices by position. Words outside the old
            vocabulary become ``<unk>`` in a sequence (an error if it has no ``<unk>``), and are
            skipped in a bag.

    Returns:
        A data set whose samples have ``x`` as in :class:`~tg_mlc.data.MultiLabelDataset`, and ``y``
        of shape ``[1, num_labels]``.

    Raises:
        ValueError: If numbers of rows differ, data frames share only some of their rows or have
            different orders, a label is not 0, 1 or NaN, a list of names is a vector, labels would
            take more than 8 GiB, an input does not fit its kind or fits two kinds, rows or names
            are invalid, labels are unspecified, or samples do not match :obj:`like`.
    """
    X, Y = as_frame(X), as_frame(Y)
    check_same_rows(X, Y)
    X = as_list(X)
    num_inputs = None
    if like is not None:
        _check_like(like, label_names, feature_names)
        label_names, feature_names = like.label_names, like.feature_names
        num_inputs, kind = like.num_inputs, kind or like.kind
        Y = in_order(Y, label_names, "Y")
    if isinstance(feature_names, str):
        expected = "'feature_names' to be a list of names"
        raise ValueError(f"Expected {expected} (got the string '{feature_names}')")
    if Y is None:
        if label_names is None:
            expected = "labels 'Y', or 'like' or 'label_names' for samples of unknown labels"
            raise ValueError(f"Expected {expected} (got none)")
        Y = np.full((num_rows(X) or 0, len(label_names)), np.nan)
    y, names = read_labels(as_list(Y), label_names, None if like is None else like.num_labels)
    if num_rows(X) not in (None, len(y)):
        expected = "'X' and 'Y' to have as many rows as each other"
        raise ValueError(f"Expected {expected} (got {num_rows(X)} and {len(y)})")
    train_rows, test_rows = _rows(train, len(y), "train"), _rows(test, len(y), "test")
    split = predefined_split(train_rows, (), test_rows, len(y))
    if kind is None and like is None and (reason := Mixed.recognise(X)) is not None:
        kind = announce_kind(*reason)
    if kind == KIND or isinstance(kind, Mapping):
        return _mixed(
            X, y, names, kind, like, train=train_rows, test=test_rows, transform=transform
        )
    if kind is None and not is_mixed_frame(X):
        kind = infer_kind(X)
    is_old, schema = like is not None, None if like is None else like.schema
    X, feature_names, schema = read_frame(X, feature_names, kind, is_old=is_old, schema=schema)
    kind = kind or infer_kind(X)
    dataset = kind_named(kind).samples(
        X,
        y,
        names,
        kind,
        feature_names=feature_names,
        num_inputs=num_inputs,
        train=None if train is None else split.train.numpy(),
        test=None if test is None else split.test.numpy(),
        transform=transform,
    )
    dataset.schema = schema
    if like is None:
        check_samples(dataset)
    return dataset


def _check_like(
    like: MultiLabelDataset,
    label_names: Sequence[str] | None,
    feature_names: Sequence[str] | None,
) -> None:
    if label_names is not None or feature_names is not None:
        got = "(got both); 'like' already has names"
        raise ValueError(f"Expected 'like' or names of labels and features {got}")
    if like.kind is None or (like.num_inputs is None and not like.parts):
        expected = "a data set of bags, vectors or sequences, with 'kind' and 'num_inputs'"
        raise ValueError(f"Expected 'like' to be {expected} (got {like})")


def _mixed(
    X: Any,
    y: np.ndarray,
    label_names: Sequence[str],
    kind: str | Mapping[str, Any],
    like: MultiLabelDataset | None,
    **options: Any,
) -> MultiLabelDataset:
    """Makes a data set of rows of several kinds."""
    if like is not None:
        inputs: Any = components_of(like)
        samples: MultiLabelDataset = inputs.transform(X)
        return with_attribute(samples, "y", torch.from_numpy(y).float())
    columns = kind if isinstance(kind, Mapping) else None
    options = {name: value if np.size(value) else None for name, value in options.items()}
    dataset = Mixed.samples(X, y, label_names, columns=columns, **options)
    check_samples(dataset)
    return dataset


def _rows(rows: Any, num_samples: int, name: str) -> np.ndarray:
    """Returns the row indices of a training or test part, which may be specified as a mask."""
    indices = np.asarray([] if rows is None else rows)
    if indices.dtype == bool and indices.shape == (num_samples,):
        return np.flatnonzero(indices)
    if indices.size and indices.dtype.kind not in "iu":
        expected = f"numbers of rows, or a mask of {num_samples} entries"
        got = f"{indices.dtype} of shape {list(indices.shape)}"
        raise ValueError(f"Expected '{name}' to be {expected} (got {got})")
    return indices.astype(np.int64)
