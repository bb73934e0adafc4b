"""Converts labels in common formats to a matrix of 0, 1 and NaN, and label names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from tg_mlc._frames import take_by_name
from tg_mlc._names import check_names, few, shorten
from tg_mlc._numbers import (
    TRUTHS,
    as_array,
    as_list,
    is_blank,
    is_missing,
    parse_number,
    shape_of,
    to_numbers,
)

_INDICES_HINT = "if rows hold the numbers of labels, pass [{str(i) for i in row} for row in Y]"
_VECTOR_HINT = "give each label a column of 0 and 1"
_MATRIX_OR_SETS = "labels as a matrix of 0, 1 and NaN, or as a list of sets of label names"
_DIGITS = {"0", "1", "0.0", "1.0"}  # The cells of a row of a label matrix, as strings.
_WORDS = {word: float(value) for pair in TRUTHS for value, word in enumerate(pair)}
_DELIMITERS = (",", ";", "|", "\t")  # Delimiters of names in one string.
DASHES = ("-", "\u2013", "\u2014")  #: Dashes, which mean unknown labels.
MAX_BYTES = 2**33  # Limit of the memory for the labels of all samples.


def check_known(y: Any, label_names: Sequence[str]) -> None:
    """Raises ValueError if no training sample knows a label: its scores would be arbitrary."""
    unknown = np.flatnonzero(np.isnan(np.asarray(y)).all(axis=0)).tolist()
    if len(y) and unknown:
        got = few([shorten(label_names[index], 40) for index in unknown], 2)
        expected = "a known value of each label among the training samples"
        hint = "drop the label, or add samples that know it"
        raise ValueError(f"Expected {expected} (got none of {got}); {hint}")


def read_labels(
    Y: Any, label_names: Sequence[str] | None, num_labels: int | None = None
) -> tuple[np.ndarray, list[str]]:
    """Returns the labels ``[N, L]`` and their names.

    If :obj:`num_labels` is set, :obj:`label_names` are the labels of an existing data set.
    """
    if isinstance(label_names, str):
        got = f"the string {shorten(label_names)!r}"
        raise ValueError(f"Expected 'label_names' to be a list of names (got {got})")
    Y, numbers = numbers_as_names(Y)
    label_names = numbers if label_names is None else label_names
    convert = _from_names if are_names(Y) else _from_matrix
    values, names = convert(Y, label_names, num_labels)
    if 0 in values.shape:
        got = f"labels of shape {list(values.shape)}"
        raise ValueError(f"Expected at least one sample and one label (got {got})")
    return values, names


def _from_matrix(
    Y: Any, label_names: Sequence[str] | None, num_labels: int | None
) -> tuple[np.ndarray, list[str]]:
    Y = take_by_name(Y, label_names, "label_names")
    values = _matrix(Y)
    num_columns = values.shape[1]
    if num_labels not in (None, num_columns):
        expected = f"'Y' of {num_labels} columns, one for each label of 'like'"
        raise ValueError(f"Expected {expected} (got {num_columns})")
    label_names = getattr(Y, "columns", None) if label_names is None else label_names
    default = (f"label_{index}" for index in range(num_columns))
    names = [str(name) for name in (default if label_names is None else label_names)]
    check_names(names, num_columns, "label_names")
    is_invalid = ~((values == 0) | (values == 1) | np.isnan(values))
    is_list = isinstance(Y, (list, tuple))
    if is_invalid.any():
        row, column = np.argwhere(is_invalid)[0]
        value = str(values[row, column]).removesuffix(".0")
        got = f"{value} in row {row}, column {column}: label '{names[column]}'"
        known = values[~np.isnan(values)]
        may_be_indices = is_list and (known >= 0).all() and (known % 1 == 0).all()
        hint = f"; {_INDICES_HINT}" if may_be_indices else ""
        raise ValueError(f"Expected labels to be 0, 1 or NaN (got {got}){hint}")
    if is_list and all(isinstance(row, tuple) for row in Y):
        message = f"Took tuples of 0 and 1 for the rows of a matrix; {_INDICES_HINT}"
        warnings.warn(message, stacklevel=3)
    return values, names


def _check_size(num_samples: int, num_labels: int) -> None:
    size = 4 * num_samples * num_labels
    if size > MAX_BYTES:
        expected = f"labels whose matrix takes at most {MAX_BYTES >> 30} GiB"
        got = f"{num_labels:,} labels of {num_samples:,} samples, which take {size / 2**30:.1f} GiB"
        hint = "choose another column if this one names the samples, or leave out rare labels"
        raise ValueError(f"Expected {expected} (got {got}); {hint}")


def numbers_as_names(Y: Any) -> tuple[Any, list[str] | None]:
    """Converts lists of label indices to sets of indices, and returns sorted indices as names. Rows
    are such lists if their lengths differ. A matrix of names, or a column of lists in a data frame,
    becomes a list of lists. Other inputs are returned unchanged.
    """
    Y = _lists_of_names(Y)
    rows = [row for row in Y if not is_missing(row)] if isinstance(Y, (list, tuple)) else []
    if not all(isinstance(row, (list, tuple)) for row in rows) or len(set(map(len, rows))) < 2:
        return Y, None
    if not all(_is_index(number) for row in rows for number in row):
        return Y, None
    sets = [None if is_missing(row) else set(map(int, row)) for row in Y]
    for index, (row, indices) in enumerate(zip(Y, sets, strict=True)):
        if indices is not None and len(indices) < len(row):
            got = f"lists of differing lengths, and {shorten(list(row))} in row {index}"
            expected = f"{_MATRIX_OR_SETS}, or of distinct numbers of labels"
            raise ValueError(f"Expected {expected} (got {got})")
    return sets, list(map(str, sorted(set().union(*filter(None, sets)))))


def _lists_of_names(Y: Any) -> Any:
    """Returns the rows of a matrix of names padded by blanks, or the lists in the only column of a
    data frame; in lists, rows that are arrays become lists. Other values are unchanged.

    Most texts of names are no labels: a misspelt label in a matrix of 0 and 1 is no name.
    """
    if hasattr(Y, "columns"):
        column = as_list(Y[Y.columns[0]]) if len(Y.columns) == 1 else None
        return column if isinstance(column, list) and are_names(column) else Y
    if isinstance(Y, (list, tuple)):
        return list(map(_as_list_if_flat, Y))
    if not isinstance(Y, np.ndarray) or Y.ndim != 2 or Y.dtype.kind not in "OU":
        return Y
    cells = [cell for cell in Y.flat if not is_missing(cell)]
    if not all(isinstance(cell, str) for cell in cells):
        return Y
    texts = {cell for cell in cells if not is_unknown(cell)}
    are_most_names = 2 * sum(label_of(text) is None for text in texts) > len(texts)
    return Y.tolist() if are_most_names else Y


def _as_list_if_flat(row: Any) -> Any:
    is_flat = isinstance(row, (np.ndarray, torch.Tensor)) and row.ndim == 1
    return row.tolist() if is_flat else row


def _is_index(number: Any) -> bool:
    """Tells whether a value is a whole number of at least 0, such as 1 or 1.0."""
    is_number = isinstance(number, (int, float, np.integer, np.floating))
    is_whole = is_number and not isinstance(number, bool) and float(number).is_integer()
    return bool(is_whole and number >= 0)


def are_names(Y: Any) -> bool:
    """Tells whether labels are sets of names, or lists of strings."""
    if not isinstance(Y, Sequence) or isinstance(Y, str):
        return False
    if any(isinstance(entry, (set, frozenset)) for entry in Y):
        return True
    lists = (entry for entry in Y if isinstance(entry, (list, tuple)))
    return any(isinstance(name, str) for entry in lists for name in entry)


def _from_names(
    Y: Sequence[Any], label_names: Sequence[str] | None, num_labels: int | None
) -> tuple[np.ndarray, list[str]]:
    sets = [_set_of_names(entry, row) for row, entry in enumerate(Y)]
    if label_names is None:
        names = sorted(set().union(*filter(None, sets)))
        is_vector = len(names) == 2 and _DIGITS.issuperset(names)
        if is_vector and all(entry == {*names} for entry in sets):
            got = f"{names} in all rows, as of vectors"
            raise ValueError(f"Expected names of labels (got {got}); {_VECTOR_HINT}")
    else:
        names = [str(name) for name in label_names]
    check_names(names, len(names), "label_names")
    _check_size(len(sets), len(names))
    column = {name: index for index, name in enumerate(names)}
    values = np.zeros((len(sets), len(names)), dtype=np.float32)
    for row, entry in enumerate(sets):
        unknown = next((name for name in entry or () if name not in column), None)
        if unknown is not None:
            source = "'label_names'" if num_labels is None else "the labels of 'like'"
            got = f"'{shorten(unknown)}' in row {row}"
            raise ValueError(f"Expected labels to be among {source} (got {got})")
        values[row, [column[name] for name in entry or ()]] = 1
        if entry is None:
            values[row] = np.nan
    return values, names


def _set_of_names(entry: Any, row: int) -> set[str] | None:
    """Returns the names of a sample's labels, or :obj:`None` if they are unknown."""
    is_list = isinstance(entry, (list, tuple)) and all(
        isinstance(name, str) or is_missing(name) for name in entry
    )
    if is_missing(entry):
        return None
    if not (is_list or isinstance(entry, (set, frozenset))):
        expected = "the label names of a sample as a set or a list of strings, or None if unknown"
        raise ValueError(f"Expected {expected} (got {shorten(repr(entry))} in row {row})")
    return names_in(entry, partial("row {}".format, row))


