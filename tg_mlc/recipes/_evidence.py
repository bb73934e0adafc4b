"""Linear classifiers whose scores labels pass on, fitted once for a split and then kept in a file."""

from __future__ import annotations

import hashlib
import logging
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from tg_mlc._files import replace_when_done
from tg_mlc.baselines import LinearBaseline
from tg_mlc.baselines.linear import DEFAULT_GRID, Loss
from tg_mlc.data import Split

logger = logging.getLogger(__name__)

FORMAT = 1
NUM_FOLDS = 5


class Evidence(NamedTuple):
    """Linear classifiers, and what they say of every sample; of training samples, those fitted without them."""

    linear: LinearBaseline
    scores: np.ndarray


def tuned_linear(x: Any, y: Tensor, split: Split, loss: Loss = "hinge", n_jobs: int = 1) -> LinearBaseline:
    """Classifiers fitted on training samples, of the regularisation with the best micro-F1 on validation samples."""
    train, val = split.train.numpy(), split.val.numpy()
    return LinearBaseline.tuned(x[train], y[train], x[val], y[val], loss=loss, n_jobs=n_jobs)


def evidence(x: Any, y: Tensor, split: Split, folder: Path, n_jobs: int = 1) -> Evidence:
    """Fits support vector machines, or reads them from the folder if they were fitted for these very samples before."""
    kept = folder / f"svm-{_key(x, y, split)}.npz"
    if kept.exists():
        try:
            return _read(kept)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            logger.warning("Fitting linear classifiers again: '%s' cannot be read (%s)", kept, error)
    _fit(x, y, split, kept, n_jobs)
    return _read(kept)


def _key(x: Any, y: Tensor, split: Split) -> str:
    parts = [x.data, x.indices, x.indptr] if sp.issparse(x) else [x]
    digest = hashlib.sha256(repr((FORMAT, NUM_FOLDS, DEFAULT_GRID["hinge"], x.shape, split.hash)).encode())
    for part in (*parts, y.numpy()):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:16]


def _read(kept: Path) -> Evidence:
    with np.load(kept, allow_pickle=False) as file:
        linear = LinearBaseline("hinge", float(file["C"]))
        linear.weight, linear.bias = file["weight"], file["bias"]
        linear.search = [(float(C), float(value)) for C, value in file["search"]]
        return Evidence(linear, file["scores"])


def _fit(x: Any, y: Tensor, split: Split, kept: Path, n_jobs: int) -> None:
    logger.info("Fitting linear classifiers for %s", kept)
    linear = tuned_linear(x, y, split, n_jobs=n_jobs)
    scores = linear.decision_function(x)
    train = split.train.numpy()
    scores[train] = linear.cross_fit(x[train], y[train], NUM_FOLDS)
    with replace_when_done(kept) as unfinished, unfinished.open("wb") as file:
        np.savez(
            file,
            weight=np.asarray(linear.weight, dtype=np.float32),
            bias=np.asarray(linear.bias, dtype=np.float32),
            scores=scores.astype(np.float32),
            C=linear.C,
            search=np.array(linear.search),
        )
