"""Checkpoints: the entries that this package adds to Lightning's, and a reader of checkpoints."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor

from tg_mlc import __version__
from tg_mlc._files import find_damage
from tg_mlc._names import shorten
from tg_mlc.graphs import LabelGraph
from tg_mlc.inference.folder import FORMAT, check_format
from tg_mlc.inference.network import restore_graph
from tg_mlc.inputs import Preprocessor
from tg_mlc.inputs.preprocessor import from_state, to_state
from tg_mlc.metrics import LabelSets, ThresholdTuner
from tg_mlc.metrics.thresholds import Decider

#: The key of our entry in a checkpoint; all other keys are Lightning's.
KEY = "tg_mlc"
_PREFIX = "model."
_SCALARS = (str, int, float, bool, Tensor, type(None))


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint, as :func:`read_checkpoint` returns it.

    .. code-block:: python

        module = MultiLabelModule(
            LaMP(encoder, label_graph, num_steps=2), label_names, config={"num_steps": 2}
        )
        result = fit(module, data, "runs/mine")
        checkpoint = read_checkpoint(result.checkpoint)
        model = LaMP(encoder, checkpoint.label_graph, **checkpoint.config)
        model.load_state_dict(checkpoint.state_dict)

    """

    label_names: list[str]
    config: dict[str, Any]  #: the user's data stored with the weights
    label_graph: LabelGraph | None  #: the label graph, if the model passes messages between labels
    #: thresholds fitted on the validation scores of these weights, by metric
    tuners: dict[str, Decider]
    #: the weights of the model, without the Lightning module around it
    state_dict: dict[str, Tensor]
    version: str  #: the version of :obj:`tg_mlc` that wrote the file
    preprocessor: Preprocessor | None = None  #: turns raw inputs into samples


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Reads a checkpoint without running any code in it.

    Args:
        path (str or PathLike): The file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged, holds more than tensors and plain data, or was not written by
            this package.
    """
    content = load_file(path)
    entry, settings = own_entry(content, str(path)), content["hyper_parameters"]
    weights = content["state_dict"]
    names = [name for name in weights if name.startswith(_PREFIX)]
    return Checkpoint(
        label_names=settings["label_names"],
        config=settings["config"],
        label_graph=restore_graph(entry["label_graph"], settings["label_names"]),
        tuners=restore_tuners(entry["thresholds"]),
        state_dict={name.removeprefix(_PREFIX): weights[name] for name in names},
        version=entry["version"],
        preprocessor=entry["preprocessor"] and from_state(entry["preprocessor"]),
    )


def load_file(
    path: str | os.PathLike[str], map_location: Any = "cpu", weights_only: bool = True
) -> dict[str, Any]:
    """Reads a whole checkpoint.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged, or holds more than tensors and plain data.
    """
    check_whole(path)
    try:
        content: dict[str, Any] = torch.load(path, map_location, weights_only=weights_only)
    except UnpicklingError as error:
        match = re.search(r"GLOBAL (\S+)", str(error))
        raise ValueError(
            f"Expected '{os.fspath(path)}' to hold tensors and plain data only (got "
            f"{match[1] if match else 'other objects'}), because anything else may run code when "
            f"it is read; if you trained it, let the state of your callbacks be plain data and "
            f"train anew, else get it from a source that you trust"
        ) from None
    entry = content.get(KEY) if isinstance(content, Mapping) else None
    if entry is not None:
        check_format(entry.get("format"), path)
    return content


def check_whole(path: str | os.PathLike[str]) -> None:
    """Raises ValueError if PyTorch's checksums show damage; ignores a missing file."""
    if Path(path).is_file() and (damage := find_damage(path)) is not None:
        raise ValueError(
            f"Expected '{os.fspath(path)}' to be a whole checkpoint (got "
            f"{Path(path).stat().st_size:,} bytes that are cut short, damaged, or something else: "
            f"{damage}); copy it again, take another one, or train anew"
        )


