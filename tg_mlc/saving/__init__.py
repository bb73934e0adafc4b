"""Saved models: one folder format, read and written in one place."""

from tg_mlc.saving.checkpoint import read_checkpoint
from tg_mlc.saving.hub import from_pretrained, push_to_hub
from tg_mlc.saving.predictor import Predictor, load

__all__ = ["Predictor", "from_pretrained", "load", "push_to_hub", "read_checkpoint"]
