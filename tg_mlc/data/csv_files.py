"""Data sets from CSV files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tg_mlc._csv_table import read_csv_table
from tg_mlc.data.arrays import from_arrays
from tg_mlc.data.vocabulary import tokenize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch_geometric.data import Data

    from tg_mlc.datasets._records import Kind
    from tg_mlc.datasets.base import ArrayDataset


def from_csv(
    path: str | Path,
    label_columns: Sequence[str] | str,
    feature_columns: Sequence[str] | None = None,
    *,
    text_column: str | None = None,
    label_separator: str | None = None,
    kind: Kind | None = None,
    tokenizer: Callable[[str], list[str]] = tokenize,
    delimiter: str = ",",
    encoding: str = "utf-8-sig",
    train: Any = None,
    test: Any = None,
    transform: Callable[[Data], Data] | None = None,
) -> ArrayDataset:
    """Makes a data set of a CSV file with a header (plain, ``.gz``, ``.bz2`` or ``.xz``) of at most 4 GiB, unpacked.

    .. code-block:: python

        from_csv("songs.csv", label_columns=["calm", "sad"])  # all other columns are numbers
        from_csv("news.csv", label_columns=["sport", "politics"], text_column="body")
        from_csv("news.csv", label_columns="topics", label_separator=";", text_column="body")

    Args:
        path (str or Path): The file.
        label_columns (list of str or str): The columns of labels, whose cells are 0, 1 or blank (unknown); or, with
            :obj:`label_separator`, the one column that lists the names of a sample's labels (blank: it has none).
        feature_columns (list of str, optional): The columns of numbers; blank cells are NaN.
            (default: all but the labels)
        text_column (str, optional): The column of texts, instead of numbers. (default: :obj:`None`)
        label_separator (str, optional): What stands between names of labels. (default: :obj:`None`)
        kind (str, optional): What an input is. (default: inferred as :func:`from_arrays` does)
        tokenizer (callable, optional): Splits a text into words.
            (default: :func:`tg_mlc.data.vocabulary.tokenize`, lower-case runs of letters)
        delimiter (str, optional): What stands between cells. (default: :obj:`","`)
        encoding (str, optional): How characters are stored. (default: UTF-8)
        train (array, optional): As in :func:`from_arrays`; rows are counted from 0 without the header.
        test (array, optional): As in :func:`from_arrays`.
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)

    Raises:
        ValueError: If the file cannot be read, a column is missing, or a cell is not what its column holds; the message
            names line and column.
    """
    if (label_separator is None) == isinstance(label_columns, str):
        raise ValueError(
            "Expected 'label_columns' to be a list of columns, or one column with 'label_separator' "
            f"(got label_columns={label_columns!r}, label_separator={label_separator!r})"
        )
    if text_column is not None and feature_columns is not None:
        raise ValueError("Expected one of 'text_column' and 'feature_columns' (got both)")
    listed = label_columns if isinstance(label_columns, str) else None
    labels = [label_columns] if isinstance(label_columns, str) else list(label_columns)
    table = read_csv_table(Path(path), delimiter, encoding)
    features = feature_columns if text_column is None else [text_column]
    features = [name for name in table.header if name not in labels] if features is None else list(features)
    table.check_columns(labels, features)
    Y: Any = table.labels(labels) if listed is None else table.label_sets(listed, str(label_separator))
    names = labels if listed is None else None
    if text_column is not None:
        texts = [tokenizer(text) for text in table.texts(text_column)]
        return from_arrays(texts, Y, names, None, kind, train, test, transform)
    return from_arrays(table.numbers(features), Y, names, features, kind, train, test, transform)
