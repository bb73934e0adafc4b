from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from tg_mlc.baselines import LabelFrequency
from tg_mlc.metrics import evaluate, tune_per_metric

NAN = float("nan")


def test_scores_are_the_means_of_known_labels():
    y = torch.tensor([[1, 0, NAN, NAN], [1, 1, 0, NAN], [NAN, 0, 0, NAN]])
    scores = LabelFrequency().fit(y).predict_proba(2)
    # The last label is never known: it gets the share of positives among all known entries.
    np.testing.assert_allclose(scores, [[1, 1 / 3, 0, 3 / 7]] * 2)


def test_ranks_at_random():
    y = np.array([[1, 0], [0, 0], [0, 1.0]])
    baseline = LabelFrequency().fit(y)
    assert evaluate(y, baseline.predict_proba(3))["roc_auc_macro"] == 0.5
    assert repr(baseline) == "LabelFrequency(num_labels=2)"


def test_errors():
    with pytest.raises(RuntimeError, match="'fit'"):
        LabelFrequency().predict_proba(1)
    with pytest.raises(ValueError, match="at least one known"):
        LabelFrequency().fit([[NAN]])


def sider_labels():
    path = Path(os.environ.get("TG_MLC_DATA", "")) / "sider" / "raw" / "sider.csv"
    if "TG_MLC_DATA" not in os.environ or not path.exists():
        pytest.skip("needs sider/raw/sider.csv in the folder of TG_MLC_DATA")
    with path.open(newline="") as file:
        return np.array([row[1:] for row in list(csv.reader(file))[1:]], dtype=float)


def test_constant_scores_reach_the_published_f1_on_sider():
    y = sider_labels()
    rng = np.random.default_rng(0)
    results = []
    for _ in range(20):
        train, val, test = np.split(rng.permutation(len(y)), [1141, 1141 + 143])
        baseline = LabelFrequency().fit(y[train])
        tuners = tune_per_metric(y[val], baseline.predict_proba(len(val)))
        results.append(evaluate(y[test], baseline.predict_proba(len(test)), tuners))
    for metric, published in {"f1_samples": 0.768, "f1_micro": 0.80, "f1_macro": 0.675}.items():
        assert np.mean([result[metric] for result in results]) == pytest.approx(published, abs=0.01)
