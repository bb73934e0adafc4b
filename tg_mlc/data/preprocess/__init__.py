"""Preprocessing that is fitted to training samples and saved with a model."""

from tg_mlc.data.preprocess.scalers import LogCounts, QuantileScaler

__all__ = ["LogCounts", "QuantileScaler"]
