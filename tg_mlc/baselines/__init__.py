"""Baselines: predictors that every model is compared with."""

from tg_mlc.baselines.combination import Combination
from tg_mlc.baselines.forest import ForestBaseline
from tg_mlc.baselines.kernel_ridge import KernelRidgeBaseline
from tg_mlc.baselines.label_frequency import LabelFrequency
from tg_mlc.baselines.linear import LinearBaseline
from tg_mlc.baselines.morgan_forest import MorganForest

__all__ = ["Combination", "ForestBaseline", "KernelRidgeBaseline", "LabelFrequency", "LinearBaseline", "MorganForest"]
