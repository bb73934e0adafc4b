"""Every short example, run as its reader would, with less training."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from tests.snippets import ROOT
from tg_mlc.stacking import folds

EXAMPLES = {
    "own_csv": ({}, "liver"),
    "text_tags": ({"seconds": 5}, "f1_micro"),
    "own_gnn": ({"num_molecules": 60, "epochs": 1}, "halogen"),
    "label_graph": ({"num_samples": 100, "epochs": 1}, "known     macro average precision 0."),
    "given_labels": ({"seconds": 5}, "60% of the labels given"),
    "node_labels": ({"steps": 5}, "average_precision_macro"),
    "next_basket": ({"epochs": 1}, "LANET              0."),
}


def test_no_example_is_left_out() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == {*EXAMPLES, "sider_graph"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_runs_and_is_short(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(folds, "MAX_EPOCHS", 3)
    monkeypatch.setattr(folds, "NUM_FOLDS", (2,))
    options, printed = EXAMPLES[name]
    if name in ("own_csv", "own_gnn"):
        pytest.importorskip("rdkit")
    import_module(f"examples.{name}").main(**options)
    assert printed in capsys.readouterr().out
    assert len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) < 60
