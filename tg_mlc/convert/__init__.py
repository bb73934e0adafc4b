"""Models trained elsewhere, as models of this package."""

from tg_mlc.convert.lamp import load_lamp_checkpoint

__all__ = ["load_lamp_checkpoint"]
