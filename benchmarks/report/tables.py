"""Tables of comparisons: a short one of each, and a page with all that was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from benchmarks.accuracy.papers import BEST, figures
from benchmarks.accuracy.rows import BASELINES, LEARNED, Row
from benchmarks.accuracy.summary import OTHER_DECISIONS, PairedTest, by_row, in_words, p_in_words, paired_tests
from benchmarks.report.comparisons import Comparison, changed_settings, load, names, shown, source
from benchmarks.report.writing import METRICS, titles

COLUMNS = titles("subset_accuracy", "hamming_accuracy", "f1_samples", "f1_micro", "f1_macro", "roc_auc_macro")
#: Rows that know how samples were made.
ORACLES = ("best without neighbours", "best possible")
NOTHING = {"mean": None, "sd": None}


def short(comparison: Comparison) -> list[str]:
    """One row for each model with one threshold for all labels, the best in bold; then the gains and the source."""
    summary = {row: values for row, values in by_row(comparison.runs).items() if row in shown(comparison)}
    papers = {name: row for name, row in figures(comparison.data).items() if name.startswith(BEST)}
    best = _best([*(_means(values) for row, values in summary.items() if row.model not in ORACLES), *papers.values()])
    lines = _head()
    lines += [_line(row, values, "metrics", best) for row, values in summary.items()]
    lines += [_line_of_paper(name, values, best) for name, values in papers.items()]
    notes = [*_against_baselines(paired_tests(comparison.runs)), *chain(*map(source, comparison.results))]
    return [*lines, "", *_listed(dict.fromkeys(notes))]


def full(comparison: Comparison) -> list[str]:
    """All rows with all ways to decide, the papers' figures, tests, recovered graphs, thresholds, settings, sources."""
    summary, tests = by_row(comparison.runs), paired_tests(comparison.runs)
    lines = _head()
    for row, values in summary.items():
        lines.append(_line(row, values, "metrics", {}))
        lines += [_line(Row(f"*{name}*"), values, key, {}) for key, name in OTHER_DECISIONS.items()]
    lines += [_line_of_paper(name, values, {}) for name, values in figures(comparison.data).items()]
    lines += ["", "## Paired tests over the seeds", "", *_table_of(tests)] if tests else []
    recovered = [
        f"Pairs of '{score.partition(', ')[2]}' ranked by {score.partition(', ')[0]} ({row.title}): {in_words(found)}"
        for row, values in summary.items()
        for score, found in values["recovery"].items()
    ]
    if recovered:
        lines += ["", "## Label graphs, as attention and statistics rank their edges", "", *_listed(recovered)]
    lines += ["", "## Thresholds by seed", ""]
    lines += _listed(f"{row.title}: {_thresholds(values['thresholds'])}" for row, values in summary.items())
    undefined = sorted({name for run in comparison.runs for name in run.undefined})
    left_out = f"With one class only in the test set of some seed, left out of its ROC-AUC: {', '.join(undefined)}"
    notes = [*([left_out] if undefined else []), *chain(*map(changed_settings, comparison.results))]
    notes += chain(*map(source, comparison.results))
    return [*lines, "", "## Settings and sources", "", *_listed(dict.fromkeys(notes))]


def label_graphs() -> list[str]:
    """Every label graph of every comparison, beside the baselines, and how well learned attention finds it."""
    columns = {name: title for name, title in COLUMNS.items() if name != "hamming_accuracy"}
    lines = [
        f"| data | model | encoder | label graph | {' | '.join(columns.values())} | found by learned attention |",
        "|---|---|---|---|" + "---|" * (len(columns) + 1),
    ]
    for name in names():
        summary = by_row(load(name).runs)
        for row, values in summary.items():
            cells = " | ".join(cell(values["metrics"][column]) for column in columns)
            lines.append(f"| {name} | {_identity(row, values)} | {cells} | {_found(summary, row)} |")
    return lines


