"""Cells of the LANET tables: models by the names of the paper, and how each is trained."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import Tensor, nn
from torch_geometric.data import Data
from typing_extensions import Self

from tg_mlc.data import Split
from tg_mlc.graphs import LabelGraph, fully_connected
from tg_mlc.papers import C2AEObjective
from tg_mlc.papers.next_set import C2AE, LSTMBaseline, TimeAttention, TransformerBase, TwoAttentions
from tg_mlc.sequences import (
    LANET,
    TIFUKNN,
    GlobalFrequency,
    LastSet,
    LogisticHistory,
    NextSetBaseline,
    NextSetDataset,
    PersonalFrequency,
    PersonalMemory,
    personal_memory,
)
from tg_mlc.sequences.dataset import Targets
from tg_mlc.sequences.lanet import MEMORY, PAPER

#: Settings of LANET with memory, but with the default objective, for models of the paper.
SHORT = {**MEMORY, "module": {**MEMORY["module"], "objective": None}}
#: C2AE's alpha, chosen from 1, 10, 100, 1000 by micro ROC-AUC on Complete Journey (validation).
ALPHA = 100.0
#: Builds a model from a data set, its split and the channels. Files record the keywords.
Build = partial[nn.Module]
Described = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One entry of a table: a model, its window of events, and its settings."""

    table: str
    name: str
    build: Build
    window_size: int = 3
    channels: int = 128
    settings: str = "paper"

    @property
    def key(self) -> str:
        """The name of the cell's file."""
        return re.sub("[ ,=]+", "_", self.title.lower().replace(": ", "."))

    @property
    def title(self) -> str:
        """The title of the cell's row."""
        return f"{self.table}: {self.name}"

    @property
    def preset(self) -> dict[str, dict[str, Any]]:
        """The settings of training, with the model's own objective."""
        preset = {"paper": PAPER, "short": SHORT, "memory": MEMORY}[self.settings]
        if "C2AE" not in self.name:
            return preset
        return {**preset, "module": {**preset["module"], "objective": C2AEObjective(alpha=ALPHA)}}

    @property
    def described(self) -> Described:
        """All settings of the cell."""
        model = {"class": self.build.func.__name__, "channels": self.channels}
        preset = {group: self.preset[group] for group in ("module", "fit", "data")}
        model |= self.build.keywords
        return _plain({"model": model, "window_size": self.window_size, **preset})


def _plain(settings: Described) -> Described:
    """Settings as they are after a round trip through JSON."""
    text = json.dumps(settings, default=lambda value: getattr(value, "__name__", repr(value)))
    plain: Described = json.loads(text)
    return plain


def _graph(dataset: NextSetDataset) -> LabelGraph:
    return fully_connected(dataset.label_names)


def _lanet(
    dataset: NextSetDataset, split: Split, channels: int, *, entity: bool = True, **window: Any
) -> LANET:
    """LANET as published, with options of its window."""
    options: Any = {**dataset.window, **window}
    return LANET(_graph(dataset), dataset.num_entities, channels, entity=entity, window=options)


def _with_memory(
    dataset: NextSetDataset,
    split: Split,
    channels: int,
    *,
    hidden_channels: int,
    neighbours: bool = True,
    **model: Any,
) -> LANET:
    """LANET with a memory."""
    options: Any = {"neighbours": neighbours, "hidden_channels": hidden_channels}
    memory = personal_memory(dataset, split.train, channels, **options)
    model |= {"memory": memory, "window": dataset.window}
    return LANET(_graph(dataset), dataset.num_entities, channels, **model)


class MemoryAlone(nn.Module):
    """The logits of a memory, without attention."""

    def __init__(self, memory: PersonalMemory) -> None:
        super().__init__()
        self.memory = memory

    def forward(self, data: Data) -> Tensor:
        """Returns the logits."""
        _, logits = self.memory(data)
        return logits


def _memory_alone(
    dataset: NextSetDataset, split: Split, channels: int, *, hidden_channels: int
) -> MemoryAlone:
    memory = personal_memory(dataset, split.train, channels, hidden_channels=hidden_channels)
    return MemoryAlone(memory)


