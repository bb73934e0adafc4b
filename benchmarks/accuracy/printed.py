"""Summary of a comparison on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.accuracy.runs import Run
from benchmarks.accuracy.summary import OTHER_DECISIONS, by_row, in_words, p_in_words, paired_tests

COLUMNS = ("ACC", "HA", "ebF1", "miF1", "maF1", "maAUC", "maAP")


def print_summary(runs: Sequence[Run], papers: Mapping[str, Mapping[str, float]]) -> None:
    """Prints mean ± standard deviation of every row, then the papers' figures, tests and the recovery of graphs."""
    summary = by_row(runs)
    print(f"\n{'model':<28}{'density':>8}" + "".join(f"{column:>15}" for column in COLUMNS))
    for row, values in summary.items():
        density = "" if values["density"] is None else f"{values['density']:.2f}"
        print(f"{row.title:<28}{density:>8}" + _cells(values["metrics"]))
        used = ", ".join(f"{name} {'/'.join(map(str, found))}" for name, found in values["thresholds"].items())
        print(f"  thresholds by seed: {used}")
        for key, name in OTHER_DECISIONS.items():
            print(f"{'  ' + name:<36}" + _cells(values[key]))
    for model, figures in papers.items():
        cells = (f"{figures[column]:.3f}" if column in figures else "" for column in COLUMNS)
        print(f"{model:<36}" + "".join(f"{cell:>15}" for cell in cells))
    for test in paired_tests(runs):
        print(
            f"{test.row.title} - {test.against.title}, {test.metric}: {test.mean_difference:+.4f} "
            f"(sd {test.sd:.4f}, {test.name} {p_in_words(test.p)}, {test.num_seeds} seeds)"
        )
    for row, values in summary.items():
        for score, found in values["recovery"].items():
            print(f"{row.title}: {score}: {in_words(found)}")


def _cells(metrics: Mapping[str, Any]) -> str:
    return "".join(f"{_cell(**metrics[c]) if c in metrics else '':>15}" for c in COLUMNS)


def _cell(mean: float | None, sd: float | None) -> str:
    """A mean, with its standard deviation where there are several seeds; nothing where it is undefined."""
    if mean is None:
        return ""
    return f"{mean:.4f}" if sd is None else f"{mean:.4f}±{sd:.4f}"
