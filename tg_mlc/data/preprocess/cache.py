"""Cache of fits: results kept in files that are named by all that they depend on."""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from tg_mlc._files import read_tensors, replace_when_done
from tg_mlc.data.preprocess.preprocessor import as_tensors

logger = logging.getLogger(__name__)

FORMAT = 5


def fitted_once(
    folder: Path | None, name: str, settings: Any, samples: Sequence[Any], fit: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """The result of a fit, with tensors in place of arrays, read from a folder if these samples were fitted before.

    Args:
        folder (Path, optional): Where to keep it; nowhere if :obj:`None`.
        name (str): What the file's name begins with.
        settings (Any): What the fit depends on beside the samples; its :func:`repr` counts.
        samples (Sequence): The arrays, sparse matrices or tensors that it is fitted to.
        fit (Callable): Fits; the result holds arrays and plain data.
    """
    if folder is None:
        return dict(as_tensors(fit()))
    kept = folder / f"{name}-{_key(settings, samples)}.pt"
    if kept.exists():
        try:
            return dict(read_tensors(kept))
        except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
            logger.warning("Fitting classifiers again: '%s' cannot be read (%s)", kept, error)
    logger.info("Fitting classifiers for %s", kept)
    content: dict[str, Any] = as_tensors(fit())
    with replace_when_done(kept) as unfinished:
        torch.save(content, unfinished)
    return content


def _key(settings: Any, samples: Sequence[Any]) -> str:
    digest = hashlib.sha256(repr((FORMAT, settings)).encode())
    for x in samples:
        digest.update(repr(x.shape).encode())
        for part in [x.data, x.indices, x.indptr] if sp.issparse(x) else [x]:
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:16]
