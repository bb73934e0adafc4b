"""Labels that know each other: a page on completion, on suggestions and on audits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.accuracy import audit, complete, suggest
from benchmarks.accuracy.base_scores import SHARES
from benchmarks.files import Result
from benchmarks.report.statistics import ALPHA, spread
from benchmarks.report.writing import METRICS, cell, listed, machine, p_in_words, table
from tg_mlc.metrics.paired import Difference, corrected_difference

RESULTS = (complete.NAME, suggest.NAME, audit.NAME)
INTRO = """\
# Labels that know each other

Given the inputs, *predictions* of other labels hold nothing new for a label; their *values* do.
These tables measure three uses of values that are known: to complete the others, to suggest which
label to look up next, and to find recorded labels that are wrong. All rows of a table start from
the same scores of the inputs, by kernel ridge regressions with a calibration of each label. A
difference is called significant if its 95 % interval, of a paired t-test over splits or draws,
leaves out zero; the tests are not corrected for their number."""
COMPLETE = """\
## Complete

Half of the known labels of each test sample are given, and the others are scored. The rivals are
tuned as the default is: logistic regressions on a label's own score and the given labels, training
samples that agree with the given labels (neighbours), matrices of low rank of residuals
(softImpute), partial least squares on the profile of predictions (profile-QSAR), and an autoencoder
of present labels (EASE). "Residual messages" are {class}`tg_mlc.nn.ResidualMessages` alone; the
default combines them with neighbours or an autoencoder. To repeat:
`python -m benchmarks.accuracy.complete`."""
SUGGEST = """\
## Suggest

Labels of test samples are looked up one after the other. "Most bits" is `model.suggest`; updated
means that it is asked again after each answer, with the value. Where most labels are unknown, half
of the known ones may be looked up, and the other half is scored. To repeat:
`python -m benchmarks.accuracy.suggest`."""
AUDIT = """\
## Audit

