"""Known labels: a page with a table and a picture for each data set that has been measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks import files
from benchmarks.accuracy.given_labels import LOGISTIC, PLAIN, TAKE_KNOWN, WITH_MASKS
from benchmarks.accuracy.rows import FREQUENCY
from benchmarks.accuracy.summary import corrected_p_value, p_in_words
from benchmarks.report.writing import METRICS, titles
from tg_mlc.datasets.registry import published
from tg_mlc.papers.recipes import RECIPES
from tg_mlc.papers.recipes.family import FAMILY

PREFIX = "given_labels-"
METRIC, TITLE = "roc_auc_macro", METRICS["roc_auc_macro"]
TITLES = titles(METRIC, "average_precision_macro")
#: The shares that the table shows.
SHOWN = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
HALF = 0.5
ALPHA = 0.05
NOT_MADE_UP = ": what is known does not make up for training with masks here"
COLORS = {
    WITH_MASKS: "tab:blue",
    PLAIN: "tab:green",
    LOGISTIC: "tab:purple",
    FREQUENCY: "tab:gray",
}
INTRO = """\
# Known labels

How well are the other labels of a sample predicted if some are known already? Of each test sample a share of the labels
is given, the same labels to all rows; the scores are those of the labels that are not given. LaMP "with masks" is
`RECIPES[name].as_member(FAMILY["lamp-given"])`, LaMP as published that is trained with random label masks. The logistic
regression has the inputs and what is known of the other labels, is trained with masks of the same kind, and represents
what is known in the better of two ways on validation samples. Rows without masks are given nothing; their scores are
those of the same labels. p is that of a paired t-test over the seeds, not corrected for the number of tests.{epochs}

To repeat a measurement, run `python -m benchmarks.accuracy.given_labels --dataset sider`."""


def results() -> dict[str, dict[str, Any]]:
    """The tracked results by the name of their data set."""
    paths = sorted(files.RESULTS.glob(f"{PREFIX}*.json"))
    return {path.stem.removeprefix(PREFIX): json.loads(path.read_text()) for path in paths}


def page(found: dict[str, dict[str, Any]]) -> str:
    """The page of all of them."""
    sections = [
        "\n".join(
            [f"## `{name}`: {published(name).title}", "", f"![{name}](given-labels-{name}.svg)", "", *table(result)]
        )
        for name, result in found.items()
    ]
    return "\n\n".join([INTRO.format(epochs=_shortened(found)), *sections]) + "\n"


def _shortened(found: dict[str, dict[str, Any]]) -> str:
    """Which models were trained for fewer epochs than their recipe says."""
    trained = {name: (_epochs(result), _epochs_of_recipe(name)) for name, result in found.items()}
    fewer = [f"{name} {done} of {whole}" for name, (done, whole) in trained.items() if done < whole]
    if not fewer:
        return ""
    return f"\n\nTo save time, LaMP was trained here for fewer epochs than its recipe says: {', '.join(fewer)}."


def _epochs(result: dict[str, Any]) -> int:
    return int(result["recipes"]["lamp-given"]["fit"]["max_epochs"])


def _epochs_of_recipe(name: str) -> int:
    return int(RECIPES[name].as_member(FAMILY["lamp-given"]).fit["max_epochs"])


def table(result: dict[str, Any]) -> list[str]:
    """Scores by the share that is given, and what half of the labels say of the other half."""
    return [
        f"| {TITLE} | {' | '.join(f'{share:.0%} given' for share in SHOWN)} |",
        "|---|" + "---|" * len(SHOWN),
        *(f"| {row} | {' | '.join(_cell(_values(result, row, share)) for share in SHOWN)} |" for row in _rows(result)),
        "",
        *_conclusion(result),
        *(_half(result, row) for row in _rows(result) if row in TAKE_KNOWN),
        _trained_on(result),
    ]


def numbers(result: dict[str, Any]) -> dict[str, Any]:
    """What :func:`draw` shows: scores of all seeds by row, by share."""
    shares = sorted({point["share"] for point in result["points"]})
    return {
        "shares": shares,
        "given": {row: [_values(result, row, share) for share in shares] for row in _rows(result)},
        "alone": {
            row: [_values(result, row, share, given=False) for share in shares]
            for row in _rows(result)
            if row in TAKE_KNOWN
        },
    }


def draw(numbers: dict[str, Any]) -> Figure:
    """Draws the mean and the range over the seeds, by the share that is given; dotted, those without giving any."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    percent = [100 * share for share in numbers["shares"]]
    for row, values in numbers["given"].items():
        axes.plot(percent, [np.mean(each) for each in values], color=COLORS[row], label=row)
        lowest, highest = [min(each) for each in values], [max(each) for each in values]
        axes.fill_between(percent, lowest, highest, color=COLORS[row], alpha=0.15, linewidth=0)
    for row, values in numbers["alone"].items():
        axes.plot(percent, [np.mean(each) for each in values], color=COLORS[row], linestyle=":")
    axes.set(xlabel="labels given, % (dotted: none given, the same labels predicted)", ylabel=f"{TITLE}, test set")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize="small")
    return figure


