"""Pages of results: fills their marks with tables, writes the full tables, draws the pictures.

    python -m benchmarks.report.render          # rewrites what is out of date
    python -m benchmarks.report.render --check  # fails if anything is

A mark is a line ``<!-- results: NAME -->``, closed by ``<!-- end of results -->``. NAME is a comparison, such as
``bibtex-official``, ``ablation-bibtex``, ``planted`` or ``label-graphs`` (those of all comparisons); a learning curve;
a table of the papers, such as ``papers-lamp-1`` or ``papers-ranks``, or ``messages``, of the same cells; or a file in
benchmarks/results: of speeds (``NAME growth`` for the exponents that it holds), of settings, or of LANET's tables.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from benchmarks import files
from benchmarks.command_line import run
from benchmarks.report import (
    default,
    given_labels,
    lanet,
    learning_curves,
    next_set,
    paper_pages,
    pictures,
    planted,
    settings,
    speed,
    tables,
)
from benchmarks.report.comparisons import load, names

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FULL = DOCS / "results" / "full"
MARK = re.compile(
    r"(<!-- results: (?P<name>[\w-]+)(?P<part> growth)? -->\n).*?(?P<end><!-- end of results -->)", re.DOTALL
)
ABLATIONS = ("ablation-bibtex",)
CURVES = ("learning_curve-bibtex", "learning_curve-nci")
MADE = {
    "label-graphs": tables.label_graphs,
    "planted": lambda: planted.table(planted.numbers()),
    **paper_pages.MARKS,
}


def render(text: str) -> str:
    """Fills every mark of a page with its table."""

    def fill(match: re.Match[str]) -> str:
        lines = growth(match["name"]) if match["part"] else table(match["name"])
        return "\n".join([match[1].rstrip("\n"), *lines, match["end"]])

    return MARK.sub(fill, text)


def table(name: str) -> list[str]:
    """The table of a mark."""
    if name in MADE:
        return MADE[name]()
    if name.startswith(("attention-", "models-")):
        result = read(name)
        return speed.attention(result) if "regimes" in result else speed.models(result)
    if name.startswith("settings-"):
        return settings.table(read(name))
    if name.startswith("lanet"):
        result = read(name)
        return lanet.epochs(result) if "lanet" in result else lanet.cells(result)
    return learning_curves.table(read(name)) if name in CURVES else tables.short(load(name))


def growth(name: str) -> list[str]:
    """How time grows with sizes."""
    return speed.growth(read(name))


def read(name: str) -> dict[str, Any]:
    """A file of results."""
    path = files.RESULTS / f"{name}.json"
    if not path.is_file():
        raise FileNotFoundError(f"Expected the result file {path}; run the benchmark that writes it, or drop the mark")
    result: dict[str, Any] = json.loads(path.read_text())
    return result


def pages() -> list[Path]:
    """The pages that may hold marks."""
    return [ROOT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if page.parent != FULL)]


def texts() -> dict[Path, str]:
    """All pages with tables, as they should be."""
    full = {FULL / f"{name}.md": full_page(name) for name in (*names(), *ABLATIONS)}
    given = given_labels.results()
    own = {DOCS / "results" / "given-labels.md": given_labels.page(given)} if given else {}
    if untuned := default.result():
        own[DOCS / "results" / "default.md"] = default.page(untuned)
    own[DOCS / "results" / "next-set.md"] = next_set.page(next_set.results())
    return {**{page: render(page.read_text()) for page in pages()}, **full, **own}


def full_page(name: str) -> str:
    """All that was measured in a comparison."""
    intro = "Everything that was measured; [how to read it](../../results.md). Written by `benchmarks.report.render`."
    return "\n".join([f"# {name}: all rows", "", intro, "", *tables.full(load(name)), ""])


def drawings() -> list[pictures.Picture]:
    """All pictures, as they should be."""
    folder = DOCS / "results"
    curves = [pictures.Picture(DOCS / f"{name}.svg", read(name), learning_curves.draw) for name in CURVES]
    compared = [
        pictures.Picture(folder / f"{name}.svg", pictures.numbers(load(name)), pictures.draw)
        for name in (*names(), *ABLATIONS)
        if not name.startswith("planted")
    ]
    given = [
        pictures.Picture(folder / f"given-labels-{name}.svg", given_labels.numbers(result), given_labels.draw)
        for name, result in given_labels.results().items()
    ]
    of_papers = paper_pages.drawings(folder)
    drawn = [*curves, *compared, *given, *of_papers, *next_set.drawings(folder)]
    return [*drawn, pictures.Picture(folder / "planted.svg", planted.numbers(), planted.draw)]


def main(check: bool = False) -> int:
    """Rewrites all pages and pictures that are out of date.

    Args:
        check: Whether to say instead which are.
    """
    pages = {page: text for page, text in texts().items() if not page.exists() or page.read_text() != text}
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
