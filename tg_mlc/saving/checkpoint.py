"""Checkpoints: their entries beside Lightning's own, and their way to disk and back."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Protocol, runtime_checkable

import torch
from lightning.pytorch.plugins.io import TorchCheckpointIO
from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc import __version__
from tg_mlc._files import find_damage, replace_when_done
from tg_mlc.graphs import LabelGraph
from tg_mlc.inputs import Preprocessor, from_state, to_state
from tg_mlc.metrics import ThresholdTuner
from tg_mlc.saving.folder import FORMAT
from tg_mlc.saving.legacy import upgrade_checkpoint
from tg_mlc.saving.settings import Settings

#: The entry of a checkpoint that is ours; all others are Lightning's.
KEY = "tg_mlc"
_PREFIX = "model."
_SCALARS = (str, int, float, bool, Tensor, type(None))


@runtime_checkable
class LabelGraphUser(Protocol):
    """A module that passes messages between labels, such as :class:`~tg_mlc.nn.LabelMessagePassing`."""

    num_labels: int

    @property
    def label_graph(self) -> Data:
        """The graph of :attr:`num_labels` labels."""


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint, as :func:`read_checkpoint` returns it.

    .. code-block:: python

        module = MultiLabelModule(LaMP(encoder, label_graph, num_steps=2), label_names, config={"num_steps": 2})
        result = fit(module, data, "runs/mine")
        checkpoint = read_checkpoint(result.checkpoint)
        model = LaMP(encoder, checkpoint.label_graph, **checkpoint.config)
        model.load_state_dict(checkpoint.state_dict)

    """

    label_names: list[str]
    config: dict[str, Any]  #: what the user had stored beside the weights
    label_graph: LabelGraph | None  #: the label graph, if the model passes messages between labels
    tuners: dict[str, ThresholdTuner]  #: thresholds fitted on the validation scores of these weights, by metric
    state_dict: dict[str, Tensor]  #: the weights of the model, without the Lightning module around it
    version: str  #: that of :obj:`tg_mlc` which wrote the file
    preprocessor: Preprocessor | None = None  #: what makes samples of raw inputs, if the module had one


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint beside its final name and renames it, so that a killed run never leaves half a file there (as
    Lightning's own writer may, through a temporary folder), and reads nothing but tensors and plain data.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | os.PathLike[str], storage_options: Any = None
    ) -> None:
        """Writes a checkpoint; an error names the free space of the disk."""
        if storage_options is not None:
            raise TypeError(f"Expected no 'storage_options': checkpoints are local files (got {storage_options!r})")
        path = Path(path)
        try:
            with replace_when_done(path) as unfinished:
                torch.save(checkpoint, unfinished)
        except (OSError, RuntimeError) as error:  # PyTorch's writer raises the latter
            room = shutil.disk_usage(path.parent).free
            raise OSError(
                f"Expected to write the checkpoint '{path}' (got {str(error).splitlines()[0]!r}, with {room:,} bytes "
                f"free on that disk); make room there, and resume from the checkpoint of the last complete epoch"
            ) from error

    def load_checkpoint(
        self,
        path: str | os.PathLike[str],
        map_location: Any = lambda storage, _: storage,
        weights_only: bool | None = True,
    ) -> dict[str, Any]:
        """Reads a checkpoint, if it is whole."""
        with reading(path):
            checkpoint: dict[str, Any] = super().load_checkpoint(str(path), map_location, weights_only is not False)
        return brought_up_to_date(checkpoint)


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Reads a checkpoint without running any code in it.

    Args:
        path (str or PathLike): The file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged, holds more than tensors and plain data, or is a checkpoint of something else.
    """
    content = AtomicCheckpointIO().load_checkpoint(path, "cpu")
    entry, settings = own_entry(content, str(path)), content["hyper_parameters"]
    weights = content["state_dict"].items()
    return Checkpoint(
        label_names=settings["label_names"],
        config=settings["config"],
        label_graph=restore_graph(entry["label_graph"], settings["label_names"]),
        tuners=restore_tuners(entry["thresholds"]),
        state_dict={name.removeprefix(_PREFIX): value for name, value in weights if name.startswith(_PREFIX)},
        version=entry["version"],
        preprocessor=restore_preprocessor(entry),
    )


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Refuses a damaged file beforehand, and says what to do about one that PyTorch refuses for what it holds."""
    check_whole(path)
    try:
        yield
    except UnpicklingError as error:
        found = re.search(r"GLOBAL (\S+)", str(error))
        raise ValueError(
            f"Expected '{os.fspath(path)}' to hold tensors and plain data only (got "
            f"{found[1] if found else 'other objects'}), as anything else may run code when it is read; if you trained "
            f"it, let the state of your callbacks be plain data and train anew, else get it from somebody you trust"
        ) from None


def check_whole(path: str | os.PathLike[str]) -> None:
    """Refuses a file of which a bit is lost or changed, by PyTorch's checksums; a missing one is left to the reader."""
    if Path(path).is_file() and (damage := find_damage(path)) is not None:
        raise ValueError(
            f"Expected '{os.fspath(path)}' to be a whole checkpoint (got {Path(path).stat().st_size:,} bytes that are "
            f"cut short, damaged, or something else: {damage}); copy it again, take another one, or train anew"
        )


