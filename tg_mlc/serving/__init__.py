"""An HTTP server for models: it takes JSON or CSV, and returns probabilities by label name."""

from tg_mlc.serving.app import make_app
from tg_mlc.serving.requests import Limits

__all__ = ["Limits", "make_app"]
