"""Cells of the LANET tables: models by the names of the paper, and how each is trained."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data

from benchmarks.accuracy.lanet_boosting import BoostedHistory
from tg_mlc.data import Split
from tg_mlc.graphs import LabelGraph, fully_connected
from tg_mlc.sequences import (
    C2AE,
    LANET,
    TIFUKNN,
    LogisticHistory,
    LSTMBaseline,
    NextSetBaseline,
    NextSetDataset,
    PersonalFrequency,
    PersonalMemory,
    TimeAttention,
    TransformerBase,
    TwoAttentions,
    personal_memory,
)
from tg_mlc.sequences.presets import MEMORY, PAPER
from tg_mlc.sequences.windows import WindowOptions
from tg_mlc.training import C2AEObjective

#: The settings of LANET with a memory, for models of the paper: each label by itself.
SHORT = {**MEMORY, "module": {**MEMORY["module"], "objective": None}}
#: Of 1, 10, 100 and 1000, that of the best micro ROC-AUC on validation targets of Complete Journey.
ALPHA = 100.0
Build = Callable[[NextSetDataset, Split, int], nn.Module]


@dataclass(frozen=True)
class Cell:
    """One entry of a table: a model, the events that it sees, and its settings."""

    table: str
    name: str
    build: Build  #: of events, their parts and the size of a view
    tau: int = 3
    channels: int = 128
    settings: str = "paper"

    @property
    def key(self) -> str:
        """What the cell's file is called."""
        return re.sub("[ ,=]+", "_", self.title.lower().replace(": ", "."))

    @property
    def title(self) -> str:
        """What the cell's row is called."""
        return f"{self.table}: {self.name}"

    @property
    def preset(self) -> dict[str, dict[str, Any]]:
        """The settings of training, with the model's own objective."""
        preset = {"paper": PAPER, "short": SHORT, "memory": MEMORY}[self.settings]
        if "C2AE" not in self.name:
            return preset
        return {**preset, "module": {**preset["module"], "objective": C2AEObjective(alpha=ALPHA)}}


def _window(dataset: NextSetDataset) -> WindowOptions:
    return {"tau": dataset.tau or 1, "num_bins": dataset.num_bins, "gaps": dataset.gaps}


def _graph(dataset: NextSetDataset) -> LabelGraph:
    return fully_connected(dataset.label_names)


def lanet(*, entity: bool = True, **window: Any) -> Build:
    """LANET as published, with options of its window."""

    def build(dataset: NextSetDataset, split: Split, channels: int) -> nn.Module:
        options: Any = {**_window(dataset), **window}
        return LANET(_graph(dataset), dataset.num_entities, channels, entity=entity, window=options)

    return build


def with_memory(*, neighbours: bool = True, **options: Any) -> Build:
    """LANET with a memory."""

    def build(dataset: NextSetDataset, split: Split, channels: int) -> nn.Module:
        memory = personal_memory(dataset, split.train, channels, neighbours=neighbours, hidden_channels=64)
        options_of_all = {"num_layers": 1, "heads": 2, "dropout": 0.1, **options}
        return LANET(
            _graph(dataset), dataset.num_entities, channels, memory=memory, window=_window(dataset), **options_of_all
        )

    return build


class MemoryAlone(nn.Module):
    """The logits of a memory, without attention."""

    def __init__(self, memory: PersonalMemory) -> None:
        super().__init__()
        self.memory = memory

    def forward(self, data: Data) -> Tensor:
        """Returns the logits."""
        _, logits = self.memory(data)
        return logits


def _memory_alone(dataset: NextSetDataset, split: Split, channels: int) -> nn.Module:
    return MemoryAlone(personal_memory(dataset, split.train, channels, hidden_channels=64))


def _time_attention(dataset: NextSetDataset, split: Split, channels: int) -> TimeAttention:
    return TimeAttention(dataset.num_labels, dataset.num_entities, channels, window=_window(dataset))


