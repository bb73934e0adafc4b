"""Renders the result files as tables, between the marks that name them in README.md and docs/.

    python -m benchmarks.report.render          # rewrites the tables
    python -m benchmarks.report.render --check  # fails if a table is out of date

A mark is a line ``<!-- results: NAME -->``, closed by ``<!-- end of results -->``; NAME is a file in
benchmarks/results, or ``NAME growth`` for the exponents that it holds, or ``NAME brief`` for a comparison with one
threshold and without its tests, or ``label-graphs`` for the rows of label graphs of all comparisons.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.accuracy import learning_curve
from benchmarks.accuracy.papers import BEST
from benchmarks.accuracy.rows import (
    BASELINES,
    LEARNED,
    OTHER_DECISIONS,
    PUBLISHED,
    encoder_and_graph,
    in_words,
    p_in_words,
    recorded,
    row_of,
    variant,
)
from benchmarks.command_line import run
from benchmarks.report import speed
from tg_mlc.recipes import RECIPES

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
MARK = re.compile(
    r"(<!-- results: (?P<name>[\w-]+)(?P<part> growth| brief)? -->\n).*?(?P<end><!-- end of results -->)", re.DOTALL
)
LABEL_GRAPHS = "label-graphs"
COLUMNS = {"ACC": "ACC", "HA": "HA", "ebF1": "ebF1", "miF1": "miF1", "maF1": "maF1", "maAUC": "macro ROC-AUC"}


def render(text: str) -> str:
    """Fills every mark of a page with its table."""

    def fill(match: re.Match[str]) -> str:
        if match["name"] == LABEL_GRAPHS:
            return f"{match[1]}{label_graphs()}{match['end']}"
        result = json.loads(result_file(match["name"]).read_text())
        return f"{match[1]}{PARTS[match['part']](result)}{match['end']}"

    return MARK.sub(fill, text)


def result_file(name: str) -> Path:
    """The file of a result."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        raise FileNotFoundError(f"Expected the result file {path}; run the benchmark that writes it, or drop the mark")
    return path


def table(result: dict[str, Any]) -> str:
    """The table of one result, and what it was measured on."""
    if "regimes" in result:
        return "\n".join([*speed.attention(result), ""])
    if "models" in result:
        return "\n".join([*speed.models(result), ""])
    if "curves" in result:
        return "\n".join([*learning_curve.rows(result), "", *_listed(_trained_on(result)), ""])
    return comparison(result)


def growth(result: dict[str, Any]) -> str:
    """How time grows with sizes."""
    return "\n".join([*speed.growth(result), ""])


def brief(result: dict[str, Any]) -> str:
    """One row for each model of a comparison, with one threshold, and what it was measured on."""
    papers = {name: row for name, row in result.get("papers", {}).items() if name.startswith(BEST)}
    lines = [*_against_baselines(result), *_source(result)]
    return "\n".join([*_rows({**result, "papers": papers}, others=False), "", *_listed(lines), ""])


def comparison(result: dict[str, Any]) -> str:
    """The table of one comparison of models, and the tests below it."""
    return "\n".join([*_rows(result), "", *_listed(notes(result)), ""])


PARTS = {None: table, " growth": growth, " brief": brief}


def _listed(lines: list[str]) -> list[str]:
    return [f"- {line}" for line in lines]


def _rows(result: dict[str, Any], others: bool = True) -> list[str]:
    lines = [
        "| model | label graph density | " + " | ".join(COLUMNS.values()) + " | seconds |",
        "|---|---|" + "---|" * (len(COLUMNS) + 1),
    ]
    for model, row in result["summary"].items():
        density = "" if row["density"] is None else f"{row['density']:.2f}"
        lines.append(f"| {model} | {density} | " + cells(row["metrics"]) + f" | {row['seconds']:.0f} |")
        for key, name in OTHER_DECISIONS.items():
            # Older files know fewer ways.
            if others and row.get(key):
                lines.append(f"| *{name}* | | {cells(row[key])} | |")
    for model, values in result.get("papers", {}).items():
        figures = (f"{values[name]:.3f}" if name in values else "" for name in COLUMNS)
        lines.append(f"| {model} | | " + " | ".join(figures) + " | |")
    return lines


def label_graphs() -> str:
    """Every label graph of every comparison, beside the baselines, and how well learned attention finds it."""
    columns = {name: title for name, title in COLUMNS.items() if name != "HA"}
    lines = [
        f"| data | model | density | {' | '.join(columns.values())} | found by learned attention |",
        "|---|---|---|" + "---|" * (len(columns) + 1),
    ]
    for path in sorted(RESULTS.glob("prior_vs_learned-*.json")):
        result = json.loads(path.read_text())
        data = path.stem.removeprefix("prior_vs_learned-")
        for model, row in result["summary"].items():
            density = "" if row["density"] is None else f"{row['density']:.2f}"
            values = " | ".join(cell(row["metrics"][name]) for name in columns)
            lines.append(f"| {data} | {model} | {density} | {values} | {_found(result['summary'], model)} |")
    return "\n".join([*lines, ""])


def _found(summary: dict[str, Any], model: str) -> str:
    """The average precision of the attention that fc learns for the pairs of a graph, and the share of these pairs."""
    encoder, graph = encoder_and_graph(model) or ("", "")
    attention = summary.get(variant(encoder, "fc"), {}).get("recovery", {})
    found = attention.get(f"{LEARNED}, {graph}")
    if found is None and graph == "pr":
        found = attention.get(LEARNED)  # in older files, which compare with the prior alone
    if found is None or found["average precision"] is None:
        return ""
    return f"{found['average precision']:.2f} of {found['share of pairs joined']:.2f}"


