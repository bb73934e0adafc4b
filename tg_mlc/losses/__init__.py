"""Multi-label losses that treat a NaN target as unknown."""

from tg_mlc.losses.bce import masked_bce
from tg_mlc.losses.focal import asymmetric_loss, focal_loss
from tg_mlc.losses.lamp import lamp_loss
from tg_mlc.losses.listwise import listwise_loss
from tg_mlc.losses.sequence import sequence_loss
from tg_mlc.losses.soft_f1 import soft_f1_loss

__all__ = ["asymmetric_loss", "focal_loss", "lamp_loss", "listwise_loss", "masked_bce", "sequence_loss", "soft_f1_loss"]
