from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from benchmarks.speed import lanet
from benchmarks.speed.lanet import OURS, RELEASED, TOLERANCES, Sizes, compare

SETTINGS = {"batches": 1, "repeats": 1}


def test_both_layouts_compute_the_same() -> None:
    row = compare(Sizes(12, 8, 4, num_entities=8), SETTINGS)
    assert row["state"] == "agrees"
    assert all(row["errors"][name] <= tolerance for name, tolerance in TOLERANCES.items())
    assert row["ours_is_faster"] > 0


def test_no_ratio_while_they_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(lanet.ReleasedLANET):
        def forward(self, batch: lanet.Row) -> torch.Tensor:
            return super().forward(batch) + 0.1

    monkeypatch.setattr(lanet, "ReleasedLANET", Other)
    row = compare(Sizes(12, 8, 4, num_entities=8), SETTINGS)
    assert row["state"] == "disagrees"
    assert not {OURS, RELEASED, "ours_is_faster"} & row.keys()


def test_a_quick_run(own_runs: Path) -> None:
    assert lanet.main(quick=True, channels="8", threads=torch.get_num_threads()) == 0
    (file,) = own_runs.iterdir()
    content = json.loads(file.read_text())
    assert content["many_labels"]["state"] == "alone"
