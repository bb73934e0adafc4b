"""Description of the machine, the versions and the data, which every result is stored with."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import tg_mlc
from tg_mlc.data import MultiLabelDataset

PACKAGES = (
    "torch",
    "torch-geometric",
    "torch-scatter",
    "torch-sparse",
    "rdkit",
    "scikit-learn",
    "lightning",
    "numba",
    "numpy",
    "triton",
)


def describe_environment() -> dict[str, Any]:
    """The machine and the versions of what ran on it."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": {"tg_mlc": tg_mlc.__version__, **{name: _version(name) for name in PACKAGES}},
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def describe_dataset(dataset: MultiLabelDataset) -> dict[str, Any]:
    """The sizes of a data set, and a hash of its inputs and labels."""
    molecules = dataset.smiles if "smiles" in dataset[0] else []
    digest = hashlib.sha256("\n".join([*dataset.label_names, *molecules]).encode())
    if not molecules:
        digest.update(dataset._data.x.numpy().tobytes())
    digest.update(dataset.y.numpy().tobytes())
    return {"num_samples": len(dataset), "num_labels": dataset.num_labels, "sha256": digest.hexdigest()}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
