"""Data sets from files of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from tg_mlc._options import argument
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data._label_values import read_labels
from tg_mlc.data.bags import with_attribute
from tg_mlc.inputs.arrays import from_arrays
from tg_mlc.inputs.hierarchies import with_hierarchy
from tg_mlc.inputs.kind import FileOptions
from tg_mlc.inputs.kinds import components_of, kinds_by_columns, warn_of_claimed
from tg_mlc.inputs.label_columns import find_labels, has_patterns
from tg_mlc.inputs.mixed import Mixed
from tg_mlc.inputs.part_columns import as_names
from tg_mlc.inputs.schema import Hints, Schema, match_names
from tg_mlc.inputs.smiles import STRUCTURE
from tg_mlc.inputs.tables import Table, read_table
from tg_mlc.inputs.words import tokenize, warn_of_lost


def from_csv(
    path: str | Path,
    label_columns: Sequence[str] | str | None = None,
    feature_columns: Sequence[str] | None = None,
    *,
    text_column: str | Sequence[str] | None = None,
    smiles_column: str | Sequence[str] | None = None,
    inchi_column: str | Sequence[str] | None = None,
    dna_column: str | Sequence[str] | None = None,
    label_separator: str | None = None,
    label_paths: str | None = None,
    kind: str | Mapping[str, Any] | None = None,
    tokenizer: Callable[[str], list[str]] = tokenize,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    ignore: Sequence[str] = (),
    categorical: Sequence[str] = (),
    max_lost: float = 0.1,
    train: Any = None,
    test: Any = None,
    transform: Callable[[Data], Data] | None = None,
    like: MultiLabelDataset | None = None,
) -> MultiLabelDataset:
    """Makes a data set of a table with a header: CSV or other text, Parquet, Excel, JSON or SDF.

    Text may be compressed (zip, ``.gz``, ``.bz2`` or ``.xz``); unpacked, it has at most 4 GiB.

    .. code-block:: python

        from_csv("songs.csv", label_columns=["calm", "sad"])  # all other columns are inputs
        from_csv("news.csv", label_columns=["sport", "politics"], text_column="body")
        news = from_csv("news.csv", label_columns="topics", label_separator=";", text_column="body")
        from_csv("new.csv", text_column="body", like=news)
        from_csv("tox21.csv", label_columns=["NR-*", "SR-*"], smiles_column="smiles")
        from_csv("sider.csv", label_columns=["rest"], smiles_column="smiles")

    Columns of inputs become numbers by the rules of :doc:`the page on files </files>`: numbers,
    percentages, prices, dates, times and yes or no become one column each, NaN where unknown. A
    column ``colour`` of up to 100 values that are no numbers, such as ``red``, becomes one column
    of 0 and 1 per value, ``colour=red``; if the cell is unknown, all are 0. An index and names of
    rows are skipped. The attribute ``schema`` has the role of each column.

    Args:
        path (str or Path): The file.
        label_columns (list of str or str, optional): A list of columns with cells 0, 1, words such
            as yes and no, or blank (unknown). It may have patterns such as ``NR-*``, or ``rest``
            for all columns that no other argument names. A string is one column that lists the
            names of a sample's labels, separated by :obj:`label_separator`, or as a list of Python,
            JSON or NumPy (blank: no labels). (default: with :obj:`like`, its labels that are
            columns of the file; other labels are unknown)
        feature_columns (list of str, optional): The columns of inputs. (default: columns
            of :obj:`like`, else all but labels, the index and names of rows)
        text_column, smiles_column, inchi_column, dna_column (str or list of str, optional): The
            column of texts, molecules or DNA, or several. Columns of numbers are then used only
            if :obj:`feature_columns` names them. Unreadable molecules and DNA are skipped, up to
            :obj:`max_lost`.
        label_separator (str, optional): The separator of label names.
        label_paths (str, optional): The separator of parts of label names that are paths, such as
            the slash in ``science/physics``. A sample with this label also has ``science``, and the
            data set has the hierarchy as :obj:`label_graph`. An empty string means no paths.
        kind (str or dict, optional): The kind of input, or the columns of each kind, as in
            :func:`from_arrays`. (default: inferred as :func:`from_arrays` does)
        tokenizer (callable, optional): Splits a text into words. (default:
            :func:`tg_mlc.inputs.words.tokenize`)
        delimiter (str, optional): The delimiter of cells. (default: the most frequent one in the
            header)
        encoding (str, optional): The encoding of text. (default: detected from the first bytes,
            else UTF-8)
        decimal (str, optional): The decimal mark. (default: a dot, or a comma if most cells
            have one)
        ignore (list of str, optional): Columns to skip.
        categorical (list of str, optional): Columns whose numbers are names of categories.
        max_lost (float, optional): The fraction of molecules or DNA that may be skipped; five may
            always be skipped. (default: :obj:`0.1`)
        train, test (array, optional): Rows of each part, or a mask; rows are counted from 0 without
            the header.
        transform (callable, optional): Applied to a sample at every access.
        like (MultiLabelDataset, optional): As in :func:`from_arrays`. Columns are matched by name,
            regardless of case and outer spaces.

    Raises:
        ValueError: If the file cannot be read, a column is missing, or a cell does not fit its
            column; the message names line and column.
        ImportError: If pandas is not installed (extra ``data``).
    """
    cells = {"smiles": smiles_column, "inchi": inchi_column, "dna": dna_column}
    own = {"text": text_column, **cells, "features": feature_columns}
    parts = dict(kind) if isinstance(kind, Mapping) else _columns_by_option(own)
    is_mixed = bool(like is not None and like.parts) or isinstance(kind, Mapping)
    is_mixed = is_mixed or len(parts) > 1 or _names_several(parts)
    columns = {option: names for option, names in parts.items() if is_mixed or option in cells}
    _check_options(label_columns, label_separator, like)
    sources = [name for names in parts.values() for name in as_names(names)]
    if (columns or is_mixed) and (train is not None or test is not None):
        got = f"them with columns of {[*columns]}"
        raise ValueError(f"Expected no 'train' and 'test' (got {got}); split the data set")
    table = read_table(path, delimiter, encoding)
    used = [*sources, *ignore, *categorical]
    label_columns = _label_columns(label_columns, table.header, used, like)
    labels = [label_columns] if isinstance(label_columns, str) else label_columns
    if columns or is_mixed:
        separator = label_separator or (";" if isinstance(label_columns, str) else None)
        file_options = FileOptions(separator, label_paths, delimiter, encoding, max_lost=max_lost)
        if is_mixed:
            hints = Hints(ignore, categorical, decimal=decimal)
            file_options = replace(file_options, parts=parts, hints=hints)
        samples = _read_cells(table, columns, label_columns, file_options, like)
        samples.transform = transform
        return samples
    hints = Hints(ignore, categorical, decimal=decimal)
    X: Any
    names: list[str] | None = None
    if "text" in parts:
        schema = table.schema(parts["text"], labels, hints, "text")
        texts = table.documents(parts["text"][0])
        X = [tokenizer(text) for text in texts]
        warn_of_lost(texts, X)
    else:
        X, schema = _read_columns(table, labels, list(feature_columns or ()), hints, like)
        names = schema.feature_names if like is None else None
    label_names: list[str] | None = None
    if like is None:
        y, label_names = table.targets(label_columns, label_separator, label_paths)
    else:
        y = _old_labels(table, label_columns, label_separator, like)
    dataset = from_arrays(X, y, label_names, names, kind, train, test, transform, like=like)
    dataset.schema, dataset.tokenizer = schema, "words" if tokenizer is tokenize else "other"
    if like is not None:
        return dataset
    schema.announce()
    parents = table.hierarchy(label_columns, dataset.label_names, label_paths)
    return dataset if parents is None else with_hierarchy(dataset, parents, listed=True)


def _label_columns(
    labels: Sequence[str] | str | None,
    header: Sequence[str],
    used: Sequence[str],
    like: MultiLabelDataset | None,
) -> list[str] | str:
    if isinstance(labels, str):
        if labels not in header and has_patterns([labels]):
            hint = f"pass patterns in a list: {argument('label_columns', [labels])}"
            raise ValueError(f"Expected a column that lists labels (got {labels!r}); {hint}")
        return labels
    if labels is not None:
        return find_labels(labels, header, used)
    return [name for name in (() if like is None else like.label_names) if name in header]


def _read_columns(
    table: Table,
    labels: list[str],
    columns: list[str],
    hints: Hints,
    like: MultiLabelDataset | None,
) -> tuple[np.ndarray, Schema]:
    """Reads columns of a table as a matrix, by the schema of :obj:`like` or an inferred schema."""
    if like is None:
        schema = table.schema(columns, labels, hints)
        if not columns:
            warn_of_claimed(schema, table.cells(), hints.ignore)
        names = [column.name for column in schema.inputs]
    else:
        schema = like.schema or Schema.of_names(columns or like.feature_names or (), table.header)
        old_names = [column.name for column in schema.inputs]
        names = match_names(old_names, table.header, f"'{table.path}'")
    return schema.matrix(table.cells(names), table.place), schema


def _read_cells(
    table: Table,
    columns: Mapping[str, Any],
    labels: list[str] | str,
    options: FileOptions,
    like: MultiLabelDataset | None,
) -> MultiLabelDataset:
    """Makes samples of the columns of cells in :obj:`columns`, by the option of their kind; of
    several kinds if :obj:`options` have parts.
    """
    names = [name for value in columns.values() for name in as_names(value)]
    if like is None:
        targets = [labels] if isinstance(labels, str) else labels
        kind = Mixed if options.parts else kinds_by_columns()[next(iter(columns))]
        return kind.from_csv(table.path, names, targets, options)
    inputs: Any = components_of(like)
    used = inputs.training_columns() if like.parts else names
    samples: MultiLabelDataset = inputs.transform(table.inputs(used, single=not like.parts))
    y = _old_labels(table, labels, options.label_separator, like)
    return with_attribute(samples, "y", torch.from_numpy(y).float())


def _columns_by_option(columns: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns the specified columns by the option of their kind."""
    return {name: as_names(value) for name, value in columns.items() if value is not None}


