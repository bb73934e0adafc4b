from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from benchmarks.accuracy.papers import WORDNET
from benchmarks.accuracy.runs import Row
from benchmarks.report import messages
from benchmarks.report.messages import EDGELESS, GIVEN, comparisons
from tests.benchmarks.report.cells import stored, table

COMPLETE, PRIOR = (replace(EDGELESS, graph=graph) for graph in ("complete", "prior"))
BASE = (0.50, 0.52, 0.51, 0.53, 0.49)
NOISE = (0.0001, -0.0001, 0.0002, -0.0002, 0.0001)


def cells(row, gain, dataset="emotions", *, seeds=range(5)):
    """Returns cells that exceed the edgeless row by `gain` and a little noise in every seed."""
    return [
        stored(row, 10 + seed, BASE[seed] + (gain + NOISE[seed] if gain else 0), dataset)
        for seed in seeds
    ]


def text(*groups):
    return "\n".join(messages.section(table(cell for group in groups for cell in group)))


def shown(cells):
    return messages.shown(table(cells))


VERDICT = "**In samples F1, attention among labels"
WHERE = "where a difference is significant: above `edgeless` in"


def test_the_verdict_follows_from_the_results():
    helps, hurts = cells(COMPLETE, 0.05), cells(PRIOR, -0.05)
    assert f"{VERDICT} helps {WHERE} 1 of 1" in text(cells(EDGELESS, 0), helps)
    assert f"{VERDICT} hurts where" in text(cells(EDGELESS, 0), hurts)
    both = text(cells(EDGELESS, 0), helps, hurts)
    assert f"{VERDICT} helps in some comparisons and hurts in others: above `edgeless` in" in both
    assert f"- LaMP prior hurts {WHERE} 0 of 1 comparisons" in both
    # Only significant differences in the primary metric are bold.
    gain = "+0.0500, p < 0.01"
    assert f"| LaMP complete, from LaMP edgeless | **{gain}** | {gain} |" in both
    counts = "uncorrected: 8 of 8 (4 above, 4 below); by chance alone there would be about 0.4."
    assert f"p < 0.05, {counts}" in both
    assert "| LaMP prior, from LaMP edgeless | 0 of 1 (0, 1) |" in both
    nothing = text(cells(EDGELESS, 0), cells(COMPLETE, 1e-5))
    assert f"{VERDICT} makes no significant difference: above `edgeless` in 1 of 1" in nothing
    p = ttest_1samp(np.array(NOISE) + 1e-5, 0.0).pvalue
    assert f"| LaMP complete, from LaMP edgeless | +0.0000, p = {p:.2f} |" in nothing


def test_only_label_graphs_in_the_primary_metric_are_corrected():
    few = [*cells(EDGELESS, 0), *cells(COMPLETE, 3e-4)]
    many = [*few, *(cell for row in (PRIOR, GIVEN) for cell in cells(row, 1e-5))]
    many += [*cells(replace(PRIOR, change="T=4"), 1e-5, seeds=[0, 1])]
    many += [*cells(EDGELESS, 0, "yeast"), *cells(COMPLETE, 1e-5, "yeast")]
    # Two seeds are too few for the correction.
    many += [*cells(EDGELESS, 0, "sider"), *cells(COMPLETE, 0.3, "sider", seeds=[0, 1])]
    assert len(comparisons(shown(few))) == 5
    assert len(comparisons(shown(many))) == 30
    compared = comparisons(shown(many)).dropna(subset="corrected")
    rows = set(compared[["dataset", "row", "metric"]].itertuples(index=False, name=None))
    assert rows == {
        ("emotions", COMPLETE, "f1_samples"),
        ("emotions", PRIOR, "f1_samples"),
        ("yeast", COMPLETE, "f1_samples"),
    }
    before, after = (
        next(test for test in comparisons(shown(group)).itertuples() if test.row == COMPLETE)
        for group in (few, many)
    )
    assert before.p == after.p
    assert after.corrected == pytest.approx(3 * after.p)
    assert before.corrected == pytest.approx(before.p)


def test_rows_of_few_seeds_are_shown_without_a_verdict():
    few = [cells(PRIOR, -0.3, seeds=[0, 1]), cells(EDGELESS, 0, "yeast", seeds=[0])]
    written = text(cells(EDGELESS, 0), cells(COMPLETE, 0.01), *few)
    assert f"{VERDICT} helps {WHERE} 1 of 1" in written
    assert "| LaMP prior, from LaMP edgeless, 2 seeds | -0.3000, p < 0.01 |" in written
    assert "| LaMP prior, from LaMP edgeless | 0 of" not in written
    paired = "Seeds of LaMP edgeless, with which the others are paired: 5 on emotions, 1 on yeast"
    assert f"- {paired}" in written
    assert "fewer than 3 seeds: emotions LaMP prior: 2, yeast LaMP edgeless: 1" in written
    too_few = text(cells(EDGELESS, 0), cells(COMPLETE, 0.01, seeds=[0, 1]))
    assert too_few.startswith("**No label graph was compared with `edgeless` over 3 seeds or m")


