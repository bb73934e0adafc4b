"""Linear classifiers whose scores labels pass on, fitted once for a split and then kept in a file."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from tg_mlc.baselines import LinearBaseline
from tg_mlc.baselines.linear import Loss
from tg_mlc.data import Split
from tg_mlc.datasets._files import replace_when_done, settings_key
from tg_mlc.metrics import ThresholdTuner

logger = logging.getLogger(__name__)


class Evidence(NamedTuple):
    """Linear classifiers, and what they say of every sample; of training samples, those fitted without them."""

    linear: LinearBaseline
    scores: np.ndarray


def tuned_linear(x: Any, y: Tensor, split: Split, loss: Loss = "hinge", n_jobs: int = 1) -> LinearBaseline:
    """Classifiers fitted on training samples, of the regularisation with the best micro-F1 on validation samples."""
    train, val = split.train.numpy(), split.val.numpy()
    x = sp.csr_array(x) if sp.issparse(x) else x
    return LinearBaseline.tuned(x[train], y[train], x[val], y[val], loss=loss, metric=_best_micro_f1, n_jobs=n_jobs)


def evidence(x: Any, y: Tensor, split: Split, folder: Path, n_jobs: int = 1) -> Evidence:
    """Fits support vector machines, or reads them from the folder if they were fitted for these very samples before."""
    what = x.data if sp.issparse(x) else x
    kept = folder / f"svm-{split.hash[:12]}-{settings_key(x.shape, float(what.sum()), float((what**2).sum()))}.npz"
    if not kept.exists():
        logger.info("Fitting linear classifiers for %s", kept)
        _fit(x, y, split, kept, n_jobs)
    with np.load(kept, allow_pickle=False) as file:
        linear = LinearBaseline("hinge", float(file["C"]))
        linear.weight, linear.bias = file["weight"], file["bias"]
        linear.search = [(float(C), float(value)) for C, value in file["search"]]
        return Evidence(linear, file["scores"])


def _fit(x: Any, y: Tensor, split: Split, kept: Path, n_jobs: int) -> None:
    linear = tuned_linear(x, y, split, n_jobs=n_jobs)
    scores = linear.decision_function(x)
    train = split.train.numpy()
    scores[train] = linear.cross_fit(x[train], y[train])
    with replace_when_done(kept) as unfinished, unfinished.open("wb") as file:
        np.savez(
            file,
            weight=np.asarray(linear.weight, dtype=np.float32),
            bias=np.asarray(linear.bias, dtype=np.float32),
            scores=scores.astype(np.float32),
            C=linear.C,
            search=np.array(linear.search),
        )


def _best_micro_f1(y: Any, scores: Any) -> float:
    best = ThresholdTuner("miF1").fit(y, scores).best_value
    return float("nan") if best is None else best
