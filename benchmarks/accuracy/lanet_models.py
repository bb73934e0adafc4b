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

#: The settings of LANET with a memory, for models of the paper: each label by itself.
SHORT = {**MEMORY, "module": {**MEMORY["module"], "objective": None}}
#: Chosen from 1, 10, 100 and 1000 by the best micro ROC-AUC on validation targets of Complete Journey.
ALPHA = 100.0
#: Makes a model of events, their parts and the size of a view; its keywords are the options that are written down.
Build = partial[nn.Module]
Described = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One entry of a table: a model, the events that it sees, and its settings."""

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
        """All that the cell is made with."""
        model = {
            "class": self.build.func.__name__,
            "channels": self.channels,
            **self.build.keywords,
        }
        preset = {part: self.preset[part] for part in ("module", "fit", "data")}
        return _plain({"model": model, "window_size": self.window_size, **preset})


def _plain(settings: Described) -> Described:
    """The same as JSON keeps it."""
    plain: Described = json.loads(
        json.dumps(settings, default=lambda value: getattr(value, "__name__", repr(value)))
    )
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
    memory = personal_memory(
        dataset, split.train, channels, neighbours=neighbours, hidden_channels=hidden_channels
    )
    return LANET(
        _graph(dataset),
        dataset.num_entities,
        channels,
        memory=memory,
        window=dataset.window,
        **model,
    )


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
    return MemoryAlone(
        personal_memory(dataset, split.train, channels, hidden_channels=hidden_channels)
    )


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
    """A model of events."""
    events = {"window_size": dataset.window_size or 1, "gaps": dataset.gaps, "entity": entity}
    return kind(dataset.num_labels, dataset.num_entities, channels, events=events)


#: Targets at a time, whose labels are rows.
CHUNK = 500


class BoostedHistory(NextSetBaseline):
    """LightGBM if it is installed, else scikit-learn's, on the inputs of a :class:`~tg_mlc.sequences.PersonalMemory`.

    Args:
        num_targets: Training targets that are drawn, each with all of its labels.
    """

    def __init__(self, num_targets: int = 5_000) -> None:
        self.num_targets = num_targets

    def fit(self, dataset: NextSetDataset, targets: Targets) -> Self:
        """Fits the trees."""
        super().fit(dataset, targets)
        self._memory = personal_memory(dataset, torch.as_tensor(targets), 1)
        drawn = np.random.default_rng(0).permutation(np.asarray(targets))[: self.num_targets]
        self._trees = _trees().fit(self._rows(dataset, drawn), dataset.y[drawn].toarray().ravel())
        return self

    @property
    def fitted_by(self) -> str:
        """The class that fitted the trees."""
        return type(self._trees).__name__

    def predict_proba(self, dataset: NextSetDataset, targets: Targets) -> np.ndarray:
        """Returns probabilities."""
        target = np.asarray(targets)
        parts = [target[i : i + CHUNK] for i in range(0, len(target), CHUNK)]
        found = np.concatenate(
            [self._trees.predict_proba(self._rows(dataset, part))[:, 1] for part in parts]
        )
        return found.reshape(len(target), dataset.num_labels)

    def _rows(self, dataset: NextSetDataset, target: np.ndarray) -> np.ndarray:
        memory: PersonalMemory = self._memory
        return memory.features(dataset.batch(target)).flatten(end_dim=1).numpy()


def _trees() -> Any:
    sizes: dict[str, Any] = {
        "learning_rate": 0.1,
        "max_leaf_nodes": 31,
        "max_iter": 150,
        "min_samples_leaf": 200,
    }
    if find_spec("lightgbm") is None:
        return HistGradientBoostingClassifier(**sizes, early_stopping=False, random_state=0)
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        learning_rate=0.1,
        num_leaves=31,
        n_estimators=150,
        min_child_samples=200,
        random_state=0,
        verbose=-1,
    )


LANET_MODEL = partial(_lanet)
_SIZES = {
    key: value for key, value in (MEMORY["memory"] | MEMORY["model"]).items() if key != "channels"
}
CHANNELS: int = MEMORY["model"]["channels"]
MEMORY_ALONE = partial(_memory_alone, hidden_channels=_SIZES["hidden_channels"])
WITH_MEMORY = partial(_with_memory, **_SIZES)
WITHOUT_NEIGHBOURS = partial(WITH_MEMORY, neighbours=False)
LSTM, TRANSFORMER, AUTOENCODER = (
    partial(_rival, kind=kind) for kind in (LSTMBaseline, TransformerBase, C2AE)
)
#: Options of models that are not told the entity.
NO_ID: dict[str, Any] = {"entity": False}
TABLE_3 = [
    Cell("table 3", "LSTM", LSTM),
    Cell("table 3", "TransformerBase", TRANSFORMER),
    Cell("table 3", "CLASS2C2AE", AUTOENCODER),
    Cell("table 3", "LANET", LANET_MODEL),
    Cell("table 3", "LANET, no ID", partial(_lanet, **NO_ID)),
    Cell("table 3", "LANET with memory", WITH_MEMORY, channels=CHANNELS, settings="memory"),
]
#: The same within minutes: few epochs, and a narrower LANET; and what of the memory does the work.
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
    Cell(
        "short",
        "LANET with memory, no ID",
        partial(WITH_MEMORY, **NO_ID),
        channels=CHANNELS,
        settings="memory",
    ),
    Cell(
        "short",
        "LANET with memory, no neighbours",
        WITHOUT_NEIGHBOURS,
        channels=CHANNELS,
        settings="memory",
    ),
    Cell("short", "LANET with memory, BCE", WITH_MEMORY, channels=CHANNELS, settings="short"),
]
#: LANET itself, the first row of the other tables and a point of both figures, and LANET without ID, a row of table 5,
#: are made once, in table 3.
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
    *(
        Cell("figure 3a", f"window_size={window_size}", LANET_MODEL, window_size=window_size)
        for window_size in (1, 2, 5, 8)
    ),
    *(
        Cell("figure 3b", f"dimension={size}", LANET_MODEL, channels=size)
        for size in (16, 32, 64, 256)
    ),
]
CELLS = {cell.key: cell for cell in (*TABLE_3, *SHORT_TABLE, *TABLE_4, *TABLE_5, *FIGURE_3)}
TABLES = tuple(dict.fromkeys(cell.table for cell in CELLS.values()))

#: Predictors without a network that the tables hold beside the paper's rows, the simplest first.
BASELINES: dict[str, Callable[[], NextSetBaseline]] = {
    "label frequency": GlobalFrequency,
    "last set": LastSet,
    "logistic regression, last 3 events": lambda: LogisticHistory(
        window_size=3, decay=1.0, weight_decay=30.0
    ),
    "personal frequency, undecayed": PersonalFrequency,
    "personal frequency": lambda: PersonalFrequency(decay=0.95, backoff=2.0),
    "TIFU-KNN": TIFUKNN,
    "logistic regression, whole history": LogisticHistory,
    "gradient boosting, whole history": BoostedHistory,
}
#: All rows in the order of the tables: predictors without a network, networks, and networks with a memory.
ORDER = (
    *BASELINES,
    *(cell.title for cell in sorted(CELLS.values(), key=lambda cell: "memory" in cell.name)),
)


def title_of(cell: str) -> str:
    """The title of the row of a cell's file."""
    return CELLS[cell].title if cell in CELLS else cell


def described(cell: str) -> Described | None:
    """All that the cell of a file is made with today; :obj:`None` if there is no such cell."""
    if cell in BASELINES:
        baseline = BASELINES[cell]()
        return _plain({"class": type(baseline).__name__, **vars(baseline)})
    return CELLS[cell].described if cell in CELLS else None
