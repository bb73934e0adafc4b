"""Statements about the package on the page on installation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NUMBERS = {9: "nine", 10: "ten", 11: "eleven", 12: "twelve", 13: "thirteen"}


def test_the_table_of_extras_is_that_of_pyproject() -> None:
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    lines = [
        line.split("|")
        for line in (ROOT / "docs" / "installation.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    rows = {
        name: (use.strip(), packages.strip())
        for _, cell, use, packages, _ in lines
        for name in words(cell)
    }
    assert rows.keys() == extras.keys()

    above, within = list(rows)[: list(rows).index("all")], extras["all"][0].partition("[")[2]
    assert set(above) == set(words(within))
    assert rows["all"] == (f"the {NUMBERS[len(above)]} above", "")
    for extra in (*above, "sparse"):
        assert set(rows[extra][1].split(", ")) == {
            words(requirement)[0] for requirement in extras[extra]
        }

    said = {
        "the command line": "jsonargparse",
        "downloads": "pooch",
        "linear baselines": "scikit-learn",
    }
    for extra in ("data", "molecules", "train"):
        for what, package in said.items():
            assert what not in rows[extra][0] or package in rows[extra][1], (extra, what)


def words(text: str) -> list[str]:
    return re.findall(r"[\w-]+", text)
