"""Models behind an HTTP server: raw inputs in JSON or CSV, named probabilities and decisions out."""

from tg_mlc.serving.app import make_app
from tg_mlc.serving.requests import Limits

__all__ = ["Limits", "make_app"]
