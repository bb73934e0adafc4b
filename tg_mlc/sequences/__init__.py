"""Histories of dated label sets: windows of events, and predictors of the next set."""

from tg_mlc.sequences.baselines import (
    TIFUKNN,
    GlobalFrequency,
    LastSet,
    LogisticHistory,
    NextSetBaseline,
    PersonalFrequency,
    past_events,
)
from tg_mlc.sequences.dataset import TIME_FRACTIONS, NextSetDataset, time_split
from tg_mlc.sequences.lanet import LANET, LANETOutput
from tg_mlc.sequences.memory import PersonalMemory, personal_memory
from tg_mlc.sequences.preprocessor import EventPreprocessor
from tg_mlc.sequences.windows import WindowViews

__all__ = [
    "LANET",
    "TIFUKNN",
    "TIME_FRACTIONS",
    "EventPreprocessor",
    "GlobalFrequency",
    "LANETOutput",
    "LastSet",
    "LogisticHistory",
    "NextSetBaseline",
    "NextSetDataset",
    "PersonalFrequency",
    "PersonalMemory",
    "WindowViews",
    "past_events",
    "personal_memory",
    "time_split",
]
