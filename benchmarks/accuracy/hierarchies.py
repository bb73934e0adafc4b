"""Labels that form a hierarchy: functions of genes, diatoms and X-ray images.

    python -m benchmarks.accuracy.hierarchies --root HMC_data --seeds 5

The metric is the area under the precision-recall curve of all pairs of a test sample and a label
other than a root, AU(PRC) in the literature (micro average precision). Models are fitted to the
official training and validation samples together, and tested on the official test samples; forests,
networks and the default have a seed. The files are those of
https://github.com/EGiunchiglia/C-HMCNN, plain or compressed; missing ones are skipped. Finished
rows are stored at once, so that repeating the command continues an interrupted run.
"""

from __future__ import annotations

import dataclasses
import resource
import tempfile
import time
from collections.abc import Mapping
from functools import cache, partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import delayed

from benchmarks.accuracy.runs import FREQUENCY
from benchmarks.command_line import run
from benchmarks.files import Run, collect, describe_dataset
from tg_mlc._files import file_sha256
from tg_mlc.baselines import ForestBaseline, KernelRidgeBaseline, NetworkBaseline
from tg_mlc.data import (
    ArrayDataset,
    MultiLabelDataset,
    Split,
    from_arff,
    random_split,
    stratified_split,
    with_hierarchy,
)
from tg_mlc.datasets import RCV1
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected, learned
from tg_mlc.graphs.hierarchy import coherent, pairs_of
from tg_mlc.inference.batches import batches_of, logits_of, make_loader
from tg_mlc.inputs import Chain, kind_of
from tg_mlc.inputs.kinds import views_of
from tg_mlc.metrics import micro_average_precision
from tg_mlc.stacking import StackingFeatures, auto
from tg_mlc.stacking.automatic import classifier_scores
from tg_mlc.stacking.classifiers import many_labels
from tg_mlc.stacking.folds import TOP_K, LaMPSettings, settings_of
from tg_mlc.training.fitting import train_model

NAME, TOPICS = "hierarchies", "rcv1-sample"
#: The published results of C-HMCNN(h) (Giunchiglia and Lukasiewicz, NeurIPS 2020).
PUBLISHED: Mapping[str, float] = {
    "cellcycle_FUN": 0.255,
    "derisi_FUN": 0.195,
    "gasch2_FUN": 0.258,
    "Diatoms": 0.758,
    "ImCLEF07A": 0.956,
    "cellcycle_GO": 0.413,
    "derisi_GO": 0.370,
    "gasch2_GO": 0.414,
}
FOREST, TREES = "random forest", "extremely randomised trees"
RIDGE, MEAN = "kernel ridge", "mean of these three"
PLAIN, COHERENT, THREE = "network", "network with coherence", "three networks with coherence"
STACK, DEFAULT = "the default without coherence", "the default"
MESSAGES = ("edgeless", "up", "down", "both", "complete", "learned")
_KERNELS = tuple(product((0.25, 0.5, 1.0, 2.0), (0.3, 1.0, 3.0)))  #: Settings to choose from.
_LARGE = 1000  #: With more labels, graphs of all pairs are skipped: millions of edges.


