"""Tables of histories: LANET, its rivals and predictors without a network; and the time of an epoch."""

from __future__ import annotations

from typing import Any

import numpy as np

Result = dict[str, Any]
COLUMNS = ("miAUC", "maAUC", "maAUC10", "miF1", "maF1", "miF1 per label", "maF1 per label", "R@10", "NDCG@10")
RATIOS = ("ours_is_faster", "ours_is_faster_cpu")


def cells(result: Result) -> list[str]:
    """Mean and standard deviation over seeds of every cell, then differences with 95 % intervals, in Markdown."""
    lines = _head(["", "seeds", *COLUMNS])
    lines += [_row([row["title"], str(len(row["runs"])), *_spreads(row["runs"])]) for row in result["rows"]]
    found = result["differences"]
    if not found:
        return lines
    lines += ["", f"Differences to {result['against']}, with 95 % intervals of a bootstrap over entities:", ""]
    lines += _head(["", *next(iter(found.values()))])
    return [*lines, *(_row([name, *map(_interval, values.values())]) for name, values in found.items())]


def epochs(result: Result) -> list[str]:
    """Seconds of an epoch in both layouts, in Markdown."""
    titles = ["labels", "size of a view", "layout", "ms", "quartiles", "s per epoch", "times as fast", "in CPU time"]
    lines = _head(titles)
    for row in [*result["lanet"], result["many_labels"]]:
        sizes = row["sizes"]
        for name in ("ours", "released layout"):
            if name in row:
                wall, ours = row[name]["wall_ms"], name == "ours"
                ratios = [f"{row[key]:.2f}" if ours and key in row else "" for key in RATIOS]
                times = [f"{wall['median']:.0f}", f"{wall['q1']:.0f} to {wall['q3']:.0f}"]
                epoch = f"{row[name]['seconds_per_epoch']:.0f}"
                lines.append(_row([str(sizes["num_labels"]), str(sizes["channels"]), name, *times, epoch, *ratios]))
    return lines


def _spreads(runs: list[Result]) -> list[str]:
    columns = [[run["metrics"][name] for run in runs] for name in COLUMNS]
    return [f"{np.mean(column):.4f}" + (f" ± {np.std(column):.4f}" if len(column) > 1 else "") for column in columns]


def _interval(values: list[float]) -> str:
    difference, low, high = values
    return f"{difference:+.4f} ({low:+.4f} to {high:+.4f})"


def _head(titles: list[str]) -> list[str]:
    return [_row(titles), "|---" * len(titles) + "|"]


def _row(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"
