"""Models: ordered lists of stages from raw inputs to decisions, questions to them, their folders.

A :class:`Model` holds stages (``features.py``, ``networks.py``, ``decisions.py``). A :class:`Query`
is a question beside the inputs, a :class:`Prediction` its answer. ``folder.py`` reads and writes
folders of tensors and plain data, ``network.py`` describes networks, and ``checkpoint.py`` reads
the checkpoints of their training.
"""

from tg_mlc.inference.checkpoint import read_checkpoint
from tg_mlc.inference.flow import Query
from tg_mlc.inference.loading import from_pretrained, load, push_to_hub
from tg_mlc.inference.model import Model
from tg_mlc.inference.prediction import Prediction
from tg_mlc.inference.stage import Stage

__all__ = [
    "Model",
    "Prediction",
    "Query",
    "Stage",
    "from_pretrained",
    "load",
    "push_to_hub",
    "read_checkpoint",
]
