"""The one description of a model that checkpoints and folders hold: tensors and plain data, of which it is built again
without any sample, and by which the weights of another model are refused.
"""

from __future__ import annotations

import hashlib
import inspect
import platform
from collections.abc import Iterator, Mapping, Sequence
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
from tg_mlc.graphs import LabelGraph
from tg_mlc.models.builders import Blueprint, blueprint_of, recorded_arguments

_PARTS = ("builder", "options", "samples")  # of a blueprint

# Settings that change no output of a model in evaluation, or that shapes tell already (before lazy layers know them).
_IRRELEVANT = {"training", "inplace", "momentum", "device", "backend", "fuse", "checkpointing"}
_IRRELEVANT_ENDS = ("_initializer", "channels", "features")
# The entry for the type of a module without state, such as a pooling; no attribute has the name of a keyword.
_TYPE = "class"


@runtime_checkable
class LabelGraphUser(Protocol):
    """A module that passes messages between labels, such as :class:`~tg_mlc.nn.LabelMessagePassing`."""

    num_labels: int

    @property
    def label_graph(self) -> Data:
        """The graph of :attr:`num_labels` labels."""


def label_graph_users(model: nn.Module) -> Iterator[LabelGraphUser]:
    """Yields the parts of a model that have a label graph."""
    return (part for part in model.modules() if isinstance(part, LabelGraphUser))


