"""Makes the default model fast to train in tests, and the largest bundled data set small."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tg_mlc.datasets import nci
from tg_mlc.stacking import classifiers, folds


def train_little(patch: pytest.MonkeyPatch, max_epochs: int = 3, num_folds: int = 2) -> None:
    """Limits training to few epochs and folds, two settings per classifier, and small forests.

    Forests have just enough trees to give every sample an out-of-bag score.
    """
    patch.setattr(folds, "MAX_EPOCHS", max_epochs)
    patch.setattr(folds, "NUM_FOLDS", (num_folds,))
    patch.setattr(classifiers, "NETWORK_EPOCHS", (max_epochs, max_epochs))
    for name in ("NUM_TREES", "MAX_TREES"):
        patch.setattr(classifiers, name, classifiers.MIN_TREES)
    for kind, search in classifiers.AUTOMATIC.items():
        patch.setitem(classifiers.AUTOMATIC, kind, replace(search, settings=search.settings[:2]))


def read_few_molecules(patch: pytest.MonkeyPatch) -> None:
    """Reduces NCI to its first 300 molecules."""
    read = nci._read_rdkit_file
    read_first = lambda name: "\n".join(read(name).splitlines()[:300])  # noqa: E731
    patch.setattr(nci, "_read_rdkit_file", read_first)
