import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata, ttest_1samp

from benchmarks.accuracy.runs import SILENT, Row, Run, frame
from benchmarks.report.comparisons import recovered
from benchmarks.report.statistics import Ranks, compare_rows, iman_davenport, paired_tests, spread
from benchmarks.report.writing import p_in_words
from tg_mlc.metrics.paired import corrected_difference

EDGELESS, COMPLETE = (Row("LaMP", False, graph, "best") for graph in ("edgeless", "complete"))
WITH_MESSAGES = Row("LaMP", True, "edgeless", "best")
FOREST = Row("random forest")


def runs(values, *, drawn=True):
    rows = []
    for row, row_values in values.items():
        for seed, value in enumerate(row_values):
            metrics, test = dict.fromkeys(("roc_auc_macro", "f1_macro"), value), seed * drawn
            rows.append(Run(row, seed, "hash", 1.0, metrics, [], test=f"rows {test}").to_dict())
    return frame(rows)


@pytest.mark.parametrize(
    ("values", "mean", "sd"),
    [
        ([0.6, 0.7, 0.65], 0.65, 0.05),
        ([0.5, 0.5], 0.5, 0.0),
        ([0.6], 0.6, None),
        ([0.5, None], None, None),
        (None, None, None),
    ],
)
def test_spread_over_seeds(values, mean, sd):
    stats = spread(values)
    assert (stats["mean"], stats["sd"]) == (mean and pytest.approx(mean), sd and pytest.approx(sd))


@pytest.mark.parametrize("order", [1, -1])
def test_only_recovery_of_all_seeds_is_summarised(order):
    prior, wordnet = "learned attention, prior", "learned attention, wordnet"
    seeds = [{wordnet: {"ROC-AUC": 0.5}, prior: {"ROC-AUC": 0.6}}, {prior: {"ROC-AUC": 0.7}}]
    summary = recovered(pd.DataFrame({"recovery": seeds[::order]}))
    assert summary == {"learned attention, prior": {"ROC-AUC": pytest.approx(0.65)}}


def test_rows_are_compared_by_a_corrected_paired_test():
    rows = runs({EDGELESS: [0.60, 0.70, 0.65], COMPLETE: [0.62, 0.73, 0.67], FOREST: [0.5] * 3})
    tests = {test.metric: test for test in compare_rows(rows, COMPLETE, EDGELESS)}
    assert set(tests) == {"roc_auc_macro", "f1_macro"}
    test = tests["roc_auc_macro"]
    assert test.name == "corrected paired t-test"
    assert test.mean_difference == pytest.approx(0.07 / 3)
    assert test.p == pytest.approx(corrected_difference(np.array([0.02, 0.03, 0.02])).p)
    assert compare_rows(rows, WITH_MESSAGES, EDGELESS) == []


def test_rows_are_tested_against_baselines_and_against_other_graphs():
    published = Row("LaMP", False, "edgeless", "published")
    models, baselines = (COMPLETE, EDGELESS, WITH_MESSAGES, published), (FOREST, Row(SILENT))
    values = {row: [0.6, 0.7, 0.6 + 0.01 * i] for i, row in enumerate((*baselines, *models))}
    tests = [pair for pair in paired_tests(runs(values)) if pair.metric == "roc_auc_macro"]
    # Both rows of the last pair have the same messages and settings.
    expected = [*((row, other) for other in baselines for row in models), (COMPLETE, EDGELESS)]
    assert [(test.row, test.against) for test in tests] == expected


def test_changes_are_tested_against_the_unchanged_row():
    step = Row("LaMP", False, "complete", "best", "one step")
    edgeless = Row("LaMP", False, "edgeless", "best", "no messages")
    values = {COMPLETE: [0.6, 0.7], step: [0.5, 0.6], edgeless: [0.5, 0.65]}
    tests = [pair for pair in paired_tests(runs(values)) if pair.metric == "f1_macro"]
    assert [(test.row, test.against) for test in tests] == [(step, COMPLETE), (edgeless, COMPLETE)]


def test_p_value_is_corrected_for_overlapping_splits():
    difference = np.array([0.01, 0.03, 0.02, 0.00, 0.04])
    plain, corrected = ttest_1samp(difference, 0).pvalue, corrected_difference(difference).p
    assert corrected > plain
    assert corrected_difference(difference, test_share=0.0).p == pytest.approx(plain)
    assert corrected_difference(np.zeros(5)).p == 1.0


