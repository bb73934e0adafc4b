import pytest

from benchmarks.accuracy import audit, complete, suggest
from benchmarks.files import describe_environment
from benchmarks.report.joint import full_page, page

ABOUT = {"sha256": "0123456789abcdef"}


@pytest.fixture
def results():
    """Returns results in which the default is above its best rival by 0.1 in every split."""
    values = dict.fromkeys(complete.ROWS, 0.5) | {complete.PLS: 0.6, complete.DEFAULT: 0.7}
    completions = [
        {"dataset": "yeast", "seed": seed, "model": model, "base": ABOUT}
        | dict.fromkeys(complete.METRICS, [value + 0.01 * seed] * 2)
        for seed in range(3)
        for model, value in values.items()
    ]
    completions[-1]["roc_auc_macro"] = [0.72, 0.721]
    suggestions = [
        {"dataset": dataset, "seed": seed, "rule": rule, "looked_up": step, "base": ABOUT}
        | {"errors": 2.0 - 0.1 * step, "roc_auc_macro": 0.5 + 0.03 * step}
        | {"predicted": step * 1.1, "realised": step * 1.0}
        for dataset in ("yeast", "toxcast")
        for seed in range(3)
        for rule in suggest.RULES
        for step in suggest.STEPS
    ]
    rows = (audit.INPUTS, audit.OTHERS, audit.OURS, *audit.CLEANLAB)
    audits = [
        {"dataset": "yeast", "draw": draw, "noise": "2% flipped", "row": row, "data": ABOUT}
        | {"cells": 0.4 + 0.1 * (row == audit.OURS) + 0.01 * draw * (row == audit.OURS)}
        | {"rows": 0.7 if row == audit.OURS or row in audit.CLEANLAB else None}
        for draw in range(3)
        for row in rows
    ]
    named = {complete.NAME: completions, suggest.NAME: suggestions, audit.NAME: audits}
    environment = describe_environment()
    content = {"environment": environment, "shares": [0.3, 0.5]}
    return {name: {**content, "runs": runs} for name, runs in named.items()}


def test_each_comparison_has_its_section(results):
    text = page(results)
    assert "| `yeast` | 0.510 ± 0.010 | 0.610 ± 0.010, profile-QSAR (PLS) |" in text
    assert "| **+0.100** |" in text
    assert "| `yeast` | 0.510 ± 0.010, **+0.110** |" in text
    assert "mean ± standard deviation of 3 random splits" in text
    assert "yeast 0123456789ab" in text


def test_comparisons_that_were_not_run_are_left_out(results):
    text = page({audit.NAME: results[audit.NAME]})
    assert "## Audit" in text
    assert "## Complete" not in text


def test_all_rows_have_each_share(results):
    lines = full_page(results)
    assert "| row | 30% given | 50% given |" in lines
    assert "| default | 0.710 ± 0.010 | 0.710 ± 0.010 |" in lines
    assert "| `toxcast` | 5 | 5.50 | 5.00 | 1.10 |" in lines
    assert any(line.startswith("| `yeast` | 2% flipped | 0.400 ± 0.000 |") for line in lines)