def cells(metrics: dict[str, dict[str, float | None]]) -> str:
    """The cells of one row."""
    return " | ".join(cell(metrics[name]) if name in metrics else "" for name in COLUMNS)


def cell(value: dict[str, float | None]) -> str:
    """Mean ± standard deviation, or nothing where a seed leaves it undefined."""
    if value["mean"] is None:
        return ""
    return f"{value['mean']:.3f}" + ("" if value["sd"] is None else f" ± {value['sd']:.3f}")


def notes(result: dict[str, Any]) -> list[str]:
    """What the table does not show: tests, recovery of known graphs, thresholds, data, seeds and machine."""
    tests = [
        f"{row_of(t)} against {t['against']}, {t['metric']}: {t['mean_difference']:+.4f} "
        f"(sd {t['sd']:.4f}, {t.get('test', 'corrected paired t-test')} {p_in_words(t['p'])})"
        for t in result["tests"]
        if t["against"] not in BASELINES
    ]
    thresholds = [
        f"Thresholds by seed ({model}): {_thresholds(row['thresholds'])}"
        for model, row in result["summary"].items()
        if encoder_and_graph(model) and row.get("thresholds")
    ]
    recovered = [
        f"{_ranked(score)} ({model}): {in_words(values)}"
        for model, row in result["summary"].items()
        for score, values in row["recovery"].items()
    ]
    undefined = sorted({name for run in result["runs"] for name in run["undefined"]})
    left_out = [f"With one class only in the test set of some seed, left out of its ROC-AUC: {', '.join(undefined)}"]
    return [
        *_against_baselines(result),
        *tests,
        *recovered,
        *thresholds,
        *(left_out if undefined else []),
        *_changed_settings(result),
        *_source(result),
    ]


def _against_baselines(result: dict[str, Any]) -> list[str]:
    """What rows with messages gain over what they have to beat, a line for each row."""
    found: dict[str, list[str]] = {}
    for t in result.get("tests", ()):
        if t["against"] in BASELINES and t["metric"] == "maAUC":
            gain = f"{t['mean_difference']:+.4f} against {t['against']} (sd {t['sd']:.4f}, {p_in_words(t['p'])})"
            found.setdefault(t["row"], []).append(gain)
    return [f"{row}, macro ROC-AUC (corrected paired t-tests): {', '.join(gains)}" for row, gains in found.items()]


def _source(result: dict[str, Any]) -> list[str]:
    """Data, seeds and machine."""
    data, machine = result["dataset"], result["environment"]
    return [
        f"{_splits(result)}, seeds {result['seeds'][0]} to {result['seeds'][-1]}; mean ± standard deviation; "
        f"{data['num_samples']} samples, {data['counted_labels']} labels counted, data sha256 {data['sha256'][:12]}",
        f"{machine['processor']}, one thread each; torch {machine['versions']['torch']}, "
        f"PyG {machine['versions']['torch-geometric']}",
    ]


def _trained_on(result: dict[str, Any]) -> list[str]:
    """Data, seeds and machine of learning curves."""
    data, settings, machine = result["dataset"], result["settings"], result["environment"]
    return [
        f"{_seeds(settings['seeds'])} on one split; Adam with "
        f"learning rate {settings['lr']:g} and batches of {settings['batch_size']}; {data['num_samples']} samples, "
        f"data sha256 {data['sha256'][:12]}",
        f"{machine['processor']}, one thread each; torch {machine['versions']['torch']}, "
        f"PyG {machine['versions']['torch-geometric']}",
    ]


def _seeds(seeds: list[int]) -> str:
    return (
        f"one seed, {seeds[0]}," if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]} (mean ± standard deviation)"
    )


def _changed_settings(result: dict[str, Any]) -> list[str]:
    """Which settings the recipe of a data set has changed since, or did not record then."""
    recipe = RECIPES.get(result["dataset"].get("name", ""))
    if recipe is None or "recipe" not in result:
        return []
    published = all(model.startswith(PUBLISHED) for model in result.get("summary", ()) if encoder_and_graph(model))
    if published and "published" in result:
        recipe, result = recipe.as_published(), {"recipe": result["published"]}
    then = dict(_flat(result["recipe"]))
    now = dict(_flat(json.loads(json.dumps(recorded(recipe)))))
    changed = sorted(key for key in then.keys() | now.keys() if then.get(key) != now.get(key))
    return [f"Other settings than in today's recipe, or not recorded: {', '.join(changed)}"] if changed else []


def _flat(settings: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _thresholds(values: dict[str, list[float]]) -> str:
    return ", ".join(f"{metric} {'/'.join(f'{value:g}' for value in of_seed)}" for metric, of_seed in values.items())


def _splits(result: dict[str, Any]) -> str:
    if result.get("redrawn"):
        return "samples drawn anew for every seed"
    return (
        "the official split, the same for all seeds" if result["split"] == "official" else f"{result['split']} splits"
    )


def _ranked(score: str) -> str:
    # Older files name no graph: theirs is the true one.
    what, _, graph = score.partition(", ")
    return f"Pairs of '{graph}' ranked by {what}" if graph else f"True label graph ranked by {what}"


def pages() -> list[Path]:
    """The pages that may hold tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def main(check: bool = False) -> int:
    """Rewrites the tables of all pages.

    Args:
        check: Whether to say instead which pages are out of date.
    """
    outdated = [page for page in pages() if render(page.read_text()) != page.read_text()]
    for page in outdated:
        print(f"{'Out of date' if check else 'Rendered'}: {page.relative_to(ROOT)}")
        if not check:
            page.write_text(render(page.read_text()))
    return int(check and bool(outdated))


if __name__ == "__main__":
    sys.exit(run(main))
