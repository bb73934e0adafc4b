"""The default: classifiers, label message passing on their held-out scores, and thresholds."""

from tg_mlc.stacking.automatic import auto
from tg_mlc.stacking.features import StackingFeatures

__all__ = ["StackingFeatures", "auto"]
