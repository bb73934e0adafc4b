"""Trained modules and models as tensors and plain data, of which they are built again without any sample."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch_geometric
from torch import Tensor, nn
from torch_geometric.data import Dataset, InMemoryDataset

import tg_mlc
from tg_mlc.inputs import from_state
from tg_mlc.models.builders import Blueprint, blueprint_of
from tg_mlc.saving.checkpoint import KEY, describe_graph, restore_graph

if TYPE_CHECKING:
    from tg_mlc.training import MultiLabelModule

_PARTS = ("builder", "options", "samples")


def module_state(module: MultiLabelModule) -> dict[str, Any]:
    """Returns tensors and plain data, of which :func:`restore_module` makes the module again.

    Raises:
        ValueError: If the model was made by no builder.
    """
    checkpoint: dict[str, Any] = {}
    module.on_save_checkpoint(checkpoint)
    return {"hyper_parameters": dict(module.hparams), **checkpoint[KEY], **model_state(module.model)}


def restore_module(state: Mapping[str, Any]) -> MultiLabelModule:
    """Makes a module of what :func:`module_state` returned, ready to predict.

    Raises:
        ValueError: If its parts do not fit together, or a class or builder is unknown.
    """
    from tg_mlc.training import MultiLabelModule

    options, preprocessor = state["hyper_parameters"], state["preprocessor"]
    model = restore_model(state, options["label_names"])
    module = MultiLabelModule(model, preprocessor=None if preprocessor is None else from_state(preprocessor), **options)
    module.on_load_checkpoint({KEY: state, "hyper_parameters": options})
    return module.eval()


def model_state(model: nn.Module) -> dict[str, Any]:
    """Returns tensors and plain data, of which :func:`restore_model` makes the model again.

    Raises:
        ValueError: If it was made by no :func:`~tg_mlc.models.builder`.
    """
    blueprint = blueprint_of(model)
    if blueprint is None:
        raise ValueError(
            f"Expected a model that a builder made, such as 'table_lamp' (got a {type(model).__name__}); let a "
            f"function with the decorator 'tg_mlc.models.builder' make it"
        )
    parts = {part: getattr(blueprint, part) for part in _PARTS}
    return {**parts, "label_graph": describe_graph(model), "state_dict": model.state_dict()}


def restore_model(state: Mapping[str, Any], label_names: list[str]) -> nn.Module:
    """Makes a model of what :func:`model_state` returned.

    Raises:
        ValueError: If its weights do not fit, or its builder is unknown.
    """
    model = Blueprint(*(state[part] for part in _PARTS)).build(restore_graph(state["label_graph"], label_names))
    try:
        model.load_state_dict(state["state_dict"])
        if others := model.state_dict().keys() ^ state["state_dict"].keys():  # of parts that are None
            raise RuntimeError(f"other parts: {sorted(others)[:3]}")
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise ValueError(
            f"Expected a model as its builder '{state['builder']}' makes it (got another one: {reason}); make all "
            f"changes to it in a builder of your own"
        ) from None
    return model


def versions() -> dict[str, str]:
    """The versions of what computes, and of what may have made inputs."""
    installed = {each.name for each in metadata.distributions()}
    return {
        "tg_mlc": tg_mlc.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "torch_geometric": torch_geometric.__version__,
        "numpy": np.__version__,
        **{name: metadata.version(name) for name in ("scipy", "scikit-learn", "rdkit") if name in installed},
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
