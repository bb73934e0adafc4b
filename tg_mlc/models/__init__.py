"""Whole models, each a few lines of composition."""

from tg_mlc.models.lamp import LaMP, LaMPOutput

__all__ = ["LaMP", "LaMPOutput"]
