"""Explanations: a page on known atoms, known effects between labels, and faithfulness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.explanations import LOGIC, NUM_LOGIC, RANDOM, SHUFFLED, SIZE
from benchmarks.files import Result
from benchmarks.report.statistics import Spread, spread
from benchmarks.report.writing import cell, listed, machine, ranked, table
from tg_mlc.explanations.methods import METHODS

INTRO = """\
# Explanations

Do the scores of `tg_mlc.explain` point at what a label is made of? No truth is used to make an
explanation; all of it is used to judge one here. To repeat the measurement, run `python -m
benchmarks.accuracy.explanations`."""
ATOMS = """\
## Atoms that make a label true

The network with the drop-in layer of [training](../training.md) learns which functional groups
NCI's molecules have; RDKit's patterns find the atoms that make a label true. Each cell is the area
under the ROC curve of these atoms in a test molecule that has the label, averaged over molecules
and then over the labels with five cases or more. Two floors need no network: a random order, and
one that is the same for all labels, by the size of the largest group that an atom belongs to. Group
occlusion is not measured here."""
OF_LOGIC = f"""\
The other tasks are those of the public benchmark of graph attributions ([Sanchez-Lengeling et al.
2020](https://papers.nips.cc/paper/2020/hash/417fbbf2e9d5a28a855a11894b2e795a-Abstract.html)): a
molecule has a benzene ring (benzene), fluorine and a carbonyl group (logic7), an unbranched chain
and a carbonyl group (logic8), or an amine, an ether and a phenyl group (logic10). They are
re-created from their definitions on molecules of NCI, SIDER and Tox21, {NUM_LOGIC} for each
combination of substructures; where there are fewer, one takes the place of a hydrogen. One network
of the same kind learns all four in twice as many epochs. As published, any union of matches that
fulfils the condition counts as true, and the area is that of the union with which scores agree
best. The lower table has the published figures, which are of other molecules: means over the
authors' settings of a GCN, or, for attention, of a GAT. Goals are compared with the method that is
best on these molecules, which only the truth reveals; faithfulness may choose another."""
#: Areas by task: Figure 3's table in the authors' notebooks/plot_evaluation_results.ipynb.
PUBLISHED = {
    "class activation": (0.98, 0.74, 0.91, 0.75),
    "integrated gradients": (0.97, 0.77, 0.82, 0.69),
    "gradient": (0.72, 0.56, 0.56, 0.52),
    "attention": (0.51, 0.53, None, 0.51),
    RANDOM: (0.61, 0.42, 0.50, 0.50),
}
#: Goals for the best method: mean and worst label on NCI, and the area on each published task.
GOALS = {"NCI, mean": 0.975, "worst label": 0.80}
GOALS |= {"benzene": 0.98, "logic7": 0.90, "logic8": 0.95, "logic10": 0.85}
LABELS = """\
## Labels that move another label

LaMP learns samples that are drawn from a known label graph, with messages along all pairs of
labels. Each number is the average precision of a ranking of all pairs, against the true edges.
Effects are the absolute changes of a label's logit when the messages of another are cut, averaged
over test samples. Samples are few, and a quarter of the information on a label comes from its
neighbours: with 5,000 samples and half of the information, effects, attention and co-occurrence all
found every edge, so that nothing could be compared. Co-occurrence needs no model and ranks edges
best here, too."""
FAITHFUL = """\
## Faithfulness

Components are removed in the order of their scores, or added in it to none, while the probability
of the label is followed, for the two most probable labels of each test sample. Each number is the
area between both curves: it is about 0 for a random order, and more is better. In bold is the
method that `method="auto"` chooses by validation samples, in italics another that does better. With
shuffled weights, the chosen method explains a network whose weights were put in another order at
random. Networks are LaMP, without fingerprints on molecules; labels are the five most frequent."""

FIGURES = """\
## The papers' figures

Attention and predictions of models that are trained on the papers' data sets (`python -m
benchmarks.accuracy.figures`), for the test sample of four labels or more whose predicted labels
agree best with the true ones. LaMP's four labels attend to nearly the same words and labels: what
distinguishes them does not show here."""
#: The captions of figures by file.
PICTURES = {
    f"figures-{name}.svg": caption
    for name, caption in (
        (
            "lamp-2",
            "LaMP on Bibtex, as in its Figure 2: predictions, and attention of the first step",
        ),
        (
            "lamp-3",
            "LaMP on Bibtex, as in its Figure 3: predictions, and attention of the second step",
        ),
        (
            "mped-3",
            "MPED on Reuters, as in its Figure 3: attention of positive labels to all labels",
        ),
        ("mped-4", "MPED on Reuters, as in its Figure 4: attention of positive labels to words"),
    )
}
TIME = """\
## Time of a report

How long the report of drugs of SIDER takes, drawn at random: explanations of all labels by all
methods, their faithfulness, and the page (`python -m benchmarks.speed.explaining`)."""
MOST_SECONDS = 60  #: The goal for a report of 20 drugs.


def page(result: Result, times: Result | None = None, folder: Path | None = None) -> str:
    """The page of explanations, with report times if measured and the figures in ``folder``."""
    tasks: dict[str, list[dict[str, Any]]] = {}
    for run in map(_current_methods, result["runs"]):
        tasks.setdefault(run["task"], []).append(run)
    for run, floor in product(tasks.get("nci", []), tasks.pop("nci-size", [])):
        if run["seed"] == floor["seed"]:
            run["areas"] |= floor["areas"]
    sections = [INTRO]
    if atoms := {task: tasks[task] for task in ("nci", "logic") if task in tasks}:
        sections += [ATOMS, *([OF_LOGIC] if "logic" in atoms else []), "\n".join(_atoms(atoms))]
    if "planted" in tasks:
        sections += [LABELS, "\n".join(_planted(tasks["planted"]))]
    if faithful := {task: runs for task, runs in tasks.items() if "gains" in runs[0]}:
        sections += [FAITHFUL, "\n".join(_faithful(faithful))]
    hashes = ", ".join(f"{name} {data['sha256'][:12]}" for name, data in result["datasets"].items())
    sections.append(
        f"Seeds: {_seeds(tasks)}; {result['settings']['epochs']} epochs of Adam (half of them for "
        f"faithfulness); data sha256 {hashes}; {machine(result, 'one thread each')}"
    )
    if figures := [name for name in PICTURES if folder is not None and (folder / name).exists()]:
        sections += [FIGURES, *(f"![{PICTURES[name]}]({name})" for name in figures)]
    if times is not None:
        sections += [TIME, "\n".join(_times(times))]
    return "\n\n".join(sections) + "\n"


def _current_methods(run: dict[str, Any]) -> dict[str, Any]:
    """A copy of a run without the methods that the package no longer has."""
    names = {*METHODS, RANDOM, SIZE, SHUFFLED}
    tables = {key: run[key] for key in ("areas", "gains") if key in run}
    for key, values in tables.items():
        tables[key] = {name: value for name, value in values.items() if name in names}
    return {**run, **tables}


def _times(result: Result) -> list[str]:
    report = result["explained"]
    heads = ("drugs", "atoms", "labels", "methods", "s", "of it, to explain", "CPU s", "MB")
    cells = [f"{report[key]}" for key in ("drugs", "atoms", "labels")]
    cells += [f"{len(report['methods'])}"]
    cells += [
        f"{report[key]:.1f}" for key in ("seconds", "seconds_of_explain", "processor_seconds")
    ]
    verdict = "reached" if report["seconds"] < MOST_SECONDS else "missed"
    notes = [machine(result, f"{result['environment']['threads']} threads")]
    removed = [name for name in report["methods"] if not name.startswith(tuple(METHODS))]
    if removed:
        notes.insert(0, f"{len(removed)} of these methods were removed since")
    if report["drugs"] == 20:
        notes.insert(0, f"the goal of {MOST_SECONDS} s for 20 drugs is {verdict}")
    return [*table(heads, [[*cells, f"{1e-6 * report['bytes']:.1f}"]]), "", *listed(notes)]


def _seeds(tasks: dict[str, list[dict[str, Any]]]) -> str:
    """Text of the seeds by task, or of the seeds alone if all tasks have the same seeds."""
    by_task = {task: ", ".join(str(run["seed"]) for run in runs) for task, runs in tasks.items()}
    if len({*by_task.values()}) == 1:
        return next(iter(by_task.values()))
    return "; ".join(f"{task} {seeds}" for task, seeds in by_task.items())


def _methods(runs: Iterable[dict[str, Any]]) -> list[str]:
    """The names of all methods. The floors, which need no trained network, come last."""
    names, floors = dict.fromkeys(name for run in runs for name in run), (SIZE, SHUFFLED, RANDOM)
    return [name for name in names if name not in floors] + [n for n in floors if n in names]


def _atoms(tasks: dict[str, list[dict[str, Any]]]) -> list[str]:
    columns: dict[str, tuple[str, Callable[[dict[str, float]], float]]] = {}
    if "nci" in tasks:
        columns |= {
            "NCI, mean": ("nci", lambda areas: float(np.mean(list(areas.values())))),
            "median": ("nci", lambda areas: float(np.median(list(areas.values())))),
            "worst label": ("nci", lambda areas: min(areas.values())),
        }
    fractions = tasks["logic"][0]["shares"] if "logic" in tasks else {}
    logic_tasks = [task for task in LOGIC if task in fractions]
    columns |= {task: ("logic", lambda areas, task=task: areas[task]) for task in logic_tasks}
    values: dict[str, list[Spread]] = {}
    for method in _methods(run["areas"] for runs in tasks.values() for run in runs):
        values[method] = []
        for task, statistic in columns.values():
            by_label = (run["areas"].get(method) for run in tasks[task])
            values[method].append(spread(statistic(areas) if areas else None for areas in by_label))
    lines = ranked(["method", *columns], values)
    if logic_tasks:
        rows = []
        for method, row in PUBLISHED.items():
            rows.append([method, *("" if area is None else f"{area:.2f}" for area in row)])
        lines += ["", *table(["published", *LOGIC], rows)]
    notes = []
    for index, name in enumerate(columns):
        means = {method: row[index]["mean"] or 0.0 for method, row in values.items()}
        best, area = max(
            ((method, mean) for method, mean in means.items() if method not in (SIZE, RANDOM)),
            key=lambda item: item[1],
        )
        if (goal := GOALS.get(name)) is not None:
            verdict = f"the goal of {goal} is {'reached' if area >= goal else 'missed'}"
            notes.append(f"{name}: {verdict} by {best}, the best method, with {area:.3f}")
    for task, runs in tasks.items():
        fraction = np.mean([value for run in runs for value in run["shares"].values()])
        chosen = ", ".join(sorted({run["chosen"] for run in runs}))
        notes += [
            f"{task}: {len(runs[0]['shares'])} labels, on average {fraction:.0%} of a molecule's "
            f"atoms; the network's macro ROC-AUC on the test molecules is "
            f"{cell(spread(run['roc_auc'] for run in runs))}",
            f"{task}: faithfulness chooses {chosen}",
        ]
    if missing := [task for task in LOGIC if "logic" in tasks and task not in logic_tasks]:
        notes.append(f"too few of these molecules fulfil {', '.join(missing)} to measure it")
    return [*lines, "", *listed(notes)]


def _planted(runs: Sequence[dict[str, Any]]) -> list[str]:
    methods = _methods(run["average_precision"] for run in runs)
    values = {name: [spread(run["average_precision"][name] for run in runs)] for name in methods}
    fraction = np.mean([run["share"] for run in runs])
    heads = ["what ranks the pairs", "average precision"]
    return [*ranked(heads, values), "", f"- {fraction:.0%} of all pairs are edges"]


def _faithful(tasks: dict[str, list[dict[str, Any]]]) -> list[str]:
    def shown(method: str, runs: list[dict[str, Any]]) -> str:
        value = spread(run["gains"].get(method) for run in runs)
        if value["mean"] is None:
            return ""
        chosen = max({run["chosen"] for run in runs}, key=[run["chosen"] for run in runs].count)
        best = np.mean([run["gains"][chosen] for run in runs])
        mark = "**" if method == chosen else "*" if value["mean"] > best else ""
        return f"{mark}{cell(value)}{mark}"

    all_runs = [run for runs in tasks.values() for run in runs]
    names = [task.removesuffix("-faithful") for task in tasks]
    rows = []
    for method in _methods(run["gains"] for run in all_runs):
        rows.append([method, *(shown(method, runs) for runs in tasks.values())])
    notes = []
    for rival in (RANDOM, SHUFFLED, "attention"):
        gains = [run["gains"] for run in all_runs]
        is_ahead = [
            gain[run["chosen"]] > gain[rival]
            for run, gain in zip(all_runs, gains, strict=True)
            if rival in gain
        ]
        if is_ahead:
            notes.append(
                f"the chosen method is ahead of {rival} in {sum(is_ahead)} of {len(is_ahead)} runs"
            )
    means = (np.mean([run["alike"] for run in runs]) for runs in tasks.values())
    texts = [f"{name} {mean:.2f}" for name, mean in zip(names, means, strict=True)]
    intro = "rank correlation of scores before and after weights were shuffled"
    notes.append(f"{intro}: {', '.join(texts)}")
    return [*table(["method", *names], rows), "", *listed(notes)]
