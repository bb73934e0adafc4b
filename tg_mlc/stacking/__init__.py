"""The default: base classifiers, their held-out scores, label message passing on top, and thresholds."""

from tg_mlc.stacking.automatic import AutoTraining, auto, classifier_scores
from tg_mlc.stacking.features import StackingFeatures

__all__ = ["AutoTraining", "StackingFeatures", "auto", "classifier_scores"]
