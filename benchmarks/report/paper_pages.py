"""Pages about the papers' tables: the tables and pictures of all tracked cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.accuracy.cells import stored
from benchmarks.accuracy.paper_rows import TABLES
from benchmarks.report import family_speed, messages, papers, ranks, steps
from benchmarks.report.pictures import Picture

#: What has a picture beside its table.
DRAWN: dict[str, Any] = {"papers-ranks": ranks, "papers-steps": steps}


def _table(name: str) -> list[str]:
    return papers.lines(name, list(stored(tracked=True)))


def _drawn(name: str) -> list[str]:
    lines: list[str] = DRAWN[name].table(DRAWN[name].numbers(list(stored(tracked=True))), f"{name}.svg")
    return lines


#: The lines of each mark.
MARKS: dict[str, Callable[[], list[str]]] = {
    **{f"papers-{name}": partial(_table, name) for name in TABLES},
    **{name: partial(_drawn, name) for name in DRAWN},
    "papers-speed": family_speed.table,
    "messages": lambda: messages.table(stored(tracked=True)),
}


def drawings(folder: Path) -> Iterator[Picture]:
    """The pictures of those that have anything to show."""
    cells = list(stored(tracked=True))
    for name, module in DRAWN.items():
        if numbers := module.numbers(cells):
            yield Picture(folder / f"{name}.svg", numbers, module.draw)
