"""Data sets from CSV files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

from tg_mlc.data import ArrayDataset, MultiLabelDataset
from tg_mlc.inputs.arrays import from_arrays
from tg_mlc.inputs.tables import column_of, read_csv_table
from tg_mlc.inputs.vocabulary import tokenize


def from_csv(
    path: str | Path,
    label_columns: Sequence[str] | str | None = None,
    feature_columns: Sequence[str] | None = None,
    *,
    text_column: str | None = None,
    label_separator: str | None = None,
    kind: str | None = None,
    tokenizer: Callable[[str], list[str]] = tokenize,
    delimiter: str = ",",
    encoding: str = "utf-8-sig",
    train: Any = None,
    test: Any = None,
    transform: Callable[[Data], Data] | None = None,
    like: MultiLabelDataset | None = None,
) -> ArrayDataset:
    """Makes a data set of a CSV file with a header (plain, ``.gz``, ``.bz2`` or ``.xz``) of at most 4 GiB, unpacked.

    .. code-block:: python

        from_csv("songs.csv", label_columns=["calm", "sad"])  # all other columns are numbers
        from_csv("news.csv", label_columns=["sport", "politics"], text_column="body")
        news = from_csv("news.csv", label_columns="topics", label_separator=";", text_column="body")
        from_csv("new.csv", text_column="body", like=news)

    Args:
        path (str or Path): The file.
        label_columns (list of str or str, optional): The columns of labels, whose cells are 0, 1 or blank (unknown);
            or, with :obj:`label_separator`, the one column that lists the names of a sample's labels (blank: it has
            none). (default: with :obj:`like`, those of its labels that the file has; other labels are unknown)
        feature_columns (list of str, optional): The columns of numbers, whose blank cells are NaN, and of up to 100
            values that are no numbers, such as ``red`` in the column ``colour``, each of which becomes a column of 0
            and 1, ``colour=red``; where the cell is blank, or with :obj:`like` has another value, all of them are 0.
            (default: those of :obj:`like`, else all but the labels)
        text_column (str, optional): The column of texts, instead of numbers. (default: :obj:`None`)
        label_separator (str, optional): What stands between names of labels. (default: :obj:`None`)
        kind (str, optional): What an input is. (default: inferred as :func:`from_arrays` does)
        tokenizer (callable, optional): Splits a text into words.
            (default: :func:`tg_mlc.inputs.vocabulary.tokenize`, lower-case runs of letters)
        delimiter (str, optional): What stands between cells. (default: :obj:`","`)
        encoding (str, optional): How characters are stored. (default: UTF-8)
        train (array, optional): As in :func:`from_arrays`; rows are counted from 0 without the header.
        test (array, optional): As in :func:`from_arrays`.
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
        like (MultiLabelDataset, optional): As in :func:`from_arrays`. (default: :obj:`None`)

    Raises:
        ValueError: If the file cannot be read, a column is missing, or a cell is not what its column holds; the message
            names line and column.
        ImportError: If pandas is not installed (extra ``data``).
    """
    if like is None and label_columns is None:
        raise ValueError("Expected 'label_columns', or 'like' for samples whose labels are unknown (got none)")
    if like is not None and not (label_columns is None or isinstance(label_columns, str)):
        raise ValueError("Expected 'like' or a list of 'label_columns' (got both); 'like' names the columns of labels")
    if (label_separator is None) == isinstance(label_columns, str):
        got = f"label_columns={label_columns!r}, label_separator={label_separator!r}"
        raise ValueError(f"Expected 'label_columns' to be a list, or one column with 'label_separator' (got {got})")
    if text_column is not None and feature_columns is not None:
        raise ValueError("Expected one of 'text_column' and 'feature_columns' (got both)")
    table = read_csv_table(path, delimiter, encoding)
    labels = [label_columns] if isinstance(label_columns, str) else list(label_columns or ())
    if like is not None and label_columns is None:
        labels = [name for name in like.label_names if name in table.header]
    names = feature_columns if like is None or feature_columns is not None else like.feature_names
    if text_column is not None:
        names = [text_column]
    elif names is None:
        names = [name for name in table.header if name not in labels]
    columns = list(dict.fromkeys(column_of(name, table.header) for name in names))
    table.require(labels, columns, may_lack_labels=like is not None)
    X: Any
    if text_column is not None:
        X, names = [tokenizer(text) for text in table.texts(text_column)], None
    else:
        X, names = table.features(columns) if like is None else (table.named_features(names), None)
    Y: Any = table.labels(labels) if label_separator is None else table.label_sets(labels[0], label_separator)
    if like is not None and label_separator is None:  # labels without a column are unknown
        read, Y = Y, np.full((len(Y), like.num_labels), np.nan, dtype=np.float32)
        Y[:, [like.label_names.index(name) for name in labels]] = read
    label_names = labels if like is None and label_separator is None else None
    return from_arrays(X, Y, label_names, names, kind, train, test, transform, like=like)
