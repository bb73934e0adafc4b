"""Histories of dated label sets: windows of events, and predictors of the next set."""

from tg_mlc.sequences.dataset import NextSetDataset
from tg_mlc.sequences.loading import NextSetDataModule
from tg_mlc.sequences.preprocessor import EventPreprocessor
from tg_mlc.sequences.split import TIME_FRACTIONS, time_split

__all__ = ["TIME_FRACTIONS", "EventPreprocessor", "NextSetDataModule", "NextSetDataset", "time_split"]