def main(
    root: Path = Path("HMC_data"),
    datasets: str = ",".join((*PUBLISHED, TOPICS)),
    seeds: int = 5,
    parts: str = "frequency,alone,networks,default,messages,topics",
    seconds: float = 500.0,
    replace: bool = False,
) -> None:
    """Runs all rows, and writes benchmarks/runs/. A run that was interrupted continues.

    Args:
        root: Folder of the files. Its folder rcv1-sample, if any, holds RCV1's sample.
        datasets: Names of data sets, joined by commas.
        seeds: Number of seeds.
        parts: Groups of rows, joined by commas.
        seconds: Time limit of the default for each data set and seed.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    torch.set_num_threads(1)
    names, part_names = datasets.split(","), parts.split(",")
    makers = {"frequency": frequency, "alone": alone, "networks": networks}
    makers |= {"default": default, "messages": messages}
    published = (name for name in names if name in PUBLISHED)
    present = [name for name in published if None not in files_of(root, name)]
    described: dict[str, Any] = {name: _described(root, name) for name in present}
    content: dict[str, Any] = {"dataset": described, "seconds": seconds}
    calls = {
        (name, part, seed): delayed(makers[part])(root, name, seed, seconds)
        for seed, name, part in product(range(seeds), present, part_names)
        if part in makers and (seed == 0 or not name.endswith("_GO") or part != "messages")
    }
    if TOPICS in names and (root / TOPICS).is_dir():
        described[TOPICS] = describe_dataset(TOPICS, RCV1(root / TOPICS, "json"))
        topic_makers = {"topics": topics, "default": default, "messages": messages}
        for seed, part in product(range(seeds), part_names):
            if part in topic_makers:
                calls[TOPICS, part, seed] = delayed(topic_makers[part])(root, TOPICS, seed, seconds)
    collect(NAME, content, calls, itemgetter("dataset", "part", "seed"), _in_short, replace=replace)


def _in_short(run: Run) -> str:
    return (
        f"{run['dataset']}, seed {run['seed']}: {run['model']:<40} {run['average_precision']:.4f} "
        f"({run['seconds']:.0f} s, {run['gigabytes']:.1f} GB)"
    )


def files_of(root: Path, name: str) -> list[Path | None]:
    """Paths of the files of training, validation (if any) and test samples, None if missing."""
    subsets = ("train", "valid", "test") if "_" in name else ("train", "test")
    files = []
    for subset in subsets:
        stems = [f"{name}.{subset}.arff", f"{name}_{subset}.arff", f"{name}_{subset.title()}.arff"]
        paths = (root / f"{stem}{suffix}" for stem in stems for suffix in ("", ".xz", ".gz"))
        files.append(next((path for path in paths if path.is_file()), None))
    return files


def _described(root: Path, name: str) -> dict[str, Any]:
    train, test = load(root, name)
    size = {"num_samples": len(train), "num_test": len(test), "num_labels": train.num_labels}
    hashes = [file_sha256(path) for path in files_of(root, name) if path is not None]
    return {**size, "sha256": hashes}


def load(root: Path, name: str, seed: int = 0) -> tuple[Any, Any]:
    """Training (with validation) samples, and test samples: official, or a random fifth of RCV1."""
    if name != TOPICS:
        return _official(root, name)
    dataset = RCV1(root / TOPICS, "json")
    dataset = with_hierarchy(dataset, dataset.label_parents, listed=True)
    split = random_split(len(dataset), (0.8, 0.0, 0.2), seed)
    return dataset[split.train].copy(), dataset[split.test].copy()


@cache
def _official(root: Path, name: str) -> tuple[ArrayDataset, ArrayDataset]:
    *train, test = map(str, files_of(root, name))
    return from_arff(*train, kind="vector"), from_arff(test, kind="vector")


def _matrices(
    train: ArrayDataset, test: ArrayDataset
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns x, x_test, y and y_test. Inputs are standardised; unknown values are 0."""
    x, x_test = (samples.rows("x").double().numpy() for samples in (train, test))
    mean, sd = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    sd = np.where(sd > 0, sd, 1)
    x, x_test = (np.nan_to_num((inputs - mean) / sd) for inputs in (x, x_test))
    return x / x.shape[1] ** 0.5, x_test / x.shape[1] ** 0.5, train.y.numpy(), test.y.numpy()


class _Rows:
    """Collects the runs of one data set, group of rows (part) and seed."""

    def __init__(self, name: str, part: str, seed: int, y: np.ndarray) -> None:
        self.shared = {"dataset": name, "part": part, "seed": seed}
        self.y, self.start, self.runs = y, time.perf_counter(), list[Run]()

    def add(self, model: str, scores: Any, seconds: float | None = None) -> None:
        """Adds a run with test scores. ``seconds`` defaults to the time since the previous run."""
        elapsed = time.perf_counter() - self.start if seconds is None else seconds
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        value = micro_average_precision(self.y, scores)
        scored = {"model": model, "average_precision": value}
        self.runs.append({**self.shared, **scored, "seconds": elapsed, "gigabytes": memory})
        self.start = time.perf_counter()


