"""Saved models: one folder format, read and written in one place.

A folder holds the state of its ``InferenceModel`` (``inference.py``). That of a trained module, and a checkpoint, hold
what ``make_entry`` returns (``checkpoint.py``), and of the network what ``model.py`` describes.
"""

from tg_mlc.inference.checkpoint import read_checkpoint
from tg_mlc.inference.model import Predictor, from_pretrained, load, push_to_hub

__all__ = ["Predictor", "from_pretrained", "load", "push_to_hub", "read_checkpoint"]
