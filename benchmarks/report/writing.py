"""Words of reports: how metrics are called, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
