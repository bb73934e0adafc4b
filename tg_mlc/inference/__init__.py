"""Models: ordered lists of stages from raw inputs to decisions, with their queries and folders.

A :class:`Model` is a :class:`Pipeline` of stages (``features.py``, ``networks.py``,
``decisions.py``). A :class:`Query` holds the options of a prediction, and a :class:`Prediction` its
results. ``folder.py`` reads and writes folders of tensors and plain data, ``network.py`` describes
networks, and ``checkpoint.py`` reads training checkpoints.
"""

from tg_mlc.inference.checkpoint import read_checkpoint
from tg_mlc.inference.flow import Prediction, Query
from tg_mlc.inference.loading import from_pretrained, load, push_to_hub
from tg_mlc.inference.model import Model
from tg_mlc.inference.pipeline import Pipeline
from tg_mlc.inference.stage import Stage

__all__ = [
    "Model",
    "Pipeline",
    "Prediction",
    "Query",
    "Stage",
    "from_pretrained",
    "load",
    "push_to_hub",
    "read_checkpoint",
]
