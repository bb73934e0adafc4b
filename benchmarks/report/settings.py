"""Table of settings that were tried one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.accuracy.settings import SETTINGS

#: By setting and value; without both, the recipe as it was.
Scores = dict[tuple[str | None, float | None], float]


def table(result: dict[str, Any]) -> list[str]:
    """One line for each setting: the value that the recipe had, and beside it the others that were tried."""
    found: dict[tuple[str | None, float | None], list[float]] = {}
    for each in result["trials"]:
        found.setdefault((each["setting"], each["value"]), []).append(each["validation"])
    seeds = sorted({each["seed"] for each in result["trials"]})
    head = ["| setting | value and score before | other values and their scores |", "|---|---|---|"]
    notes = [
        f"- The score is {result['monitor'].removeprefix('val/').replace('_', ' ')} of validation samples in the best "
        f"epoch; {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}",
        f"- {result['dataset']['name']}, data sha256 {result['dataset']['sha256'][:12]}; "
        f"{result['environment']['cuda'] or result['environment']['processor']}; "
        f"torch {result['environment']['versions']['torch']}",
    ]
    scores = {key: float(np.mean(values)) for key, values in found.items()}
    return [*head, *_lines(result["recipe"], scores), "", *notes]


def _lines(recipe: dict[str, Any], scores: Scores) -> Iterator[str]:
    for setting, (part, key, _) in SETTINGS.items():
        own = recipe[part][key]
        tried = {value: score for (name, value), score in scores.items() if name == setting and value is not None}
        best = max({own: scores[None, None], **tried}.items(), key=lambda each: each[1])[0]
        others = ", ".join(_written(value, score, best) for value, score in tried.items())
        yield f"| {setting} | {_written(own, scores[None, None], best)} | {others} |"


def _written(value: float, score: float, best: float) -> str:
    return f"{value:g}: **{score:.4f}**" if value == best else f"{value:g}: {score:.4f}"
