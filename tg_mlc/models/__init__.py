"""Whole models, each a few lines of composition."""

from tg_mlc.models.builders import builder
from tg_mlc.models.factories import dna_lamp, mixed_lamp, molecule_lamp, node_lamp, table_lamp
from tg_mlc.models.lamp import LaMP

__all__ = ["LaMP", "builder", "dna_lamp", "mixed_lamp", "molecule_lamp", "node_lamp", "table_lamp"]
