from benchmarks.accuracy.auto import COMBINED, OURS
from benchmarks.accuracy.runs import frame
from benchmarks.files import describe_environment
from benchmarks.report.default import COLUMNS, page, section, summary
from tg_mlc.datasets.registry import published

BEST = "the best classifier, random forest"
ROWS = {"label frequency": 0.9, "linear SVM": 0.5, "random forest": 0.6, OURS: 0.65}


def points(num_seeds):
    """Returns runs. Metrics rise by 0.01 with every seed, or by 0.02 for the default."""
    runs = []
    for seed in range(num_seeds):
        for row, value in ROWS.items():
            metrics = dict.fromkeys(COLUMNS, value + 0.01 * seed * (1 + (row == OURS)))
            run = {"dataset": "emotions", "seed": seed, "model": row, "seconds": 3.0}
            runs.append({**run, "metrics": metrics})
    return runs


def test_the_table_compares_with_the_best_classifier():
    lines = section(frame(points(3)))
    assert "| random forest | " + " | ".join(["0.610 ± 0.010"] * len(COLUMNS)) + " | 3 |" in lines
    compared = [line for line in lines if line.startswith("- ")]
    assert len(compared) == len(COLUMNS)
    assert compared[0].startswith(f"- subset accuracy: +0.0600 from {BEST}, p")


def test_one_seed_has_neither_spread_nor_test():
    lines = section(frame(points(1)))
    assert "±" not in "".join(lines)
    assert f"- subset accuracy: +0.0500 from {BEST}" in lines


def test_every_data_set_has_a_section():
    text = page({"runs": points(2), "seconds": 60, "environment": describe_environment()})
    assert f"## {published('emotions').title}" in text
    assert "at most about 60 seconds" in text


def test_the_summary_counts_comparisons():
    better = points(3)
    worse = [{**point, "dataset": "yeast"} for point in better]
    for point in worse:
        if point["model"] == OURS:
            seed = point["seed"]
            point["metrics"] = dict.fromkeys(COLUMNS, 0.4 + 0.01 * seed + 1e-4 * seed**2)
    text = summary(frame(better + worse))
    assert text.startswith("In 6 of 12 comparisons (2 data sets, 6 metrics)")
    assert "significantly above in 6, significantly below in 6" in text


def test_gains_by_label_messages_are_shown():
    runs = points(3)
    assert not any("gain by label messages" in line for line in section(frame(runs)))
    forest = [point for point in runs if point["model"] == "random forest"]
    lines = section(frame([*runs, *({**point, "model": COMBINED} for point in forest)]))
    gain = "gain by label messages over the classifiers combined"
    assert lines[-1].startswith(f"- {gain}: subset accuracy +0.0600 (p")
    assert lines[-2].startswith(f"- macro average precision: +0.0600 from {BEST}")


def test_labels_are_grouped_by_number_of_positives():
    runs = points(2)
    assert not any("bels by the number" in line for line in section(frame(runs)))
    for index, run in enumerate(runs):
        metrics = {"labels": 3, "roc_auc": 0.9, "average_precision": 0.1 * index}
        run["by_positives"] = {"0": {**metrics, "roc_auc": 0.5}, "1 to 4": metrics}
    lines = section(frame(runs))
    assert "| model | 0: 3 | 1 to 4: 3 |" in lines
    assert "| linear SVM | **0.500** ± 0.000 | 0.300 ± 0.283 |" in lines
