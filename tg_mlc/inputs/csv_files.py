"""Data sets from files of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

from tg_mlc.data import ArrayDataset, MultiLabelDataset
from tg_mlc.inputs.arrays import from_arrays
from tg_mlc.inputs.hierarchies import with_hierarchy
from tg_mlc.inputs.kinds import warn_of_claimed
from tg_mlc.inputs.schema import Hints, Schema, match_names
from tg_mlc.inputs.tables import read_table
from tg_mlc.inputs.vocabulary import tokenize


def from_csv(
    path: str | Path,
    label_columns: Sequence[str] | str | None = None,
    feature_columns: Sequence[str] | None = None,
    *,
    text_column: str | None = None,
    label_separator: str | None = None,
    label_paths: str | None = None,
    kind: str | None = None,
    tokenizer: Callable[[str], list[str]] = tokenize,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    ignore: Sequence[str] = (),
    categorical: Sequence[str] = (),
    train: Any = None,
    test: Any = None,
    transform: Callable[[Data], Data] | None = None,
    like: MultiLabelDataset | None = None,
) -> ArrayDataset:
    """Makes a data set of a table with a header: CSV or other text, Parquet, an Excel workbook, or JSON.

    Text may be compressed (zip, ``.gz``, ``.bz2`` or ``.xz``), and have at most 4 GiB, unpacked.

    .. code-block:: python

        from_csv("songs.csv", label_columns=["calm", "sad"])  # all other columns are inputs
        from_csv("news.csv", label_columns=["sport", "politics"], text_column="body")
        news = from_csv("news.csv", label_columns="topics", label_separator=";", text_column="body")
        from_csv("new.csv", text_column="body", like=news)

    Columns of inputs become numbers by the rules of :doc:`the page on files </files>`: numbers, percentages, prices,
    dates, times and yes or no become one column each, NaN where unknown; a column of up to 100 values that are no
    numbers, such as ``red`` in the column ``colour``, becomes a column of 0 and 1 for each, ``colour=red``, all of them
    0 where the cell is unknown. An index, and names of rows, are left out. The attribute ``schema`` of the data set has
    what was decided.

    Args:
        path (str or Path): The file.
        label_columns (list of str or str, optional): The columns of labels, whose cells are 0, 1, such words as yes and
            no, or blank (unknown); or, not in a list, the one column that lists the names of a sample's labels between
            :obj:`label_separator`, or as a list of Python, JSON or NumPy (blank: it has none). (default: with
            :obj:`like`, those of its labels that the file has; other labels are unknown)
        feature_columns (list of str, optional): The columns of inputs. (default: those of :obj:`like`, else all but the
            labels, the index and names of rows)
        text_column (str, optional): The column of texts, instead of numbers. (default: :obj:`None`)
        label_separator (str, optional): The mark between names of labels. (default: :obj:`None`)
        label_paths (str, optional): The mark between the parts of names of labels that are paths, such as the slash
            in ``science/physics``: a sample with it has ``science``, too, and the data set the :obj:`label_graph` of
            their hierarchy; empty for other names. (default: :obj:`None`)
        kind (str, optional): The kind of input. (default: inferred as :func:`from_arrays` does)
        tokenizer (callable, optional): Splits a text into words. (default: :func:`tg_mlc.inputs.vocabulary.tokenize`)
        delimiter (str, optional): The mark between cells. (default: the one that occurs most in the header)
        encoding (str, optional): How characters are stored. (default: what the first bytes say, else UTF-8)
        decimal (str, optional): The mark of decimals. (default: a dot, or a comma where most cells have one)
        ignore (list of str, optional): Columns to leave out. (default: :obj:`()`)
        categorical (list of str, optional): Columns whose numbers are names of categories. (default: :obj:`()`)
        train (array, optional): As in :func:`from_arrays`; rows are counted from 0 without the header.
        test (array, optional): As in :func:`from_arrays`.
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
        like (MultiLabelDataset, optional): As in :func:`from_arrays`; columns are matched by name, without regard to
            case and outer spaces. (default: :obj:`None`)

    Raises:
        ValueError: If the file cannot be read, a column is missing, or a cell is not what its column holds; the message
            names line and column.
        ImportError: If pandas is not installed (extra ``data``).
    """
    _check_options(label_columns, label_separator, like)
    if text_column is not None and feature_columns is not None:
        raise ValueError("Expected one of 'text_column' and 'feature_columns' (got both)")
    table = read_table(path, delimiter, encoding)
    labels = [label_columns] if isinstance(label_columns, str) else list(label_columns or ())
    if like is not None and label_columns is None:
        labels = [name for name in like.label_names if name in table.header]
    hints = Hints(ignore, categorical, decimal=decimal)
    X: Any
    names: list[str] | None = None
    if text_column is not None:
        schema = table.schema([text_column], labels, hints, "text")
        X = [tokenizer(text) for text in table.documents(text_column)]
    elif like is None:
        schema = table.schema(list(feature_columns or ()), labels, hints)
        if feature_columns is None:
            warn_of_claimed(schema, table.cells(), hints.ignore)
        X, names = (
            schema.matrix(table.cells([each.name for each in schema.inputs]), table.place),
            schema.feature_names,
        )
    else:
        old = list(feature_columns or like.feature_names or ())
        schema = like.schema or Schema.of_names(old, table.header)
        found = match_names([column.name for column in schema.inputs], table.header, f"'{path}'")
        X = schema.matrix(table.cells(found), table.place)
    Y: Any
    label_names: list[str] | None = None
    if like is None:
        Y, label_names = table.targets(label_columns or (), label_separator, label_paths)
    elif isinstance(label_columns, str):
        Y = table.label_sets(labels[0], label_separator)
    else:  # labels without a column are unknown
        Y = np.full((len(table), like.num_labels), np.nan, dtype=np.float32)
        Y[:, [like.label_names.index(name) for name in labels]] = table.labels(labels)
    dataset = from_arrays(X, Y, label_names, names, kind, train, test, transform, like=like)
    dataset.schema, dataset.tokenizer = schema, "words" if tokenizer is tokenize else "other"
    if like is None:
        schema.announce()
        if (
            parents := table.hierarchy(label_columns or (), dataset.label_names, label_paths)
        ) is not None:
            return with_hierarchy(dataset, parents, listed=True)
    return dataset


def _check_options(
    label_columns: Sequence[str] | str | None,
    label_separator: str | None,
    like: MultiLabelDataset | None,
) -> None:
    if like is None and label_columns is None:
        raise ValueError(
            "Expected 'label_columns', or 'like' for samples whose labels are unknown (got none)"
        )
    if like is not None and not (label_columns is None or isinstance(label_columns, str)):
        raise ValueError(
            "Expected 'like' or a list of 'label_columns' (got both); 'like' names the columns of labels"
        )
    if label_separator is not None and not isinstance(label_columns, str):
        got = f"label_columns={label_columns!r}, label_separator={label_separator!r}"
        raise ValueError(
            f"Expected 'label_columns' to be one column with 'label_separator' (got {got})"
        )
