"""Splits by molecular scaffolds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tg_mlc._names import shorten
from tg_mlc._optional import require
from tg_mlc.data.splits import (
    DEFAULT_FRACTIONS,
    NUM_PARTS,
    Fractions,
    LabelMatrix,
    Split,
    coverage_report,
    part_sizes,
    sparse_labels,
)

MAX_DONORS = 64  # maximum number of groups that are tried to bring an absent class into a part
MAX_TAKERS = 256  # maximum number of groups that are tried to leave this part in exchange


@dataclass(frozen=True)
class Groups:
    """Groups of samples: their sizes, and their numbers of samples of each class of each label."""

    sizes: np.ndarray
    counts: np.ndarray  #: ``[num_groups, num_classes]``.

    def fill(self, order: Iterable[int], part_sizes: np.ndarray) -> np.ndarray:
        """Assigns a group to the first part with enough room, else to the part with most room."""
        room = part_sizes.copy()
        part_of = np.empty(len(self.sizes), dtype=np.int64)
        for group in order:
            fitting = np.flatnonzero(room >= self.sizes[group])
            part = fitting[0] if len(fitting) > 0 else room.argmax()
            part_of[group] = part
            room[part] -= self.sizes[group]
        return part_of

    def part_counts(self, part_of: np.ndarray) -> np.ndarray:
        """Counts the samples of each class in the parts, ``[3, num_classes]``."""
        return np.stack([self.counts[part_of == part].sum(axis=0) for part in range(NUM_PARTS)])

    def repair(self, part_of: np.ndarray, used: np.ndarray) -> np.ndarray:
        """Swaps groups of equal total size between parts while this reduces absent classes."""
        part_of = part_of.copy()
        improved = True
        while improved:
            improved = False
            for part, column in np.argwhere((self.part_counts(part_of) == 0) & used[:, None]):
                counts = self.part_counts(part_of)
                if counts[part, column] == 0:  # An earlier swap may have added the class.
                    donors = np.flatnonzero((self.counts[:, column] > 0) & (part_of != part))
                    swaps = (self._swap(part_of, counts, i, part) for i in donors[:MAX_DONORS])
                    improved |= any(swaps)
        return part_of

    def _swap(self, part_of: np.ndarray, counts: np.ndarray, donor: int, part: int) -> bool:
        """Swaps a group with groups of its size in another part if this reduces absent classes."""
        source = part_of[donor]
        exchanged = self._movable(np.flatnonzero(part_of == part), counts[part], self.sizes[donor])
        if exchanged is None:
            return False
        change = self.counts[donor] - self.counts[exchanged].sum(axis=0)
        before = (counts[part] == 0).sum() + (counts[source] == 0).sum()
        after = (counts[part] + change == 0).sum() + (counts[source] - change == 0).sum()
        if after >= before:
            return False
        part_of[donor], part_of[exchanged] = part, source
        return True

    def _movable(self, members: np.ndarray, counts: np.ndarray, size: int) -> list[int] | None:
        """Returns groups of total size ``size`` without which a part keeps all classes, or None."""
        groups: list[int] = []
        needed = counts > 0
        fitting = members[self.sizes[members] <= size]
        for group in fitting[np.argsort(-self.sizes[fitting], kind="stable")][:MAX_TAKERS]:
            remaining = counts - self.counts[group]
            if self.sizes[group] <= size and (remaining[needed] > 0).all():
                groups.append(int(group))
                counts = remaining
                size -= self.sizes[group]
            if size == 0:
                return groups
        return None


NUM_ATTEMPTS = 10


def scaffold_split(
    smiles: Sequence[str],
    y: LabelMatrix | None = None,
    fractions: Fractions = DEFAULT_FRACTIONS,
    seed: int | None = None,
    label_names: list[str] | None = None,
) -> Split:
    """Splits molecules so that no scaffold from the `"The Properties of Known Drugs. 1. Molecular
    Frameworks" <https://doi.org/10.1021/jm9602928>`_ paper is in two parts.

    All molecules without a ring share the empty scaffold. If :obj:`y` is specified, scaffolds of
    equal total size are swapped between parts while this gives more labels both classes in every
    part (with a seed, several orders are tried). The :obj:`report` of the split names labels that
    still lack a class.

    Args:
        smiles (list[str]): One SMILES string per molecule.
        y (torch.Tensor, numpy.ndarray or scipy.sparse matrix, optional): As in
            :func:`~tg_mlc.data.stratified_split`. (default: :obj:`None`)
        fractions (tuple[float], optional): Fractions of training, validation and test molecules, as
            close as whole scaffolds allow. (default: :obj:`(0.8, 0.1, 0.1)`)
        seed (int, optional): Seed of the random order in which parts are filled with scaffolds. If
            :obj:`None`, the order is from the most to the least common scaffold, so the rarest are
            in the test part. (default: :obj:`None`)
        label_names (list[str], optional): Names in the report. (default: :obj:`None`, indices)

    Raises:
        ValueError: If a SMILES string is invalid, sizes disagree, labels are not 0, 1 or NaN, the
            fractions are invalid, or there are fewer scaffolds than parts need.
    """
    labels = None if y is None else sparse_labels(y, label_names)
    if labels is not None and (rows := labels.positive.shape[0]) != len(smiles):
        expected = f"one row of 'y' for each of {len(smiles)} molecules"
        raise ValueError(f"Expected {expected} (got {rows})")
    sizes = part_sizes(len(smiles), fractions)
    names = np.asarray(murcko_scaffolds(smiles), dtype=str)
    scaffolds, group_of = np.unique(names, return_inverse=True)
    counts = np.empty((len(scaffolds), 0))
    counts = counts if labels is None else labels.class_counts(group_of, len(scaffolds))
    groups = Groups(np.bincount(group_of), counts)
    part_of = _best(groups, sizes, seed)[group_of]
    num_filled = np.bincount(part_of, minlength=NUM_PARTS)
    if ((num_filled == 0) & (sizes > 0)).any():
        expected = f"enough scaffolds to fill parts of {sizes.tolist()} molecules"
        got = f"{len(scaffolds)} scaffolds, which fill {num_filled.tolist()}"
        raise ValueError(f"Expected {expected} (got {got}); use another split for such molecules")
    report = f"{len(scaffolds)} scaffolds, the largest with {groups.sizes.max()} molecules"
    if labels is not None:
        report += "\n" + coverage_report(labels, part_of, label_names)
    return Split.from_assignment(part_of, name=f"scaffold(seed={seed})", report=report)


def murcko_scaffolds(smiles: Sequence[Any]) -> list[str]:
    """Returns Bemis-Murcko scaffolds as SMILES without stereochemistry, empty without a ring."""
    chem = require("rdkit.Chem", extra="molecules")
    murcko = require("rdkit.Chem.Scaffolds.MurckoScaffold", extra="molecules")
    scaffolds = []
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        for row, text in enumerate(smiles):
            if not isinstance(text, str):
                got = f"{type(text).__name__} for sample {row}"
                hint = "of a data set take 'dataset.smiles'"
                raise ValueError(f"Expected 'smiles' to hold strings (got {got}); {hint}")
            if (mol := chem.MolFromSmiles(text)) is None:
                expected = "a valid SMILES for every sample"
                raise ValueError(f"Expected {expected} (got '{shorten(text)}' for sample {row})")
            scaffolds.append(murcko.MurckoScaffoldSmiles(mol=mol, includeChirality=False))
    return scaffolds


def _best(groups: Groups, part_sizes: np.ndarray, seed: int | None) -> np.ndarray:
    """Returns the part of each group in the first attempt with the fewest absent classes."""
    has_room = part_sizes > 0
    # A class in n groups can be in at most n parts.
    fewest = int(np.maximum(int(has_room.sum()) - (groups.counts > 0).sum(axis=0), 0).sum())
    attempts: list[tuple[int, int, np.ndarray]] = []
    for order in _orders(groups, part_sizes, seed):
        part_of = groups.repair(groups.fill(order, part_sizes), has_room)
        num_lacking = int((groups.part_counts(part_of)[has_room] == 0).sum())
        attempts.append((num_lacking, len(attempts), part_of))
        if attempts[-1][0] <= fewest:
            break
    return min(attempts)[-1]


def _orders(groups: Groups, part_sizes: np.ndarray, seed: int | None) -> Iterator[np.ndarray]:
    if seed is None:
        yield np.argsort(-groups.sizes, kind="stable")  # The rarest scaffolds go to the test part.
        return
    rng = np.random.default_rng(seed)
    # Groups larger than half of the smallest part come first, so large parts take them.
    large = int(part_sizes[part_sizes > 0].min()) // 2
    for _ in range(NUM_ATTEMPTS):
        order = rng.permutation(len(groups.sizes))
        yield order[np.argsort(groups.sizes[order] <= large, kind="stable")]
