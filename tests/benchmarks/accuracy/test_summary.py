from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from benchmarks.accuracy.rows import SILENT, Row
from benchmarks.accuracy.runs import Run
from benchmarks.accuracy.summary import by_row, compare_rows, corrected_p_value, p_in_words, paired_tests, summarise

EL, FC, FMP_EL = (
    Row("LaMP", encoder, graph, "best") for encoder, graph in (("emb", "el"), ("emb", "fc"), ("fmp", "el"))
)
FOREST = Row("random forest")


def runs(values: dict[Row, list[float]]) -> list[Run]:
    return [
        Run(row, seed, "hash", 1.0, {"roc_auc_macro": value, "f1_macro": value}, [], test=f"rows {seed}")
        for row, of_seed in values.items()
        for seed, value in enumerate(of_seed)
    ]


def test_what_a_seed_leaves_undefined_is_no_number() -> None:
    summary = summarise([Run(EL, 0, "hash", 1.0, {"roc_auc_macro": None, "f1_macro": 0.5}, []) for _ in range(2)])
    assert summary["metrics"] == {"roc_auc_macro": {"mean": None, "sd": None}, "f1_macro": {"mean": 0.5, "sd": 0.0}}
    json.dumps(summary, allow_nan=False)


def test_only_recovery_of_all_seeds_is_summarised() -> None:
    rows = runs({FC: [0.6, 0.7]})
    for row, graphs in zip(rows, (("wordnet", "pr"), ("pr",)), strict=True):
        row.recovery = {f"learned attention, {graph}": {"ROC-AUC": row.metrics["roc_auc_macro"]} for graph in graphs}
    expected = {"learned attention, pr": {"ROC-AUC": pytest.approx(0.65)}}
    assert summarise(rows)["recovery"] == summarise(rows[::-1])["recovery"] == expected


def test_one_seed_has_no_spread() -> None:
    assert summarise(runs({EL: [0.6]}))["metrics"]["f1_macro"] == {"mean": 0.6, "sd": None}


def test_summary_and_paired_test() -> None:
    rows = runs({EL: [0.60, 0.70, 0.65], FC: [0.62, 0.73, 0.67], FOREST: [0.5] * 3})
    summary = by_row(rows)[EL]
    assert summary["metrics"]["roc_auc_macro"]["mean"] == pytest.approx(0.65)
    assert summary["metrics"]["roc_auc_macro"]["sd"] == pytest.approx(0.05)
    tests = {test.metric: test for test in compare_rows(rows, FC, EL)}
    assert set(tests) == {"roc_auc_macro", "f1_macro"}
    test = tests["roc_auc_macro"]
    assert test.name == "corrected paired t-test"
    assert test.mean_difference == pytest.approx(0.07 / 3)
    assert test.p == pytest.approx(corrected_p_value(np.array([0.02, 0.03, 0.02])))
    assert compare_rows(rows, FMP_EL, EL) == []


def test_rows_are_tested_against_what_they_have_to_beat_and_against_other_graphs() -> None:
    published = Row("LaMP", "emb", "el", "published")
    values = {row: [0.6, 0.7, 0.6 + 0.01 * i] for i, row in enumerate((FOREST, Row(SILENT), FC, EL, FMP_EL, published))}
    pairs = [(test.row, test.against) for test in paired_tests(runs(values)) if test.metric == "roc_auc_macro"]
    baselines = [(row, beaten) for beaten in (FOREST, Row(SILENT)) for row in (FC, EL, FMP_EL, published)]
    assert pairs == [*baselines, (FC, EL)]  # not against other encoders, nor against others' settings


def test_changes_are_tested_against_the_whole() -> None:
    changed = [Row("LaMP", "emb", "fc", "best", "one step"), Row("LaMP", "emb", "el", "best", "no messages")]
    found = paired_tests(runs({FC: [0.6, 0.7], changed[0]: [0.5, 0.6], changed[1]: [0.5, 0.65]}))
    assert [(test.row, test.against) for test in found if test.metric == "f1_macro"] == [(row, FC) for row in changed]


def test_p_value_is_corrected_for_overlapping_splits() -> None:
    difference = np.array([0.01, 0.03, 0.02, 0.00, 0.04])
    plain, corrected = ttest_1samp(difference, 0).pvalue, corrected_p_value(difference)
    assert corrected > plain
    assert corrected_p_value(difference, test_share=0.0) == pytest.approx(plain)
    assert corrected_p_value(np.zeros(5)) == 1.0


def test_the_same_difference_for_all_seeds_has_no_p_value() -> None:
    same = np.array([0.3, 0.2, 0.1]) + 0.1 - np.array([0.3, 0.2, 0.1])
    assert 0 < same.std() < 1e-12  # from rounding alone
    assert corrected_p_value(same) is None
    assert "undefined" in p_in_words(None)


def test_seeds_that_share_a_split_need_no_correction() -> None:
    rows = runs({EL: [0.60, 0.70, 0.65], FC: [0.62, 0.73, 0.67]})
    for row in rows:
        row.test = "the same"
    test = compare_rows(rows, FC, EL)[0]
    assert test.name == "paired t-test"
    assert test.p == pytest.approx(ttest_1samp([0.02, 0.03, 0.02], 0).pvalue)
