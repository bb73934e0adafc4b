import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.accuracy.runs import Row, Run, Task, frame
from tg_mlc.data import ArrayDataset, Split
from tg_mlc.data.records import Records
from tg_mlc.papers.recipes import RECIPES


def samples(y, names):
    x = np.zeros((300, 1), dtype=np.float32)
    return ArrayDataset(Records(x, y, list(names)).to_samples())


def test_decisions_come_from_validation_and_training_samples():
    rng = np.random.default_rng(0)
    scores = rng.random((300, 2))
    # The best threshold is 0.3 for validation samples and 0 for test samples.
    y = (scores > 0.3).astype(np.float32)
    y[:100], y[200:] = np.eye(2)[rng.integers(0, 2, 100)], 1.0
    split = Split(*torch.arange(300).split(100), "by hand")
    task = Task("emotions", samples(y, "ab"), RECIPES["emotions"])
    run = task.run(Row("row"), split, 0, 0.0, scores[100:200], scores[200:])
    assert 0.25 <= run.thresholds["f1_micro"] <= 0.35
    expected = 2 * (recall := float((scores[200:] > 0.3).mean())) / (1 + recall)
    for metrics in (run.metrics, run.per_label, run.by_frequency):
        assert metrics["f1_micro"] == pytest.approx(expected, abs=0.05)
    # No training sample and not every validation sample has both labels.
    assert run.by_label_set["subset_accuracy"] == 0
    assert run.preferred == {name: run.by_frequency[name] for name in run.preferred}


def test_label_sets_decide_where_validation_samples_prefer_them():
    rng = np.random.default_rng(0)
    y = np.eye(4, dtype=np.float32)[rng.integers(0, 4, 300)]
    scores = np.clip(y * 0.2 + 0.5 * rng.random((300, 1)) + 0.1 * rng.random((300, 4)), 0.01, 0.99)
    split = Split(*torch.arange(300).split(100), "by hand")
    task = Task("emotions", samples(y, "abcd"), RECIPES["emotions"])
    run = task.run(Row("row"), split, 0, 0.0, scores[100:200], scores[200:])
    # Only the index of the highest score of a sample is informative, not its value.
    assert run.by_label_set["subset_accuracy"] == 1
    assert run.by_frequency["subset_accuracy"] < 0.9
    assert run.preferred["subset_accuracy"] == 1


def test_titles_distinguish_rows():
    original = Row("LaMP", False, "complete", "best")
    rows = {
        "linear SVM, tuned": Row("linear SVM, tuned"),
        "LaMP complete": original,
        "LaMP complete, as published": replace(original, settings="published"),
        "LaMP complete, one step": replace(original, change="one step"),
    }
    assert [row.title for row in rows.values()] == list(rows)


def test_a_run_is_stored_with_the_fields_of_its_row():
    row, metrics = Row("LaMP", False, "complete", "published"), {"subset_accuracy": 0.5}
    run = Run(row, 3, "hash", 1.0, metrics, [], test="rows")
    stored = json.loads(json.dumps(run.to_dict()))
    fields = [stored[name] for name in ("model", "node_messages", "graph", "settings")]
    assert fields == ["LaMP", False, "complete", "published"]
    (record,) = frame([stored]).to_dict("records")
    assert (record["row"], record["seed"], record["metrics.subset_accuracy"]) == (run.row, 3, 0.5)