def two_attentions(gated: bool) -> Build:
    """Attention among labels and among events."""

    def build(dataset: NextSetDataset, split: Split, channels: int) -> nn.Module:
        label = lanet()(dataset, split, channels)
        assert isinstance(label, LANET)
        return TwoAttentions(label, _time_attention(dataset, split, channels), gated)

    return build


def rival(kind: Callable[..., nn.Module], *, entity: bool = True) -> Build:
    """A model of events."""

    def build(dataset: NextSetDataset, split: Split, channels: int) -> nn.Module:
        events = {"tau": dataset.tau or 1, "gaps": dataset.gaps, "entity": entity}
        return kind(dataset.num_labels, dataset.num_entities, channels, events=events)

    return build


TABLE_3 = [
    Cell("table 3", "LSTM", rival(LSTMBaseline)),
    Cell("table 3", "TransformerBase", rival(TransformerBase)),
    Cell("table 3", "CLASS2C2AE", rival(C2AE)),
    Cell("table 3", "LANET", lanet()),
    Cell("table 3", "LANET, no ID", lanet(entity=False)),
    Cell("table 3", "LANET with memory", with_memory(), channels=8, settings="memory"),
]
#: The same within minutes: few epochs, and a narrower LANET; and what of the memory does the work.
SHORT_TABLE = [
    Cell("short", "LSTM", rival(LSTMBaseline), settings="short"),
    Cell("short", "TransformerBase", rival(TransformerBase), settings="short"),
    Cell("short", "CLASS2C2AE", rival(C2AE), settings="short"),
    Cell("short", "LSTM, no ID", rival(LSTMBaseline, entity=False), settings="short"),
    Cell("short", "TransformerBase, no ID", rival(TransformerBase, entity=False), settings="short"),
    Cell("short", "CLASS2C2AE, no ID", rival(C2AE, entity=False), settings="short"),
    Cell("short", "LANET, no ID", lanet(entity=False), channels=16, settings="short"),
    Cell("short", "LANET", lanet(), channels=16, settings="short"),
    Cell("short", "memory alone", _memory_alone, channels=8, settings="memory"),
    Cell("short", "LANET with memory, no ID", with_memory(entity=False), channels=8, settings="memory"),
    Cell("short", "LANET with memory, no neighbours", with_memory(neighbours=False), channels=8, settings="memory"),
    Cell("short", "LANET with memory, BCE", with_memory(), channels=8, settings="short"),
]
#: LANET itself, the first row of the other tables and a point of both figures, is made once, in table 3.
TABLE_4 = [
    Cell("table 4", "Time-attention", _time_attention),
    Cell("table 4", "Concat-attention", two_attentions(gated=False)),
    Cell("table 4", "Gated-attention", two_attentions(gated=True)),
    Cell("table 4", "Absence-indication", lanet(absence=True)),
]
TABLE_5 = [
    Cell("table 5", "No amount", lanet(amount=False)),
    Cell("table 5", "No time", lanet(time=False)),
    Cell("table 5", "No ID", lanet(entity=False)),
]
FIGURE_3 = [
    *(Cell("figure 3a", f"tau={tau}", lanet(), tau=tau) for tau in (1, 2, 5, 8)),
    *(Cell("figure 3b", f"dimension={size}", lanet(), channels=size) for size in (16, 32, 64, 256)),
]
CELLS = {cell.key: cell for cell in (*TABLE_3, *SHORT_TABLE, *TABLE_4, *TABLE_5, *FIGURE_3)}

#: Predictors without a network that the tables hold beside the paper's rows.
BASELINES: dict[str, Callable[[], NextSetBaseline]] = {
    "personal frequency": lambda: PersonalFrequency(decay=0.95, backoff=2.0),
    "TIFU-KNN": TIFUKNN,
    "logistic regression, last 3 events": lambda: LogisticHistory(tau=3, decay=1.0, weight_decay=30.0),
    "logistic regression, whole history": LogisticHistory,
    "gradient boosting, whole history": BoostedHistory,
}