def describe_model(model: nn.Module, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Returns the builder of a model, if one made it, its label graph, and its settings, if they are to be checked.
    Take settings by :func:`describe_settings` before the first forward pass, which may change them.
    """
    blueprint = blueprint_of(model)
    return {
        **({} if blueprint is None else {part: getattr(blueprint, part) for part in _PARTS}),
        **({} if settings is None else {"settings": settings}),
        "label_graph": _describe_graph(model),
    }


def model_state(
    model: nn.Module,
    settings: Mapping[str, Any] | None = None,
    label_names: Sequence[str] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns tensors and plain data, of which :func:`restore_model` makes the model again: what a
    :func:`~tg_mlc.models.builder` made, or a network of one's own, with arguments of its constructor that are not found
    otherwise.
    """
    described = {**describe_model(model, settings), "state_dict": model.state_dict()}
    if blueprint_of(model) is None:
        described["network"] = _describe_network(model, label_names or [], arguments or {})
    return described


def _describe_network(
    model: nn.Module, label_names: Sequence[str], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The class of a network and the arguments of its constructor: those that were given or recorded, else attributes
    of the same name, what the labels tell, and defaults.
    """
    network = type(model)
    graph = next((layer.label_graph for layer in label_graph_users(model)), None)
    signature, recorded = inspect.signature(network), recorded_arguments(model) or {}
    kept = {name: value for name, value in vars(model).items() if packed(value) is not None}
    sizes = dict.fromkeys(("num_labels", "num_classes"), len(label_names))
    known = {**sizes, "label_names": list(label_names), "label_graph": graph}
    known = {
        **{name: value for name, value in known.items() if value is not None},
        **kept,
        **recorded,
        **given,
    }
    names = dict.fromkeys([*signature.parameters, *recorded, *given])
    arguments = {name: packed(known[name]) for name in names if name in known}
    got = [
        f"a {type(known[name]).__name__} as '{name}'"
        for name, value in arguments.items()
        if value is None
    ]
    try:
        signature.bind(**arguments)
    except TypeError as error:
        got.append(str(error))
    if got:
        raise ValueError(
            f"Expected the arguments of {network.__name__} to be plain data or a LabelGraph, kept as attributes of the "
            f"same names (got {got[0]}); decorate the class with '@tg_mlc.models.builder', which records arguments, or "
            f"pass them: save(path, arguments={{...}}); make modules in the constructor"
        )
    return {"class": network.__qualname__, "module": network.__module__, "arguments": arguments}


def packed(value: Any) -> Any:
    """A value as a folder holds it, in a dictionary that says whether it is a label graph; None for other objects."""
    if isinstance(value, LabelGraph):
        names = value.get("label_names")
        described = {
            **_described(value, value.num_labels),
            "label_names": None if names is None else list(names),
        }
        return {"label_graph": described}
    value = value.item() if isinstance(value, np.generic) else value
    return {"value": value} if _is_plain(value) else None


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(type(key) is str for key in value) and all(map(_is_plain, value.values()))
    return value is None or type(value) in (str, int, float, bool)


def unpacked(entry: Mapping[str, Any]) -> Any:
    """The value that :func:`packed` packed; tuples are lists."""
    return LabelGraph(**entry["label_graph"]) if "label_graph" in entry else entry["value"]


def restore_model(
    state: Mapping[str, Any], label_names: list[str], network: type[nn.Module] | None = None
) -> nn.Module:
    """Makes a model of what :func:`model_state` returned, ready to predict."""
    if network is not None:
        maker = f"class '{network.__name__}'"
        arguments = {name: unpacked(value) for name, value in state["network"]["arguments"].items()}
        with torch.random.fork_rng(devices=[]):
            model = network(**arguments)
    else:
        blueprint, maker = (
            Blueprint(*(state[part] for part in _PARTS)),
            f"builder '{state['builder']}'",
        )
        model = blueprint.build(restore_graph(state["label_graph"], label_names))
    try:
        model.load_state_dict(state["state_dict"])
        # of parts that are None
        if others := model.state_dict().keys() ^ state["state_dict"].keys():
            raise RuntimeError(f"other parts: {sorted(others)[:3]}")
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        hint = "make all changes to it in a builder of your own"
        if network is not None:
            hint = f"it was made with the arguments {list(arguments)} alone: pass 'arguments' to 'save' for others"
        raise ValueError(
            f"Expected a model as its {maker} makes it (got another one: {reason}); {hint}"
        ) from None
    if "settings" in state:
        check_settings(state["settings"], describe_settings(model))
    return model.eval()


def check_same_model(
    stored: Mapping[str, Any], model: nn.Module, settings: Mapping[str, Any]
) -> None:
    """Refuses weights that were trained along another label graph or with other settings: outputs would be wrong."""
    trained, present = (
        restore_graph(graph) for graph in (stored["label_graph"], _describe_graph(model))
    )
    if trained is None or present is None:
        if trained is not present:
            raise ValueError(
                f"Expected a model with label graph {trained} as in the checkpoint (got {present})"
            )
    elif trained.num_labels != present.num_labels or not torch.equal(
        trained.edge_index, present.edge_index
    ):
        raise ValueError(
            f"Expected the label graph of the checkpoint, {trained} (got {present}); build the model with "
            f"read_checkpoint(path).label_graph, and change the graph afterwards if you mean to"
        )
    check_settings(stored["settings"], settings)


def _describe_graph(model: nn.Module) -> dict[str, Any] | None:
    """The label graph that the first layer with one passes messages along, as tensors and plain data."""
    layer = next(label_graph_users(model), None)
    return None if layer is None else _described(layer.label_graph, layer.num_labels)


def _described(graph: Data, num_labels: int) -> dict[str, Any]:
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
    """The label graph that :func:`describe_model` described."""
    return None if entry is None else LabelGraph(**entry, label_names=label_names)


def describe_settings(model: nn.Module) -> dict[str, dict[str, str]]:
    """Returns what changes the outputs of a model but no shape, so that a state dict does not hold it: the public
    attributes of all modules that are numbers, strings, truth values, None or tuples of these, as texts, and the types
    of modules without children, parameters and buffers; *e.g.* ``{"labels.label_to_label.0": {"heads": "4"}}``.
    """
    described = {}
    for name, part in model.named_modules():
        type_name = type(part).__name__
        if (
            type_name in ("Identity", "DropPath")
            or "Dropout" in type_name
            or type_name.endswith("Loss")
        ):  # idle in evaluation
            continue
        texts = {key: _text(value) for key, value in vars(part).items() if _is_relevant(key)}
        settings = {key: text for key, text in texts.items() if text is not None}
        if not (part._modules or part._parameters or part._buffers):
            settings[_TYPE] = type_name
        if settings:
            described[name] = settings
    return described


def check_settings(trained: Mapping[str, Any], present: Mapping[str, Any]) -> None:
    """Refuses weights that were trained with other settings, as far as both sides know them."""
    changed = []
    for module in dict.fromkeys(chain(trained, present)):
        before, now = trained.get(module, {}), present.get(module, {})
        for name in dict.fromkeys(chain(before, now)) if before != now else ():
            if (name == _TYPE or (name in before and name in now)) and before.get(name) != now.get(
                name
            ):
                change = (
                    f"{name}={now.get(name, 'nothing')} instead of {before.get(name, 'nothing')}"
                )
                changed.append(f"{module}.{change}".lstrip("."))
    if changed:
        others = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise ValueError(
            f"Expected a model with the settings that these weights were trained with (got "
            f"{', '.join(changed[:3])}{others}); build it with them, or take the weights alone with "
            f"model.load_state_dict(read_checkpoint(path).state_dict)"
        )


@cache
def _is_relevant(name: str) -> bool:
    known = name in _IRRELEVANT or name.endswith(_IRRELEVANT_ENDS) or "drop" in name
    return not known and not name.startswith("_")


def _text(value: Any) -> str | None:
    """A text that is equal where values are, up to the rounding in which machines differ; None for objects."""
    if value is None or isinstance(value, bool | str):
        return repr(value)
    if isinstance(value, Real):
        return f"{value:.12g}"
    texts = [_text(item) for item in value] if isinstance(value, tuple) else [None]
    return None if None in texts else f"({', '.join(map(str, texts))})"


def versions() -> dict[str, str]:
    """The versions of what computes, and of what may have made inputs."""
    installed = {each.name for each in metadata.distributions()}
    return {
        "tg_mlc": tg_mlc.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "torch_geometric": torch_geometric.__version__,
        "numpy": np.__version__,
        **{
            name: metadata.version(name)
            for name in ("scipy", "scikit-learn", "rdkit")
            if name in installed
        },
    }


def data_hash(dataset: Dataset) -> str | None:
    """The SHA-256 of all attributes of the samples of a data set in memory, and of which of them are taken."""
    if not isinstance(dataset, InMemoryDataset):
        return None
    digest = hashlib.sha256(repr(dataset._indices).encode())
    for part in (dataset._data.to_dict(), dataset.slices or {}):
        for name, value in sorted(part.items()):
            digest.update(name.encode())
            digest.update(
                value.cpu().numpy().tobytes() if isinstance(value, Tensor) else repr(value).encode()
            )
    return digest.hexdigest()


def names_in(model: nn.Module) -> list[str]:
    """The labels of a network's label graph."""
    layer = next(label_graph_users(model), None)
    if layer is None:
        raise ValueError(
            f"Expected 'label_names' for a {type(model).__name__} without a label graph (got none)"
        )
    graph = layer.label_graph
    names = graph.label_names if isinstance(graph, LabelGraph) else None
    return names or [f"label {number}" for number in range(layer.num_labels)]
