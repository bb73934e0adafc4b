"""Table of settings that were tried one at a time."""

from __future__ import annotations

import pandas as pd

from benchmarks.accuracy.settings import SETTINGS
from benchmarks.files import Result
from benchmarks.report.writing import listed, table


def section(result: Result) -> list[str]:
    """One line for each setting: the value that the recipe had, and beside it the others that were tried."""
    runs = pd.DataFrame(result["runs"])
    before = float(runs.loc[runs["setting"].isna(), "validation"].mean())
    lines = []
    for setting, (part, key, _) in SETTINGS.items():
        own = result["recipe"][part][key]
        tried = runs[runs["setting"] == setting].groupby("value", sort=False)["validation"].mean()
        scores = {own: before, **tried}
        best = max(scores, key=lambda value: scores[value])
        texts = {value: f"{score:.4f}" for value, score in scores.items()}
        texts[best] = f"**{texts[best]}**"
        first, *others = (f"{value:g}: {text}" for value, text in texts.items())
        lines.append([setting, first, ", ".join(others)])
    seeds, data, found = sorted(runs["seed"].unique()), result["dataset"], result["environment"]
    notes = (
        f"The score is {result['monitor'].removeprefix('val/').replace('_', ' ')} of validation samples in the best "
        f"epoch; {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}",
        f"{data['name']}, data sha256 {data['sha256'][:12]}; {found['cuda'] or found['processor']}; "
        f"torch {found['versions']['torch']}",
    )
    return [*table(("setting", "value and score before", "other values and their scores"), lines), "", *listed(notes)]
