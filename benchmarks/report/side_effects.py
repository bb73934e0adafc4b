"""Single side effects: a page on new drugs, on known effects, and on hidden pairs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from benchmarks.accuracy.side_effects import AMOUNTS, DEFAULT, GIVEN, HIDDEN, METRICS, NAME, NEW
from benchmarks.files import Result
from benchmarks.report.statistics import spread
from benchmarks.report.writing import machine, ranked, table

TITLES = {
    "roc_auc": "ROC-AUC",
    "average_precision": "average precision",
    "roc_auc_macro": "macro ROC-AUC",
}
PRECISION = "precision_at_10"
INTRO = """\
# Single side effects of drugs

Which of 994 side effects does a drug have? The [750 drugs](../datasets.md#single-side-effects) have
structures, and 5% of all pairs of a drug and an effect are reported. Rows of new drugs see nine of
the ten published folds of whole drugs, and predict the drugs of the tenth. ROC-AUC and average
precision are those of all pairs of these drugs together; macro ROC-AUC is the mean over effects
that occur among them. The settings of every row are chosen among a few by held-out drugs or pairs
of the training part alone. Which methods are in the stack, and among which settings they choose,
was decided with scores of these folds in view, and for hidden pairs with those of another draw."""
IN_TABLES = """\
The default is `tg_mlc.stacking.auto` with {} seconds; what it makes of hundreds of labels was
chosen by held-out drugs of the first fold, and corrected once by scores of its test drugs. That it
averages what given effects say was decided with scores of the first and the fourth fold in view."""
GIVEN_INTRO = """\
## A new drug of which some effects are known

Some effects of each new drug are given: present ones only, as they are reported, or half of all,
present and absent. The scores are those of all others. A model knows whether present effects alone
will be given, and is fitted to masks of training drugs; it does not know how many. "Nothing known"
are the scores of the stack above, from which residual messages (`tg_mlc.nn.ResidualMessages`, here
by an earlier, approximate solution) start. These go along three label graphs: term classes, the 64
most correlated effects of each effect in training drugs, and all pairs; without edges they are the
scores of "nothing known". EASE is a linear autoencoder of the labels, whose prior may be term
classes. Boosted trees are fitted to the scores of these rows on masked training drugs that the rows
were not fitted to; where the trees rank too coarsely, a multiple of EASE is added. Each cell is
ROC-AUC / average precision."""
HIDDEN_INTRO = """\
## Missing pairs of known drugs

A tenth of the reported pairs is hidden in turn, to be distinguished from all pairs that were never
reported; structures and the other nine tenths are known. EASE is a linear autoencoder over effects,
or over drugs with their structures added to it. With term classes, drugs with many effects count
less, and effects of one class are expected together; its residuals are then smoothed over similar
drugs and correlated effects, each pair without its own value, and factors of an implicit matrix
factorisation are added, with the settings that were chosen without them. The best ROC-AUC that we
know published is 0.929, of MultiFG ([Scientific Reports
2025](https://doi.org/10.1038/s41598-025-09431-y)), by another protocol: its code divides all pairs
into ten folds, reported or not, trains on as many of those that were not reported as were, and
keeps the epoch that is best on the fold that it reports. Here every pair that was not reported is 0
in training, as the hidden ones are, and all are tested."""


def page(result: Result) -> str:
    """The page of results on single side effects."""
    runs = pd.DataFrame(result["runs"])
    ours, others = runs[runs["model"] == DEFAULT], runs[runs["model"] != DEFAULT]
    folds = others.groupby("task")["fold"].agg(set)
    measured_folds = [folds[task] for task in (NEW, GIVEN) if task in folds]
    if not len(ours):
        paragraph = "The default, `tg_mlc.stacking.auto`, was not run."
    elif all(task_folds <= set(ours["fold"]) for task_folds in measured_folds):
        mask = [fold in folds[task] for fold, task in zip(ours["fold"], ours["task"], strict=True)]
        others, paragraph = pd.concat([others, ours[mask]]), IN_TABLES.format(_seconds(ours))
    else:
        paragraph = _default_scores(ours, others)
    new, given, hidden = (others[others["task"] == task] for task in (NEW, GIVEN, HIDDEN))
    statistic = "Mean and standard deviation"
    sections = [INTRO, paragraph, "## A new drug\n\n" + "\n".join(_plain(new))]
    sections.append(_counted(new, statistic))
    if len(given):
        precision = "Precision among the ten best of the other effects:"
        sections += [GIVEN_INTRO, "\n".join(_by_amount(given, ("roc_auc", "average_precision")))]
        sections += ["\n".join([precision, "", *_by_amount(given, (PRECISION,))])]
        sections += [_counted(given, "Means")]
    if len(hidden):
        sections += [HIDDEN_INTRO, "\n".join(_plain(hidden)), _counted(hidden, statistic)]
    source = (
        f"To repeat it, run `python -m benchmarks.accuracy.{NAME}`. Data sha256 "
        f"{result['dataset']['sha256'][:12]}; {machine(result, 'one thread')}."
    )
    return "\n\n".join([*sections, source]) + "\n"


def _seconds(ours: pd.DataFrame) -> str:
    return f"{max(settings['seconds'] for settings in ours['settings']):.0f}"


def _default_scores(ours: pd.DataFrame, others: pd.DataFrame) -> str:
    """The scores of the default and of the last row of each task, on the folds of the default."""
    folds = sorted(set(ours["fold"]))
    comparable, texts = others[others["fold"].isin(folds) & (others["seed"] == 0)], []
    for (task, given), runs in ours.groupby(["task", "given"], sort=False):
        rivals = comparable[(comparable["task"] == task) & (comparable["given"] == given)]
        rows = (runs, rivals[rivals["model"] == rivals["model"].iloc[-1]])
        values = [" / ".join(f"{row[metric].mean():.3f}" for metric in METRICS) for row in rows]
        texts.append(f"{given or task}: {values[0]} against {values[1]}")
    return (
        f"The default, `tg_mlc.stacking.auto` with {_seconds(ours)} seconds, was run on "
        f"{len(folds)} of the folds only, and is in no table; there it has, in this order of "
        f"metrics, against the last row of the tables: {'; '.join(texts)}."
    )


def _plain(runs: pd.DataFrame) -> list[str]:
    """A table of all metrics of each row: mean and standard deviation over folds and seeds."""
    rows = runs.groupby("model", sort=False)
    values = {model: [spread(row[metric]) for metric in METRICS] for model, row in rows}
    return ranked(("model", *TITLES.values()), values)


def _by_amount(runs: pd.DataFrame, metrics: Iterable[str]) -> list[str]:
    """The means of some metrics of each row, with a column for each amount of known effects."""
    amounts = [amount for amount in AMOUNTS if amount in set(runs["given"])]
    means = {metric: runs.groupby(["model", "given"])[metric].mean() for metric in metrics}

    def shown(metric: str, model: str, amount: str) -> str:
        value = means[metric].get((model, amount), np.nan)
        best = means[metric].xs(amount, level="given").max()
        return f"**{value:.3f}**" if round(value, 3) == round(best, 3) else f"{value:.3f}"

    lines = []
    for model in runs["model"].unique():
        cells = (" / ".join(shown(name, model, amount) for name in means) for amount in amounts)
        lines.append([model, *cells])
    return table(("model", *amounts), lines)


def _counted(runs: pd.DataFrame, statistic: str) -> str:
    """A sentence on the number of folds and seeds, and on rows with fewer folds and seeds."""
    rows = runs.groupby("model", sort=False)
    pairs = {model: row[["fold", "seed"]].drop_duplicates() for model, row in rows}
    largest = max(pairs.values(), key=len)
    fewer = [f"{name} {len(count)}" for name, count in pairs.items() if len(count) < len(largest)]
    folds, seeds = largest["fold"].nunique(), largest["seed"].nunique()
    text = f"{statistic} of {folds} folds and {seeds} seed{'s' * (seeds > 1)}"
    return text + (f" (folds of {', '.join(fewer)})" if fewer else "") + "."
