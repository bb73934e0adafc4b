from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.report import label_graphs
from benchmarks.report.messages import EDGELESS
from tests.benchmarks.report.cells import seeds_of, table

BASE = {10: 0.50, 11: 0.52, 12: 0.51}
LARGE = {10: 0.55, 11: 0.57, 12: 0.561}
SMALL = {10: 0.49, 11: 0.53, 12: 0.51}


@pytest.mark.parametrize(
    ("graph", "values", "said"),
    [
        (
            "complete",
            LARGE,
            "| LaMP alone, as published | complete | 1 above, 0 below, of 1; median +0.050 |",
        ),
        (
            "complete",
            SMALL,
            "| LaMP alone, as published | complete | 0 above, 0 below, of 1; median +0.000 |",
        ),
        (
            "wordnet",
            LARGE,
            "| LaMP alone, as published | prior | 1 above, 0 below, of 1; median +0.050 |",
        ),
        # too few seeds
        ("complete", {10: 0.9, 11: 0.9}, "| LaMP alone, as published | complete |  |  |"),
    ],
)
def test_only_gains_that_are_sure_are_counted(graph, values, said, monkeypatch):
    monkeypatch.setattr(label_graphs, "compared", list)
    cells = [
        *seeds_of(EDGELESS, BASE, drawn=False),
        *seeds_of(replace(EDGELESS, graph=graph), values, drawn=False),
    ]
    found = label_graphs.gains(table(cells))
    assert said in "\n".join(label_graphs.section(found, "picture.svg"))
    assert len(found) == (2 if len(values) > 2 else 0)
    assert all(each["low"] <= each["mean"] <= each["high"] for each in found)
