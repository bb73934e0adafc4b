"""Hierarchies of labels: a page with our scores on every data set beside the published scores."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.accuracy.hierarchies import DEFAULT, NAME, PUBLISHED, TOPICS
from benchmarks.files import Result
from benchmarks.report.statistics import spread
from benchmarks.report.writing import cell, line, listed, machine, ranked, table

INTRO = """\
# Hierarchies of labels

Is the default as good as networks that are made for hierarchies? Each cell is the area under the
precision-recall curve of all pairs of a test sample and a label other than a root (micro average
precision), on functions of genes (FunCat, a tree; Gene Ontology, a graph), diatoms and X-ray
images, with the official parts. C-HMCNN(h) is as published (Giunchiglia and Lukasiewicz, NeurIPS
2020); all other rows are ours. "Coherent" rows give each label the largest score of itself and all
labels below it. The parts of the default are fitted within it.

The default may take {seconds:.0f} seconds of one core for each data set, and fits each of its parts
in any case. How its trees share labels and samples was chosen with the test scores of cellcycle_FUN
in view."""
MESSAGES = """\
## What the label graph adds

LaMP over held-out scores of kernel ridge regression and trees, along label graphs that differ in
their edges alone, with coherent predictions: to labels above (up), below (down), or both, along all
pairs, and along the largest attention of the model of all pairs (learned)."""
TOPICS_INTRO = """\
## RCV1's topics

The 103 topics of a sample of 2,316 stories, a fifth of which tests. Messages along their tree, and
along other label graphs, without classifiers below them are in [another table](rcv1-sample.md). The
Mulan subsets of RCV1 that we found name no topics, so that the tree cannot be laid over them."""
GROWTH_INTRO = """\
## Growth with the number of labels

A synthetic tree whose labels have ten children, states of 64 channels, 32 components of a sample: a
training step with the coherent loss and one step of messages, coherent inference over all labels,
and over a shortlist of 100 candidates and their ancestors (`tg_mlc.nn.Shortlister`). A step along
all pairs of labels shows why the Gene Ontology has no row of the complete graph above. The coherent
head takes a batch of four; the dense one is the definition in the paper, a maximum over all pairs
of labels, and equals it.

