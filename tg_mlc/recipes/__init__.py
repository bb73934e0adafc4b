"""Recipes: settings by which the data sets are trained, and a default for data without any."""

from tg_mlc._optional import require

require("lightning.pytorch", extra="train")

from tg_mlc.recipes.automatic import AutoModel, auto  # noqa: E402
from tg_mlc.recipes.dna import DNA  # noqa: E402
from tg_mlc.recipes.molecules import MOLECULES  # noqa: E402
from tg_mlc.recipes.planted import PLANTED  # noqa: E402
from tg_mlc.recipes.recipe import EncoderName, Recipe  # noqa: E402
from tg_mlc.recipes.tables import TABLES  # noqa: E402

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
