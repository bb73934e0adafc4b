"""The default model: classifiers, label message passing over their scores, and thresholds."""

from tg_mlc.stacking.automatic import auto
from tg_mlc.stacking.features import StackingFeatures

__all__ = ["StackingFeatures", "auto"]
