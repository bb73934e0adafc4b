"""The default: base classifiers, their held-out scores, label message passing on top, and thresholds."""

from tg_mlc.stacking.automatic import AutoModel, auto
from tg_mlc.stacking.classifier_scores import ClassifierScores
from tg_mlc.stacking.combination import LogitStacking
from tg_mlc.stacking.tables import table_preprocessor
from tg_mlc.stacking.tuned_scores import StackingFeatures

__all__ = ["AutoModel", "ClassifierScores", "LogitStacking", "StackingFeatures", "auto", "table_preprocessor"]
