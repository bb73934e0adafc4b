from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from benchmarks.speed import explaining

pytest.importorskip("rdkit")
pytest.importorskip("jinja2")


def test_a_report_is_timed(own_runs, saved, monkeypatch):
    drugs = SimpleNamespace(smiles=["CCO", "CC(=O)O", "c1ccccc1"])
    monkeypatch.setattr(explaining, "load", lambda name, root: drugs)
    model = saved("molecules")
    explaining.main(model, threads=1, quick=True)
    found = json.loads((own_runs / f"{explaining.NAME}.json").read_text())["explained"]
    assert found["drugs"] == 2
    assert 7 <= found["atoms"] <= 10
    assert 0 < found["seconds_of_explain"] <= found["seconds"]
    assert found["processor_seconds"] > 0
    assert found["bytes"] > 10_000
    assert "occlusion" in found["methods"]
    with pytest.raises(SystemExit, match="--quick"):
        explaining.main(model, replace=True, quick=True)
