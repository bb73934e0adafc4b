from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.report import planted


def result(auc: float) -> dict[str, object]:
    recovered = {
        f"{score}, planted": {"average precision": 0.9, "share of pairs joined": 0.13}
        for score in ("learned attention", "correlation")
    }
    row = {"metrics": {"maAUC": {"mean": auc, "sd": 0.01}}, "recovery": recovered}
    return {"summary": dict.fromkeys(planted.ROWS, row)}


def test_the_picture_has_every_row_at_every_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for percent in (25, 75):
        (tmp_path / f"prior_vs_learned-planted-{percent}-official.json").write_text(json.dumps(result(percent / 100)))
    monkeypatch.setattr(planted, "RESULTS", tmp_path)
    figure = planted.draw(planted.load())
    left, right = figure.axes
    assert left.get_legend_handles_labels()[1] == list(planted.ROWS)
    assert [list(line.get_xdata()) for line in right.lines] == [[0.25, 0.75]] * 3
    figure.savefig(tmp_path / "planted.svg")
    assert (tmp_path / "planted.svg").stat().st_size > 1000


def test_without_results_it_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planted, "RESULTS", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"run prior_vs_learned\.py"):
        planted.load()
