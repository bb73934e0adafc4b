"""Cells of the LANET tables: models by the names of the paper, and how each is trained."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

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
    TimeAttention,
    TransformerBase,
    TwoAttentions,
    personal_memory,
)
from tg_mlc.sequences.presets import MEMORY, PAPER
from tg_mlc.training import C2AEObjective, Objective

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
        """The settings of training."""
        return MEMORY if self.settings == "memory" else PAPER

    def objective(self) -> Objective | None:
        """That of the model, where it is not that of independent labels."""
        return C2AEObjective() if self.name == "CLASS2C2AE" else None


def _graph(dataset: NextSetDataset) -> LabelGraph:
    return fully_connected(dataset.label_names)


def lanet(*, entity: bool = True, **window: Any) -> Build:
    """LANET as published, with options of its window."""

    def build(dataset: NextSetDataset, split: Split, channels: int) -> nn.Module:
        options: Any = {"tau": dataset.tau or 1, "num_bins": dataset.num_bins, **window}
        return LANET(_graph(dataset), dataset.num_entities, channels, entity=entity, window=options)

    return build


def with_memory(**options: Any) -> Build:
    """LANET with a memory."""

    def build(dataset: NextSetDataset, split: Split, channels: int) -> nn.Module:
        memory = personal_memory(dataset, split.train, channels)
        window: Any = {"tau": dataset.tau or 1, "num_bins": dataset.num_bins}
        return LANET(
            _graph(dataset), dataset.num_entities, channels, memory=memory, window=window, dropout=0.1, **options
        )

    return build


def _time_attention(dataset: NextSetDataset, split: Split, channels: int) -> TimeAttention:
    window: Any = {"tau": dataset.tau or 1, "num_bins": dataset.num_bins}
    return TimeAttention(dataset.num_labels, dataset.num_entities, channels, window=window)


def two_attentions(gated: bool) -> Build:
    """Attention among labels and among events."""

    def build(dataset: NextSetDataset, split: Split, channels: int) -> nn.Module:
        label = lanet()(dataset, split, channels)
        assert isinstance(label, LANET)
        return TwoAttentions(label, _time_attention(dataset, split, channels), gated)

    return build


def rival(kind: Callable[..., nn.Module]) -> Build:
    """A model of events."""

    def build(dataset: NextSetDataset, split: Split, channels: int) -> nn.Module:
        return kind(dataset.num_labels, dataset.num_entities, channels, tau=dataset.tau or 1)

    return build


TABLE_3 = [
    Cell("table 3", "LSTM", rival(LSTMBaseline)),
    Cell("table 3", "TransformerBase", rival(TransformerBase)),
    Cell("table 3", "CLASS2C2AE", rival(C2AE)),
    Cell("table 3", "LANET", lanet()),
    Cell("table 3", "LANET, no ID", lanet(entity=False)),
    Cell("table 3", "LANET with memory", with_memory(), channels=16, settings="memory"),
    Cell("table 3", "LANET with memory, tied", with_memory(tied=True), channels=16, settings="memory"),
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
CELLS = {cell.key: cell for cell in (*TABLE_3, *TABLE_4, *TABLE_5, *FIGURE_3)}

#: Predictors without a network that the tables hold beside the paper's rows.
BASELINES: dict[str, Callable[[], NextSetBaseline]] = {
    "personal frequency": lambda: PersonalFrequency(decay=0.95, backoff=2.0),
    "TIFU-KNN": TIFUKNN,
    "logistic regression": lambda: LogisticHistory(max_iter=25),
}
