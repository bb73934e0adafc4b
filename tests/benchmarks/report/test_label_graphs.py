from dataclasses import replace

import pytest

from benchmarks.report import label_graphs
from benchmarks.report.messages import EDGELESS
from tests.benchmarks.report.cells import seeds_of, table

BASE = {10: 0.50, 11: 0.52, 12: 0.51}
LARGE = {10: 0.55, 11: 0.57, 12: 0.561}
SMALL = {10: 0.49, 11: 0.53, 12: 0.51}


TITLE = "| LaMP alone, as published"
TWO_SEEDS = {10: 0.9, 11: 0.9}


@pytest.mark.parametrize(
    ("graph", "values", "line"),
    [
        ("complete", LARGE, f"{TITLE} | complete | 1/0 of 1; median +0.050 |"),
        ("complete", SMALL, f"{TITLE} | complete | 0/0 of 1; median +0.000 |"),
        ("wordnet", LARGE, f"{TITLE} | prior | 1/0 of 1; median +0.050 |"),
        ("complete", TWO_SEEDS, f"{TITLE} | complete |  |  |"),
    ],
)
def test_only_significant_gains_are_counted(graph, values, line, monkeypatch):
    monkeypatch.setattr(label_graphs, "compared", list)
    cells = seeds_of(EDGELESS, BASE, drawn=False)
    cells += seeds_of(replace(EDGELESS, graph=graph), values, drawn=False)
    gains = label_graphs.gains(table(cells))
    assert line in "\n".join(label_graphs.section(gains, "picture.svg"))
    assert len(gains) == (2 if len(values) > 2 else 0)
    assert all(gain["low"] <= gain["mean"] <= gain["high"] for gain in gains)
