"""What rows of result files are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tg_mlc.recipes import Recipe

#: Rows of summaries beside that of one threshold for all labels.
OTHER_DECISIONS = {
    "by_frequency": "thresholds by frequency",
    "per_label": "a threshold per label",
    "by_label_set": "likeliest known label set",
    "preferred": "by frequency or label set",
}


#: What is recorded of a recipe.
RECORDED = ("model", "module", "fit", "batch_size", "settings")
#: What is compared with priors.
LEARNED = "learned attention"
#: Before the encoder's name in rows of LaMP as it was published.
PUBLISHED = "published "
#: The first row of every comparison.
FREQUENCY = "label frequency"
#: What rows with messages on molecules are tested against, as far as a comparison has it.
SILENT = "evidence without messages"
BASELINES = ("random forest", "linear path alone", SILENT)


def recorded(recipe: Recipe) -> dict[str, Any]:
    """What result files keep of a recipe."""
    return {key: getattr(recipe, key) for key in RECORDED}


def variant(encoder: str, graph: str) -> str:
    """The row of a label graph, with or without feature message passing."""
    return f"{encoder} LaMP {graph}"


def encoder_and_graph(model: str) -> tuple[str, str] | None:
    """What :func:`variant` made a row of; :obj:`None` for rows without label message passing."""
    encoder, _, graph = model.partition(" LaMP ")
    return (encoder, graph) if graph else None


def row_of(test: Mapping[str, Any]) -> str:
    """The row that was tested; older files name its parts."""
    row: str = test["row"] if "row" in test else f"{test['encoder']} {test['graph']}"
    return row


def in_words(values: Mapping[str, float | None]) -> str:
    """Numbers by name."""
    return ", ".join(f"{name} {'undefined' if value is None else f'{value:.3f}'}" for name, value in values.items())


def p_in_words(p: float | None) -> str:
    """A p-value."""
    if p is None:
        return "undefined, as all seeds differ by the same"
    return "p < 0.01" if p < 0.01 else f"p = {p:.2f}"