![Time and memory by the number of labels](hierarchies-growth.svg)
"""
COLUMNS = {
    "num_labels": "labels",
    "num_pairs": "ancestor pairs",
    "train_ms": "step, ms",
    "complete_ms": "step along all pairs, ms",
    "inference_ms": "inference, ms",
    "shortlist_ms": "shortlist, ms",
    "head_ms": "head, ms",
    "dense_head_ms": "dense head, ms",
    "megabytes": "MB",
}
OWN = ("up", "down", "both")  #: Label graphs along the hierarchy.
PREFIX, NO_MESSAGES = "messages: ", "none, mean of classifiers"


def page(result: Result, growth: Result | None = None) -> str:
    """The page of results on hierarchies."""
    runs = pd.DataFrame(result["runs"])
    is_message_run, is_topic = runs["model"].str.startswith(PREFIX), runs["dataset"] == TOPICS
    along = runs[is_message_run].assign(model=runs["model"].str.removeprefix(PREFIX))
    main_runs, topic_runs = runs[~is_message_run & ~is_topic], runs[is_topic]
    num_datasets = main_runs.groupby("model")["dataset"].transform("nunique")
    # Rows on few data sets are listed below the table.
    is_on_few_datasets = 2 * num_datasets < main_runs["dataset"].nunique()
    few_sentences = []
    for name, group in main_runs[is_on_few_datasets].groupby("dataset", sort=False):
        scores = "; ".join(f"{row} {value:.3f}" for row, value in _means(group).items())
        few_sentences.append(f"On {name} alone: {scores}.")
    sections = [
        INTRO.format(seconds=result["seconds"]),
        "\n".join(_rows(main_runs[~is_on_few_datasets], published=True)),
        "\n".join(listed([*_sentences(main_runs), *few_sentences])),
    ]
    if (is_message_run & ~is_topic).any():
        graph_runs = along[along["dataset"] != TOPICS]
        rows, gains = _rows(graph_runs, published=False), listed(_gains(graph_runs))
        sections += [MESSAGES, "\n".join(rows), "\n".join(gains)]
    if is_topic.any():
        models = topic_runs["model"]
        is_excluded = models.str.startswith("part: ") | models.str.endswith(", coherent")
        by_model = topic_runs[~is_excluded].groupby("model", sort=False)["average_precision"]
        rows = [[model, cell(spread(scores))] for model, scores in by_model]
        sections += [TOPICS_INTRO, "\n".join(table(("model", "micro average precision"), rows))]
        if (is_message_run & is_topic).any():
            sections.append("\n".join(listed(_gains(along[along["dataset"] == TOPICS]))))
    if growth is not None:
        rows = [[_format(row.get(key)) for key in COLUMNS] for row in growth["growth"]]
        command = "Written by `python -m benchmarks.speed.hierarchies`"
        source = f"{command}. {machine(growth, 'one thread')}."
        sections += [GROWTH_INTRO, "\n".join(table(tuple(COLUMNS.values()), rows)), source]
    seeds = runs.groupby("dataset", sort=False)["seed"].nunique()
    source = (
        f"Seeds: {', '.join(f'{name} {count}' for name, count in seeds.items())}; cells without a "
        f"figure were not run. To repeat it, run `python -m benchmarks.accuracy.{NAME}`. "
        f"{machine(result, 'one thread')}."
    )
    return "\n\n".join([*sections, source]) + "\n"


def _means(runs: pd.DataFrame) -> pd.Series:
    return runs.groupby("model", sort=False)["average_precision"].mean()


def _rows(runs: pd.DataFrame, *, published: bool) -> list[str]:
    """A table with a row for each model and a column for each data set."""
    names = [name for name in PUBLISHED if name in set(runs["dataset"])]
    values = {
        model: [spread(df.loc[df["dataset"] == name, "average_precision"]) for name in names]
        for model, df in runs.groupby("model", sort=False)
    }
    published_row = line(["C-HMCNN(h), published", *(f"{PUBLISHED[name]:.3f}" for name in names)])
    return [*ranked(("model", *names), values), *([published_row] if published else [])]


def _sentences(runs: pd.DataFrame) -> list[str]:
    """For each data set, compares the default with the published score and the best single part."""
    sentences = []
    for name, group in runs.groupby("dataset", sort=False):
        means = _means(group)
        if DEFAULT not in means:
            continue
        parts = means[[model for model in means.index if model.startswith("part: ")]]
        above = "above" if round(means[DEFAULT], 3) > PUBLISHED[name] else "not above"
        text = f"{name}: {means[DEFAULT]:.3f}, {above} the published {PUBLISHED[name]:.3f}"
        if len(parts):
            text += f"; its best single part, {parts.idxmax()[6:]}, has {parts.max():.3f}"
        sentences.append(f"{text}.")
    return sentences


def _gains(runs: pd.DataFrame) -> list[str]:
    """Sentences on LaMP's gain over classifiers, and label graphs' gain over edgeless LaMP."""
    gains = []
    for name, group in runs.groupby("dataset", sort=False):
        means, seeds = _means(group), group["seed"].nunique()
        base, edgeless = means[NO_MESSAGES], means["edgeless"]
        graphs = means.drop([NO_MESSAGES, "edgeless"])
        own = graphs[graphs.index.isin(OWN)]
        gains.append(
            f"{name}: without messages between labels, LaMP adds {edgeless - base:+.3f} to the "
            f"classifiers; the best label graph, {graphs.idxmax()}, adds "
            f"{graphs.max() - edgeless:+.3f} to that, the best along the hierarchy, "
            f"{own.idxmax()}, {own.max() - edgeless:+.3f} ({seeds} seed{'s' * (seeds > 1)})."
        )
    return gains


def _format(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def draw(growth: list[dict[str, float]]) -> Figure:
    """Draws time and memory by the number of labels, both axes logarithmic."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    style = {"marker": "o", "markersize": 3}
    for key, title in COLUMNS.items():
        if key.endswith("_ms"):
            points = [(row["num_labels"], row[key]) for row in growth if key in row]
            left.loglog(*zip(*points, strict=True), label=title.removesuffix(", ms"), **style)
    left.set(xlabel="labels", ylabel="milliseconds")
    left.legend(fontsize="small")
    labels, megabytes = ([row[key] for row in growth] for key in ("num_labels", "megabytes"))
    right.loglog(labels, megabytes, color="#1b2a41", **style)
    right.set(xlabel="labels", ylabel="megabytes")
    return figure
