"""The default: base classifiers, their held-out scores, label message passing on top, and
thresholds."""

from tg_mlc.stacking.automatic import auto
from tg_mlc.stacking.features import StackingFeatures

__all__ = ["StackingFeatures", "auto"]
