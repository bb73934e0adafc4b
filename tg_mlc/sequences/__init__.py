"""Histories of dated label sets: windows of events, and predictors of the next label set."""

from tg_mlc.sequences.baselines import (
    TIFUKNN,
    GlobalFrequency,
    LastSet,
    LogisticHistory,
    NextSetBaseline,
    PersonalFrequency,
)
from tg_mlc.sequences.dataset import EventPreprocessor, NextSetDataset, time_split
from tg_mlc.sequences.lanet import LANET
from tg_mlc.sequences.memory import PersonalMemory, personal_memory

__all__ = [
    "LANET",
    "TIFUKNN",
    "EventPreprocessor",
    "GlobalFrequency",
    "LastSet",
    "LogisticHistory",
    "NextSetBaseline",
    "NextSetDataset",
    "PersonalFrequency",
    "PersonalMemory",
    "personal_memory",
    "time_split",
]
