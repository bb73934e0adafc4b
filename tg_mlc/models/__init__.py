"""Whole models, each a few lines of composition."""

from tg_mlc.models.lamp import LaMP, LaMPOutput
from tg_mlc.models.molecules import molecule_lamp
from tg_mlc.models.tables import table_lamp

__all__ = ["LaMP", "LaMPOutput", "molecule_lamp", "table_lamp"]
