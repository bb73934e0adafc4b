"""Labels in any usual form, as a matrix of 0, 1 and NaN with names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tg_mlc._frames import take_by_name
from tg_mlc._names import check_names
from tg_mlc._numbers import TRUTHS, as_array, is_blank, is_missing, parse_number, to_numbers

_HINT = "if rows hold the numbers of labels, pass [{str(i) for i in row} for row in Y]"
_VECTOR = "give each label a column of 0 and 1"
_DIGITS = {"0", "1", "0.0", "1.0"}  # which a written vector has
_WORDS = {word: float(one) for words in TRUTHS for one, word in enumerate(words)}
DASHES = ("-", "\u2013", "\u2014")  #: that stand for unknown labels
MAX_BYTES = 2**33  # of the labels of all samples, of which every one has a place in memory


def read_labels(
    Y: Any, label_names: Sequence[str] | None, num_labels: int | None = None
) -> tuple[np.ndarray, list[str]]:
    """The labels ``[N, L]`` and their names.

    With :obj:`num_labels`, labels and their names are those of an old data set.
    """
    if isinstance(label_names, str):
        raise ValueError(
            f"Expected 'label_names' to be a list of names (got the string '{label_names}')"
        )
    Y, numbers = numbers_as_names(Y)
    label_names = numbers if label_names is None else label_names
    read = _from_names if are_names(Y) else _from_matrix
    values, names = read(Y, label_names, num_labels)
    if 0 in values.shape:
        raise ValueError(
            f"Expected at least one sample and one label (got labels of shape {list(values.shape)})"
        )
    return values, names


def _from_matrix(
    Y: Any, label_names: Sequence[str] | None, num_labels: int | None
) -> tuple[np.ndarray, list[str]]:
    Y = take_by_name(Y, label_names, "label_names")
    values = _matrix(Y)
    if num_labels not in (None, values.shape[1]):
        raise ValueError(
            f"Expected 'Y' of {num_labels} columns, one for each label of 'like' (got {values.shape[1]})"
        )
    names = label_names if label_names is not None else getattr(Y, "columns", None)
    names = [
        str(name)
        for name in (names if names is not None else [f"label_{i}" for i in range(values.shape[1])])
    ]
    check_names(names, values.shape[1], "label_names")
    wrong = ~((values == 0) | (values == 1) | np.isnan(values))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        got = str(values[row, column]).removesuffix(".0")
        where = f"row {row}, column {column}: label '{names[column]}'"
        hint = f"; {_HINT}" if isinstance(Y, (list, tuple)) else ""
        raise ValueError(f"Expected labels to be 0, 1 or NaN (got {got} in {where}){hint}")
    if isinstance(Y, (list, tuple)) and all(isinstance(row, tuple) for row in Y):
        warnings.warn(f"Took tuples of 0 and 1 for the rows of a matrix; {_HINT}", stacklevel=3)
    return values, names


def _check_size(num_samples: int, num_labels: int) -> None:
    size = 4 * num_samples * num_labels
    if size > MAX_BYTES:
        got = f"{num_labels:,} labels of {num_samples:,} samples, which take {size / 2**30:.1f} GiB"
        hint = "choose another column if this one names the samples, or leave out rare labels"
        raise ValueError(
            f"Expected labels whose matrix takes at most {MAX_BYTES >> 30} GiB (got {got}); {hint}"
        )


def numbers_as_names(Y: Any) -> tuple[Any, list[str] | None]:
    """Lists of the numbers of each sample's labels, told from a matrix by their differing lengths, as sets, and these
    numbers in order as names; anything else as it is.
    """
    rows = [row for row in Y if not is_missing(row)] if isinstance(Y, (list, tuple)) else []
    if not all(isinstance(row, (list, tuple)) for row in rows) or len(set(map(len, rows))) < 2:
        return Y, None
    numbers = [number for row in rows for number in row]
    whole = (int, np.integer, float, np.floating)  # load_svmlight_file gives floats
    if not all(
        isinstance(n, whole) and not isinstance(n, bool) and float(n).is_integer() and n >= 0
        for n in numbers
    ):
        return Y, None
    sets = [None if is_missing(row) else set(map(int, row)) for row in Y]
    for place, (row, entry) in enumerate(zip(Y, sets, strict=True)):
        if entry is not None and len(entry) < len(row):
            expected = "labels as a matrix of 0, 1 and NaN with rows of one length, or as a list of sets of label names"
            got = f"lists of differing lengths, and {list(row)} in row {place}, which are no numbers of labels"
            raise ValueError(f"Expected {expected} (got {got})")
    return sets, list(map(str, sorted(set().union(*filter(None, sets)))))


def are_names(Y: Any) -> bool:
    """Tells whether labels are given as sets of names, or as lists of strings."""
    if not isinstance(Y, Sequence) or isinstance(Y, str):
        return False
    return any(
        isinstance(entry, (set, frozenset))
        or (isinstance(entry, (list, tuple)) and any(isinstance(name, str) for name in entry))
        for entry in Y
    )


def _from_names(
    Y: Sequence[Any], label_names: Sequence[str] | None, num_labels: int | None
) -> tuple[np.ndarray, list[str]]:
    sets = [_set_of_names(entry, row) for row, entry in enumerate(Y)]
    names = (
        sorted(set().union(*filter(None, sets)))
        if label_names is None
        else [str(name) for name in label_names]
    )
    if (
        label_names is None
        and len(names) == 2
        and _DIGITS.issuperset(names)
        and all(each == {*names} for each in sets)
    ):
        raise ValueError(
            f"Expected names of labels (got {names} in all rows, as of vectors); {_VECTOR}"
        )
    check_names(names, len(names), "label_names")
    _check_size(len(sets), len(names))
    column = {name: i for i, name in enumerate(names)}
    values = np.zeros((len(sets), len(names)), dtype=np.float32)
    for row, entry in enumerate(sets):
        other = next((name for name in entry or () if name not in column), None)
        if other is not None:
            known = "'label_names'" if num_labels is None else "the labels of 'like'"
            raise ValueError(f"Expected labels to be among {known} (got '{other}' in row {row})")
        values[row, [column[name] for name in entry or ()]] = 1
        if entry is None:
            values[row] = np.nan
    return values, names


def _set_of_names(entry: Any, row: int) -> set[str] | None:
    """The names of a sample's labels, or nothing if its labels are unknown."""
    is_list = isinstance(entry, (list, tuple)) and all(
        isinstance(name, str) or is_missing(name) for name in entry
    )
    if not (is_missing(entry) or is_list or isinstance(entry, (set, frozenset))):
        expected = "a set or a list of strings, or None if unknown"
        raise ValueError(
            f"Expected the label names of a sample as {expected} (got {entry!r} in row {row})"
        )
    return None if is_missing(entry) else names_in(entry, partial("row {}".format, row))


