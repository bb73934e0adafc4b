"""Runs that a file of results, or that of a comparison that stopped early, holds already."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from benchmarks.accuracy.rows import LEARNED, Row
from benchmarks.accuracy.runs import Run
from benchmarks.environment import describe_environment

#: What must be the same for runs to stand in one table.
SAME = ("versions", "dataset", "split", "recipes", "own_graphs")


def earlier_runs(
    path: Path | None, content: dict[str, Any], wanted: Collection[Row], priors: Sequence[str]
) -> list[Run]:
    """The runs of a file of results, none if there is none.

    Those of other seeds are left out, and those of wanted rows whose attention was not compared with all of the priors.

    Raises:
        SystemExit: If they were made from other samples, with other settings, graphs or versions.
    """
    if path is None:
        return []
    found = json.loads(path.read_text())
    runs = [Run.from_dict(run) for run in found["runs"]]
    now = json.loads(json.dumps({"versions": describe_environment()["versions"], **content}))
    then = {"own_graphs": {}, **found, "versions": found["environment"]["versions"]}
    used = {"best", *(run.row.settings for run in runs)}
    shared = then["own_graphs"].keys() & now["own_graphs"].keys()
    for each in (then, now):
        each["recipes"] = {name: recipe for name, recipe in each["recipes"].items() if name in used}
        each["own_graphs"] = {name: each["own_graphs"][name] for name in shared}
    for key in SAME:
        if then[key] != now[key]:
            raise SystemExit(
                f"Expected '{path}' to have the same {key}, as --resume keeps its rows (got {then[key]}, now "
                f"{now[key]}); make them all again without --resume"
            )
    runs = [run for run in runs if run.seed in content["seeds"]]
    return [run for run in runs if run.row not in wanted or _is_compared(run, priors)]


def _is_compared(run: Run, priors: Sequence[str]) -> bool:
    return not run.recovery or all(f"{LEARNED}, {prior}" in run.recovery for prior in priors)