def _time_attention(dataset: NextSetDataset, split: Split, channels: int) -> TimeAttention:
    return TimeAttention(dataset.num_labels, dataset.num_entities, channels, window=dataset.window)


def _two_attentions(
    dataset: NextSetDataset, split: Split, channels: int, *, gated: bool
) -> TwoAttentions:
    """Attention among labels and among events."""
    label, time = _lanet(dataset, split, channels), _time_attention(dataset, split, channels)
    return TwoAttentions(label, time, gated)


def _rival(
    dataset: NextSetDataset,
    split: Split,
    channels: int,
    *,
    kind: Callable[..., nn.Module],
    entity: bool = True,
) -> nn.Module:
    """A rival of LANET from the paper."""
    events = {"window_size": dataset.window_size or 1, "gaps": dataset.gaps, "entity": entity}
    return kind(dataset.num_labels, dataset.num_entities, channels, events=events)


#: Number of targets per chunk of predictions. Each target has a row for every label.
CHUNK = 500


class BoostedHistory(NextSetBaseline):
    """LightGBM, else scikit-learn's trees, on inputs of :class:`~tg_mlc.sequences.PersonalMemory`.

    Args:
        num_targets: Number of random training targets, each with all of its labels.
    """

    def __init__(self, num_targets: int = 5_000) -> None:
        self.num_targets = num_targets

    def fit(self, dataset: NextSetDataset, targets: Targets) -> Self:
        """Fits the trees."""
        super().fit(dataset, targets)
        self._memory = personal_memory(dataset, torch.as_tensor(targets), 1)
        subset = np.random.default_rng(0).permutation(np.asarray(targets))[: self.num_targets]
        self._trees = _trees().fit(self._rows(dataset, subset), dataset.y[subset].toarray().ravel())
        return self

    @property
    def fitted_by(self) -> str:
        """The class that fitted the trees."""
        return type(self._trees).__name__

    def predict_proba(self, dataset: NextSetDataset, targets: Targets) -> np.ndarray:
        """Returns probabilities."""
        target, probabilities = np.asarray(targets), []
        for start in range(0, len(target), CHUNK):
            rows = self._rows(dataset, target[start : start + CHUNK])
            probabilities.append(self._trees.predict_proba(rows)[:, 1])
        return np.concatenate(probabilities).reshape(len(target), dataset.num_labels)

    def _rows(self, dataset: NextSetDataset, target: np.ndarray) -> np.ndarray:
        memory: PersonalMemory = self._memory
        return memory.features(dataset.batch(target)).flatten(end_dim=1).numpy()


def _trees() -> Any:
    if find_spec("lightgbm") is None:
        options: Any = {"learning_rate": 0.1, "max_leaf_nodes": 31, "max_iter": 150}
        options |= {"min_samples_leaf": 200, "random_state": 0}
        return HistGradientBoostingClassifier(**options, early_stopping=False)
    from lightgbm import LGBMClassifier

    options = {"learning_rate": 0.1, "num_leaves": 31, "n_estimators": 150}
    return LGBMClassifier(**options, min_child_samples=200, random_state=0, verbose=-1)