def names_in(entries: Iterable[Any], where: Callable[[], str]) -> set[str] | None:
    """Returns the known names in a list or a set, or :obj:`None` if all names are missing."""
    entries = list(entries)
    nested = (list, tuple, set, dict, np.ndarray)
    invalid = next((name for name in entries if isinstance(name, nested)), None)
    if invalid is not None:
        expected, got = f"a list of names of labels in {where()}", shorten(repr(invalid))
        raise ValueError(f"Expected {expected} (got {got} in it)")
    names = [str(name) for name in entries if not (is_missing(name) or is_unknown(str(name)))]
    if len({*names}) < len(names) and _DIGITS.issuperset(names):
        expected, got = f"names of labels in {where()}", f"{names[:8]}, as of a vector"
        raise ValueError(f"Expected {expected} (got {got}); {_VECTOR_HINT}")
    if names or all(isinstance(entry, str) and not entry.strip() for entry in entries):
        return {*names}
    return None


def is_unknown(name: str) -> bool:
    """Tells whether a text means an unknown label, or an unknown name of a label."""
    return is_blank(name) or name.strip() in DASHES


def label_of(text: str) -> float | None:
    """Returns the label in a text: 0, 1, NaN for unknown, or :obj:`None` for other texts."""
    if is_unknown(text):
        return np.nan
    number = parse_number(text.strip())
    if number is None:
        return _WORDS.get(text.strip().lower())
    return number if number in (0, 1) else None


