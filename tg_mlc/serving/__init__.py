"""Models behind an HTTP server, which takes JSON or CSV and returns named probabilities."""

from tg_mlc.serving.app import make_app
from tg_mlc.serving.requests import Limits

__all__ = ["Limits", "make_app"]
