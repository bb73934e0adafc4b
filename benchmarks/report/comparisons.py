"""Comparisons of models, read from their files of results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import files
from benchmarks.accuracy.rows import Row, recorded
from benchmarks.accuracy.runs import Run
from tg_mlc.papers.recipes import RECIPES

PREFIX = "prior_vs_learned-"
#: Rows of a short table, beside that of the papers. Those of other graphs than these give way.
MOST_ROWS, USUAL_GRAPHS = 12, (None, "el", "fc", "pr")
Result = dict[str, Any]


class Comparison(NamedTuple):
    """The runs of one data set and split, from one or several files."""

    name: str
    results: list[Result]
    runs: list[Run]

    @property
    def data(self) -> str:
        """The name of the data set."""
        name: str = self.results[0]["dataset"]["name"]
        return name


def names() -> list[str]:
    """All comparisons of label graphs."""
    paths = files.RESULTS.glob(f"{PREFIX}*.json")
    return sorted({path.stem.removeprefix(PREFIX).removesuffix("-published") for path in paths})


def load(name: str) -> Comparison:
    """The comparison of a name; rows that several files have are those of the first."""
    stems = [name, f"{PREFIX}{name}", f"{PREFIX}{name}-published"]
    paths = [path for stem in stems if (path := files.RESULTS / f"{stem}.json").is_file()]
    if not paths:
        raise FileNotFoundError(
            f"Expected results of '{name}' in {files.RESULTS}; run the benchmark that writes them with --replace, or "
            f"drop the mark"
        )
    return read(name, *paths)


def read(name: str, *paths: Path) -> Comparison:
    """The comparison that some files hold."""
    results = [json.loads(path.read_text()) for path in paths]
    runs: list[Run] = []
    for result in results:
        known = {run.row for run in runs}
        runs += [run for run in map(Run.from_dict, result["runs"]) if run.row not in known]
    return Comparison(name, results, runs)


def shown(comparison: Comparison) -> list[Row]:
    """The rows of the short table."""
    rows = list(dict.fromkeys(run.row for run in comparison.runs))
    if any(row.change for row in rows):
        return [row for row in rows if row.graph]
    usual = sorted(rows, key=lambda row: row.graph not in USUAL_GRAPHS)
    return [row for row in rows if row in usual[:MOST_ROWS]]


def changed_settings(result: Result) -> Iterator[str]:
    """Which settings the recipe of a data set has changed since, or did not record then."""
    recipe = RECIPES.get(result["dataset"]["name"])
    for whose in sorted({run["settings"] for run in result["runs"]} - {None}) if recipe else ():
        now = recorded(recipe.as_published() if whose == "published" else recipe)
        then, now = (dict(_flat(each)) for each in (result["recipes"][whose], json.loads(json.dumps(now))))
        changed = sorted(key for key in then.keys() | now.keys() if then.get(key) != now.get(key))
        if changed:
            yield f"Other {whose} settings than in today's recipe, or not recorded: {', '.join(changed)}"


def source(result: Result) -> list[str]:
    """Data, seeds and machine."""
    data, machine, seeds = result["dataset"], result["environment"], result["seeds"]
    whose = {run["settings"] for run in result["runs"]} - {None}
    which = "as published: " if whose == {"published"} else ""
    over = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}; mean ± standard deviation"
    return [
        f"{which}{_splits(result)}, {over}; {data['num_samples']} samples, {data['counted_labels']} labels counted, "
        f"data sha256 {data['sha256'][:12]}; {machine['processor']}, one thread each; "
        f"torch {machine['versions']['torch']}, PyG {machine['versions']['torch-geometric']}",
    ]


def _splits(result: Result) -> str:
    if result.get("redrawn"):
        return "samples drawn anew for every seed"
    return (
        "the official split, the same for all seeds" if result["split"] == "official" else f"{result['split']} splits"
    )


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
