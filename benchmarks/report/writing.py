"""Words, Markdown tables and pictures of reports."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.files import OTHERS

#: Titles of metrics in tables and pictures.
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
    """Titles of the specified metrics, by metric."""
    return {name: METRICS[name] for name in names}


def table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    return [line(heads), "|---" * len(heads) + "|", *map(line, rows)]


def line(cells: Iterable[str]) -> str:
    """One row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def listed(items: Iterable[str]) -> list[str]:
    """The lines of a bullet list in Markdown."""
    return [f"- {item}" for item in items]


def cell(value: Mapping[str, float | None], best: str | None = None, digits: int = 3) -> str:
    """Mean ± standard deviation, the mean in bold if it equals ``best``. Empty without a mean."""
    mean, sd = value.get("mean"), value.get("sd")
    if mean is None:
        return ""
    text = f"{mean:.{digits}f}"
    return (f"**{text}**" if text == best else text) + ("" if sd is None else f" ± {sd:.{digits}f}")


def bold(columns: Iterable[Iterable[Mapping[str, float | None]]], digits: int = 3) -> list[str]:
    """The highest mean of each column, as :func:`cell` writes it."""
    best = []
    for column in columns:
        means = [value["mean"] for value in column if value.get("mean") is not None]
        best.append(max((f"{mean:.{digits}f}" for mean in means), default=""))
    return best


def ranked(
    heads: Iterable[str], values: Mapping[str, Sequence[Mapping[str, float | None]]]
) -> list[str]:
    """A Markdown table with the highest mean of each column in bold."""
    best = bold(zip(*values.values(), strict=True))
    return table(list(heads), ([row, *map(cell, cells, best)] for row, cells in values.items()))


def p_in_words(p: float | None) -> str:
    """A p-value as text."""
    if p is None:
        return "undefined, as all seeds differ by the same"
    return "p < 0.01" if p < 0.01 else f"p = {p:.2f}"


def machine(result: Mapping[str, Any], threads: str = "") -> str:
    """The machine and the library versions that produced a result."""
    environment, versions = result["environment"], result["environment"]["versions"]
    processors = " and ".join([*result.get(OTHERS, ()), environment["processor"]])
    name = ", ".join(filter(None, (environment.get("cuda") or processors, threads)))
    return f"{name}; torch {versions['torch']}, PyG {versions['torch-geometric']}"


class Picture(NamedTuple):
    """An SVG file that stores a hash of its numbers, and the function that draws the numbers."""

    path: Path
    numbers: Any  #: Plain data. The picture is out of date when the data change.
    draw: Callable[[Any], Figure]

    @property
    def digest(self) -> str:
        """Hash of the numbers. Rounding keeps the hash the same across versions of libraries."""
        text = json.dumps(self.numbers)
        rounded = json.loads(text, parse_float=lambda number: f"{round(float(number), 9):.9g}")
        return f"numbers sha256 {hashlib.sha256(json.dumps(rounded).encode()).hexdigest()}"

    def is_current(self) -> bool:
        """Whether the file exists and stores the hash of the current numbers."""
        return self.path.is_file() and self.digest in self.path.read_text()

    def write(self) -> None:
        """Draws the numbers and writes the file."""
        self.path.parent.mkdir(exist_ok=True)
        # A fixed salt makes files of equal numbers equal. Text is written as text, not as paths.
        with mpl.rc_context({"svg.hashsalt": self.path.stem, "svg.fonttype": "none"}):
            metadata = {"Date": None, "Description": self.digest}
            self.draw(self.numbers).savefig(self.path, metadata=metadata)


def draw_lines(axes: Any, x: Any, values: Any, label: str, color: str) -> None:
    """Draws the mean and the range over the seeds at each x."""
    axes.plot(x, [sum(seeds) / len(seeds) for seeds in values], color=color, label=label)
    lowest, highest = [min(seeds) for seeds in values], [max(seeds) for seeds in values]
    axes.fill_between(x, lowest, highest, color=color, alpha=0.15, linewidth=0)
