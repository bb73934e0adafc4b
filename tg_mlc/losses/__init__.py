"""Multi-label losses that treat a NaN target as unknown."""

from tg_mlc.losses.cross_entropy import lamp_loss, listwise_loss, masked_bce, sequence_loss
from tg_mlc.losses.imbalanced import asymmetric_loss, focal_loss, soft_f1_loss

__all__ = ["asymmetric_loss", "focal_loss", "lamp_loss", "listwise_loss", "masked_bce", "sequence_loss", "soft_f1_loss"]
