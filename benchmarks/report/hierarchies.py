"""Hierarchies of labels: a page with the rows of every data set beside the published figure."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.accuracy.hierarchies import DEFAULT, NAME, PUBLISHED, TOPICS
from benchmarks.files import Result
from benchmarks.report.statistics import spread
from benchmarks.report.writing import cell, line, listed, machine, ranked, table

INTRO = """\
# Hierarchies of labels

Functions of genes (FunCat, a tree; Gene Ontology, a graph), diatoms and X-ray images, with the official parts: the area
under the precision-recall curve of all pairs of a test sample and a label but roots (micro average precision).
C-HMCNN(h) is as published (Giunchiglia and Lukasiewicz, NeurIPS 2020); all other rows are ours. "Coherent" rows give
each label the largest score of itself and all labels below it. The parts of the default are fitted within it.

The default may take {seconds:.0f} seconds of one core for each data set, and fits each of its parts in any case.
How its trees share labels and samples was chosen with the test scores of cellcycle_FUN in view."""
MESSAGES = """\
## What the label graph adds

LaMP over held-out scores of kernel ridge regression and trees, along label graphs that differ in their edges alone,
with coherent predictions: to labels above (up), below (down), or both, along all pairs, and along the largest attention
of the model of all pairs (learned)."""
TOPICS_INTRO = """\
## RCV1's topics

The 103 topics of a sample of 2,316 stories, a fifth of which tests. Messages along their tree, and along other label
graphs, without classifiers below them are in [another table](rcv1-sample.md). The Mulan subsets of RCV1 that we found
name no topics, so that the tree cannot be laid over them."""
GROWTH_INTRO = """\
## Growth with the number of labels

A synthetic tree whose labels have ten children, states of 64 channels, 32 components of a sample: a training step with
the coherent loss and one step of messages, coherent inference over all labels, and over a shortlist of 100 candidates
and their ancestors (`tg_mlc.nn.Shortlister`). A step along all pairs of labels shows why the Gene Ontology has no row
of the complete graph above. The coherent head takes a batch of four; the dense one is the definition in the paper, a
maximum over all pairs of labels, and equals it.

