"""Columns of an ARFF table: the attributes that are kept, and the values that each may have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tg_mlc._numbers import parse_number
from tg_mlc.data.readers._arff_header import Attribute, shorten

_LARGEST = float(np.finfo(np.float32).max)


class Columns:
    """The attributes that become columns, and the values that each may have."""

    def __init__(self, attributes: Sequence[Attribute], dropped: Sequence[bool]) -> None:
        self.attributes = attributes
        self.kept = [index for index, is_dropped in enumerate(dropped) if not is_dropped]
        self.position = {index: column for column, index in enumerate(self.kept)}
        kept = [attributes[i] for i in self.kept]
        self.names = [attribute.name for attribute in kept]
        self.ordered = {attribute.name: list(attribute.values or ()) for attribute in kept if attribute.ordered}
        #: whether rows of plain numbers can be read all at once
        self.plain = len(kept) == len(attributes) and all(attribute.plain for attribute in kept)
        self._is_nominal = np.array([attribute.values is not None for attribute in kept])

    def allow(self, values: np.ndarray, columns: np.ndarray | slice) -> bool:
        """Tells whether all numbers may stand in these columns."""
        fits = ~self._is_nominal[columns] | (values == 0) | (values == 1)
        return bool((fits & (np.abs(values) <= _LARGEST)).all())

    def number(self, index: int, text: str) -> float:
        """The number that a text stands for in an attribute."""
        attribute = self.attributes[index]
        if text == "?":
            return float("nan")
        if attribute.values is not None and text in attribute.values:
            return attribute.values[text]
        number = parse_number(text)
        fits = number in attribute.values.values() if attribute.values and attribute.plain else not attribute.values
        if number is not None and fits and abs(number) <= _LARGEST:
            return number
        wanted = "a number" if attribute.values is None else f"one of {', '.join(attribute.values)}"
        raise ValueError(f"Expected {wanted} for attribute '{attribute.name}' (got {shorten(text)})")