def label_graph_users(model: nn.Module) -> Iterator[LabelGraphUser]:
    """Yields the parts of a model that have a label graph."""
    return (part for part in model.modules() if isinstance(part, LabelGraphUser))


def brought_up_to_date(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Returns a checkpoint under today's names, whichever version wrote it."""
    ours = checkpoint.get(KEY) if isinstance(checkpoint, Mapping) else None
    return upgrade_checkpoint(checkpoint) if ours is not None and "format" not in ours else checkpoint


def make_entry(model: nn.Module, tuners: Mapping[str, ThresholdTuner], settings: Settings) -> dict[str, Any]:
    """Returns the entry of a checkpoint that is ours, made of tensors and plain data only."""
    return {
        "version": __version__,
        "format": FORMAT,
        "settings": settings,
        "label_graph": describe_graph(model),
        "thresholds": {metric: tuner.state_dict() for metric, tuner in tuners.items()},
    }


def own_entry(checkpoint: Mapping[str, Any], source: str = "the checkpoint") -> dict[str, Any]:
    """Returns what :func:`make_entry` put into a checkpoint."""
    if not isinstance(checkpoint, Mapping) or KEY not in checkpoint:
        raise ValueError(f"Expected {source} to be written by tg_mlc.training (got no entry {KEY!r})")
    entry: dict[str, Any] = checkpoint[KEY]
    return entry


def restore_tuners(states: Mapping[str, Mapping[str, Any]]) -> dict[str, ThresholdTuner]:
    """Makes fitted tuners from their states."""
    return {metric: ThresholdTuner(metric).load_state_dict(state) for metric, state in states.items()}


def restore_preprocessor(entry: Mapping[str, Any]) -> Preprocessor | None:
    """Makes the fitted preprocessor of a checkpoint, if it has one."""
    state = entry.get("preprocessor")
    return None if state is None else from_state(state)


def check_preprocessor(preprocessor: Any) -> None:
    """Refuses what no checkpoint could hold: no preprocessor, or one that has nothing to store yet."""
    if preprocessor is None:
        return
    if not isinstance(preprocessor, Preprocessor):
        raise ValueError(f"Expected 'preprocessor' to be a Preprocessor (got {type(preprocessor).__name__})")
    try:
        state = to_state(preprocessor)
        from_state(state)
    except Exception as error:  # of any class, as state dicts are made by users' code too
        raise ValueError(
            f"Expected 'preprocessor' to be fitted (got {type(preprocessor).__name__}, whose state cannot be stored "
            f"and read back: {error!r}); call its 'fit' or 'fit_transform' first"
        ) from error
    check_plain(state, "preprocessor")


def check_same_preprocessor(entry: Mapping[str, Any], present: Preprocessor) -> None:
    """Refuses weights that were trained on what another preprocessor made: their outputs would be silently wrong."""
    stored = entry.get("preprocessor")
    if stored is not None and not _alike(stored, to_state(present)):
        raise ValueError(
            f"Expected the preprocessor of the checkpoint (got a {type(present).__name__} of another kind, or fitted "
            f"to other samples); take read_checkpoint(path).preprocessor, or leave 'preprocessor' out"
        )


def check_label_graph(entry: Mapping[str, Any], model: nn.Module) -> None:
    """Refuses weights that were trained along another label graph: their outputs would be silently wrong."""
    trained, present = (restore_graph(graph) for graph in (entry["label_graph"], describe_graph(model)))
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
    """Checks that a value can be read back with ``weights_only=True``."""
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


def _alike(stored: Any, present: Any) -> bool:
    """Equality of plain data, up to the rounding in which machines differ."""
    if isinstance(stored, Tensor) and isinstance(present, Tensor):
        pair = stored.cpu().double(), present.cpu().double()
        return stored.shape == present.shape and torch.allclose(*pair, rtol=1e-3, atol=1e-4, equal_nan=True)
    if isinstance(stored, Mapping) and isinstance(present, Mapping):
        return stored.keys() == present.keys() and all(_alike(stored[key], present[key]) for key in stored)
    if isinstance(stored, (list, tuple)) and isinstance(present, (list, tuple)):
        return len(stored) == len(present) and all(map(_alike, stored, present))
    if isinstance(stored, float) and isinstance(present, float):
        return _alike(torch.tensor(stored), torch.tensor(present))
    return type(stored) is type(present) and bool(stored == present)


def describe_graph(model: nn.Module) -> dict[str, Any] | None:
    """The label graph that the first layer with one passes messages along, as tensors and plain data."""
    layer = next(label_graph_users(model), None)
    if layer is None:
        return None
    graph = layer.label_graph
    weight = graph.get("edge_weight")
    return {
        "edge_index": graph.edge_index.cpu(),
        "num_nodes": layer.num_labels,
        "edge_weight": None if weight is None else weight.cpu(),
        "kind": str(graph.get("kind", "custom")),
        "source": str(graph.get("source", "")),
    }


def restore_graph(entry: Mapping[str, Any] | None, label_names: list[str] | None = None) -> LabelGraph | None:
    """The label graph that :func:`describe_graph` described."""
    return None if entry is None else LabelGraph(**entry, label_names=label_names)
