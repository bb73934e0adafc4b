"""Runs that a result file, or that of a comparison that was broken off, holds already."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from benchmarks.accuracy.rows import LEARNED, PUBLISHED
from benchmarks.accuracy.runs import Run
from benchmarks.environment import describe_environment, results_file

#: What must be the same for runs to stand in one table.
SAME = ("dataset", "split", "recipe")


def earlier_runs(name: str, content: dict[str, Any], wanted: Collection[str], priors: Sequence[str]) -> list[Run]:
    """The runs of ``benchmarks/results/<name>.part``, else of ``<name>.json``, none if there is no such file.

    Those of other seeds are left out, and those of wanted rows whose attention was not compared with all of the priors.

    Raises:
        SystemExit: If they were made from other samples, with other settings or other versions.
    """
    path = next((path for path in _files(name) if path.exists()), None)
    if path is None:
        return []
    found = json.loads(path.read_text())
    now = json.loads(json.dumps({"versions": describe_environment()["versions"], **content}))
    found["versions"] = found["environment"]["versions"]
    published = any(run["model"].startswith(PUBLISHED) for run in found["runs"])
    for key in ("versions", *SAME, *(["published"] if published else [])):
        if found.get(key) != now[key]:
            raise SystemExit(
                f"Expected '{path}' to have the same {key}, as --resume keeps its rows (got {found.get(key)}, now "
                f"{now[key]}); make them all again without --resume"
            )
    runs = [Run(**run) for run in found["runs"]]
    if not all(run.test for run in runs):
        raise SystemExit(f"Expected '{path}' to say what every row was tested on; make it again without --resume")
    runs = [run for run in runs if run.seed in content["seeds"]]
    return [run for run in runs if run.model not in wanted or _is_compared(run, priors)]


def _files(name: str) -> tuple[Path, Path]:
    return results_file(name, complete=False), results_file(name)


def _is_compared(run: Run, priors: Sequence[str]) -> bool:
    return not run.recovery or all(f"{LEARNED}, {prior}" in run.recovery for prior in priors)
