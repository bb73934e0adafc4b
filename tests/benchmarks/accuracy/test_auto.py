import json

import numpy as np
import pytest

from benchmarks.accuracy import auto as benchmark
from benchmarks.accuracy.auto import OURS, by_positives, main, part_of
from tg_mlc.data import from_arrays


@pytest.fixture
def loaded_names(own_runs, monkeypatch):
    """Replaces every data set by random vectors. Returns the list of loaded names."""
    names = []

    def load(name, root):
        names.append(name)
        x = np.random.default_rng(0).normal(size=(90, 3)).astype(np.float32)
        return from_arrays(x, (x[:, :2] > 0).astype(np.float32), kind="vector")

    monkeypatch.setattr(benchmark, "load", load)
    return names


def test_a_second_call_runs_only_missing_data_sets(loaded_names, own_runs):
    main("emotions", seeds=1, seconds=0)
    main("emotions,scene", seeds=1, seconds=0)
    assert loaded_names == ["emotions", "scene"]
    points = json.loads((own_runs / f"{benchmark.NAME}.json").read_text())["runs"]
    models = [point["model"] for point in points if point["dataset"] == "scene"]
    assert (models[0], models[6:]) == ("label frequency", [OURS])
    assert len(points) == 14


def test_another_time_limit_repeats_all_runs(loaded_names, own_runs):
    for seconds in (0, 0.5):
        main("emotions", seeds=1, seconds=seconds)
        assert json.loads((own_runs / f"{benchmark.NAME}.json").read_text())["seconds"] == seconds
    assert loaded_names == ["emotions", "emotions"]


def test_large_data_sets_are_sampled(monkeypatch):
    monkeypatch.setattr(benchmark, "MAX_SAMPLES", 20)
    x = np.arange(50, dtype=np.float32)[:, None]
    subset = part_of(from_arrays(x, np.ones((50, 1)), kind="vector"))
    assert len(subset) == 20
    assert len(set(subset.rows("x").flatten().tolist())) == 20


def test_ranking_metrics_are_grouped_by_number_of_positives():
    y_train = np.array([[0, 1, 1, 1]] + 5 * [[0, 0, 1, 1]])
    y_test, scores = np.array([[1, 1, 1, 0], [0] * 4]), np.array([[1.0, 0, 1, 0], [0, 1.0, 0, 1]])
    assert by_positives(y_train, y_test, scores) == {  # No test sample has the last label.
        "0": {"labels": 1, "roc_auc": 1.0, "average_precision": 1.0},
        "1 to 4": {"labels": 1, "roc_auc": 0.0, "average_precision": 0.5},
        "5 to 19": {"labels": 1, "roc_auc": 1.0, "average_precision": 1.0},
    }
