"""Renders the cards of the published data sets between the marks of docs/datasets.md.

python tools/render_cards.py          # rewrites the cards
python tools/render_cards.py --check  # fails if it is out of date
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tg_mlc.datasets import registry
from tg_mlc.datasets.card import DatasetCard

PAGE = Path(__file__).parents[1] / "docs" / "datasets.md"
MARKS = re.compile(r"(<!-- cards -->\n).*?(<!-- end of cards -->)", re.DOTALL)
COLUMNS = ("data set", "what", "inputs", "samples", "labels", "missing", "licence")


def render(text: str) -> str:
    """Fills the marks of a page."""
    if not MARKS.search(text):
        expected = "the marks '<!-- cards -->' and '<!-- end of cards -->', each on a line"
        raise ValueError(f"Expected {expected} (got none)")
    return MARKS.sub(lambda marks: f"{marks[1]}{cards()}{marks[2]}", text)


def cards() -> str:
    """The table of all data sets."""
    entries = [registry.card(name) for name in registry.names()]
    head = ["| " + " | ".join(COLUMNS) + " |", "|---|" + "---|" * (len(COLUMNS) - 1)]
    return "\n".join([*head, *map(row, entries), ""])


def row(card: DatasetCard) -> str:
    """The row of a data set in the table."""
    cells = (
        card.name + ("" if card.origin == "computed" else " *"),
        card.title.partition(" (")[0].partition(", as ")[0],
        f"{card.kind}, {card.num_inputs:,}" if card.num_inputs is not None else card.kind,
        f"{card.samples:,}",
        f"{card.labels:,}" + (f" ({card.never_positive} never)" if card.never_positive else ""),
        f"{card.missing:.1%}" if card.missing else "",
        card.licence.partition(" (")[0],
    )
    return f"| {' | '.join(cells)} |"


def main(check: bool) -> int:
    """Rewrites the page, or says whether it is out of date."""
    text = PAGE.read_text(encoding="utf-8")
    if render(text) == text:
        return 0
    print(f"{'Out of date' if check else 'Rendered'}: {PAGE.name}")
    if not check:
        PAGE.write_text(render(text), encoding="utf-8")
    return int(check)


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
