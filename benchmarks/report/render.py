"""Fills the marks of result pages with tables, writes the full tables and draws the pictures.

    python -m benchmarks.report.render          # rewrites what is out of date
    python -m benchmarks.report.render --check  # fails if anything is

A mark is a line ``<!-- results: NAME -->``, closed by ``<!-- end of results -->``. NAME is one of:

- a comparison, such as ``bibtex-official``, ``ablation-bibtex``, ``planted``, or
  ``label-graph-gains`` for the gains of all comparisons;
- a learning curve; ``blogcatalog``; ``default``, the summary of all data sets;
- a table of the papers, such as ``papers-lamp-1`` or ``papers-ranks``, or ``messages``;
- a file in benchmarks/results: speeds (``NAME growth`` for their exponents), settings or LANET.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import files
from benchmarks.accuracy.auto import NAME as DEFAULT
from benchmarks.accuracy.blogcatalog import NAME as NODES
from benchmarks.accuracy.cells import stored
from benchmarks.accuracy.explanations import NAME as EXPLANATIONS
from benchmarks.accuracy.hierarchies import NAME as HIERARCHIES
from benchmarks.accuracy.papers import TABLES
from benchmarks.accuracy.side_effects import NAME as SIDE_EFFECTS
from benchmarks.accuracy.trust import NAME as TRUST
from benchmarks.command_line import run
from benchmarks.files import names, read, read_all
from benchmarks.report import (
    blogcatalog,
    comparisons,
    default,
    explained_drug,
    explanations,
    given_labels,
    hierarchies,
    joint,
    label_graphs,
    lanet,
    learning_curves,
    messages,
    papers,
    ranks,
    side_effects,
    speed,
    trust,
)
from benchmarks.report.comparisons import Comparison, compared
from benchmarks.report.writing import Picture
from benchmarks.speed.explaining import NAME as TIME
from benchmarks.speed.hierarchies import NAME as GROWTH

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RESULTS = DOCS / "results"
FULL = RESULTS / "full"
_NAME = r"(?P<name>[\w-]+)(?P<part> growth)?"
MARK = re.compile(rf"(<!-- results: {_NAME} -->\n).*?(?P<end><!-- end of results -->)", re.DOTALL)
ABLATIONS = ("ablation-bibtex",)
SPEEDS = tuple(name for name in names("") if name.startswith(("attention-", "models-cpu")))
CURVES = ("learning_curve-bibtex", "learning_curve-nci")


@cache  # Many tables show the same cells.
def _cells_in(folder: Path) -> pd.DataFrame:
    """All tracked cells. The cache has one entry for each folder of results."""
    return stored(tracked=True)


def render(text: str) -> str:
    """Fills every mark of a page with its table."""

    def fill(match: re.Match[str]) -> str:
        lines = speed.growth(read(match["name"])) if match["part"] else table(match["name"])
        return "\n".join([match[1].rstrip("\n"), *lines, match["end"]])

    return MARK.sub(fill, text)


def table(name: str) -> list[str]:
    """The Markdown lines of the mark with this name."""
    cells = partial(_cells_in, files.RESULTS)
    tables: dict[str, Callable[[], list[str]]] = {
        "label-graph-gains": lambda: label_graphs.section(
            label_graphs.gains(cells()), "label-graph-gains.svg"
        ),
        NODES: lambda: blogcatalog.section(read(NODES)),
        "default": lambda: default.short(read(DEFAULT)),
        "planted": lambda: comparisons.planted_table(comparisons.planted_numbers()),
        "papers-speed": speed.family,
        "serving": speed.served,
        "scoring": speed.scored,
        "endurance": speed.endured,
        "registers": lambda: speed.registers(read("registers")),
        "gpu": lambda: speed.ratios(read("models-cuda")),
        "papers-ranks": lambda: ranks.section(ranks.numbers(cells()), "papers-ranks.svg"),
        "papers-steps": lambda: papers.steps_table(papers.steps(cells()), "../papers-steps.svg"),
        "messages": lambda: messages.section(cells()),
    }
    if name in tables:
        return tables[name]()
    if name.removeprefix("papers-") in TABLES:
        return papers.lines(name.removeprefix("papers-"), cells())
    sections: dict[str, Callable[[Any], list[str]]] = {
        "regimes": speed.attention,
        "models": speed.models,
        "exported": speed.exported,
        "counts": lanet.cells,
        "monitor": learning_curves.tried,
    }
    if name.startswith(("attention-", "models-", "exporting-", "settings-", "lanet", *CURVES)):
        result = read(name)
        makers = (make for key, make in sections.items() if key in result)
        return next(makers, learning_curves.section)(result)
    return comparisons.short(Comparison.load(name))


def pages() -> list[Path]:
    """README.md and all pages of the documentation, except full tables without a mark."""
    docs = sorted(DOCS.rglob("*.md"))
    with_marks = [page for page in docs if page.parent != FULL or MARK.search(page.read_text())]
    return [ROOT / "README.md", *with_marks]


def texts() -> dict[Path, str]:
    """The up-to-date texts of all pages with tables."""
    intro = "[How to read this page](../../results.md). Written by `benchmarks.report.render`."
    out = {}
    for name in (*compared(), *ABLATIONS):
        rows = comparisons.full(Comparison.load(name))
        out[FULL / f"{name}.md"] = "\n".join([f"# {name}: all rows", "", intro, "", *rows, ""])
    for name in SPEEDS:
        out[FULL / f"{name}.md"] = "\n".join([f"# {name}: all rows", "", *table(name), ""])
    if results := read_all("given_labels-"):
        short, repeated = given_labels.divided(results)
        link = f"\nLaMP on {', '.join(repeated)}: [another page](full/given-labels.md).\n"
        out[RESULTS / "given-labels.md"] = given_labels.page(short) + (link if repeated else "")
        if repeated:
            out[FULL / "given-labels.md"] = given_labels.page(repeated, "../")
    times = read(TIME) if TIME in names(TIME) else None
    makers: dict[str, tuple[Path, Callable[[Any], str]]] = {
        DEFAULT: (FULL / "default.md", default.page),
        EXPLANATIONS: (
            RESULTS / "explanations.md",
            partial(explanations.page, times=times, folder=RESULTS),
        ),
        SIDE_EFFECTS: (RESULTS / "side_effects.md", side_effects.page),
        TRUST: (RESULTS / "trust.md", trust.page),
        HIERARCHIES: (
            RESULTS / "hierarchies.md",
            lambda result: hierarchies.page(result, read(GROWTH)),
        ),
    }
    out |= {path: make(read(name)) for name, (path, make) in makers.items() if name in names(name)}
    if measured := {name: read(name) for name in joint.RESULTS if name in names(name)}:
        out[RESULTS / "joint.md"] = joint.page(measured)
        head = ["# Labels that know each other: all rows", "", intro, ""]
        out[FULL / "joint.md"] = "\n".join([*head, *joint.full_page(measured)])
    out[FULL / "next-set.md"] = lanet.page(read_all("lanet-"))
    return {**{page: render(page.read_text()) for page in pages()}, **out}


def drawings() -> Iterator[Picture]:
    """All pictures with their up-to-date numbers."""
    cells = _cells_in(files.RESULTS)
    for name in CURVES:
        yield Picture(RESULTS / f"{name}.svg", read(name), learning_curves.draw)
    for name in (*compared(), *ABLATIONS):
        if not name.startswith("planted"):
            comparison_numbers = comparisons.numbers(Comparison.load(name))
            yield Picture(RESULTS / f"{name}.svg", comparison_numbers, comparisons.draw)
    yield Picture(RESULTS / "planted.svg", comparisons.planted_numbers(), comparisons.draw_planted)
    for name, result in read_all("given_labels-").items():
        path = RESULTS / f"given-labels-{name}.svg"
        yield Picture(path, given_labels.numbers(result), given_labels.draw)
    yield Picture(RESULTS / "explained-drug.svg", read("explained_drug"), explained_drug.draw)
    yield Picture(DOCS / "speed.svg", speed.numbers(read("attention-cpu")), speed.draw)
    if DEFAULT in names(DEFAULT):
        yield Picture(RESULTS / "default.svg", default.numbers(read(DEFAULT)), default.draw)
    path = DOCS / "concepts" / "label-graph-gains.svg"
    yield Picture(path, label_graphs.gains(cells), label_graphs.draw)
    if rank_numbers := ranks.numbers(cells):
        yield Picture(RESULTS / "papers-ranks.svg", rank_numbers, ranks.draw)
    if step_numbers := papers.steps(cells):
        yield Picture(RESULTS / "papers-steps.svg", step_numbers, papers.draw_steps)
    yield Picture(RESULTS / "hierarchies-growth.svg", read(GROWTH)["growth"], hierarchies.draw)
    for name, result in read_all("lanet-").items():
        if points := lanet.figure_3_numbers(result):
            yield Picture(FULL / lanet.picture(name), points, lanet.draw_figure_3)


def main(check: bool = False) -> int:
    """Rewrites all pages and pictures that are out of date.

    Args:
        check: Whether to print what is out of date instead.
    """
    pages = {
        page: text
        for page, text in texts().items()
        if not page.exists() or page.read_text() != text
    }
    pictures = {picture.path: picture for picture in drawings() if not picture.is_current()}
    for path in (*pages, *pictures):
        print(f"{'Out of date' if check else 'Rendered'}: {path.relative_to(ROOT)}")
    if check:
        return int(bool(pages or pictures))
    for page, text in pages.items():
        page.parent.mkdir(exist_ok=True)
        page.write_text(text)
    for picture in pictures.values():
        picture.write()
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
