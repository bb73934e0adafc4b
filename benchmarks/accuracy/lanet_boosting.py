"""Gradient boosting of one function of all labels, on what a memory says of them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from typing_extensions import Self

from tg_mlc.sequences import NextSetBaseline, NextSetDataset, PersonalMemory, personal_memory
from tg_mlc.sequences.dataset import Targets

#: Targets at a time, whose labels are rows.
CHUNK = 500


class BoostedHistory(NextSetBaseline):
    """LightGBM if it is installed, else scikit-learn's, on the inputs of a :class:`~tg_mlc.sequences.PersonalMemory`.

    Args:
        num_targets: Training targets that are drawn, each with all of its labels.
    """

    def __init__(self, num_targets: int = 5_000) -> None:
        self.num_targets = num_targets

    def fit(self, dataset: NextSetDataset, targets: Targets) -> Self:
        """Fits the trees."""
        super().fit(dataset, targets)
        self._memory = personal_memory(dataset, torch.as_tensor(targets), 1)
        drawn = np.random.default_rng(0).permutation(np.asarray(targets))[: self.num_targets]
        self._trees = _trees().fit(self._rows(dataset, drawn), dataset.y[drawn].toarray().ravel())
        return self

    @property
    def fitted_by(self) -> str:
        """The class that fitted the trees."""
        return type(self._trees).__name__

    def predict_proba(self, dataset: NextSetDataset, targets: Targets) -> np.ndarray:
        """Returns probabilities."""
        target = np.asarray(targets)
        parts = [target[i : i + CHUNK] for i in range(0, len(target), CHUNK)]
        found = np.concatenate([self._trees.predict_proba(self._rows(dataset, part))[:, 1] for part in parts])
        return found.reshape(len(target), dataset.num_labels)

    def _rows(self, dataset: NextSetDataset, target: np.ndarray) -> np.ndarray:
        memory: PersonalMemory = self._memory
        return memory.features(dataset.batch(target)).flatten(end_dim=1).numpy()


def _trees() -> Any:
    sizes: dict[str, Any] = {"learning_rate": 0.1, "max_leaf_nodes": 31, "max_iter": 150, "min_samples_leaf": 200}
    if find_spec("lightgbm") is None:
        return HistGradientBoostingClassifier(**sizes, early_stopping=False, random_state=0)
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        learning_rate=0.1, num_leaves=31, n_estimators=150, min_child_samples=200, random_state=0, verbose=-1
    )
