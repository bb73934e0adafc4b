"""Trust in a probability: a page with the coverage of label sets, and errors of probabilities."""

from __future__ import annotations

import pandas as pd

from benchmarks.accuracy.trust import NAME, PLAIN, TOLERANCE
from benchmarks.files import Result
from benchmarks.report.statistics import spread
from benchmarks.report.writing import cell, machine, table

INTRO = """\
# Trust in a probability

## Do label sets hold what they promise?

The default is fitted to a random half of each data set; the other half is divided {resplits} times
into calibration and test samples. "Labels" is the coverage of a label, the fraction of the test
samples with this label whose sets contain it, in the mean over labels, with the least and the
largest of any label (each a mean over the divisions of a seed). "Within" counts the labels whose
coverage is from the promise less {tolerance:g} to the promise plus 1/(n + 1) plus {tolerance:g},
for n calibration samples with the label. Labels with too few of these are in all sets. "Samples" is
the mean fraction of the labels of a sample that its set contains, over samples with any. A promise
per label says nothing of samples, and one per sample nothing of labels; {plain} promise nothing."""
CALIBRATION = """\
## What does calibration change?

The default and its classifiers on the other half, before and after each label was calibrated by
held-out scores of the first half: expected calibration error (15 bins) and Brier score, means of
labels, and the log loss of all entries; "changed" is the mean number of labels for which held-out
scores preferred a function to the identity."""
ERRORS = {"ece": "ECE", "brier": "Brier score", "log loss": "log loss"}


def page(result: Result) -> str:
    """The page of results on label sets and calibration."""
    runs = pd.DataFrame(result["runs"])
    set_runs, calibration_runs = runs[runs["sets"].notna()], runs[runs["model"].notna()]
    heads = ("data set", "label sets", "labels", "least, largest", "within", "samples", "size")
    lines = [_sets_row(*key, df) for key, df in set_runs.groupby(["dataset", "sets"], sort=False)]
    by_model = calibration_runs.groupby(["dataset", "model"], sort=False)
    errors = (f"{title}{suffix}" for title in ERRORS.values() for suffix in ("", ", calibrated"))
    error_rows = [_errors_row(*key, model_runs) for key, model_runs in by_model]
    hashes = "; ".join(f"{name} {data['sha256'][:12]}" for name, data in result["datasets"].items())
    return "\n\n".join(
        [
            INTRO.format(resplits=result["settings"]["resplits"], tolerance=TOLERANCE, plain=PLAIN),
            "\n".join(table((*heads, "labels that apply"), lines)),
            CALIBRATION,
            "\n".join(table(("data set", "model", "changed", *errors), error_rows)),
            f"Seeds {result['seeds']}, of halves, divisions and fits (mean ± standard deviation). "
            f"To repeat it, run `python -m benchmarks.accuracy.{NAME}`. Data sha256: {hashes}. "
            f"{machine(result, 'one thread')}.\n",
        ]
    )


def _sets_row(name: str, rule: str, runs: pd.DataFrame) -> list[str]:
    counts = runs[runs["per"] == "label"][["labels within", "labels"]].to_numpy()
    within = [f"{int(number)} of {int(total)}" for number, total in counts]
    extremes = f"{runs['least label'].min():.3f}"
    extremes += "" if rule == PLAIN else f", {runs['most label'].max():.3f}"
    by_label, by_sample = (cell(spread(runs[f"of {unit}"])) for unit in ("labels", "samples"))
    sizes = (f"{runs[size].mean():.1f}" for size in ("size", "true size"))
    return [name, rule, by_label, extremes, "; ".join(within), by_sample, *sizes]


def _errors_row(name: str, model: str, runs: pd.DataFrame) -> list[str]:
    before, after = (runs[runs["calibrated"] == is_calibrated] for is_calibrated in (False, True))
    cells = (cell(spread(group[error])) for error in ERRORS for group in (before, after))
    return [name, model, f"{runs['changed labels'].mean():.1f}", *cells]
