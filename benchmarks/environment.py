"""What every result is stored with: the machine, the versions and the data."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import tg_mlc
from tg_mlc.data import MultiLabelDataset

RESULTS = Path(__file__).parent / "results"
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


def name_of(*parts: str) -> str:
    """The name of a file of results, from what tells it apart."""
    return "-".join(part for part in parts if part)


def results_file(name: str, *, complete: bool = True) -> Path:
    """Where results are kept, or those of a comparison that is not complete."""
    return RESULTS / f"{name}.{'json' if complete else 'part'}"


def write_results(name: str, content: dict[str, Any], *, complete: bool = True) -> Path:
    """Writes a file of results as a whole."""
    path = results_file(name, complete=complete)
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    # JSON has no NaN; what is undefined is null.
    text = json.dumps({"environment": describe_environment(), **content}, indent=1, allow_nan=False)
    unfinished.write_text(text + "\n")
    unfinished.replace(path)
    return path


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
