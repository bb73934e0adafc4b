"""Saved models: a folder on disk, raw inputs in, named probabilities out."""

from tg_mlc._optional import require

require("lightning.pytorch", extra="train")

from tg_mlc.predict.hub import from_pretrained, push_to_hub  # noqa: E402
from tg_mlc.predict.predictor import Predictor, load  # noqa: E402
from tg_mlc.training.scorer import ModuleScorer, Scorer  # noqa: E402

__all__ = ["ModuleScorer", "Predictor", "Scorer", "from_pretrained", "load", "push_to_hub"]
