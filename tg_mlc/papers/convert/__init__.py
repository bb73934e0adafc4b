"""Models trained elsewhere, as models of this package."""

from tg_mlc.papers.convert.lamp import load_lamp_checkpoint
from tg_mlc.papers.convert.released import ReleasedLaMP

__all__ = ["ReleasedLaMP", "load_lamp_checkpoint"]
