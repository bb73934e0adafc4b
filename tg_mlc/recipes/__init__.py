"""Recipes: settings by which the data sets are trained, and a default for data without any."""

from tg_mlc.recipes.automatic import AutoModel, auto
from tg_mlc.recipes.dna import DNA
from tg_mlc.recipes.molecules import MOLECULES
from tg_mlc.recipes.planted import PLANTED
from tg_mlc.recipes.recipe import EncoderName, Recipe
from tg_mlc.recipes.tables import TABLES

#: The recipe of every data set that has one.
RECIPES: dict[str, Recipe] = {**MOLECULES, **TABLES, **DNA, **PLANTED}

__all__ = [
    "DNA",
    "MOLECULES",
    "PLANTED",
    "RECIPES",
    "TABLES",
    "AutoModel",
    "EncoderName",
    "Recipe",
    "auto",
]