Labels are made wrong before anything is fitted; the numbers are average precisions of finding them.
Beside each is its difference from cleanlab 2.9, which scores each label by the inputs alone, in
four ways, of which the best one is taken. [All numbers](full/joint.md), also of samples. To repeat:
`python -m benchmarks.accuracy.audit`."""
#: The metrics of the short page.
SHOWN = ("roc_auc_macro", "average_precision_macro")
STEP = 5  #: The number of labels that are looked up in comparisons.


def page(results: Mapping[str, Result]) -> str:
    """The page of all three comparisons, of those that have been run."""
    makers = {complete.NAME: _complete, suggest.NAME: _suggest, audit.NAME: _audit}
    sections = ["\n".join(make(results[name])) for name, make in makers.items() if name in results]
    return "\n\n".join([INTRO, *sections]) + "\n"


def _difference(ours: pd.Series, theirs: pd.Series, *, is_split: bool = True) -> Difference:
    """The difference of two rows over splits of the same samples, or over draws."""
    difference = (ours - theirs).to_numpy(dtype=float)
    test_share = SHARES[2] if is_split else 0.0
    return corrected_difference(difference, test_share, SHARES[0])


def _shown(difference: Difference, digits: int = 3) -> str:
    text = f"{difference.mean:+.{digits}f}"
    if difference.p is None:  # A single split or draw.
        return text
    return f"**{text}**" if difference.p < ALPHA else f"{text} ({p_in_words(difference.p)})"


def _by(runs: pd.DataFrame, key: str, column: str, repetition: str = "seed") -> pd.DataFrame:
    """A column for each row of a comparison, and a line for each repetition."""
    return runs.pivot_table(column, repetition, key, dropna=False, sort=False)


def _by_share(result: Result) -> pd.DataFrame:
    """A line for each run and share of given labels."""
    runs = [{**run, "share": result["shares"]} for run in result["runs"]]
    by_share = pd.DataFrame(runs).explode(["share", *complete.METRICS], ignore_index=True)
    return by_share.astype(dict.fromkeys(["share", *complete.METRICS], float))


def _complete(result: Result) -> list[str]:
    runs = _by_share(result)
    half = runs[np.isclose(runs["share"], 0.5)]
    lines = [COMPLETE, ""]
    for metric in SHOWN:
        rows = []
        for dataset, part in half.groupby("dataset", sort=False):
            scores = _by(part, "model", metric)
            rivals = scores.drop(columns=[complete.BASE, complete.CLOSED, complete.DEFAULT])
            best = rivals.mean().idxmax()
            difference = _difference(scores[complete.DEFAULT], scores[best])
            shown = (complete.BASE, complete.CLOSED, complete.DEFAULT)
            values = [cell(spread(scores[name])) for name in shown]
            rival = f"{cell(spread(scores[best]))}, {best}"
            rows.append([f"`{dataset}`", values[0], rival, *values[1:], _shown(difference)])
        heads = (complete.BASE, "best rival", complete.CLOSED, complete.DEFAULT, "difference")
        lines += [*table([METRICS[metric], *heads], rows), ""]
    return [*lines, *listed([_source(result, half, "seed", "random splits")])]


def full_page(results: Mapping[str, Result]) -> list[str]:
    """Tables of all rows, metrics and shares of given labels, of gains, and of wrong labels."""
    makers = {complete.NAME: completed, suggest.NAME: gains, audit.NAME: audited}
    lines = (make(results[name]) for name, make in makers.items() if name in results)
    return [line for part in lines for line in part]


def completed(result: Result) -> list[str]:
    """Tables of all rows, metrics and shares of given labels."""
    runs = _by_share(result)
    lines = []
    for dataset, part in runs.groupby("dataset", sort=False):
        for metric in complete.METRICS:
            shares = part["share"].unique()
            rows = [
                [model, *(cell(spread(values[metric])) for _, values in found.groupby("share"))]
                for model, found in part.groupby("model", sort=False)
            ]
            heads = (f"{share:.0%} given" for share in shares)
            lines += [f"## `{dataset}`, {METRICS[metric]}", "", *table(["row", *heads], rows), ""]
    return lines


def _suggest(result: Result) -> list[str]:
    runs = pd.DataFrame(result["runs"])
    lines = [SUGGEST, ""]
    after = runs[runs["looked_up"] == STEP]
    rows = []
    for dataset, part in after.groupby("dataset", sort=False):
        if dataset == "toxcast":
            continue
        errors = _by(part, "rule", "errors")
        shown = [cell(spread(errors[rule])) for rule in suggest.RULES]
        difference = _difference(errors[suggest.BITS], errors[suggest.UNCERTAIN])
        rows.append([f"`{dataset}`", *shown, _shown(difference)])
    heads = (*suggest.RULES, "difference of the updated ones")
    lines += [*table([f"wrong labels left after {STEP}", *heads], rows), ""]
    if (of_assays := runs[runs["dataset"] == "toxcast"]).size:
        rows = []
        for rule, part in of_assays.groupby("rule", sort=False):
            by_step = [part[part["looked_up"] == step]["roc_auc_macro"] for step in suggest.STEPS]
            rows.append([str(rule), *(cell(spread(values)) for values in by_step)])
        heads = (f"after {step}" for step in suggest.STEPS)
        lines += [*table(["macro ROC-AUC of the other half, ToxCast", *heads], rows), ""]
    return [*lines, *listed([_source(result, runs, "seed", "random splits")])]


def gains(result: Result) -> list[str]:
    """A table of the expected and the realised gain of suggestions."""
    runs, rows = pd.DataFrame(result["runs"]), []
    for dataset, part in runs.groupby("dataset", sort=False):
        bits = part[part["rule"] == suggest.BITS]
        for step, values in bits[bits["looked_up"] > 0].groupby("looked_up"):
            means = values[["predicted", "realised"]].mean()
            ratio = means["predicted"] / means["realised"]
            numbers = (f"{means[name]:.2f}" for name in ("predicted", "realised"))
            rows.append([f"`{dataset}`", str(step), *numbers, f"{ratio:.2f}"])
    heads = ("looked up", "expected", "realised", "ratio")
    return ["## Gains in bits", "", *table(["data", *heads], rows), ""]


def _audit(result: Result) -> list[str]:
    runs, rows = pd.DataFrame(result["runs"]), []
    kinds = list(runs["noise"].unique())
    for dataset, of_set in runs.groupby("dataset", sort=False):
        parts = (of_set[of_set["noise"] == noise] for noise in kinds)
        rows.append([f"`{dataset}`", *(_beside_cleanlab(part) for part in parts)])
    source = _source(result, runs, "draw", "draws of noise")
    return [AUDIT, "", *table(["audit, its difference", *kinds], rows), "", *listed([source])]


def _beside_cleanlab(part: pd.DataFrame) -> str:
    if part.empty:
        return ""
    scores = _by(part, "row", "cells", "draw")
    difference = _difference(scores[audit.OURS], scores[_best(scores)], is_split=False)
    return f"{cell(spread(scores[audit.OURS]))}, {_shown(difference)}"


def _best(scores: pd.DataFrame) -> str:
    names = [name for name in audit.CLEANLAB if name in scores]
    return str(scores[names].mean().idxmax()) if names else audit.INPUTS


def audited(result: Result) -> list[str]:
    """Tables of labels and of samples with a wrong label, by kind of noise."""
    runs, rows = pd.DataFrame(result["runs"]), []
    for (dataset, noise), part in runs.groupby(["dataset", "noise"], sort=False):
        scores = _by(part, "row", "cells", "draw")
        best = _best(scores)
        difference = _difference(scores[audit.OURS], scores[best], is_split=False)
        values = [cell(spread(scores[name])) for name in (best, audit.OTHERS, audit.OURS)]
        rows.append([f"`{dataset}`", str(noise), *values, _shown(difference)])
    heads = ("noise", "cleanlab", "all other labels", "audit", "audit less cleanlab")
    return ["## Wrong labels", "", *table(["labels", *heads], rows), "", *_by_row(runs)]


def _by_row(runs: pd.DataFrame) -> list[str]:
    """A table of samples with any wrong label, by cleanlab's scores of samples."""
    rows = []
    of_samples = runs[runs["rows"].notna()]
    for (dataset, noise), part in of_samples.groupby(["dataset", "noise"], sort=False):
        scores = _by(part, "row", "rows", "draw")
        if (best := _best(scores)) == audit.INPUTS:
            continue
        difference = _difference(scores[audit.OURS], scores[best], is_split=False)
        values = [cell(spread(scores[name])) for name in (best, audit.OURS)]
        rows.append([f"`{dataset}`", str(noise), *values, _shown(difference)])
    heads = ("noise", "cleanlab", "audit", "audit less cleanlab")
    return [*table(["samples with a wrong label", *heads], rows), ""] if rows else []


def _source(result: Result, runs: pd.DataFrame, repetition: str, name: str) -> str:
    counts = runs.groupby("dataset", sort=False)[repetition].nunique()
    number = counts.mode()[0]
    fewer = [f"{dataset} {count}" for dataset, count in counts.items() if count != number]
    others = f" ({', '.join(fewer)})" if fewer else ""
    about: dict[str, Any] = {run["dataset"]: run for run in result["runs"]}
    hashes = ", ".join(
        f"{dataset} {run.get('data', run.get('base'))['sha256'][:12]}"
        for dataset, run in about.items()
    )
    statistic = f"mean ± standard deviation of {number} {name}{others}, seeds from 0"
    return f"{statistic}; data sha256: {hashes}; {machine(result, 'one thread')}"
