"""Multi-label losses that treat a NaN target as unknown."""

from tg_mlc.losses.bce import lamp_loss, masked_bce
from tg_mlc.losses.sequence import sequence_loss

__all__ = ["lamp_loss", "masked_bce", "sequence_loss"]