def make_entry(
    described: Mapping[str, Any], tuners: Mapping[str, Decider], preprocessor: Preprocessor | None
) -> dict[str, Any]:
    """Returns our entry for a checkpoint: model description, thresholds and preprocessor."""
    return {
        "version": __version__,
        "format": FORMAT,
        **described,
        "thresholds": {metric: tuner.state_dict() for metric, tuner in tuners.items()},
        "preprocessor": None if preprocessor is None else to_state(preprocessor),
    }


def own_entry(checkpoint: Mapping[str, Any], source: str = "the checkpoint") -> dict[str, Any]:
    """Returns the entry of a checkpoint that :func:`make_entry` made."""
    if not isinstance(checkpoint, Mapping) or KEY not in checkpoint:
        got = f"(got no entry {KEY!r})"
        raise ValueError(f"Expected {source} to be written by tg_mlc.training {got}")
    entry: dict[str, Any] = checkpoint[KEY]
    return entry


def restore_tuners(states: Mapping[str, Mapping[str, Any]]) -> dict[str, Decider]:
    """Restores fitted tuners and label sets from their states."""
    deciders: dict[str, Decider] = {}
    for metric, state in states.items():
        make = LabelSets.from_state if "counts" in state else ThresholdTuner(metric).load_state_dict
        deciders[metric] = make(state)
    return deciders


def check_preprocessor(preprocessor: Any) -> None:
    """Raises ValueError if a checkpoint cannot hold a preprocessor, such as an unfitted one."""
    if preprocessor is None:
        return
    name = type(preprocessor).__name__
    if not isinstance(preprocessor, Preprocessor):
        raise ValueError(f"Expected 'preprocessor' to be a Preprocessor (got {name})")
    try:
        state = to_state(preprocessor)
        from_state(state)
    except Exception as error:  # State dicts of users' code raise errors of any class.
        raise ValueError(
            f"Expected 'preprocessor' to be fitted (got {name}, whose state cannot be stored and "
            f"read back: {error!r:.80}); call its 'fit' or 'fit_transform' first"
        ) from error
    check_plain(state, "preprocessor")


def check_same_preprocessor(stored: Mapping[str, Any], present: Preprocessor) -> None:
    """Raises ValueError if weights were trained with a different preprocessor."""
    if not _are_close(stored, to_state(present)):
        raise ValueError(
            f"Expected the preprocessor of the checkpoint (got a {type(present).__name__} of "
            f"another kind, or fitted to other samples); take read_checkpoint(path).preprocessor, "
            f"or leave 'preprocessor' out"
        )


def check_plain(value: Any, name: str) -> None:
    """Raises ValueError for a value that cannot be read back with ``weights_only=True``."""
    if isinstance(value, dict):
        if not all(type(key) in (str, int) for key in value):
            got = f"(got {shorten(list(value))})"
            raise ValueError(f"Expected the keys of '{name}' to be strings or integers {got}")
        for key, item in value.items():
            check_plain(item, f"{name}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            check_plain(item, f"{name}[{index}]")
    elif type(value) not in _SCALARS:
        raise ValueError(
            f"Expected '{name}' to be a tensor, number, string, list or dict, which load with "
            f"weights_only=True (got {type(value).__name__}); convert it first, e.g. a path with "
            f"str()"
        )


def _are_close(stored: Any, current: Any) -> bool:
    """Returns whether plain data and tensors are equal, up to rounding."""
    if isinstance(stored, float) and isinstance(current, float):
        stored, current = torch.tensor(stored), torch.tensor(current)
    if isinstance(stored, Tensor) and isinstance(current, Tensor):
        pair = stored.cpu().double(), current.cpu().double()
        options: dict[str, Any] = {"rtol": 1e-3, "atol": 1e-4, "equal_nan": True}
        return stored.shape == current.shape and torch.allclose(*pair, **options)
    if isinstance(stored, Mapping) and isinstance(current, Mapping):
        same_keys = stored.keys() == current.keys()
        return same_keys and all(_are_close(stored[key], current[key]) for key in stored)
    if isinstance(stored, (list, tuple)) and isinstance(current, (list, tuple)):
        return len(stored) == len(current) and all(map(_are_close, stored, current))
    return type(stored) is type(current) and bool(stored == current)