![Time and memory by the number of labels](hierarchies-growth.svg)
"""
COLUMNS = {
    "num_labels": "labels", "num_pairs": "ancestor pairs", "train_ms": "step, ms",
    "complete_ms": "step along all pairs, ms", "inference_ms": "inference, ms",
    "shortlist_ms": "shortlist, ms", "head_ms": "head, ms", "dense_head_ms": "dense head, ms", "megabytes": "MB",
}  # fmt: skip
OWN = ("up", "down", "both")
PREFIX, NO_MESSAGES = "messages: ", "none, mean of classifiers"


def page(result: Result, growth: Result | None = None) -> str:
    """The page."""
    runs = pd.DataFrame(result["runs"])
    is_along, is_topic = runs["model"].str.startswith(PREFIX), runs["dataset"] == TOPICS
    along = runs[is_along].assign(model=runs["model"].str.removeprefix(PREFIX))
    genes, of_topics = runs[~is_along & ~is_topic], runs[is_topic]
    is_on = genes.groupby("model")["dataset"].transform("nunique")
    # told below the table, which is wide and long enough
    on_few = 2 * is_on < genes["dataset"].nunique()
    others = (
        f"On {name} alone: {'; '.join(f'{row} {value:.3f}' for row, value in _means(each).items())}."
        for name, each in genes[on_few].groupby("dataset", sort=False)
    )
    sections = [
        INTRO.format(seconds=result["seconds"]),
        "\n".join(_rows(genes[~on_few], published=True)),
        "\n".join(listed([*_sentences(genes), *others])),
    ]
    if (is_along & ~is_topic).any():
        shown = along[along["dataset"] != TOPICS]
        sections += [
            MESSAGES,
            "\n".join(_rows(shown, published=False)),
            "\n".join(listed(_gains(shown))),
        ]
    if is_topic.any():
        parts = of_topics["model"].str.startswith("part: ") | of_topics["model"].str.endswith(
            ", coherent"
        )
        by_model = of_topics[~parts].groupby("model", sort=False)["average_precision"]
        rows = [[model, cell(spread(each))] for model, each in by_model]
        sections += [TOPICS_INTRO, "\n".join(table(("model", "micro average precision"), rows))]
        if (is_along & is_topic).any():
            sections.append("\n".join(listed(_gains(along[along["dataset"] == TOPICS]))))
    if growth is not None:
        rows = [[_shown(row.get(key)) for key in COLUMNS] for row in growth["growth"]]
        where = (
            f"Written by `python -m benchmarks.speed.hierarchies`. {machine(growth, 'one thread')}."
        )
        sections += [GROWTH_INTRO, "\n".join(table(tuple(COLUMNS.values()), rows)), where]
    seeds = ", ".join(
        f"{name} {each.nunique()}" for name, each in runs.groupby("dataset", sort=False)["seed"]
    )
    source = (
        f"Seeds: {seeds}; cells without a figure were not run. To repeat it, run "
        f"`python -m benchmarks.accuracy.{NAME}`. {machine(result, 'one thread')}."
    )
    return "\n\n".join([*sections, source]) + "\n"


def _means(runs: pd.DataFrame) -> pd.Series:
    return runs.groupby("model", sort=False)["average_precision"].mean()


def _rows(runs: pd.DataFrame, *, published: bool) -> list[str]:
    """A row for each model, with a column for each data set."""
    names = [name for name in PUBLISHED if name in set(runs["dataset"])]
    values = {
        model: [spread(each.loc[each["dataset"] == name, "average_precision"]) for name in names]
        for model, each in runs.groupby("model", sort=False)
    }
    theirs = line(["C-HMCNN(h), published", *(f"{PUBLISHED[name]:.3f}" for name in names)])
    return [*ranked(("model", *names), values), *([theirs] if published else [])]


def _sentences(runs: pd.DataFrame) -> list[str]:
    """The score of the default on each data set, beside the published one and that of its best part."""
    found = []
    for name, each in runs.groupby("dataset", sort=False):
        means = _means(each)
        if DEFAULT not in means:
            continue
        parts = means[[model for model in means.index if model.startswith("part: ")]]
        above = "above" if round(means[DEFAULT], 3) > PUBLISHED[name] else "not above"
        single = (
            ""
            if not len(parts)
            else f"; its best single part, {parts.idxmax()[6:]}, has {parts.max():.3f}"
        )
        found.append(
            f"{name}: {means[DEFAULT]:.3f}, {above} the published {PUBLISHED[name]:.3f}{single}."
        )
    return found


def _gains(runs: pd.DataFrame) -> list[str]:
    """Gains of LaMP over the classifiers, and of the best label graphs over LaMP without one, on each data set."""
    found = []
    for name, each in runs.groupby("dataset", sort=False):
        means, seeds = _means(each), each["seed"].nunique()
        none, edgeless = means[NO_MESSAGES], means["edgeless"]
        graphs = means.drop([NO_MESSAGES, "edgeless"])
        own = graphs[graphs.index.isin(OWN)]
        found.append(
            f"{name}: without messages between labels, LaMP adds {edgeless - none:+.3f} to the classifiers; the best "
            f"label graph, {graphs.idxmax()}, adds {graphs.max() - edgeless:+.3f} to that, the best along "
            f"the hierarchy, {own.idxmax()}, {own.max() - edgeless:+.3f} "
            f"({seeds} seed{'s' * (seeds > 1)})."
        )
    return found


def _shown(value: float | None) -> str:
    return (
        ""
        if value is None
        else f"{value:,.0f}"
        if value >= 100 or value == int(value)
        else f"{value:.3g}"
    )


def draw(growth: list[dict[str, float]]) -> Figure:
    """Draws time and memory by the number of labels, both axes logarithmic."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    labels = [row["num_labels"] for row in growth]
    for key in (
        "train_ms",
        "complete_ms",
        "inference_ms",
        "shortlist_ms",
        "head_ms",
        "dense_head_ms",
    ):
        points = [(row["num_labels"], row[key]) for row in growth if key in row]
        left.loglog(
            *zip(*points, strict=True),
            marker="o",
            markersize=3,
            label=COLUMNS[key].removesuffix(", ms"),
        )
    left.set(xlabel="labels", ylabel="milliseconds")
    left.legend(fontsize="small")
    right.loglog(
        labels, [row["megabytes"] for row in growth], marker="o", markersize=3, color="#1b2a41"
    )
    right.set(xlabel="labels", ylabel="megabytes")
    return figure
