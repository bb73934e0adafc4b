"""Words, tables in Markdown and pictures of reports; a picture is an SVG file with a hash of the numbers it shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.files import OTHERS

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


def cell(value: Mapping[str, float | None], best: str | None = None, digits: int = 3) -> str:
    """Mean ± standard deviation, the best mean in bold; empty if a seed leaves it undefined."""
    mean, sd = value.get("mean"), value.get("sd")
    if mean is None:
        return ""
    text = f"{mean:.{digits}f}"
    return (f"**{text}**" if text == best else text) + ("" if sd is None else f" ± {sd:.{digits}f}")


def bold(columns: Iterable[Iterable[Mapping[str, float | None]]], digits: int = 3) -> list[str]:
    """The highest mean of each column, as :func:`cell` writes it."""
    means = (
        [value["mean"] for value in column if value.get("mean") is not None] for column in columns
    )
    return [max((f"{mean:.{digits}f}" for mean in column), default="") for column in means]


def ranked(
    heads: Iterable[str], values: Mapping[str, Sequence[Mapping[str, float | None]]]
) -> list[str]:
    """A table of some rows, the best of each column in bold."""
    best = bold(zip(*values.values(), strict=True))
    return table(list(heads), ([row, *map(cell, found, best)] for row, found in values.items()))


def p_in_words(p: float | None) -> str:
    """A p-value."""
    if p is None:
        return "undefined, as all seeds differ by the same"
    return "p < 0.01" if p < 0.01 else f"p = {p:.2f}"


def machine(result: Mapping[str, Any], threads: str = "") -> str:
    """The machine and the versions that results were made with."""
    found = result["environment"]
    processors = " and ".join([*result.get(OTHERS, ()), found["processor"]])
    where = ", ".join(filter(None, (found.get("cuda") or processors, threads)))
    return (
        f"{where}; torch {found['versions']['torch']}, PyG {found['versions']['torch-geometric']}"
    )


class Picture(NamedTuple):
    """Numbers, and how to draw them."""

    path: Path
    numbers: Any  #: plain data; the picture is out of date when they change
    draw: Callable[[Any], Figure]

    @property
    def digest(self) -> str:
        """The hash of the numbers, as far as they do not depend on versions of libraries, which the file holds."""
        rounded = json.loads(
            json.dumps(self.numbers), parse_float=lambda number: f"{round(float(number), 9):.9g}"
        )
        return f"numbers sha256 {hashlib.sha256(json.dumps(rounded).encode()).hexdigest()}"

    def is_current(self) -> bool:
        """Whether the file shows these numbers."""
        return self.path.is_file() and self.digest in self.path.read_text()

    def write(self) -> None:
        """Draws the picture."""
        self.path.parent.mkdir(exist_ok=True)
        # The same file from the same numbers; letters stay letters.
        with mpl.rc_context({"svg.hashsalt": self.path.stem, "svg.fonttype": "none"}):
            self.draw(self.numbers).savefig(
                self.path, metadata={"Date": None, "Description": self.digest}
            )


def draw_lines(axes: Any, x: Any, values: Any, label: str, color: str) -> None:
    """The means of the seeds, which are the columns, and their range."""
    axes.plot(x, [sum(each) / len(each) for each in values], color=color, label=label)
    lowest, highest = [min(each) for each in values], [max(each) for each in values]
    axes.fill_between(x, lowest, highest, color=color, alpha=0.15, linewidth=0)