def _matrix(Y: Any) -> np.ndarray:
    if len(getattr(Y, "shape", ())) == 2:
        _check_size(*Y.shape)
    try:
        values = as_array(Y)
    except ValueError as error:
        are_rows = isinstance(Y, list)
        got = "rows of differing lengths or types" if are_rows else f"a {type(Y).__name__}"
        raise ValueError(f"Expected {_MATRIX_OR_SETS} (got {got})") from error
    if values.ndim == 1 and any(isinstance(name, str) for name in values.tolist()):
        raise ValueError(_expected_sets([str(text) for text in values.tolist()]))
    if values.ndim != 2:
        expected = "labels of shape [num_samples, num_labels], one column per label"
        raise ValueError(f"Expected {expected} (got {shape_of(values, Y)})")
    if values.dtype.kind in "OU":
        values = values.astype(object)
        labels = {cell: label_of(cell) for cell in values.flat if isinstance(cell, str)}
        for index, cell in np.ndenumerate(values):
            if isinstance(cell, str) and (label := labels[cell]) is not None:
                values[index] = label
    return to_numbers(values, getattr(Y, "columns", None), "labels").astype(np.float32)


def _expected_sets(texts: list[str]) -> str:
    """Returns an error message about samples of one text, with code that splits the texts."""
    expected = "a set or a list of label names for each sample"
    counts = {symbol: sum(symbol in text for text in texts) for symbol in _DELIMITERS}
    delimiter = max(_DELIMITERS, key=counts.__getitem__)
    rows = [text.split() for text in texts]
    if counts[delimiter]:
        got = f"texts such as {next(text for text in texts if delimiter in text)!r:.60}"
        hint = f"[[name.strip() for name in text.split({delimiter!r})] for text in Y]"
    elif any(len(row) > 1 and all(map(str.isdigit, row)) for row in rows):
        got = f"texts such as {next(text for text in texts if ' ' in text.strip())!r:.60}"
        hint = "[text.split() for text in Y]"
    else:
        got, hint = f"one name per sample, such as {texts[0]!r:.60}", "[[name] for name in Y]"
    return f"Expected {expected} (got {got}); pass {hint}"
