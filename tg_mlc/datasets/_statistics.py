"""Statistics of multi-label data sets: what can be counted in any of them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Dataset, InMemoryDataset
from torch_geometric.data.dataset import MISSING

from tg_mlc._files import file_sha256, sha256

_BLOCK = 1 << 24


def count(dataset: Dataset) -> dict[str, Any]:
    """The statistics of a whole data set by the names of a card's fields."""
    if dataset._indices is not None:
        raise ValueError(f"Expected a whole data set (got {len(dataset)} samples of one)")
    sparse = getattr(dataset, "sparse_y", None)
    inputs = getattr(dataset, "num_inputs", None)
    in_memory = isinstance(dataset, InMemoryDataset)
    parts = getattr(dataset, "_official", None) if in_memory else dataset.official_split().parts
    return {
        "kind": getattr(dataset, "kind", None) or "graph",
        "samples": len(dataset),
        "num_inputs": inputs if inputs is not None else dataset.num_node_features,
        "official": None if parts is None else tuple(map(len, parts)),
        "raw_sha256": _raw_hashes(dataset),
        "content_sha256": content_sha256(dataset),
        "origin": "computed",
        **label_statistics(dataset.y if sparse is None else sparse()),
    }


def label_statistics(y: Tensor | csr_array) -> dict[str, Any]:
    """Counts labels ``[N, L]``: a tensor or a sparse matrix of 0, 1 and NaN."""
    num_samples, num_labels = y.shape
    positives = np.asarray((y == 1).sum(0)).ravel()
    unknown = int(y.isnan().sum() if isinstance(y, Tensor) else np.isnan(y.data).sum())
    known = num_samples * num_labels - unknown
    occurring = positives[positives > 0]
    imbalance = occurring.max() / occurring if occurring.size else np.full(1, np.nan)
    total = int(positives.sum())
    return {
        "labels": num_labels,
        "cardinality": total / max(num_samples, 1),
        "density": total / max(known, 1),
        "mean_ir": float(imbalance.mean()),
        "max_ir": float(imbalance.max()),
        "never_positive": int((positives == 0).sum()),
        "missing": 1 - known / max(num_samples * num_labels, 1),
    }


def content_sha256(dataset: Dataset) -> str:
    """The SHA-256 of inputs, labels and names of a whole data set, the same wherever and however it is stored."""
    if not isinstance(dataset, InMemoryDataset):  # then its files are plain arrays
        return sha256("".join(file_sha256(Path(path)) for path in dataset.processed_paths).encode())
    digest = hashlib.sha256()
    data, slices = dataset._data, dataset.slices or {}
    for key in sorted(data.keys()):
        _update(digest, f"{key} {slices.get(key) is not None}", data[key])
        _update(digest, "slices", slices.get(key))
    names = {"label_names": dataset.label_names, "feature_names": dataset.feature_names, "kind": dataset.kind}
    digest.update(repr(names).encode())
    for part in getattr(dataset, "_official", None) or ():
        _update(digest, "part", part)
    return digest.hexdigest()


def _update(digest: Any, name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        digest.update(f"{name} {value!r}".encode())
        return
    digest.update(f"{name} {value.dtype} {list(value.shape)}".encode())
    flat = value.detach().cpu().contiguous().flatten().numpy()
    for start in range(0, flat.size, _BLOCK):
        array = flat[start : start + _BLOCK]
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), np.array(np.nan, dtype=array.dtype), array)  # NaN has many bit patterns
        digest.update(array.tobytes())


def _raw_hashes(dataset: Dataset) -> dict[str, str]:
    files = [file for file in getattr(dataset, "files", ()) if file.sha256]
    if files and all(len(file.sha256) == 1 for file in files):
        return {file.name: file.sha256[0] for file in files}  # which was checked
    if dataset.root == MISSING:  # made in memory, of no file
        return {}
    raw = Path(dataset.raw_dir)
    paths = [path for path in sorted(raw.rglob("*")) if path.is_file() and path.suffix not in {".part", ".bad"}]
    return {path.relative_to(raw).as_posix(): file_sha256(path) for path in paths}
