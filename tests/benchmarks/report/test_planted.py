from __future__ import annotations

import json
from pathlib import Path

from benchmarks.accuracy.runs import Run
from benchmarks.report import planted


def test_table_and_picture_have_every_row_at_every_share(results: Path) -> None:
    for percent in (25, 75):
        recovery = {score: {"average precision": 0.9, "share of pairs joined": 0.13} for score in planted.RANKED}
        runs = [
            Run(
                row,
                seed,
                "hash",
                1.0,
                {"subset_accuracy": 0.5 + 0.01 * place, "roc_auc_macro": percent / 100},
                [],
                recovery=recovery,
            )
            for place, row in enumerate(planted.ROWS)
            for seed in (0, 1)
        ]
        path = results / f"prior_vs_learned-planted-{percent}-official.json"
        path.write_text(json.dumps({"dataset": {}, "runs": [run.to_dict() for run in runs]}))
    numbers = planted.numbers()
    left, right = planted.draw(numbers).axes
    assert left.get_legend_handles_labels()[1] == [row.title for row in planted.ROWS]
    assert [list(line.get_xdata()) for line in right.lines] == [[0.25, 0.75]] * 3
    head, _, *lines = planted.table(numbers)
    assert head == "| model | subset accuracy, 25% | subset accuracy, 75% | macro ROC-AUC, 25% | macro ROC-AUC, 75% |"
    assert len(lines) == len(planted.ROWS)
    best = "0.250** ± 0.000 | **0.750** ± 0.000 |"
    assert lines[-1] == f"| label frequency | **0.590** ± 0.000 | **0.590** ± 0.000 | **{best}"
    assert "**" not in lines[0]  # which knows how samples were made
