"""Finds the label columns of a table by names, by patterns, or as all remaining columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

import numpy as np

from tg_mlc._names import few
from tg_mlc._numbers import is_blank
from tg_mlc._options import argument
from tg_mlc.inputs.schema import Schema

REST = "rest"  #: stands for all columns that no other option specifies


def has_patterns(labels: Sequence[str] | str) -> bool:
    """Tells whether label columns are specified by patterns or ``rest``, which need the header."""
    return not isinstance(labels, str) and any(map(_is_pattern, labels))


def find_labels(labels: Sequence[str], header: Sequence[str], used: Collection[str]) -> list[str]:
    """Returns the label columns of a header. ``labels`` are exact names, patterns such as ``NR-*``,
    or ``rest``; patterns and ``rest`` skip columns that are used otherwise.
    """
    columns, matched = list[str](), set[str]()
    for label in labels:
        if label in header or not _is_pattern(label):
            columns += [] if label in matched else [label]
            continue
        if label == REST:
            if not used:
                expected = f"to be named, as {argument('label_columns')} take the rest"
                hint = f"name them, such as {argument('feature_columns')}"
                raise ValueError(f"Expected the columns of inputs {expected} (got none); {hint}")
            matches = [name for name in header if name not in used]
        else:
            matches = [name for name in header if fnmatchcase(name, label) and name not in used]
        if not matches:
            by_casefold = {name.casefold(): name for name in header}
            near = get_close_matches(label.casefold().strip("*"), list(by_casefold), 3, cutoff=0.0)
            names = few([repr(by_casefold[name]) for name in near])
            raise ValueError(f"Expected columns of labels for {label!r} (got none; near: {names})")
        columns += [name for name in matches if name not in columns]
        matched.update(matches)
    return columns


def likely_labels(schema: Schema, cells: Mapping[str, np.ndarray]) -> list[str]:
    """Returns the columns that may be labels: their cells are only 0, 1 or blank, and both 0 and 1
    occur. Returns none if no other column can be an input.
    """
    likely, has_inputs = list[str](), False
    for column in schema.columns:
        values = set[str]()
        if column.role == "number":
            cleaned = {str(cell).strip() for cell in set(cells[column.name].tolist())}
            values = {cell.removesuffix(".0") for cell in cleaned if not is_blank(cell)}
        if values == {"0", "1"}:
            likely.append(column.name)
        else:
            has_inputs |= column.role not in ("id", "ignored", "refused")
    return likely if has_inputs else []


def _is_pattern(label: str) -> bool:
    return label == REST or any(wildcard in label for wildcard in "*?")
