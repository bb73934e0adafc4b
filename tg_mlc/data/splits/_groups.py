"""Groups of samples that stay together in a split, so that every part has both classes of a label if possible."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tg_mlc.data.splits._fractions import NUM_PARTS

MAX_DONORS = 64
MAX_TAKERS = 256


@dataclass(frozen=True)
class Groups:
    """Groups of samples with their sizes and how often each class of each label occurs in them."""

    sizes: np.ndarray
    counts: np.ndarray  #: ``[num_groups, num_classes]``

    def fill(self, order: Iterable[int], part_sizes: np.ndarray) -> np.ndarray:
        """Puts each group into the first part where it fits, or, if it fits nowhere, where there is most room."""
        room = part_sizes.copy()
        part_of = np.empty(len(self.sizes), dtype=np.int64)
        for group in order:
            fitting = np.flatnonzero(room >= self.sizes[group])
            part = fitting[0] if len(fitting) > 0 else room.argmax()
            part_of[group] = part
            room[part] -= self.sizes[group]
        return part_of

    def part_counts(self, part_of: np.ndarray) -> np.ndarray:
        """Occurrences of each class in the parts, ``[3, num_classes]``."""
        return np.stack([self.counts[part_of == part].sum(axis=0) for part in range(NUM_PARTS)])

    def num_lacking(self, part_of: np.ndarray, used: np.ndarray) -> int:
        """The number of times that a class is absent from a part that has samples at all."""
        return int((self.part_counts(part_of)[used] == 0).sum())

    def fewest_lacking(self, used: np.ndarray) -> int:
        """A lower bound of :meth:`num_lacking`: a class cannot be in more parts than groups have it."""
        occurrences = (self.counts > 0).sum(axis=0)
        return int(np.maximum(int(used.sum()) - occurrences, 0).sum())

    def repair(self, part_of: np.ndarray, used: np.ndarray) -> np.ndarray:
        """Swaps groups between parts, keeping their sizes, as long as that makes fewer classes absent."""
        part_of = part_of.copy()
        improved = True
        while improved:
            absent = np.argwhere((self.part_counts(part_of) == 0) & used[:, None])
            improved = sum(self._bring(part_of, part, column) for part, column in absent) > 0
        return part_of

    def _bring(self, part_of: np.ndarray, part: int, column: int) -> bool:
        """Tries to swap a group with this class into a part without it, in place."""
        counts = self.part_counts(part_of)
        if counts[part, column] > 0:
            return False  # An earlier swap brought it already.
        donors = np.flatnonzero((self.counts[:, column] > 0) & (part_of != part))
        return any(self._swap(part_of, counts, donor, part) for donor in donors[:MAX_DONORS])

    def _swap(self, part_of: np.ndarray, counts: np.ndarray, donor: int, part: int) -> bool:
        """Swaps a group with as many samples of another part if fewer classes are absent then."""
        source = part_of[donor]
        spare = self._spare(np.flatnonzero(part_of == part), counts[part], self.sizes[donor])
        if spare is None:
            return False
        change = self.counts[donor] - self.counts[spare].sum(axis=0)
        before = (counts[part] == 0).sum() + (counts[source] == 0).sum()
        after = (counts[part] + change == 0).sum() + (counts[source] - change == 0).sum()
        if after >= before:
            return False
        part_of[donor], part_of[spare] = part, source
        return True

    def _spare(self, members: np.ndarray, counts: np.ndarray, size: int) -> list[int] | None:
        """Groups of a part with so many samples in all, without which no class is absent that is not so already."""
        chosen: list[int] = []
        needed = counts > 0
        fitting = members[self.sizes[members] <= size]
        for group in fitting[np.argsort(-self.sizes[fitting], kind="stable")][:MAX_TAKERS]:
            left = counts - self.counts[group]
            if self.sizes[group] <= size and (left[needed] > 0).all():
                chosen.append(int(group))
                counts = left
                size -= self.sizes[group]
            if size == 0:
                return chosen
        return None
