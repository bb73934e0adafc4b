"""Rows of results, and what is recorded of the settings that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tg_mlc.papers.recipes import Recipe

#: The settings that were best here, or those of the paper where a model learns with these.
Settings = Literal["best", "published"]
LAMP = "LaMP"
#: The first row of every comparison.
FREQUENCY = "label frequency"
#: What rows with messages on molecules are tested against, as far as a comparison has it.
SILENT = "base scores without messages"
BASELINES = ("random forest", "linear path alone", SILENT)
#: What is compared with priors.
LEARNED = "learned attention"
#: What is recorded of a recipe.
RECORDED = ("model", "module", "fit", "batch_size", "settings")


@dataclass(frozen=True)
class Row:
    """What tells one row of results from another.

    Args:
        model: The model: LaMP, or a classifier or a network without a label graph.
        encoder: What labels attend to, as recipes call it.
        graph: The label graph.
        settings: Whose settings; for models that have some of a paper.
        change: What an ablation changes.
    """

    model: str
    encoder: str | None = None
    graph: str | None = None
    settings: Settings | None = None
    change: str | None = None

    @property
    def title(self) -> str:
        """All of it in one line."""
        return ", ".join([" ".join(filter(None, (self.model, self.encoder, self.graph))), *self.remarks])

    @property
    def remarks(self) -> list[str]:
        """What differs from the best settings."""
        return [*(["as published"] if self.settings == "published" else []), *([self.change] if self.change else [])]


def recorded(recipe: Recipe) -> dict[str, Any]:
    """What result files keep of a recipe."""
    return {key: getattr(recipe, key) for key in RECORDED} | {"module": {**recipe.objective, **recipe.module}}
