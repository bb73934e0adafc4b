import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.accuracy import mixed
from benchmarks.accuracy.mixed import OURS, TABLES, TREES, Table, main


@pytest.fixture
def small(monkeypatch):
    """Adds a small table, one of whose parts may be missing."""

    def table(root):
        rng = np.random.default_rng(0)
        is_red, is_old = rng.random((2, 90)) < 0.5
        frame = pd.DataFrame({"note": np.where(is_red, "red", "green"), "age": is_old * 30 + 20})
        frame.loc[:3, "note"] = None
        y = pd.DataFrame({"both": is_red & is_old, "any": is_red | is_old}).astype(float)
        return Table(frame, y, {"text": "note", "features": ["age"]})

    monkeypatch.setitem(TABLES, "small", table)


def test_each_kind_and_trees_are_compared_with_all_kinds(small, own_runs):
    main("small", seeds=1, seconds=0)
    content = json.loads((own_runs / f"{mixed.NAME}.json").read_text())
    values = {run["model"]: run["metrics"]["roc_auc_macro"] for run in content["runs"]}
    assert list(values) == [OURS, "only text: note", "only features: age", TREES]
    ours, *single, trees = values.values()
    assert min(ours, trees) > 0.9
    assert max(single) < ours


def test_planted_labels_need_both_kinds():
    frame, y, columns = TABLES["planted"](None)
    assert {*columns["features"], columns["text"]} == {*frame}
    assert y["l0"].mean() == pytest.approx((1 - 0.85**3) / 2, abs=0.04)
    has_word = frame.text.str.contains(r"\b(?:word0|word1|word2)\b")
    assert (y["l0"] == (has_word & (frame.x0 > 0))).mean() > 0.999
