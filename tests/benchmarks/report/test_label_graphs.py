from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.report import label_graphs
from benchmarks.report.messages import EDGELESS
from tests.benchmarks.report.cells import seeds_of, table

BASE = {10: 0.50, 11: 0.52, 12: 0.51}
LARGE = {10: 0.55, 11: 0.57, 12: 0.561}
SMALL = {10: 0.49, 11: 0.53, 12: 0.51}


TITLE = "| LaMP alone, as published"
FEW = {10: 0.9, 11: 0.9}


@pytest.mark.parametrize(
    ("graph", "values", "said"),
    [
        ("complete", LARGE, f"{TITLE} | complete | 1/0 of 1; median +0.050 |"),
        ("complete", SMALL, f"{TITLE} | complete | 0/0 of 1; median +0.000 |"),
        ("wordnet", LARGE, f"{TITLE} | prior | 1/0 of 1; median +0.050 |"),
        ("complete", FEW, f"{TITLE} | complete |  |  |"),
    ],
)
def test_only_significant_gains_are_counted(graph, values, said, monkeypatch):
    monkeypatch.setattr(label_graphs, "compared", list)
    cells = seeds_of(EDGELESS, BASE, drawn=False)
    cells += seeds_of(replace(EDGELESS, graph=graph), values, drawn=False)
    found = label_graphs.gains(table(cells))
    assert said in "\n".join(label_graphs.section(found, "picture.svg"))
    assert len(found) == (2 if len(values) > 2 else 0)
    assert all(each["low"] <= each["mean"] <= each["high"] for each in found)
