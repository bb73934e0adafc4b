"""Pictures of results, as SVG files that hold a hash of the numbers they show."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure


class Picture(NamedTuple):
    """Numbers, and how to draw them."""

    path: Path
    numbers: Any  #: plain data; the picture is out of date when they change
    draw: Callable[[Any], Figure]

    @property
    def digest(self) -> str:
        """The hash of the numbers, which the file holds."""
        return f"numbers sha256 {hashlib.sha256(json.dumps(self.numbers).encode()).hexdigest()}"

    def is_current(self) -> bool:
        """Whether the file shows these numbers."""
        return self.path.is_file() and self.digest in self.path.read_text()

    def write(self) -> None:
        """Draws the picture."""
        self.path.parent.mkdir(exist_ok=True)
        # The same file from the same numbers; letters stay letters.
        with mpl.rc_context({"svg.hashsalt": self.path.stem, "svg.fonttype": "none"}):
            self.draw(self.numbers).savefig(self.path, metadata={"Date": None, "Description": self.digest})


def draw_lines(axes: Any, x: Any, values: Any, label: str, color: str) -> None:
    """The means of the seeds, which are the columns, and their range."""
    axes.plot(x, [sum(each) / len(each) for each in values], color=color, label=label)
    lowest, highest = [min(each) for each in values], [max(each) for each in values]
    axes.fill_between(x, lowest, highest, color=color, alpha=0.15, linewidth=0)
