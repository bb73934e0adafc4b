"""Descriptions of networks as tensors and plain data. They suffice to build a network again, and to
check that its settings match its weights.
"""

from __future__ import annotations

import hashlib
import inspect
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata
from itertools import chain
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
import torch_geometric
from torch import Tensor, nn
from torch_geometric.data import Data, Dataset, InMemoryDataset

import tg_mlc
from tg_mlc._names import few, shorten
from tg_mlc.graphs import LabelGraph
from tg_mlc.models.builders import Blueprint, blueprint_of, recorded_arguments

_FIELDS = ("builder", "options", "samples")  # The attributes of a blueprint.

# Settings that change no output of a model in evaluation, or that follow from shapes.
_IRRELEVANT = {"training", "inplace", "momentum", "device", "backend", "fuse", "checkpointing"}
_IRRELEVANT_ENDS = ("_initializer", "channels", "features")
# The key for the type of a module without state, such as a pooling. No attribute has this name.
_TYPE = "class"


@runtime_checkable
class LabelGraphUser(Protocol):
    """A module that passes messages between labels: :class:`~tg_mlc.nn.LabelMessagePassing`."""

    num_labels: int

    @property
    def label_graph(self) -> Data:
        """The graph of :attr:`num_labels` labels."""


def label_graph_users(model: nn.Module) -> Iterator[LabelGraphUser]:
    """Yields the modules of a model that have a label graph."""
    return (module for module in model.modules() if isinstance(module, LabelGraphUser))


