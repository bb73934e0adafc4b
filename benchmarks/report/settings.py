"""Table of settings that were tried one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def table(result: dict[str, Any]) -> list[str]:
    """One line for each value, and beside it how far it is from the recipe's own."""
    scores: dict[tuple[str | None, float | None], list[float]] = {}
    for each in result["trials"]:
        scores.setdefault((each["setting"], each["value"]), []).append(each["validation"])
    own = float(np.mean(scores[None, None]))
    seeds = sorted({each["seed"] for each in result["trials"]})
    head = ["| setting | value | score of validation samples | difference |", "|---|---|---|---|"]
    notes = [
        f"- The score is {result['monitor'].removeprefix('val/').replace('_', ' ')} of the best epoch; "
        f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}",
        f"- {result['dataset']['name']}, data sha256 {result['dataset']['sha256'][:12]}; "
        f"{result['environment']['cuda'] or result['environment']['processor']}; "
        f"torch {result['environment']['versions']['torch']}",
    ]
    return [*head, *_lines(scores, own), "", *notes]


def _lines(scores: dict[tuple[str | None, float | None], list[float]], own: float) -> Iterator[str]:
    for (setting, value), found in scores.items():
        mean = float(np.mean(found))
        difference = "" if setting is None else f"{mean - own:+.4f}"
        written = "" if value is None else f"{value:g}"
        yield f"| {setting or 'as they are'} | {written} | {mean:.4f} | {difference} |"
