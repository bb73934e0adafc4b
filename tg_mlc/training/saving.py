"""A trained module as tensors and plain data, of which it is built again without any sample."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch_geometric
from torch import Tensor, nn
from torch_geometric.data import Dataset, InMemoryDataset

import tg_mlc
from tg_mlc._folder import write_folder
from tg_mlc.data.preprocess import from_state
from tg_mlc.graphs import LabelGraph
from tg_mlc.models.builders import Blueprint, blueprint_of
from tg_mlc.training.checkpoint import KEY
from tg_mlc.training.module import MultiLabelModule

_PARTS = ("builder", "options", "samples")


def save_module(module: MultiLabelModule, path: str | os.PathLike[str], facts: Mapping[str, Any] | None = None) -> Path:
    """Writes a module to a folder that :func:`tg_mlc.load` reads, once it has been built again as a test.

    Args:
        module (MultiLabelModule): Trained, its model made by a :func:`~tg_mlc.models.builder`.
        path (str or PathLike): The folder; a model that is there already is replaced as a whole.
        facts (dict, optional): What else to write down, as plain data. (default: :obj:`None`)

    Raises:
        ValueError: If the model was made by no builder, or has been changed since.
    """
    state = module_state(module)
    restore_module(state)
    about = {"label_names": module.label_names, "facts": {**(facts or {}), "versions": versions()}}
    return write_folder(path, {"kind": "module", **about, "module": state})


def module_state(module: MultiLabelModule) -> dict[str, Any]:
    """Returns tensors and plain data, of which :func:`restore_module` makes the module again."""
    blueprint = blueprint_of(module.model)
    if blueprint is None:
        raise ValueError(
            f"Expected a model that a builder made, such as 'table_lamp' (got a {type(module.model).__name__}); let a "
            f"function with the decorator 'tg_mlc.models.builder' make it"
        )
    checkpoint: dict[str, Any] = {}
    module.on_save_checkpoint(checkpoint)
    entry = checkpoint[KEY]
    thresholds = {metric: _listed(state) for metric, state in entry["thresholds"].items()}
    return {
        **{part: getattr(blueprint, part) for part in _PARTS},
        "hyper_parameters": dict(module.hparams),
        **entry,
        "thresholds": thresholds,
        "state_dict": module.model.state_dict(),
    }


def restore_module(state: Mapping[str, Any]) -> MultiLabelModule:
    """Makes a module of what :func:`module_state` returned, ready to predict.

    Raises:
        ValueError: If its parts do not fit together, or a class or builder is unknown.
    """
    options, graph, preprocessor = state["hyper_parameters"], state["label_graph"], state["preprocessor"]
    label_graph = None if graph is None else LabelGraph(**graph, label_names=options["label_names"])
    model = Blueprint(*(state[part] for part in _PARTS)).build(label_graph)
    _load(model, state["state_dict"], state["builder"])
    module = MultiLabelModule(model, preprocessor=None if preprocessor is None else from_state(preprocessor), **options)
    thresholds = {metric: _as_tensors(tuner) for metric, tuner in state["thresholds"].items()}
    module.on_load_checkpoint({KEY: {**state, "thresholds": thresholds}, "hyper_parameters": options})
    return module.eval()


def _load(model: nn.Module, weights: Mapping[str, Any], builder: str) -> None:
    try:
        model.load_state_dict(weights)
        if others := model.state_dict().keys() ^ weights.keys():  # PyTorch takes weights of a part that is None
            raise RuntimeError(f"other parts: {sorted(others)[:3]}")
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise ValueError(
            f"Expected a model as its builder '{builder}' makes it (got another one: {reason}); make all changes to it "
            f"in a builder of your own"
        ) from None


def versions() -> dict[str, str]:
    """The versions of what computes."""
    return {
        "tg_mlc": tg_mlc.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "torch_geometric": torch_geometric.__version__,
        "numpy": np.__version__,
    }


def data_hash(dataset: Dataset) -> str | None:
    """The SHA-256 of all attributes of the samples of a data set in memory, and of which of them are taken."""
    if not isinstance(dataset, InMemoryDataset):
        return None
    digest = hashlib.sha256(repr(dataset._indices).encode())
    for part in (dataset._data.to_dict(), dataset.slices or {}):
        for name, value in sorted(part.items()):
            digest.update(name.encode())
            digest.update(value.cpu().numpy().tobytes() if isinstance(value, Tensor) else repr(value).encode())
    return digest.hexdigest()


def _listed(state: Mapping[str, Any]) -> dict[str, Any]:
    """Thresholds as numbers, which a person can read."""
    return {name: value.tolist() if isinstance(value, Tensor) else value for name, value in state.items()}


def _as_tensors(state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: torch.tensor(value, dtype=torch.float64) if isinstance(value, list) else value
        for name, value in state.items()
    }