def test_the_same_difference_for_all_seeds_has_no_p_value():
    differences = np.array([0.3, 0.2, 0.1]) + 0.1 - np.array([0.3, 0.2, 0.1])
    assert 0 < differences.std() < 1e-12  # The differences vary only by rounding.
    assert corrected_difference(differences).p is None
    assert "undefined" in p_in_words(None)


def test_seeds_that_share_a_split_need_no_correction():
    rows = runs({EDGELESS: [0.60, 0.70, 0.65], COMPLETE: [0.62, 0.73, 0.67]}, drawn=False)
    test = compare_rows(rows, COMPLETE, EDGELESS)[0]
    assert test.name == "paired t-test"
    assert test.p == pytest.approx(ttest_1samp([0.02, 0.03, 0.02], 0).pvalue)


#: Table 6 of Demsar 2006: AUC of C4.5 with and without two tuned parameters, on 14 data sets. The
#: paper prints two equal values for the last but one data set, but ranks them second and third.
NAMES = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")
AUC = """
0.763 0.768 0.771 0.798
0.599 0.591 0.590 0.569
0.954 0.971 0.968 0.967
0.628 0.661 0.654 0.657
0.882 0.888 0.886 0.898
0.936 0.931 0.916 0.931
0.661 0.668 0.609 0.685
0.583 0.583 0.563 0.625
0.775 0.838 0.866 0.875
1.000 1.000 1.000 1.000
0.940 0.962 0.965 0.962
0.619 0.666 0.614 0.669
0.972 0.981 0.976 0.975
0.957 0.978 0.946 0.970
"""


@pytest.fixture
def demsar():
    columns = np.array([line.split() for line in AUC.split("\n") if line], dtype=float).T
    return Ranks.of({name: column.tolist() for name, column in zip(NAMES, columns, strict=True)})


def test_ranks_match_the_example_of_demsar_2006(demsar):
    assert demsar.num_datasets == 14
    assert [round(rank, 3) for rank in demsar.mean.values()] == [3.143, 2.0, 2.893, 1.964]
    # Section 3.2.2 gives 9.28 without the correction for ties, which divides by 1 - ties.
    ranks = np.array(list(demsar.mean.values()))
    uncorrected = 12 * 14 / (4 * 5) * ((ranks**2).sum() - 4 * 25 / 4)
    assert uncorrected == pytest.approx(9.28, abs=0.005)
    rows = np.array([line.split() for line in AUC.split("\n") if line], dtype=float)
    sizes = [np.unique(rankdata(row), return_counts=True)[1] for row in rows]
    ties = sum(int((size**3 - size).sum()) for size in sizes) / (14 * 4 * 15)
    chi_square = uncorrected / (1 - ties)
    assert demsar.statistic == pytest.approx(13 * chi_square / (14 * 3 - chi_square))
    assert 0.01 < demsar.p < 0.05
    # F(3, 39) is 3.69 without the correction for ties. The critical value at 5% is 2.85.
    statistic, p = iman_davenport(9.28, 4, 14)
    assert statistic == pytest.approx(3.69, abs=0.005)
    assert p < 0.05
    critical = 14 * 3 * 2.85 / (13 + 2.85)  # This is the chi-square of F = 2.85.
    assert iman_davenport(critical, 4, 14)[1] == pytest.approx(0.05, abs=5e-4)
    # Section 3.2.2 uses the critical values 2.569 and 2.291.
    assert demsar.critical_difference(0.05) == pytest.approx(1.25, abs=0.005)
    assert demsar.critical_difference(0.10) == pytest.approx(1.12, abs=0.005)


def test_equal_ranks_on_all_data_sets_have_a_p_value_of_zero():
    ranks = Ranks.of({"x": [0.3, 0.6, 0.9], "y": [0.2, 0.5, 0.8], "z": [0.1, 0.4, 0.7]})
    assert ranks.statistic == np.inf
    assert ranks.p == 0


def test_cliques_join_models_without_significant_differences(demsar):
    assert demsar.cliques(0.05) == [["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"]]
    # At 10% the worst rank, 3.143, differs from both best ranks, and 2.893 from neither.
    assert demsar.cliques(0.10) == [["C4.5+m+cf", "C4.5+m", "C4.5+cf"], ["C4.5+cf", "C4.5"]]
