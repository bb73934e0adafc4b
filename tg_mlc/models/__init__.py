"""Whole models, each a few lines of composition."""

from tg_mlc.models.builders import builder
from tg_mlc.models.dna import dna_lamp
from tg_mlc.models.lamp import LaMP
from tg_mlc.models.molecules import molecule_lamp
from tg_mlc.models.nodes import node_lamp
from tg_mlc.models.tables import table_lamp

__all__ = ["LaMP", "builder", "dna_lamp", "molecule_lamp", "node_lamp", "table_lamp"]