def frequency(root: Path, name: str, seed: int, seconds: float) -> list[Run]:
    """The frequencies of labels in training."""
    train, test = load(root, name)
    rows = _Rows(name, "frequency", seed, test.y.numpy())
    rows.add(FREQUENCY, train.y.numpy().mean(axis=0, keepdims=True).repeat(len(test), axis=0))
    return rows.runs


def alone(root: Path, name: str, seed: int, seconds: float) -> list[Run]:
    """Three classifiers of all labels, the mean of their scores, and the mean made coherent."""
    train, test = load(root, name)
    x, x_test, y, y_test = _matrices(train, test)
    rows, pairs = _Rows(name, "alone", seed, y_test), pairs_of(train.label_graph)
    common: dict[str, Any] = {"min_samples_leaf": 5, "random_state": seed, "max_outputs": 512}
    forest = ForestBaseline(150, max_features=0.33, **common).fit(x, y).predict_proba(x_test)
    rows.add(FOREST, forest)
    trees = ForestBaseline(150, max_features=1.0, extra_trees=True, **common).fit(x, y)
    trees = trees.predict_proba(x_test)
    rows.add(TREES, trees)
    ridge = _ridge(x, y).predict_proba(x_test)
    rows.add(RIDGE, ridge)
    mean = np.mean([forest, trees, ridge], axis=0)
    rows.add(MEAN, mean)
    rows.add(f"{MEAN}, coherent", coherent(torch.from_numpy(mean), pairs))
    return rows.runs


def networks(root: Path, name: str, seed: int, seconds: float) -> list[Run]:
    """Networks with and without coherence, each trained on all samples."""
    train, test = load(root, name)
    x, x_test, y, y_test = _matrices(train, test)
    rows, pairs = _Rows(name, "networks", seed, y_test), pairs_of(train.label_graph)
    plain = NetworkBaseline(random_state=seed).fit(x, y).predict_proba(x_test)
    rows.add(PLAIN, plain)
    rows.add(f"{PLAIN}, made coherent afterwards", coherent(torch.from_numpy(plain), pairs), 0.0)
    scores = []
    for index in range(3):
        options = {"random_state": seed + 100 * index, "label_graph": train.label_graph}
        network = NetworkBaseline(**options).fit(x, y)
        scores.append(network.predict_proba(x_test))
        if not index:
            rows.add(COHERENT, scores[0])
    rows.add(THREE, np.mean(scores, axis=0))
    return rows.runs


def default(root: Path, name: str, seed: int, seconds: float) -> list[Run]:
    """The default with and without coherence, and each part of the default."""
    train, test = load(root, name, seed)
    rows, pairs = _Rows(name, "default", seed, test.y.numpy()), pairs_of(train.label_graph)
    model = auto(train, seconds, seed)
    elapsed = time.perf_counter() - rows.start
    rows.add(STACK, model.probabilities(test, coherent=False), elapsed)
    rows.add(DEFAULT, model.probabilities(test), elapsed)
    for title, entry in classifier_scores(model, test).items():
        rows.add(f"part: {title}", entry.scores, entry.seconds)
        scores = coherent(torch.from_numpy(entry.scores), pairs)
        rows.add(f"part: {title}, coherent", scores, entry.seconds)
    if model.networks:
        flow = model.prepare(test)
        model.network_stage.apply(flow)
        rows.add("part: LaMP", flow.probabilities, 0.0)
        rows.add("part: LaMP, coherent", coherent(flow.probabilities, pairs), 0.0)
    for row in rows.runs:
        row["weights"] = model.report["weights"]
    return rows.runs


