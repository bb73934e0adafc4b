"""Baselines: predictors to compare every model with."""

from tg_mlc.baselines.baseline import Baseline, LabelFrequency
from tg_mlc.baselines.forest import ForestBaseline
from tg_mlc.baselines.kernel_ridge import KernelRidgeBaseline
from tg_mlc.baselines.linear import ChainEnsemble, ClassifierChain, LabelTrees, LinearBaseline
from tg_mlc.baselines.ml_knn import MLkNN
from tg_mlc.baselines.network import NetworkBaseline

__all__ = [
    "Baseline",
    "ChainEnsemble",
    "ClassifierChain",
    "ForestBaseline",
    "KernelRidgeBaseline",
    "LabelFrequency",
    "LabelTrees",
    "LinearBaseline",
    "MLkNN",
    "NetworkBaseline",
]
