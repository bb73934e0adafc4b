"""Classifiers whose scores labels pass on, fitted once for a split and then kept in a file."""

from __future__ import annotations

import hashlib
import logging
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from tg_mlc._files import replace_when_done
from tg_mlc.baselines import KernelRidgeBaseline, LinearBaseline, kernel_ridge, linear
from tg_mlc.baselines.linear import Loss
from tg_mlc.data import Split

logger = logging.getLogger(__name__)

FORMAT = 3
NUM_FOLDS = 5

#: Support vector machines, kernel ridge regression with the best micro-F1, and the same with the best subset accuracy.
Kind = Literal["svm", "ridge", "exact"]
Classifier = LinearBaseline | KernelRidgeBaseline
Arrays = dict[str, Any]  #: what is kept of a fit
#: What to call them.
NAMES: dict[Kind, str] = {
    "svm": "linear SVM, tuned",
    "ridge": "kernel ridge regression, tuned",
    "exact": "kernel ridge regression, tuned for ACC",
}
#: With less regularisation a regression remembers its samples, which tells the labels of duplicates.
EXACT_GRID = tuple(product((1.0,), (0.01, 0.03, 0.1, 0.3)))
#: What a file depends on beside the samples.
SETTINGS: dict[Kind, Any] = {
    "svm": (NUM_FOLDS, linear.DEFAULT_GRID["hinge"]),
    "ridge": kernel_ridge.DEFAULT_GRID,
    "exact": EXACT_GRID,
}


class Evidence(NamedTuple):
    """Classifiers, and what they say of every sample (N, L, C); of training samples, those fitted without them."""

    classifiers: dict[str, Classifier]
    scores: np.ndarray


def tuned_linear(x: Any, y: Tensor, split: Split, loss: Loss = "hinge", n_jobs: int = 1) -> LinearBaseline:
    """Classifiers fitted on training samples, of the regularisation with the best micro-F1 on validation samples."""
    train, val = split.train.numpy(), split.val.numpy()
    return LinearBaseline.tuned(x[train], y[train], x[val], y[val], loss=loss, n_jobs=n_jobs)


def evidence(x: Any, y: Tensor, split: Split, folder: Path, kinds: Sequence[Kind], n_jobs: int = 1) -> Evidence:
    """Fits classifiers, or reads them from the folder if they were fitted for these very samples before."""
    found = [_fitted(x, y, split, folder, kind, n_jobs) for kind in kinds]
    classifiers = {NAMES[kind]: classifier for kind, (classifier, _) in zip(kinds, found, strict=True)}
    return Evidence(classifiers, np.stack([scores for _, scores in found], axis=-1))


def _fitted(x: Any, y: Tensor, split: Split, folder: Path, kind: Kind, n_jobs: int) -> tuple[Classifier, np.ndarray]:
    def fit() -> Arrays:
        return _fit_svm(x, y, split, n_jobs) if kind == "svm" else _fit_ridge(x, y, split, exact=kind == "exact")

    arrays = fitted_once(folder, kind, (SETTINGS[kind], split.hash), (x, y), fit)
    return (_read_svm if kind == "svm" else _read_ridge)(arrays, x, split)


def fitted_once(folder: Path, name: str, settings: Any, samples: Sequence[Any], fit: Callable[[], Arrays]) -> Arrays:
    """What a fit gives, read from the folder if it was fitted to these samples with these settings before."""
    kept = folder / f"{name}-{_key(settings, samples)}.npz"
    if kept.exists():
        try:
            return _read(kept)
        except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
            logger.warning("Fitting classifiers again: '%s' cannot be read (%s)", kept, error)
    logger.info("Fitting classifiers for %s", kept)
    with replace_when_done(kept) as unfinished, unfinished.open("wb") as file:
        np.savez(file, **fit())
    return _read(kept)


def _read(kept: Path) -> Arrays:
    with np.load(kept, allow_pickle=False) as file:
        return dict(file)


def _key(settings: Any, samples: Sequence[Any]) -> str:
    digest = hashlib.sha256(repr((FORMAT, settings)).encode())
    for x in samples:
        digest.update(repr(x.shape).encode())
        for part in [x.data, x.indices, x.indptr] if sp.issparse(x) else [x]:
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:16]


def _fit_svm(x: Any, y: Tensor, split: Split, n_jobs: int) -> Arrays:
    svm = tuned_linear(x, y, split, n_jobs=n_jobs)
    scores = svm.decision_function(x)
    train = split.train.numpy()
    scores[train] = svm.cross_fit(x[train], y[train], NUM_FOLDS)
    return {
        "weight": np.asarray(svm.weight, dtype=np.float32),
        "bias": np.asarray(svm.bias, dtype=np.float32),
        "scores": scores.astype(np.float32),
        "C": svm.C,
        "search": np.array(svm.search),
    }


def _read_svm(arrays: Arrays, x: Any, split: Split) -> tuple[Classifier, np.ndarray]:
    svm = LinearBaseline("hinge", float(arrays["C"]))
    svm.weight, svm.bias = arrays["weight"], arrays["bias"]
    svm.search = [(float(C), float(value)) for C, value in arrays["search"]]
    return svm, arrays["scores"]


def _fit_ridge(x: Any, y: Tensor, split: Split, exact: bool) -> Arrays:
    train, val = split.train.numpy(), split.val.numpy()
    options: dict[str, Any] = {"grid": EXACT_GRID, "metric": partial(linear.best_value, metric="ACC")} if exact else {}
    ridge = KernelRidgeBaseline.tuned(x[train], y[train], x[val], y[val], **options)
    scores = np.concatenate([ridge.decision_function(x[part]) for part in _parts(len(y))])
    scores[train] = ridge.leave_one_out()
    return {
        "dual": np.asarray(ridge.dual, dtype=np.float32),
        "mean": np.asarray(ridge.mean, dtype=np.float32),
        "scores": scores.astype(np.float32),
        "gamma": ridge.gamma,
        "alpha": ridge.alpha,
        "search": np.array(ridge.search),
    }


def _read_ridge(arrays: Arrays, x: Any, split: Split) -> tuple[Classifier, np.ndarray]:
    ridge = KernelRidgeBaseline(float(arrays["gamma"]), float(arrays["alpha"]))
    ridge.x, ridge.dual, ridge.mean = x[split.train.numpy()], arrays["dual"], arrays["mean"]
    ridge.search = [(float(gamma), float(alpha), float(value)) for gamma, alpha, value in arrays["search"]]
    return ridge, arrays["scores"]


def _parts(num_samples: int, size: int = 4096) -> list[slice]:
    return [slice(start, start + size) for start in range(0, num_samples, size)]