LANET_MODEL = partial(_lanet)
_SIZES = {**MEMORY["memory"], **MEMORY["model"]}
del _SIZES["channels"]
CHANNELS: int = MEMORY["model"]["channels"]
MEMORY_ALONE = partial(_memory_alone, hidden_channels=_SIZES["hidden_channels"])
WITH_MEMORY = partial(_with_memory, **_SIZES)
WITHOUT_NEIGHBOURS = partial(WITH_MEMORY, neighbours=False)
LSTM, TRANSFORMER, AUTOENCODER = (
    partial(_rival, kind=kind) for kind in (LSTMBaseline, TransformerBase, C2AE)
)
#: Options of models without the entity as input.
NO_ID: dict[str, Any] = {"entity": False}
TABLE_3 = [
    Cell("table 3", "LSTM", LSTM),
    Cell("table 3", "TransformerBase", TRANSFORMER),
    Cell("table 3", "CLASS2C2AE", AUTOENCODER),
    Cell("table 3", "LANET", LANET_MODEL),
    Cell("table 3", "LANET, no ID", partial(_lanet, **NO_ID)),
    Cell("table 3", "LANET with memory", WITH_MEMORY, channels=CHANNELS, settings="memory"),
]
#: Similar cells that take minutes: few epochs, a narrower LANET, and ablations of the memory.
SHORT_TABLE = [
    Cell("short", "LSTM", LSTM, settings="short"),
    Cell("short", "TransformerBase", TRANSFORMER, settings="short"),
    Cell("short", "CLASS2C2AE", AUTOENCODER, settings="short"),
    Cell("short", "LSTM, no ID", partial(LSTM, **NO_ID), settings="short"),
    Cell("short", "TransformerBase, no ID", partial(TRANSFORMER, **NO_ID), settings="short"),
    Cell("short", "CLASS2C2AE, no ID", partial(AUTOENCODER, **NO_ID), settings="short"),
    Cell("short", "LANET, no ID", partial(_lanet, **NO_ID), channels=16, settings="short"),
    Cell("short", "LANET", LANET_MODEL, channels=16, settings="short"),
    Cell("short", "memory alone", MEMORY_ALONE, channels=CHANNELS, settings="memory"),
    *(
        Cell("short", f"LANET with memory, {name}", build, channels=CHANNELS, settings="memory")
        for name, build in (
            ("no ID", partial(WITH_MEMORY, **NO_ID)),
            ("no neighbours", WITHOUT_NEIGHBOURS),
        )
    ),
    Cell("short", "LANET with memory, BCE", WITH_MEMORY, channels=CHANNELS, settings="short"),
]
#: Shared cells are in table 3 only: LANET is also a row of the other tables and a point of both
#: figures, and LANET without ID is also a row of table 5.
TABLE_4 = [
    Cell("table 4", "Time-attention", partial(_time_attention)),
    Cell("table 4", "Concat-attention", partial(_two_attentions, gated=False)),
    Cell("table 4", "Gated-attention", partial(_two_attentions, gated=True)),
    Cell("table 4", "Absence-indication", partial(_lanet, absence=True)),
]
TABLE_5 = [
    Cell("table 5", "No amount", partial(_lanet, amount=False)),
    Cell("table 5", "No time", partial(_lanet, time=False)),
]
FIGURE_3 = [
    *(Cell("figure 3a", f"window_size={n}", LANET_MODEL, window_size=n) for n in (1, 2, 5, 8)),
    *(Cell("figure 3b", f"dimension={n}", LANET_MODEL, channels=n) for n in (16, 32, 64, 256)),
]
CELLS = {cell.key: cell for cell in (*TABLE_3, *SHORT_TABLE, *TABLE_4, *TABLE_5, *FIGURE_3)}
TABLES = tuple(dict.fromkeys(cell.table for cell in CELLS.values()))

#: Predictors without a network, for comparison with the paper's rows. The simplest come first.
BASELINES: dict[str, Callable[[], NextSetBaseline]] = {
    "label frequency": GlobalFrequency,
    "last set": LastSet,
    "logistic regression, last 3 events": partial(
        LogisticHistory, window_size=3, decay=1.0, weight_decay=30.0
    ),
    "personal frequency, undecayed": PersonalFrequency,
    "personal frequency": partial(PersonalFrequency, decay=0.95, backoff=2.0),
    "TIFU-KNN": TIFUKNN,
    "logistic regression, whole history": LogisticHistory,
    "gradient boosting, whole history": BoostedHistory,
}
#: All rows in the order of the tables: without a network, networks, and networks with a memory.
_NETWORKS = sorted(CELLS.values(), key=lambda cell: "memory" in cell.name)
ORDER = (*BASELINES, *(cell.title for cell in _NETWORKS))


def title_of(cell: str) -> str:
    """The title of the row of a cell's file."""
    return CELLS[cell].title if cell in CELLS else cell


def described(cell: str) -> Described | None:
    """The current settings of a cell, by its file's name; :obj:`None` if there is no such cell."""
    if cell in BASELINES:
        baseline = BASELINES[cell]()
        return _plain({"class": type(baseline).__name__, **vars(baseline)})
    return CELLS[cell].described if cell in CELLS else None
