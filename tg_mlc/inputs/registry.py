"""The registry of kinds of input, and searches of the kind of samples and of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tg_mlc._numbers import is_blank
from tg_mlc.data import MultiLabelDataset
from tg_mlc.inputs.kind import InputKind
from tg_mlc.inputs.schema import Column, Schema

#: Minimum number of values of a category; fewer may look like molecules by chance.
MIN_CLAIMED = 10
#: All kinds of input, general kinds first; searches begin at the end, with special kinds.
KINDS: list[type[InputKind]] = []


def kind_of(dataset: MultiLabelDataset) -> type[InputKind]:
    """Returns the kind of a data set's samples. Raises :class:`ValueError` if no kind matches."""
    for kind in reversed(KINDS):
        if kind.matches(dataset):
            return kind
    expected = f"samples of one of the kinds {[kind.__name__ for kind in KINDS]}"
    raise ValueError(f"Expected {expected} (got {dataset} of kind {dataset.kind!r})")


def kinds_by_option() -> dict[str, type[InputKind]]:
    """Returns the kinds by the options that specify their columns; kinds without an option of the
    command line by :attr:`.InputKind.option`.
    """
    options = [(kind.command_option and kind.command_option.name, kind) for kind in KINDS]
    return {name or kind.option: kind for name, kind in options}


def claimed(
    schema: Schema, cells: Mapping[str, np.ndarray]
) -> Iterator[tuple[Column, type[InputKind]]]:
    """Yields skipped columns and categories that seem to hold inputs of a kind, with the kind.

    Most of the first 50 cells must look like this kind. For a category, all cells must, and it
    must have at least :obj:`MIN_CLAIMED` values.
    """
    for column in schema.columns:
        is_category = column.role == "category"
        is_large = is_category and len(column.values) >= MIN_CLAIMED
        if not is_large and column.role not in ("id", "ignored", "refused"):
            continue
        strings = [cell for cell in cells[column.name][:50].tolist() if isinstance(cell, str)]
        words = (cell for cell in strings if not is_blank(cell) and any(map(str.isalpha, cell)))
        texts = [cell.strip() for cell in words]
        for kind in reversed(KINDS if texts else []):
            try:
                is_claimed = kind.claims(texts)
            except ValueError:  # Most texts are inputs of the kind, but not all.
                is_claimed = not is_category
            if is_claimed:
                yield column, kind
                break