def test_only_seeds_and_data_sets_of_the_edgeless_row_are_shown():
    selected = [*cells(EDGELESS, 0, seeds=[0, 1, 2]), *cells(PRIOR, 0, seeds=[4])]
    selected += [*cells(COMPLETE, 0.1), *cells(COMPLETE, 0.1, "yeast")]
    groups = shown(selected)
    assert {key: list(group["seed"]) for key, group in groups.items()} == {
        ("emotions", EDGELESS): [10, 11, 12],
        ("emotions", COMPLETE): [10, 11, 12],
    }
    written = text(cells(EDGELESS, 0), cells(COMPLETE, 0.1, seeds=[0, 1]))
    assert "| model, T=2 and 5 seeds unless stated | samples F1 |" in written
    assert "| LaMP complete, 2 seeds | 0.610 ± 0.014 |" in written
    single_seed = text(cells(EDGELESS, 0, seeds=[0]), cells(COMPLETE, 0.1, seeds=[0]))
    assert single_seed.startswith("Not run with two seeds or more.")


def test_rows_are_compared_with_rows_of_the_same_number_of_steps():
    rows = (replace(row, change="T=4") for row in (EDGELESS, COMPLETE, PRIOR))
    deep_edgeless, deep_complete, deep_prior = rows
    dropped = replace(COMPLETE, change="label dropout 0.5")
    deep = [stored(deep_edgeless, 10 + i, 0.2 + base, "emotions") for i, base in enumerate(BASE)]
    emotions = [*cells(EDGELESS, 0), *deep, *cells(deep_complete, 0.21), *cells(dropped, 0.01)]
    groups = shown([*emotions, *cells(EDGELESS, 0, "yeast"), *cells(deep_prior, 0.1, "yeast")])
    tests = {(pair.dataset, pair.row): pair for pair in comparisons(groups).itertuples()}
    assert {key: test.against for key, test in tests.items()} == {
        ("emotions", deep_complete): deep_edgeless,
        ("emotions", dropped): EDGELESS,  # The edgeless row had no label dropout.
        ("yeast", deep_prior): EDGELESS,  # Yeast has no edgeless row with T=4.
    }
    assert tests["emotions", deep_complete].mean_difference == pytest.approx(0.01, abs=1e-3)
    # A row that differs in more than its label graph is exploratory.
    written = text([*emotions, *cells(COMPLETE, -0.01)])
    assert f"{VERDICT} hurts {WHERE} 0 of 1 " in written
    # Label dropout has no p because its difference from `complete` is the same for all seeds.
    assert "uncorrected: 9 of 14 (5 above, 4 below)" in written


def test_changes_of_training_are_compared_with_the_same_graph():
    dropped = replace(PRIOR, change="label dropout 0.5")
    values = [base + 0.01 - noise for base, noise in zip(BASE, NOISE, strict=True)]
    given = [stored(GIVEN, seed, value, "emotions") for seed, value in enumerate(values, 10)]
    rows = [cells(EDGELESS, 0), cells(COMPLETE, 0.02), cells(PRIOR, 0.04), given]
    rows.append(cells(dropped, 0.05))
    compared = comparisons(shown([cell for entry in rows for cell in entry]))
    tests = {entry.row: entry for entry in compared.itertuples() if entry.metric == "f1_samples"}
    assert {row: test.against for row, test in tests.items()} == {
        COMPLETE: EDGELESS,
        PRIOR: EDGELESS,
        GIVEN: COMPLETE,
        dropped: PRIOR,
    }
    assert tests[GIVEN].mean_difference == pytest.approx(-0.01, abs=1e-3)
    assert "| LaMP with known labels complete, from LaMP complete | 0 of 1 (0, 1) |" in text(*rows)


def test_similarity_of_names_is_exploratory():
    named = replace(EDGELESS, graph=WORDNET)
    compared = comparisons(shown([*cells(EDGELESS, 0), *cells(named, 0.1)]))
    (test,) = compared[compared["metric"] == "f1_samples"].itertuples()
    assert test.against == EDGELESS
    assert np.isnan(test.corrected)


def test_the_page_describes_seeds_and_shows_untested_classifiers():
    models, classifier = [cells(COMPLETE, 0.01), cells(GIVEN, 0.01)], cells(Row("linear SVM"), 0.1)
    written = text(cells(EDGELESS, 0), classifier, *models)
    assert "All seeds share one split" in written
    assert written.index("| linear SVM | 0.610 ± 0.016 |") < written.index("| LaMP edgeless |")
    assert "linear SVM, from" not in written
    assert "| LaMP with known labels complete, from LaMP complete | +0.0000" in written
    resampled = [*cells(EDGELESS, 0), *cells(COMPLETE, 0.01)]
    for cell in resampled:
        cell["run"]["test"] = str(cell["run"]["seed"])
    assert "Every seed divides samples anew" in text(resampled)


def test_metrics_undefined_for_a_seed_are_not_compared():
    selected = [*cells(EDGELESS, 0), *cells(COMPLETE, 0.01)]
    selected[0]["run"]["metrics"]["roc_auc_macro"] = None
    assert set(comparisons(shown(selected))["metric"]) == {*messages.COLUMNS} - {"roc_auc_macro"}
    lines = text(selected).splitlines()
    assert any(line.startswith("| LaMP complete, from") and "|  |" in line for line in lines)