def _head() -> list[str]:
    return [
        f"| model | encoder | label graph | {' | '.join(COLUMNS.values())} | seconds |",
        "|---|---|---|" + "---|" * (len(COLUMNS) + 1),
    ]


def _line(row: Row, values: Mapping[str, Any], key: str, best: Mapping[str, str]) -> str:
    cells = (cell(values[key].get(name, NOTHING), best.get(name)) for name in COLUMNS)
    identity = _identity(row, values if key == "metrics" else {})
    return f"| {identity} | {' | '.join(cells)} | " + (f"{values['seconds']:.0f} |" if key == "metrics" else "|")


def _line_of_paper(name: str, values: Mapping[str, float], best: Mapping[str, str]) -> str:
    cells = (cell({"mean": values.get(column), "sd": None}, best.get(column)) for column in COLUMNS)
    return f"| {name} | | | {' | '.join(cells)} | |"


def _identity(row: Row, values: Mapping[str, Any]) -> str:
    density = values.get("density")
    graph = "" if row.graph is None else f"{row.graph} ({density:.2f})"
    return f"{', '.join([row.model, *row.remarks])} | {row.encoder or ''} | {graph}"


def cell(value: Mapping[str, float | None], best: str | None = None) -> str:
    """Mean ± standard deviation, or nothing where a seed leaves it undefined."""
    if value["mean"] is None:
        return ""
    mean = f"{value['mean']:.3f}"
    return (f"**{mean}**" if mean == best else mean) + ("" if value["sd"] is None else f" ± {value['sd']:.3f}")


def _means(values: Mapping[str, Any]) -> dict[str, float | None]:
    return {name: metric["mean"] for name, metric in values["metrics"].items()}


def _best(rows: Sequence[Mapping[str, float | None]]) -> dict[str, str]:
    """The highest value of each metric, as tables write it, unless most rows have it."""
    best: dict[str, str] = {}
    for name in COLUMNS:
        written = [f"{value:.3f}" for row in rows if (value := row.get(name)) is not None]
        if written and written.count(max(written)) <= len(rows) / 2:
            best[name] = max(written)
    return best


def _listed(lines: Iterable[str]) -> list[str]:
    return [f"- {line}" for line in lines]


def _table_of(tests: Sequence[PairedTest]) -> list[str]:
    lines = ["| row | against | metric | mean difference | sd | test | p |", "|---|---|---|---|---|---|---|"]
    return lines + [
        f"| {t.row.title} | {t.against.title} | {METRICS[t.metric]} | {t.mean_difference:+.4f} | {t.sd:.4f} | {t.name} "
        f"| {p_in_words(t.p).removeprefix('p ').removeprefix('= ')} |"
        for t in tests
    ]


def _against_baselines(tests: Sequence[PairedTest]) -> list[str]:
    """What rows with messages gain over what they have to beat, a line for each row."""
    found: dict[Row, list[str]] = {}
    for t in tests:
        if t.against.model in BASELINES and t.metric == "roc_auc_macro":
            gain = f"{t.mean_difference:+.4f} against {t.against.model} (sd {t.sd:.4f}, {p_in_words(t.p)})"
            found.setdefault(t.row, []).append(gain)
    return [f"{row.title}, macro ROC-AUC (corrected paired t-tests): {', '.join(g)}" for row, g in found.items()]


def _found(summary: Mapping[Row, Any], row: Row) -> str:
    """The average precision of the attention that fc learns for the pairs of a graph, and the share of these pairs."""
    complete = summary.get(Row(row.model, row.encoder, "fc", row.settings), {"recovery": {}})
    found = complete["recovery"].get(f"{LEARNED}, {row.graph}")
    if found is None or found["average precision"] is None:
        return ""
    return f"{found['average precision']:.2f} of {found['share of pairs joined']:.2f}"


def _thresholds(values: Mapping[str, Sequence[float]]) -> str:
    return ", ".join(
        f"{METRICS[metric]} {'/'.join(f'{value:g}' for value in of_seed)}" for metric, of_seed in values.items()
    )
