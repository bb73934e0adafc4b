from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.accuracy.known_labels import ROWS, SHARES, TAKE_KNOWN, WITH_MASKS
from benchmarks.accuracy.rows import FREQUENCY
from benchmarks.environment import describe_environment
from benchmarks.report import known_labels, render
from benchmarks.report.known_labels import COLORS, draw, numbers, table


def result_of(seeds: list[int]) -> dict[str, Any]:
    """Scores that rise by a tenth of the share where labels are given, and by the seed."""
    points = [
        {
            "row": row,
            "share": share,
            "given": given,
            "seed": seed,
            "maAUC": 0.5 + 0.01 * seed + 0.1 * given * share,
            "maAP": 0.3 + 0.2 * given * share,
        }
        for seed in seeds
        for row in ROWS
        for share in SHARES
        for given in ((False, True) if row in TAKE_KNOWN and share else (False,))
    ]
    data = {"name": "sider", "num_samples": 9, "num_labels": 4, "counted_labels": 3, "sha256": "0123456789abcdef"}
    return {
        "dataset": data,
        "split": "random",
        "seeds": seeds,
        "recipes": {"lamp-known": {"fit": {"max_epochs": 20}}},
        "points": points,
        "environment": describe_environment(),
    }


def test_the_table_shows_what_shares_that_are_given_tell() -> None:
    lines = table(result_of([0, 1, 2]))
    assert f"| {WITH_MASKS} | 0.510 ± 0.010 | 0.520 ± 0.010 | 0.540 ± 0.010 | 0.560 ± 0.010 |" in "\n".join(lines)
    assert f"| {FREQUENCY} | 0.510 ± 0.010 | 0.510 ± 0.010 |" in "\n".join(lines)
    half = [line for line in lines if "of the other half" in line]
    assert len(half) == len(TAKE_KNOWN)
    assert "macro ROC-AUC from 0.510 ± 0.010 to 0.560 ± 0.010 (+0.050, " in half[0]
    assert "macro average precision from 0.300 ± 0.000 to 0.400 ± 0.000 (+0.100, " in half[0]
    assert "LaMP trained for 20 epochs" in lines[-1]
    assert "3 labels counted, data sha256 0123456789ab" in lines[-1]
    one = "\n".join(table(result_of([0])))
    assert "from 0.500 to 0.550 (+0.050)" in one


def test_the_picture_has_a_line_for_every_row() -> None:
    shown = numbers(result_of([0, 1]))
    assert shown["given"][WITH_MASKS][5] == pytest.approx([0.55, 0.56])
    assert shown["alone"].keys() == set(TAKE_KNOWN)
    axes = draw(shown).axes[0]
    assert axes.get_legend_handles_labels()[1] == list(ROWS)
    assert len(axes.lines) == len(ROWS) + len(TAKE_KNOWN)
    assert COLORS.keys() == ROWS.keys()


def test_there_is_a_page_where_there_are_results(results: Path) -> None:
    assert known_labels.results() == {}
    (results / "known_labels-sider.json").write_text(json.dumps(result_of([0, 1])))
    page = known_labels.page(known_labels.results())
    assert page.startswith("# Known labels")
    assert "![sider](known-labels-sider.svg)" in page
    assert page.endswith("\n")


def test_the_page_is_rendered_with_the_others(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = render.DOCS / "results" / "known-labels.md"
    monkeypatch.setattr(render, "pages", list)
    monkeypatch.setattr(render, "ABLATIONS", ())
    assert path not in render.texts()
    (results / "known_labels-sider.json").write_text(json.dumps(result_of([0, 1])))
    assert render.texts()[path] == known_labels.page(known_labels.results())
