"""Labels of samples, collected one sample after another."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp


class LabelRows:
    """Collects which labels each sample has, in little memory.

    Args:
        names (list of str): The labels in order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self._column = {name: column for column, name in enumerate(names)}
        self._columns, self._ends = array("i"), array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, labels: Iterable[str]) -> None:
        """Adds the labels of the next sample, each of which counts once."""
        self._columns.extend(sorted({self._column[label] for label in labels}))
        self._ends.append(len(self._columns))

    def to_csr(self) -> sp.csr_array:
        """The labels of all samples, ``[N, L]``."""
        columns, ends = np.frombuffer(self._columns, dtype=np.intc), np.frombuffer(self._ends, dtype=np.int64)
        ones = np.ones(len(columns), dtype=np.float32)
        return sp.csr_array((ones, columns, ends), shape=(len(self), len(self.names)))