def names_in(entries: Iterable[Any], where: Callable[[], str]) -> set[str] | None:
    """The names of labels in a list or a set, without what stands for a missing one; nothing if no other is there."""
    entries = list(entries)
    names = [str(name) for name in entries if not (is_missing(name) or is_unknown(str(name)))]
    wrong = next(
        (name for name in entries if isinstance(name, (list, tuple, set, dict, np.ndarray))), None
    )
    if wrong is not None:
        raise ValueError(f"Expected a list of names of labels in {where()} (got {wrong!r} in it)")
    if len({*names}) < len(names) and _DIGITS.issuperset(names):
        raise ValueError(
            f"Expected names of labels in {where()} (got {names[:8]}, as of a vector); {_VECTOR}"
        )
    return (
        {*names}
        if names or all(isinstance(each, str) and not each.strip() for each in entries)
        else None
    )


def is_unknown(name: str) -> bool:
    """Tells whether a text stands for labels, or for the name of one, that are not known."""
    return is_blank(name) or name.strip() in DASHES


def label_of(text: str) -> float | None:
    """The label that a text spells: 0, 1, NaN for unknown, or nothing if it is none."""
    if is_unknown(text):
        return np.nan
    number = parse_number(text.strip())
    return (
        _WORDS.get(text.strip().lower()) if number is None else number if number in (0, 1) else None
    )


def _matrix(Y: Any) -> np.ndarray:
    if len(getattr(Y, "shape", ())) == 2:
        _check_size(*Y.shape)
    try:
        values = as_array(Y)
    except ValueError as error:
        expected = "labels as a matrix of 0, 1 and NaN, or as a list of sets of label names"
        raise ValueError(
            f"Expected {expected} (got rows of differing lengths or types); {_HINT}"
        ) from error
    if values.ndim == 1 and any(isinstance(name, str) for name in values.tolist()):
        expected = "a set or a list of label names for each sample"
        got = f"one name per sample, such as {str(values[0])!r}"
        raise ValueError(
            f"Expected {expected} (got {got}); pass [[name], ...], as in [[name] for name in Y]"
        )
    if values.ndim != 2:
        expected = "labels of shape [num_samples, num_labels], one column per label"
        raise ValueError(f"Expected {expected} (got {list(values.shape)})")
    if values.dtype.kind in "OU":
        values = values.astype(object)
        labels = {cell: label_of(cell) for cell in values.flat if isinstance(cell, str)}
        for place, cell in np.ndenumerate(values):
            if isinstance(cell, str) and (label := labels[cell]) is not None:
                values[place] = label
    return to_numbers(values, getattr(Y, "columns", None), "labels").astype(np.float32)
