import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from benchmarks.accuracy import base_scores, complete
from benchmarks.accuracy.complete import BASE, EASE, METRICS, ROWS, SHARES
from tests.benchmarks.accuracy.twins import twins
from tg_mlc.metrics import macro_roc_auc


@pytest.fixture(scope="module")
def base():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base_scores, "load", lambda name, root: twins())
        base_scores.base_scores.cache_clear()
        yield base_scores.base_scores("twins", 0, Path())
    base_scores.base_scores.cache_clear()


@pytest.mark.parametrize("row", [row for row in ROWS if row != BASE])
def test_a_given_twin_tells_the_other_one(row, base):
    predict, _ = ROWS[row](base, 0)
    given = np.where(np.arange(4) == 2, base.y_test, np.nan)
    scores = predict(base.test_logits, given)
    assert macro_roc_auc(base.y_test[:, [3]], scores[:, [3]]) > 0.95
    assert scores.shape == base.y_test.shape


def test_regressions_that_are_fitted_at_once_are_those_of_each_label():
    rng = np.random.default_rng(0)
    own, known = rng.normal(size=(80, 2)), rng.normal(size=(80, 2))
    rest = (own + known[:, ::-1] + rng.normal(size=(80, 2)) > 0).astype(float)
    rest[:10, 0] = np.nan
    tensors = (torch.from_numpy(array).float() for array in (own, known, rest))
    weight, scale, bias = complete._regressions(*tensors, C=1.0)
    for label in range(2):
        x = np.column_stack([own[:, label], known])
        is_known = ~np.isnan(rest[:, label])
        model = LogisticRegression(C=1.0, tol=1e-8).fit(x[is_known], rest[is_known, label])
        found = [scale[label], *weight[:, label]]
        np.testing.assert_allclose(found, model.coef_[0], atol=5e-3)
        assert bias[label] == pytest.approx(model.intercept_[0], abs=5e-3)


def test_an_autoencoder_changes_nothing_without_given_labels(base):
    predict, _ = ROWS[EASE](base, 0)
    nothing = np.full_like(base.y_test, np.nan)
    clipped = np.clip(expit(base.test_logits), 1e-3, 1 - 1e-3)
    np.testing.assert_allclose(expit(predict(base.test_logits, nothing)), clipped)


def test_main_writes_a_run_for_each_row_and_share(own_runs, monkeypatch):
    monkeypatch.setattr(base_scores, "load", lambda name, root: twins())
    monkeypatch.setattr(complete, "ROWS", {name: ROWS[name] for name in (BASE, complete.CLOSED)})
    base_scores.base_scores.cache_clear()
    complete.main(datasets="twins", seeds=1)
    base_scores.base_scores.cache_clear()
    runs = json.loads((own_runs / "complete.json").read_text())["runs"]
    assert [run["model"] for run in runs] == [BASE, complete.CLOSED]
    assert all(len(run[metric]) == len(SHARES) for run in runs for metric in METRICS)
    nothing, ours = (run["roc_auc_macro"][SHARES.index(0.5)] for run in runs)
    assert ours > nothing + 0.1


def test_tracked_runs_of_other_data_sets_are_kept(results, monkeypatch):
    shared = {"model": BASE, "seconds": 0.0, **dict.fromkeys(METRICS, [None] * len(SHARES))}
    calls = {"scene": [{"dataset": "scene", "seed": 0, **shared}]}
    monkeypatch.setattr(complete, "measure", lambda name, seed, root: calls[name])
    complete.main(datasets="scene", seeds=1, replace=True)
    calls["twins"] = [{"dataset": "twins", "seed": 0, **shared}]
    del calls["scene"][:]
    complete.main(datasets="twins", seeds=1, replace=True)
    runs = json.loads((results / "complete.json").read_text())["runs"]
    assert [run["dataset"] for run in runs] == ["scene", "twins"]