def _rows(result: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(point["row"] for point in result["points"]))


def _values(result: dict[str, Any], row: str, share: float, given: bool = True, metric: str = METRIC) -> list[float]:
    """Those of all seeds; with nothing given where a row takes nothing, or the share is 0."""
    given = given and row in TAKE_KNOWN and share > 0
    key = (row, share, given)
    points = [point for point in result["points"] if (point["row"], point["share"], point["given"]) == key]
    return [point[metric] for point in sorted(points, key=lambda point: point["seed"])]


def _half(result: dict[str, Any], row: str) -> str:
    gains = ", and ".join(_gain(result, row, metric) for metric in TITLES)
    return f"- {row}: half of the labels given takes, of the other half, {gains}"


def _gain(result: dict[str, Any], row: str, metric: str) -> str:
    given, alone = (np.array(_values(result, row, HALF, given, metric)) for given in (True, False))
    return f"{TITLES[metric]} from {_cell(alone)} to {_cell(given)} ({_tested(result, given - alone)})"


def _conclusion(result: dict[str, Any]) -> list[str]:
    """What half of the labels are worth to LaMP, and whether that makes up for training with masks."""
    given = _half_of(result, WITH_MASKS)
    gain = given - _half_of(result, WITH_MASKS, given=False)
    over_plain, over_logistic = (given - _half_of(result, row) for row in (PLAIN, LOGISTIC))
    change = {1: "rises", 0: "stays", -1: "falls"}[_sign(gain)]
    made_up = NOT_MADE_UP if _is_below(result, over_plain) else ""
    even = "even " if made_up and _is_below(result, over_logistic) else ""
    sentence = (
        f"With half of the labels given, {TITLE} of LaMP with masks {change} ({_tested(result, gain)}); it is then "
        f"{_placed(result, over_logistic)} the logistic regression that is given the same, and "
        f"{even}{_placed(result, over_plain)} LaMP without masks that is given nothing{made_up}."
    )
    return [sentence, ""]


def _half_of(result: dict[str, Any], row: str, given: bool = True) -> np.ndarray:
    return np.array(_values(result, row, HALF, given))


def _placed(result: dict[str, Any], difference: np.ndarray) -> str:
    where = {1: "above", 0: "level with", -1: "below"}[_sign(difference)]
    return f"{where} ({_tested(result, difference)})"


def _sign(difference: np.ndarray) -> int:
    """That of the mean as it is written."""
    return int(np.sign(round(difference.mean(), 3)))


def _is_below(result: dict[str, Any], difference: np.ndarray) -> bool:
    """Whether the mean is below zero with a low p."""
    p = _p(result, difference) if len(difference) > 1 else None
    return _sign(difference) < 0 and p is not None and p < ALPHA


def _tested(result: dict[str, Any], difference: np.ndarray) -> str:
    """The mean difference, and p where there is one."""
    if len(difference) < 2:
        return f"{difference.mean():+.3f}"
    p = _p(result, difference)
    chance = ", which may be chance" if p is not None and p >= ALPHA else ""
    return f"{difference.mean():+.3f}, {p_in_words(p)}{chance}"


def _p(result: dict[str, Any], difference: np.ndarray) -> float | None:
    """That of the paired test over the seeds, corrected where they divide samples anew."""
    return corrected_p_value(difference, **({"test_share": 0.0} if result["split"] == "official" else {}))


def _cell(values: Sequence[float] | np.ndarray) -> str:
    return f"{np.mean(values):.3f}" + (f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else "")


def _trained_on(result: dict[str, Any]) -> str:
    data, machine, seeds = result["dataset"], result["environment"], result["seeds"]
    encoder = next(point["settings"]["encoder"] for point in result["points"] if point["row"] == WITH_MASKS)
    return (
        f"- {result['split']} split, seeds {seeds[0]} to {seeds[-1]} (mean ± standard deviation), LaMP {encoder} "
        f"trained for {_epochs(result)} epochs; "
        f"{data['num_samples']} samples, {data['counted_labels']} labels counted, data sha256 {data['sha256'][:12]}; "
        f"{machine['processor']}, one thread each; torch {machine['versions']['torch']}, "
        f"PyG {machine['versions']['torch-geometric']}"
    )
