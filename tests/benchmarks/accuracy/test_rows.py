from __future__ import annotations

import json

from benchmarks.accuracy.rows import Row
from benchmarks.accuracy.runs import Run


def test_titles_tell_rows_apart() -> None:
    rows = [
        Row("linear SVM, tuned"),
        Row("LaMP", "emb", "fc", "best"),
        Row("LaMP", "emb", "fc", "published"),
        Row("LaMP", "emb", "fc", "best", "one step"),
    ]
    titles = ["linear SVM, tuned", "LaMP emb fc", "LaMP emb fc, as published", "LaMP emb fc, one step"]
    assert [row.title for row in rows] == titles


def test_a_run_is_stored_with_the_fields_of_its_row() -> None:
    run = Run(Row("LaMP", "emb", "fc", "published"), 3, "hash", 1.0, {"subset_accuracy": 0.5}, [], test="rows")
    stored = json.loads(json.dumps(run.to_dict()))
    assert {stored[name] for name in ("model", "encoder", "graph", "settings")} == {"LaMP", "emb", "fc", "published"}
    assert stored["change"] is None
    assert Run.from_dict(stored) == run
