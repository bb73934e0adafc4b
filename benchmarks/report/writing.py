"""Words of reports: how metrics are called, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: How tables and pictures write metrics.
METRICS = {
    "subset_accuracy": "subset accuracy",
    "hamming_accuracy": "Hamming accuracy",
    "f1_samples": "samples F1",
    "f1_micro": "micro F1",
    "f1_macro": "macro F1",
    "roc_auc_micro": "micro ROC-AUC",
    "roc_auc_macro": "macro ROC-AUC",
    "average_precision_micro": "micro average precision",
    "average_precision_macro": "macro average precision",
}
#: The papers' letters, for tables that compare with the papers.
LETTERS = {
    "subset_accuracy": "ACC",
    "hamming_accuracy": "HA",
    "f1_samples": "ebF1",
    "f1_micro": "miF1",
    "f1_macro": "maF1",
}


def titles(*names: str) -> dict[str, str]:
    """The titles of some metrics."""
    return {name: METRICS[name] for name in names}


def table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    return [line(heads), "|---" * len(heads) + "|", *map(line, rows)]


def line(cells: Iterable[str]) -> str:
    """One row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def listed(lines: Iterable[str]) -> list[str]:
    """A list in Markdown."""
    return [f"- {each}" for each in lines]


def cell(value: Mapping[str, float | None], best: str | None = None) -> str:
    """Mean ± standard deviation, the best mean in bold; empty if a seed leaves it undefined."""
    mean, sd = value.get("mean"), value.get("sd")
    if mean is None:
        return ""
    text = f"{mean:.3f}"
    return (f"**{text}**" if text == best else text) + ("" if sd is None else f" ± {sd:.3f}")


def bold(columns: Iterable[Iterable[Mapping[str, float | None]]]) -> list[str]:
    """The highest mean of each column, as :func:`cell` writes it."""
    means = ([value["mean"] for value in column if value.get("mean") is not None] for column in columns)
    return [max((f"{mean:.3f}" for mean in column), default="") for column in means]


def p_in_words(p: float | None) -> str:
    """A p-value."""
    if p is None:
        return "undefined, as all seeds differ by the same"
    return "p < 0.01" if p < 0.01 else f"p = {p:.2f}"


def machine(result: Mapping[str, Any], threads: str = "") -> str:
    """The machine and the versions that results were made with."""
    found = result["environment"]
    where = ", ".join(filter(None, (found.get("cuda") or found["processor"], threads)))
    return f"{where}; torch {found['versions']['torch']}, PyG {found['versions']['torch-geometric']}"
