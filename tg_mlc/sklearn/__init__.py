"""Estimators for scikit-learn: LaMP and the baselines."""

from tg_mlc._optional import require

require("sklearn.base", extra="train")

from tg_mlc.sklearn.baselines import (  # noqa: E402
    ChainEnsembleClassifier,
    ForestClassifier,
    KernelRidgeClassifier,
    LabelFrequencyClassifier,
    LabelTreesClassifier,
    LinearClassifier,
    MLkNNClassifier,
)
from tg_mlc.sklearn.lamp import AutoClassifier, LaMPClassifier  # noqa: E402

__all__ = [
    "AutoClassifier",
    "ChainEnsembleClassifier",
    "ForestClassifier",
    "KernelRidgeClassifier",
    "LaMPClassifier",
    "LabelFrequencyClassifier",
    "LabelTreesClassifier",
    "LinearClassifier",
    "MLkNNClassifier",
]