def describe_model(model: nn.Module, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a model's builder, if any, its label graph, and its settings."""
    blueprint, layer = blueprint_of(model), next(label_graph_users(model), None)
    description = {} if blueprint is None else {key: getattr(blueprint, key) for key in _FIELDS}
    graph = None if layer is None else _describe_graph(layer.label_graph, layer.num_labels)
    return {**description, "settings": settings, "label_graph": graph}


def model_state(
    model: nn.Module,
    settings: Mapping[str, Any],
    label_names: Sequence[str],
    arguments: Mapping[str, Any],
) -> dict[str, Any]:
    """Returns the content from which :func:`restore_model` restores a model."""
    description = {**describe_model(model, settings), "state_dict": model.state_dict()}
    if blueprint_of(model) is None:
        description["network"] = _describe_network(model, label_names, arguments)
    return description


def _describe_network(
    model: nn.Module, label_names: Sequence[str], specified: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the class of a network and the arguments of its constructor."""
    network = type(model)
    graph = next((layer.label_graph for layer in label_graph_users(model)), None)
    signature, recorded = inspect.signature(network), recorded_arguments(model) or {}
    available: dict[str, Any] = dict.fromkeys(("num_labels", "num_classes"), len(label_names))
    available["label_names"] = list(label_names)
    if graph is not None:
        available["label_graph"] = graph
    available |= {name: value for name, value in vars(model).items() if packed(value) is not None}
    available |= {**recorded, **specified}
    names = dict.fromkeys([*signature.parameters, *recorded, *specified])
    arguments = {name: packed(available[name]) for name in names if name in available}
    unsupported = [name for name, value in arguments.items() if value is None]
    got = [f"a {type(available[name]).__name__} as '{name}'" for name in unsupported]
    try:
        signature.bind(**arguments)
    except TypeError as error:
        got.append(str(error))
    if got:
        raise ValueError(
            f"Expected the arguments of {network.__name__} to be plain data or a LabelGraph, kept "
            f"as attributes of the same names (got {got[0]}); decorate the class with "
            f"'@tg_mlc.models.builder', which records arguments, or pass them: "
            f"save(path, arguments={{...}}); make modules in the constructor"
        )
    return {"class": network.__qualname__, "module": network.__module__, "arguments": arguments}


def packed(value: Any) -> Any:
    """Packs plain data or a label graph for a folder; returns :obj:`None` for other objects."""
    if isinstance(value, LabelGraph):
        names = value.get("label_names")
        names = None if names is None else list(names)
        return {"label_graph": {**_describe_graph(value, value.num_labels), "label_names": names}}
    value = value.item() if isinstance(value, np.generic) else value
    return {"value": value} if _is_plain(value) else None


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(type(key) is str for key in value) and all(map(_is_plain, value.values()))
    return value is None or type(value) in (str, int, float, bool)


def unpacked(entry: Mapping[str, Any]) -> Any:
    """Returns the value that :func:`packed` packed. Tuples become lists."""
    return LabelGraph(**entry["label_graph"]) if "label_graph" in entry else entry["value"]


def restore_model(
    state: Mapping[str, Any], label_names: list[str], network: type[nn.Module] | None = None
) -> nn.Module:
    """Restores a model, in evaluation mode, from the result of :func:`model_state`."""
    hint = "make all changes to it in a builder of your own"
    if network is not None:
        maker = f"class '{network.__name__}'"
        arguments = {name: unpacked(value) for name, value in state["network"]["arguments"].items()}
        names = few([*arguments]) or "none"
        hint = f"its arguments were {names}: pass further 'arguments' to 'save'"
        with torch.random.fork_rng(devices=[]):
            model = network(**arguments)
    else:
        maker = f"builder '{state['builder']}'"
        graph = restore_graph(state["label_graph"], label_names)
        model = Blueprint(*(state[field] for field in _FIELDS)).build(graph)
    try:
        model.load_state_dict(state["state_dict"])
        # PyTorch ignores stored parameters whose attribute is None.
        if different_keys := model.state_dict().keys() ^ state["state_dict"].keys():
            raise RuntimeError(f"other parts: {sorted(different_keys)[:3]}")
        # PyTorch casts weights to the dtype of the model.
        for name, value in model.state_dict().items():
            stored = state["state_dict"][name]
            if value.is_floating_point() != stored.is_floating_point():
                raise RuntimeError(f"weights '{name}' of {stored.dtype}, not {value.dtype}")
    except RuntimeError as error:
        got = f"(got another one: {shorten(' '.join(str(error).split()), 300)})"
        raise ValueError(f"Expected a model as its {maker} makes it {got}; {hint}") from None
    check_settings(state["settings"], describe_settings(model))
    return model.eval()


def _describe_graph(graph: Data, num_labels: int) -> dict[str, Any]:
    weight = graph.get("edge_weight")
    return {
        "edge_index": graph.edge_index.cpu(),
        "num_nodes": num_labels,
        "edge_weight": None if weight is None else weight.cpu(),
        "kind": str(graph.get("kind", "custom")),
        "source": str(graph.get("source", "")),
        **{key: value.cpu() for key, value in graph if key == "parent_index"},
    }


def restore_graph(
    entry: Mapping[str, Any] | None, label_names: list[str] | None = None
) -> LabelGraph | None:
    """Returns the label graph in the result of :func:`describe_model`."""
    return None if entry is None else LabelGraph(**entry, label_names=label_names)


def check_same_graph(described: Mapping[str, Any], model: nn.Module) -> None:
    """Raises ValueError if weights were trained with a label graph other than the model's."""
    trained = restore_graph(described["label_graph"])
    present = restore_graph(describe_model(model, {})["label_graph"])
    is_same = trained is present
    if trained is not None and present is not None:
        is_same = trained.num_labels == present.num_labels
        is_same = is_same and torch.equal(trained.edge_index, present.edge_index)
    if not is_same:
        raise ValueError(
            f"Expected weights of a model with the same label graph, {present} (got {trained}); "
            f"build it with read_checkpoint(path).label_graph, and change the graph afterwards"
        )


def describe_settings(model: nn.Module) -> dict[str, dict[str, str]]:
    """Returns settings that change the outputs of a model but no shape, by module: public
    attributes that are plain data, as strings, and the types of modules without parts; *e.g.*
    ``{"labels.label_to_label.0": {"heads": "4"}}``.
    """
    descriptions = {}
    for name, module in model.named_modules():
        layer = type(module).__name__
        is_idle = layer in ("Identity", "DropPath") or "Dropout" in layer or layer.endswith("Loss")
        if is_idle:  # These modules have no effect in evaluation.
            continue
        texts = {key: _as_text(value) for key, value in vars(module).items() if _is_relevant(key)}
        settings = {key: text for key, text in texts.items() if text is not None}
        if not (module._modules or module._parameters or module._buffers):
            settings[_TYPE] = layer
        if settings:
            descriptions[name] = settings
    return descriptions


def check_settings(trained: Mapping[str, Any], present: Mapping[str, Any]) -> None:
    """Raises ValueError if a setting that both descriptions hold differs between them."""
    changed = []
    for module in dict.fromkeys(chain(trained, present)):
        before, now = trained.get(module, {}), present.get(module, {})
        for name in dict.fromkeys(chain(before, now)):
            is_known = name == _TYPE or (name in before and name in now)
            if is_known and before.get(name) != now.get(name):
                was = f"instead of {before.get(name, 'nothing')}"
                changed.append(f"{module}.{name}={now.get(name, 'nothing')} {was}".lstrip("."))
    if changed:
        raise ValueError(
            f"Expected a model with the settings that these weights were trained with (got "
            f"{few(changed, 3)}); build it with them, or take the weights alone with "
            f"model.load_state_dict(read_checkpoint(path).state_dict)"
        )


@cache
def _is_relevant(name: str) -> bool:
    is_irrelevant = name in _IRRELEVANT or name.endswith(_IRRELEVANT_ENDS) or "drop" in name
    return not is_irrelevant and not name.startswith("_")


def _as_text(value: Any) -> str | None:
    """Returns a string that is equal for values equal up to rounding; None for objects."""
    if value is None or isinstance(value, bool | str):
        return repr(value)
    if isinstance(value, Real):
        return f"{value:.12g}"
    texts = [_as_text(item) for item in value] if isinstance(value, tuple) else [None]
    return None if None in texts else f"({', '.join(map(str, texts))})"


def versions() -> dict[str, str]:
    """Returns the versions of packages that compute the model or may prepare its inputs."""
    return {
        "tg_mlc": tg_mlc.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "torch_geometric": torch_geometric.__version__,
        "numpy": np.__version__,
        **_installed_versions("scipy", "scikit-learn", "rdkit"),
    }


@cache  # Reading the metadata of packages takes longer than saving a small model.
def _installed_versions(*packages: str) -> dict[str, str]:
    """Returns the versions of packages. Packages that are not installed are skipped."""
    installed = {}
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            installed[package] = metadata.version(package)
    return installed


def data_hash(dataset: Dataset) -> str | None:
    """Returns the SHA-256 of all attributes and row indices of a data set in memory, else None."""
    if not isinstance(dataset, InMemoryDataset):
        return None
    digest = hashlib.sha256(repr(dataset._indices).encode())
    for entries in (dataset._data.to_dict(), dataset.slices or {}):
        for name, value in sorted(entries.items()):
            is_tensor = isinstance(value, Tensor)
            content = value.cpu().numpy().tobytes() if is_tensor else repr(value).encode()
            digest.update(name.encode())
            digest.update(content)
    return digest.hexdigest()


def names_in(model: nn.Module) -> list[str]:
    """Returns the names of the labels in a network's label graph."""
    layer = next(label_graph_users(model), None)
    if layer is None:
        name = type(model).__name__
        raise ValueError(f"Expected 'label_names' for a {name} without a label graph (got none)")
    graph = layer.label_graph
    names = graph.label_names if isinstance(graph, LabelGraph) else None
    return names or [f"label {number}" for number in range(layer.num_labels)]
