"""Settings for training on published data sets."""

from tg_mlc._optional import require

require("lightning.pytorch", extra="train")

from tg_mlc.papers.base_scores import table_preprocessor  # noqa: E402
from tg_mlc.papers.recipes.graphs import DNA, MOLECULES, PLANTED  # noqa: E402
from tg_mlc.papers.recipes.recipe import Recipe  # noqa: E402
from tg_mlc.papers.recipes.tables import TABLES  # noqa: E402

#: The recipe of every data set that has one.
RECIPES: dict[str, Recipe] = {**MOLECULES, **TABLES, **DNA, **PLANTED}

__all__ = ["RECIPES", "Recipe", "table_preprocessor"]