def _names_several(columns: Mapping[str, Any]) -> bool:
    """Tells whether several columns hold cells of one kind."""
    return any(name != "features" and len(as_names(names)) > 1 for name, names in columns.items())


def _old_labels(
    table: Table, labels: list[str] | str, separator: str | None, like: MultiLabelDataset
) -> np.ndarray:
    """Returns the labels of :obj:`like`; labels without a column in the table are unknown."""
    if isinstance(labels, str):
        sets = table.label_sets(labels, separator)
        return read_labels(sets, like.label_names, like.num_labels)[0]
    y = np.full((len(table), like.num_labels), np.nan, dtype=np.float32)
    y[:, [like.label_names.index(name) for name in labels]] = table.labels(labels)
    return y


def from_sdf(
    path: str | Path, label_columns: Sequence[str] | str | None = None, **options: Any
) -> MultiLabelDataset:
    """Makes a data set of the molecules of an SDF. Its properties can be columns of labels.

    Molecules are read from the canonical SMILES of records. Records that RDKit cannot read are
    skipped, with a warning that lists their numbers.

    Args:
        path (str or Path): The file, plain or compressed.
        label_columns (list of str or str, optional): The properties that are labels, as in
            :func:`from_csv`.
        **options (optional): Further options of :func:`from_csv`, such as :obj:`like`.
    """
    return from_csv(path, label_columns, smiles_column=STRUCTURE, **options)


def _check_options(
    label_columns: Sequence[str] | str | None,
    label_separator: str | None,
    like: MultiLabelDataset | None,
) -> None:
    if like is None and label_columns is None:
        expected = "'label_columns', or 'like' for samples whose labels are unknown"
        raise ValueError(f"Expected {expected} (got none)")
    if like is not None and not (label_columns is None or isinstance(label_columns, str)):
        hint = "'like' names the columns of labels"
        raise ValueError(f"Expected 'like' or a list of 'label_columns' (got both); {hint}")
    if label_separator is not None and not isinstance(label_columns, str):
        got = f"label_columns={label_columns!r}, label_separator={label_separator!r}"
        expected = "'label_columns' to be one column with 'label_separator'"
        raise ValueError(f"Expected {expected} (got {got})")
