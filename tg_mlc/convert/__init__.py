"""Models trained elsewhere, as models of this package."""

from tg_mlc.convert.lamp import load_lamp_checkpoint
from tg_mlc.convert.released import ReleasedLaMP

__all__ = ["ReleasedLaMP", "load_lamp_checkpoint"]
