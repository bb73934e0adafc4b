"""Classifiers of whole molecules, whose scores labels know and pass on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from tg_mlc.baselines import KernelRidgeBaseline, LabelFrequency, MorganForest
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.data.bags import with_attribute
from tg_mlc.metrics import macro_roc_auc
from tg_mlc.models.molecules import VECTORS, scaling_of
from tg_mlc.recipes._evidence import Arrays, fitted_once

#: A random forest on Morgan fingerprints, and kernel ridge regression on all fingerprints and descriptors.
Kind = Literal["forest", "ridge"]
#: Pairs of ``gamma`` and ``alpha`` for vectors of unit length.
RIDGE_GRID = tuple(product((1.0, 2.0, 4.0), (0.3, 1.0, 3.0)))


def with_evidence(dataset: MultiLabelDataset, split: Split, folder: Path, kinds: Sequence[Kind]) -> MultiLabelDataset:
    """The same molecules with the scores of classifiers :math:`(L, C)`, fitted or read from the folder; those of
    training molecules are of classifiers that were fitted without them.
    """
    y, x = dataset.y, _unit_vectors(dataset, split)
    smiles = np.array([text.encode() for text in dataset.smiles])
    fits = {"forest": lambda: _forest(dataset, split), "ridge": lambda: _ridge(x, y.numpy(), split)}
    samples = {"forest": (smiles, y), "ridge": (x, y)}
    of_forest = {name: value for name, value in vars(MorganForest()).items() if not name.startswith("_")}
    settings = {"forest": ("out of bag", of_forest), "ridge": RIDGE_GRID}
    scores = [
        fitted_once(folder, kind, (settings[kind], split.hash), samples[kind], fits[kind])["scores"] for kind in kinds
    ]
    values = [_against_frequency(score, y[split.train].numpy()) for score in scores]
    return with_attribute(dataset, "evidence", torch.from_numpy(np.stack(values, axis=-1)))


def _unit_vectors(dataset: MultiLabelDataset, split: Split) -> np.ndarray:
    """All vectors of a molecule side by side, with equal weight and of unit length together."""
    vectors = {key: dataset.rows(key) for key in VECTORS if key in dataset[0]}
    scaled = [scaling_of(key, values[split.train])(values) for key, values in vectors.items()]
    unit = [torch.nn.functional.normalize(values, dim=1) for values in scaled]
    together: np.ndarray = (torch.cat(unit, dim=1) / len(unit) ** 0.5).numpy()
    return together


def _forest(dataset: MultiLabelDataset, split: Split) -> Arrays:
    smiles, train = np.array(dataset.smiles), split.train.numpy()
    forest = MorganForest(oob_score=True).fit(smiles[train], dataset.y[train])
    scores = forest.predict_proba(smiles)
    scores[train] = forest.out_of_bag()
    return {"scores": scores.astype(np.float32)}


def _ridge(x: np.ndarray, y: np.ndarray, split: Split) -> Arrays:
    """The regression whose scores of molecules that it was not fitted to rank best."""
    train = split.train.numpy()
    fitted = [KernelRidgeBaseline(gamma, alpha).fit(x[train], y[train]) for gamma, alpha in RIDGE_GRID]
    values = [macro_roc_auc(y[train], ridge.leave_one_out()) for ridge in fitted]
    best = fitted[int(np.nanargmax(values))]
    scores = best.decision_function(x)
    scores[train] = best.leave_one_out()
    return {"scores": ((scores + 1) / 2).astype(np.float32), "search": np.array(values)}


def _against_frequency(probability: Any, y: np.ndarray) -> np.ndarray:
    r"""How far probabilities are from the frequency :math:`\pi` of their label, in units of :math:`\sqrt{\pi (1 -
    \pi)}`: this means the same for rare and for frequent labels.
    """
    frequency = LabelFrequency().fit(y).predict_proba(1)
    spread = np.sqrt(frequency * (1 - frequency))
    return np.where(spread > 0, (probability - frequency) / np.where(spread > 0, spread, 1), 0).astype(np.float32)
