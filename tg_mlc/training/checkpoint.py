"""Checkpoints: what is in them beside Lightning's own entries, and how they come to disk and back."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.plugins.io import TorchCheckpointIO
from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc import __version__
from tg_mlc._files import replace_when_done
from tg_mlc.graphs import LabelGraph
from tg_mlc.metrics import ThresholdTuner
from tg_mlc.nn import LabelMessagePassing
from tg_mlc.training.settings import Settings

#: The entry of a checkpoint that is ours; all others are Lightning's.
KEY = "tg_mlc"
_PREFIX = "model."
_SCALARS = (str, int, float, bool, Tensor, type(None))


@dataclass(frozen=True)
class Checkpoint:
    """What :func:`read_checkpoint` finds in a file.

    .. code-block:: python

        module = MultiLabelModule(LaMP(encoder, label_graph, num_steps=2), label_names, config={"num_steps": 2})
        result = fit(module, data, "runs/mine")
        checkpoint = read_checkpoint(result.checkpoint)
        model = LaMP(encoder, checkpoint.label_graph, **checkpoint.config)
        model.load_state_dict(checkpoint.state_dict)

    Attributes:
        label_names (list): The name of each label.
        config (dict): What the user had stored beside the weights.
        label_graph (LabelGraph, optional): The label graph, if the model passes messages between labels.
        tuners (dict): The thresholds fitted on the validation scores of these weights, by metric.
        state_dict (dict): The weights of the model, without the Lightning module around it.
        version (str): The version of :obj:`tg_mlc` that wrote the file.
    """

    label_names: list[str]
    config: dict[str, Any]
    label_graph: LabelGraph | None
    tuners: dict[str, ThresholdTuner]
    state_dict: dict[str, Tensor]
    version: str


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint beside its final name and renames it, so that a killed run never leaves half a file there,
    and reads nothing but tensors and plain data.

    Lightning's own writer goes through the system's temporary folder, from which moving to another disk is a copy that
    can be cut short.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | os.PathLike[str], storage_options: Any = None
    ) -> None:
        if storage_options is not None:
            raise TypeError(f"Expected no 'storage_options': checkpoints are local files (got {storage_options!r})")
        path = Path(path)
        with replace_when_done(path) as unfinished:
            torch.save(checkpoint, unfinished)

    def load_checkpoint(
        self,
        path: str | os.PathLike[str],
        map_location: Callable[..., Any] | None = lambda storage, _: storage,
        weights_only: bool | None = True,
    ) -> dict[str, Any]:
        check_whole(path)
        checkpoint: dict[str, Any] = super().load_checkpoint(str(path), map_location, weights_only is not False)
        return checkpoint


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Reads a checkpoint without running any code in it.

    Args:
        path (str or PathLike): The file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is cut short, or a checkpoint of something else.
    """
    check_whole(path)
    content = torch.load(path, map_location="cpu", weights_only=True)
    entry, settings = own_entry(content, str(path)), content["hyper_parameters"]
    weights = content["state_dict"].items()
    return Checkpoint(
        label_names=settings["label_names"],
        config=settings["config"],
        label_graph=_restore_graph(entry["label_graph"], settings["label_names"]),
        tuners=restore_tuners(entry["thresholds"]),
        state_dict={name.removeprefix(_PREFIX): value for name, value in weights if name.startswith(_PREFIX)},
        version=entry["version"],
    )


def check_whole(path: str | os.PathLike[str]) -> None:
    """Refuses a file that lacks its end, or is no checkpoint; a file that is missing is left to the reader.

    Raises:
        ValueError: If that is so.
    """
    if Path(path).is_file() and not zipfile.is_zipfile(path):
        raise ValueError(
            f"Expected '{os.fspath(path)}' to be a whole checkpoint (got {Path(path).stat().st_size:,} bytes that are "
            f"cut short, or something else); copy it again, take another checkpoint beside it, or train anew"
        )


def describe(model: nn.Module, tuners: Mapping[str, ThresholdTuner], settings: Settings) -> dict[str, Any]:
    """Returns the entry of a checkpoint that is ours, made of tensors and plain data only."""
    return {
        "version": __version__,
        "settings": settings,
        "label_graph": _describe_graph(model),
        "thresholds": {metric: tuner.state_dict() for metric, tuner in tuners.items()},
    }


def own_entry(checkpoint: Mapping[str, Any], source: str = "the checkpoint") -> dict[str, Any]:
    """Returns what :func:`describe` put into a checkpoint.

    Raises:
        ValueError: If there is no such entry.
    """
    if not isinstance(checkpoint, Mapping) or KEY not in checkpoint:
        raise ValueError(f"Expected {source} to be written by tg_mlc.training (got no entry {KEY!r})")
    entry: dict[str, Any] = checkpoint[KEY]
    return entry


def restore_tuners(states: Mapping[str, Mapping[str, Any]]) -> dict[str, ThresholdTuner]:
    """Makes fitted tuners from their states."""
    return {metric: ThresholdTuner(metric).load_state_dict(state) for metric, state in states.items()}


def check_label_graph(entry: Mapping[str, Any], model: nn.Module) -> None:
    """Refuses weights that were trained along another label graph: their outputs would be silently wrong.

    Raises:
        ValueError: If the edges of the checkpoint are not those of the model.
    """
    trained, present = (_restore_graph(graph) for graph in (entry["label_graph"], _describe_graph(model)))
    if trained is None or present is None:
        if trained is not present:
            raise ValueError(f"Expected a model with label graph {trained} as in the checkpoint (got {present})")
        return
    if trained.num_labels != present.num_labels or not torch.equal(trained.edge_index, present.edge_index):
        raise ValueError(
            f"Expected the label graph of the checkpoint, {trained} (got {present}); build the model with "
            f"read_checkpoint(path).label_graph, and change the graph afterwards if you mean to"
        )


def check_plain(value: Any, name: str) -> None:
    """Checks that a value can be read back with ``weights_only=True``.

    Raises:
        ValueError: If it is or holds anything but tensors, numbers, strings, lists, tuples and dictionaries.
    """
    if isinstance(value, dict):
        if not all(type(key) in (str, int) for key in value):
            raise ValueError(f"Expected the keys of '{name}' to be strings or integers (got {list(value)})")
        for key, item in value.items():
            check_plain(item, f"{name}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            check_plain(item, f"{name}[{index}]")
    elif type(value) not in _SCALARS:
        raise ValueError(
            f"Expected '{name}' to be a tensor, number, string, list or dict, which load with weights_only=True (got "
            f"{type(value).__name__}); convert it first, e.g. a path with str()"
        )


def _describe_graph(model: nn.Module) -> dict[str, Any] | None:
    layer = next((part for part in model.modules() if isinstance(part, LabelMessagePassing)), None)
    if layer is None:
        return None
    graph: Data = layer.label_graph
    weight = graph.get("edge_weight")
    return {
        "num_labels": layer.num_labels,
        "edge_index": graph.edge_index.cpu(),
        "edge_weight": None if weight is None else weight.cpu(),
        "kind": str(graph.get("kind", "custom")),
        "source": str(graph.get("source", "")),
    }


def _restore_graph(entry: Mapping[str, Any] | None, label_names: list[str] | None = None) -> LabelGraph | None:
    if entry is None:
        return None
    return LabelGraph(
        entry["edge_index"],
        num_nodes=entry["num_labels"],
        edge_weight=entry["edge_weight"],
        label_names=label_names,
        kind=entry["kind"],
        source=entry["source"],
    )
