"""How the data sets are trained: the choices that the examples and the benchmarks share."""

from tg_mlc.recipes.molecules import MOLECULES
from tg_mlc.recipes.planted import PLANTED
from tg_mlc.recipes.recipe import EncoderName, Recipe
from tg_mlc.recipes.tables import TABLES

#: The recipe of every data set that has one.
RECIPES: dict[str, Recipe] = {**MOLECULES, **TABLES, **PLANTED}

__all__ = ["MOLECULES", "PLANTED", "RECIPES", "TABLES", "EncoderName", "Recipe"]
