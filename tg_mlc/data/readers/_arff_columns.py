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
        self.position = np.full(len(attributes), -1)
        self.position[self.kept] = np.arange(len(self.kept))
        kept = [attributes[i] for i in self.kept]
        self.names = [attribute.name for attribute in kept]
        self.ordered = {attribute.name: list(attribute.values or ()) for attribute in kept if attribute.ordered}
        self.plain = all(attribute.plain for attribute in kept)
        allowed = [set() if attribute.values is None else set(attribute.values.values()) for attribute in kept]
        self._nominal = np.array([attribute.values is not None for attribute in kept])
        self._zero, self._one = (np.array([number in numbers for numbers in allowed]) for number in (0.0, 1.0))

    @property
    def leading(self) -> int | None:
        """The number of attributes in front that are dropped; :obj:`None` if others are dropped, too."""
        first = len(self.attributes) - len(self.kept)
        return first if self.kept[0] == first else None

    def allow(self, values: np.ndarray, columns: np.ndarray | slice) -> bool:
        """Tells whether all numbers may stand in these columns."""
        fits = np.abs(values) <= _LARGEST
        fits &= ~self._nominal[columns] | (values == 0) & self._zero[columns] | (values == 1) & self._one[columns]
        return bool(fits.all())

    def number(self, index: int, text: str) -> float:
        """The number that a text stands for in an attribute."""
        attribute = self.attributes[index]
        if text == "?":
            return float("nan")
        if attribute.values is not None and text in attribute.values:
            return attribute.values[text]
        parsed = parse_number(text)
        number = float("nan") if parsed is None else parsed
        if attribute.values is None and abs(number) <= _LARGEST:
            return number
        if attribute.values is not None and attribute.plain and number in attribute.values.values():
            return number
        wanted = "a number" if attribute.values is None else f"one of {', '.join(attribute.values)}"
        raise ValueError(f"Expected {wanted} for attribute '{attribute.name}' (got {shorten(text)})")
