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
    measured = json.loads((own_runs / f"{explaining.NAME}.json").read_text())["explained"]
    assert measured["drugs"] == 2
    assert 7 <= measured["atoms"] <= 10
    assert 0 < measured["seconds_of_explain"] <= measured["seconds"]
    assert measured["processor_seconds"] > 0
    assert measured["bytes"] > 10_000
    assert "occlusion" in measured["methods"]
    with pytest.raises(SystemExit, match="--quick"):
        explaining.main(model, replace=True, quick=True)
