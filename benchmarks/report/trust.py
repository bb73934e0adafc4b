"""Trust in a probability: a page with the coverage of label sets, and with errors before and after calibration."""

from __future__ import annotations

import pandas as pd

from benchmarks.accuracy.trust import NAME, PLAIN, TOLERANCE
from benchmarks.files import Result
from benchmarks.report.statistics import spread
from benchmarks.report.writing import cell, machine, table

INTRO = """\
# Trust in a probability

## Do label sets hold what they promise?

The default is fitted to a random half of each data set; the other half is divided {resplits} times into calibration
and test samples. "Labels" is the mean over labels of the share that sets hold of the test samples to which a label
applies, with the least and the most of any label (each a mean over the divisions of a seed); "within" counts labels
whose share is from the promise less {tolerance:g} to the promise plus 1/(n + 1) plus {tolerance:g}, n being the
calibration samples to which the label applies. Labels with too few of these are held by all sets. "Samples" is the mean
share of the labels of a sample, over samples with any. A promise per label says nothing of samples, and one per sample
nothing of labels; {plain} promise nothing."""
CALIBRATION = """\
## What does calibration change?

The default and its classifiers on the other half, before and after each label was calibrated by held-out scores of the
first half: expected calibration error (15 bins) and Brier score, means of labels, and the log loss of all entries;
"changed" is the mean number of labels for which held-out scores preferred a function to the identity."""
ERRORS = {"ece": "ECE", "brier": "Brier score", "log loss": "log loss"}


def page(result: Result) -> str:
    """The page."""
    runs = pd.DataFrame(result["runs"])
    sets, calibrated = runs[runs["sets"].notna()], runs[runs["model"].notna()]
    heads = (
        "data set",
        "label sets",
        "labels",
        "least, most",
        "within",
        "samples",
        "size",
        "labels that apply",
    )
    lines = [_of_sets(*key, each) for key, each in sets.groupby(["dataset", "sets"], sort=False)]
    errors = (f"{title}{when}" for title in ERRORS.values() for when in ("", ", calibrated"))
    rows = [
        _of_errors(*key, each) for key, each in calibrated.groupby(["dataset", "model"], sort=False)
    ]
    hashes = "; ".join(f"{name} {each['sha256'][:12]}" for name, each in result["datasets"].items())
    sections = [
        INTRO.format(resplits=result["settings"]["resplits"], tolerance=TOLERANCE, plain=PLAIN),
        "\n".join(table(heads, lines)),
        CALIBRATION,
        "\n".join(table(("data set", "model", "changed", *errors), rows)),
        f"Seeds {result['seeds']}, of halves, divisions and fits (mean ± standard deviation). To repeat it, run "
        f"`python -m benchmarks.accuracy.{NAME}`. Data sha256: {hashes}. {machine(result, 'one thread')}.",
    ]
    return "\n\n".join(sections) + "\n"


def _of_sets(name: str, rule: str, runs: pd.DataFrame) -> list[str]:
    counted = runs[runs["per"] == "label"][["labels within", "labels"]].to_numpy()
    within = [f"{int(number)} of {int(of)}" for number, of in counted]
    reach = f"{runs['least label'].min():.3f}" + (
        "" if rule == PLAIN else f", {runs['most label'].max():.3f}"
    )
    of_labels, of_samples = (cell(spread(runs[f"of {what}"])) for what in ("labels", "samples"))
    sizes = (f"{runs[size].mean():.1f}" for size in ("size", "true size"))
    return [name, rule, of_labels, reach, "; ".join(within), of_samples, *sizes]


def _of_errors(name: str, model: str, runs: pd.DataFrame) -> list[str]:
    before, after = (runs[runs["calibrated"] == is_calibrated] for is_calibrated in (False, True))
    cells = (cell(spread(each[error])) for error in ERRORS for each in (before, after))
    return [name, model, f"{runs['changed labels'].mean():.1f}", *cells]
