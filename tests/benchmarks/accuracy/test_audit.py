from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import audit
from benchmarks.accuracy.audit import INPUTS, NOISE, OTHERS, OURS, with_noise
from tests.benchmarks.accuracy.twins import twins


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(audit, "load_inputs", lambda name, root: twins(200))
    monkeypatch.setattr(audit, "_cleanlab_version", lambda: None)
    audit.load.cache_clear()
    yield
    audit.load.cache_clear()


def test_a_flipped_twin_is_found_by_the_other_one():
    runs = {run["row"]: run for run in audit.measure("twins", "5% flipped", 0, Path())}
    assert runs[OTHERS]["cells"] > runs[INPUTS]["cells"] + 0.1
    assert runs[OURS]["rows"] is not None
    assert runs[INPUTS]["rows"] is None
    assert 20 < runs[OURS]["wrong"] < 60


@pytest.mark.parametrize("noise", NOISE)
def test_noise_is_of_its_kind_and_leaves_unknown_labels_unknown(noise):
    y = twins(1000).y
    y[::7, 1] = np.nan
    recorded = with_noise(y, noise, np.random.default_rng(0))
    assert (np.isnan(recorded) == np.isnan(y)).all()
    is_wrong = ~np.isnan(y) & (recorded != y)
    known = ~np.isnan(y)
    if noise.endswith("flipped"):
        assert is_wrong.sum() / known.sum() == pytest.approx(NOISE[noise], abs=0.01)
    elif noise.endswith("lost"):
        assert (y[is_wrong] == 1).all()
        assert is_wrong.sum() / (y == 1).sum() == pytest.approx(0.2, abs=0.02)
    else:
        assert 0.05 < is_wrong.any(axis=1).mean() <= 0.1


def test_cleanlab_scores_labels_by_its_own_scores(monkeypatch):
    pytest.importorskip("cleanlab", reason="cleanlab is not installed")
    monkeypatch.undo()
    recorded, p = twins(50).y, np.random.default_rng(0).random((50, 4))
    rows = dict(audit._by_cleanlab(recorded, p))
    cells, of_row, _ = rows["cleanlab, self-confidence"]
    np.testing.assert_allclose(cells, np.where(recorded == 1, 1 - p, p))
    assert of_row.shape == (50,)
