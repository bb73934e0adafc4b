"""Several FASTA files, one after another, with little of them in memory."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from tg_mlc._files import FilePath
from tg_mlc.inputs.readers.byte_arrays import map_temporarily
from tg_mlc.inputs.readers.fasta import read_fasta


class FastaFiles:
    """The sequences of several files, those of the training part first."""

    def __init__(self, train: Sequence[FilePath], test: Sequence[FilePath] = ()) -> None:
        self.headers: list[str] = []  #: the name of each sequence
        self.ends: list[int] = []  #: the number of sequences in each file and all before it
        self._paths = [os.fsdecode(path) for path in (*train, *test)]
        self._ptr, self._lines = array("q", [0]), array("q")
        self._hashes = array("q")  # of 64 bits: no two sequences have the same by chance
        self.letters = map_temporarily(self._read())  #: the codes of the letters of all sequences
        self.ptr = np.frombuffer(self._ptr, dtype=np.int64)  #: where in these each begins, and the last one ends
        self.num_train = self.ends[len(train) - 1]

    def __len__(self) -> int:
        return len(self.headers)

    def where(self, number: int) -> str:
        """The line and the file of the name of a sequence."""
        return f"line {self._lines[number]} of '{self._paths[bisect_right(self.ends, number)]}'"

    def of_each_file(self) -> Iterator[range]:
        """The numbers of the sequences of each file."""
        return (range(start, end) for start, end in pairwise([0, *self.ends]))

    def num_repeated(self) -> int:
        """The number of test sequences with the letters of a training sequence."""
        hashes = np.frombuffer(self._hashes, dtype=np.int64)
        return int(np.isin(hashes[self.num_train :], hashes[: self.num_train]).sum())

    def _read(self) -> Iterator[np.ndarray]:
        for path in self._paths:
            for record in read_fasta(path):
                self.headers.append(record.header)
                self._lines.append(record.line)
                self._hashes.append(hash(record.letters.tobytes()))
                self._ptr.append(self._ptr[-1] + len(record.letters))
                yield record.letters
            self.ends.append(len(self))
