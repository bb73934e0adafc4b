"""Multi-label losses that treat a NaN target as unknown."""

from tg_mlc.losses.bce import lamp_loss, masked_bce

__all__ = ["lamp_loss", "masked_bce"]
