"""Saved models: one folder format, read and written in one place."""

from tg_mlc.saving.checkpoint import read_checkpoint
from tg_mlc.saving.predictor import Predictor, from_pretrained, load, push_to_hub

__all__ = ["Predictor", "from_pretrained", "load", "push_to_hub", "read_checkpoint"]