def messages(root: Path, name: str, seed: int, seconds: float) -> list[Run]:
    """LaMP over the same classifiers' scores along different label graphs, made coherent."""
    train, test = load(root, name, seed)
    rows, pairs = _Rows(name, "messages", seed, test.y.numpy()), pairs_of(train.label_graph)
    searches = many_labels(train.label_graph)
    searches = {kind: search for kind, search in searches.items() if kind != "network"}
    features = StackingFeatures(searches=searches, seconds=seconds / 4, seed=seed)
    chain = Chain(*kind_of(train).steps(), features)
    samples, test_samples = chain.fit_transform(train, _everything(train)), chain.transform(test)
    split, settings = stratified_split(samples.y, (0.9, 0.1, 0.0), seed), settings_of(samples)
    mean_scores = test_samples.rows("base_scores").mean(dim=-1).sigmoid()
    rows.add("messages: none, mean of classifiers", coherent(mean_scores, pairs))
    fit_settings = {**settings.train.fit, "max_epochs": 12, "patience": 4}
    train_settings = dataclasses.replace(settings.train, fit=fit_settings)
    complete_model: Any = None
    for kind in MESSAGES:
        if kind in ("complete", "learned") and train.num_labels > _LARGE:
            continue
        if kind == "learned":
            loader = make_loader(samples[split.train], batch_size=256)
            graph = learned(complete_model, loader, top_k=TOP_K)
        else:
            graph = graph_of(kind, train.label_graph)
        with tempfile.TemporaryDirectory() as folder:
            build = partial(_build, settings, graph)
            training = train_model(build, samples, split, train_settings, folder, seed=seed)
        model = training.module.model.eval()
        complete_model = model if kind == "complete" else complete_model
        logits = logits_of(model, batches_of(test_samples))
        rows.add(f"messages: {kind}", coherent(logits.sigmoid(), pairs))
    return rows.runs


def _everything(train: MultiLabelDataset) -> Split:
    return Split(torch.arange(len(train)), torch.arange(0), torch.arange(0), "all training samples")


def _build(settings: LaMPSettings, graph: LabelGraph, part: MultiLabelDataset) -> Any:
    return settings.build(part, graph, **settings.model)


def topics(root: Path, name: str, seed: int, seconds: float) -> list[Run]:
    """Kernel ridge regression of RCV1's topics on weighted words, with and without coherence."""
    train, test = load(root, name, seed)
    steps = Chain(*kind_of(train).steps())
    samples, test_samples = steps.fit_transform(train, _everything(train)), steps.transform(test)
    view = next(iter(views_of(samples).values())).fit(samples)
    y = train.y.numpy()
    rows = _Rows(name, "topics", seed, test.y.numpy())
    rows.add(FREQUENCY, np.tile(y.mean(axis=0), (len(test), 1)))
    scores = _ridge(view.matrix(samples), y).predict_proba(view.matrix(test_samples))
    rows.add(RIDGE, scores)
    rows.add(f"{RIDGE}, coherent", coherent(torch.from_numpy(scores), pairs_of(train.label_graph)))
    return rows.runs


def _ridge(x: Any, y: np.ndarray) -> KernelRidgeBaseline:
    """Kernel ridge regression with the setting of the best held-out scores."""

    def value(setting: tuple[float, float]) -> float:
        baseline = KernelRidgeBaseline(*setting)
        return micro_average_precision(y, baseline.held_out_scores(x, y, refit=False))

    return KernelRidgeBaseline(*max(_KERNELS, key=value)).fit(x, y)


def graph_of(kind: str, hierarchy: LabelGraph) -> LabelGraph:
    """A label graph for messages to parents (up), children (down), both, all labels, or none."""
    names, size = hierarchy.label_names, hierarchy.num_labels
    if kind in ("edgeless", "complete"):
        return (edgeless if kind == "edgeless" else fully_connected)(names)
    down: torch.Tensor = hierarchy.parent_index  # type: ignore[assignment]
    edges = {"down": down, "up": down.flip(0), "both": torch.cat([down, down.flip(0)], dim=1)}
    return LabelGraph(edges[kind], num_nodes=size, label_names=names, kind=kind).add_self_loops()


if __name__ == "__main__":
    run(main)
