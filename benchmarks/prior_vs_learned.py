"""Compares label graphs: edgeless (el), fully connected (fc), prior (pr), with and without feature message passing.

    python benchmarks/prior_vs_learned.py --dataset sider --seeds 5

Every seed draws its own split; all rows of a seed share it. Next to the variants stand the label frequencies, random
forests on Morgan fingerprints (default and tuned on validation), a pooled GNN, and the linear path alone. Differences
to el are tested over the seeds. Where the true label graph is known, the attention that fc learns is compared with it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from jsonargparse import auto_cli
from numpy.typing import ArrayLike
from scipy.stats import t as student_t

from environment import describe_dataset, write_results
from recovery import co_occurrence_scores, mean_label_attention, recovery
from rivals import LinearAlone, PooledGNN
from tg_mlc.baselines import LabelFrequency, MorganForest
from tg_mlc.baselines.morgan_forest import DEFAULT_GRID
from tg_mlc.data import Split
from tg_mlc.datasets import MultiLabelDataset
from tg_mlc.graphs import edgeless
from tg_mlc.metrics import evaluate, tune_per_metric
from tg_mlc.models import molecule_lamp
from tg_mlc.recipes import (
    RECIPES,
    DatasetName,
    EncoderName,
    GraphName,
    SplitName,
    counted_labels,
    load_dataset,
    make_label_graph,
    make_split,
    train,
)
from tg_mlc.training import FitResult, MultiLabelDataModule, MultiLabelModule, fit, seed_everything

TESTED = ("maAUC", "maF1")
#: What forests are tuned over; on the larger data set each setting takes a minute.
FOREST_GRIDS: dict[DatasetName, Mapping[str, Sequence[Any]]] = {
    "sider": DEFAULT_GRID,
    "nci": {"max_features": ("sqrt", "log2")},
}
# The best of a few settings for the pooled GNN on the random splits 0 and 1.
GINE_MODULE: dict[str, Any] = {"lr": 3e-3, "weight_decay": 0.01, "decay": "cosine", "warmup": 0.05}
GINE_FIT: dict[str, Any] = {"max_epochs": 30, "patience": None, "gradient_clip": 1.0}


@dataclass
class Run:
    """One row of one seed."""

    model: str
    seed: int
    split: str
    seconds: float
    metrics: dict[str, float | None]
    undefined: list[str]
    density: float | None = None
    validation: float | None = None
    recovery: dict[str, Any] = field(default_factory=dict)


@dataclass
class Task:
    """A data set, and which of its labels count."""

    name: DatasetName
    dataset: MultiLabelDataset

    @property
    def counted(self) -> torch.Tensor:
        """Which labels are frequent enough."""
        return counted_labels(self.name, self.dataset)

    def evaluate(
        self, split: Split, on_val: ArrayLike, on_test: ArrayLike
    ) -> tuple[dict[str, float | None], list[str]]:
        """All metrics on the test set, with one threshold for each metric, tuned on the validation set."""
        keep, y = self.counted, self.dataset.y
        names = [name for name, counts in zip(self.dataset.label_names, keep.tolist(), strict=True) if counts]
        scores = [torch.as_tensor(np.asarray(s), dtype=torch.float64)[:, keep] for s in (on_val, on_test)]
        tuners = tune_per_metric(y[split.val][:, keep], scores[0])
        evaluation = evaluate(y[split.test][:, keep], scores[1], tuners, names)
        return evaluation.to_dict()["values"], evaluation.undefined


def main(
    dataset: DatasetName = "sider",
    seeds: int = 5,
    first_seed: int = 10,
    split: SplitName = "random",
    graphs: tuple[GraphName, ...] = ("el", "fc", "pr"),
    encoders: tuple[EncoderName, ...] = ("emb", "fmp"),
    root: Path = Path("data"),
    jobs: int = 1,
    max_epochs: int | None = None,
    save: bool = True,
) -> None:
    """Trains every variant with every seed, prints the table and writes benchmarks/results/.

    Args:
        dataset: The data set.
        seeds: Number of seeds.
        first_seed: The first of them; the recipes were found with seeds 0 to 2 (that of NCI also with 11).
        split: How molecules are divided.
        graphs: The label graphs.
        encoders: Without (emb) and with feature message passing (fmp); or fingerprints and descriptors only (vectors).
        root: Folder that keeps the data.
        jobs: How many trainings run at a time, each on one thread.
        max_epochs: Number of epochs, if not that of the recipe.
        save: Whether to write the results.
    """
    task = Task(dataset, load_dataset(dataset, root))
    options = {} if max_epochs is None else {"max_epochs": max_epochs}
    chosen = range(first_seed, first_seed + seeds)
    calls = [delayed(run_rivals)(task, split, seed, options) for seed in chosen]
    calls += [
        delayed(run_variant)(task, split, seed, graph, encoder, options)
        for encoder in encoders
        for graph in graphs
        for seed in chosen
    ]
    runs: list[Run] = []
    for done in Parallel(n_jobs=jobs, return_as="generator")(calls):
        runs += done
        for run in done:
            print(
                f"{run.model:<22} seed {run.seed}: maAUC {run.metrics['maAUC']:.4f} ({run.seconds:.0f} s)", flush=True
            )

    summary = {
        model: summarise([run for run in runs if run.model == model]) for model in dict.fromkeys(r.model for r in runs)
    }
    tests = [
        test for encoder in encoders for graph in graphs if graph != "el" for test in compare(runs, encoder, graph)
    ]
    print_summary(summary, tests)
    if save:
        path = write_results(
            f"prior_vs_learned-{dataset}-{split}",
            {
                "dataset": {
                    "name": dataset,
                    **describe_dataset(task.dataset),
                    "counted_labels": int(task.counted.sum()),
                },
                "split": split,
                "seeds": list(chosen),
                "recipe": {key: getattr(RECIPES[dataset], key) for key in ("model", "module", "fit", "batch_size")}
                | options,
                "summary": summary,
                "tests": tests,
                "runs": [asdict(run) for run in runs],
            },
        )
        print(f"Wrote {path}")


def run_rivals(task: Task, method: SplitName, seed: int, options: dict[str, Any]) -> list[Run]:
    """The rows without label message passing."""
    torch.set_num_threads(1)
    dataset, split = task.dataset, make_split(task.dataset, method, seed)
    train_set, val, test = (dataset[part] for part in split.parts)
    frequency = LabelFrequency().fit(train_set.y)
    rows = [
        _run(
            "label frequency",
            task,
            split,
            seed,
            0.0,
            frequency.predict_proba(len(val)),
            frequency.predict_proba(len(test)),
        )
    ]

    start = time.perf_counter()
    forest = MorganForest(seed=seed, n_jobs=1).fit(train_set.smiles, train_set.y)
    on_val, on_test = forest.predict_proba(val.smiles), forest.predict_proba(test.smiles)
    rows.append(_run("random forest", task, split, seed, time.perf_counter() - start, on_val, on_test))

    start = time.perf_counter()
    forest = MorganForest.tuned(
        train_set.smiles, train_set.y, val.smiles, val.y, grid=FOREST_GRIDS[task.name], seed=seed, n_jobs=1
    )
    on_val, on_test = forest.predict_proba(val.smiles), forest.predict_proba(test.smiles)
    rows.append(_run("random forest, tuned", task, split, seed, time.perf_counter() - start, on_val, on_test))

    recipe = RECIPES[task.name]
    seed_everything(seed, verbose=False)
    rivals = [("GINE + sum pooling", PooledGNN(dataset.num_labels), GINE_MODULE, GINE_FIT)]
    lamp = molecule_lamp(train_set, edgeless(dataset.label_names))
    if lamp.linear_path is not None:
        settings = {**recipe.module, "intermediate_weight": 0.0}
        rivals.append(("linear path alone", LinearAlone(lamp), settings, recipe.fit))
    for name, model, module_settings, fit_settings in rivals:
        start = time.perf_counter()
        module = MultiLabelModule(model, dataset.label_names, **module_settings)
        on_val, on_test = _fit_rival(task, split, seed, module, {**fit_settings, **options})
        rows.append(_run(name, task, split, seed, time.perf_counter() - start, on_val, on_test))
    return rows


def _fit_rival(
    task: Task, split: Split, seed: int, module: MultiLabelModule, settings: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    data = MultiLabelDataModule(task.dataset, split, batch_size=RECIPES[task.name].batch_size, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        return _scores(fit(module, data, folder, **settings, accelerator="cpu", logger=False), data)


def run_variant(
    task: Task, method: SplitName, seed: int, graph: GraphName, encoder: EncoderName, options: dict[str, Any]
) -> list[Run]:
    """One row of label message passing."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    split = make_split(task.dataset, method, seed)
    label_graph = make_label_graph(graph, task.name, task.dataset, split)
    with tempfile.TemporaryDirectory() as folder:
        result, data = train(
            task.name,
            task.dataset,
            split,
            label_graph,
            folder,
            encoder=encoder,
            seed=seed,
            accelerator="cpu",
            logger=False,
            **options,
        )
        on_val, on_test = _scores(result, data)
    run = _run(f"{encoder} LaMP {graph}", task, split, seed, time.perf_counter() - start, on_val, on_test)
    run.density, run.validation = label_graph.density, result.best_value
    if graph == "fc" and task.name == "nci":
        truth = make_label_graph("pr", task.name, task.dataset, split)
        rivals = {
            weight: co_occurrence_scores(task.dataset.y[split.train], weight)
            for weight in ("count", "conditional", "correlation")
        }
        scores = {"learned attention": mean_label_attention(result.module.model, data.test_dataloader()), **rivals}
        run.recovery = {name: recovery(values, truth, task.counted) for name, values in scores.items()}
    return [run]


def _scores(result: FitResult, data: MultiLabelDataModule) -> tuple[torch.Tensor, torch.Tensor]:
    return result.predict(data.val_dataloader()), result.predict(data.test_dataloader())


def _run(model: str, task: Task, split: Split, seed: int, seconds: float, on_val: ArrayLike, on_test: ArrayLike) -> Run:
    metrics, undefined = task.evaluate(split, on_val, on_test)
    return Run(model, seed, split.hash, seconds, metrics, undefined)


def summarise(runs: Sequence[Run]) -> dict[str, Any]:
    """Mean and standard deviation of every metric over the seeds."""
    values = {name: np.array([run.metrics[name] for run in runs], dtype=float) for name in runs[0].metrics}
    spread = {
        name: {"mean": float(v.mean()), "sd": float(v.std(ddof=1)) if len(v) > 1 else None}
        for name, v in values.items()
    }
    recovered = {
        score: {name: float(np.mean([run.recovery[score][name] for run in runs])) for name in runs[0].recovery[score]}
        for score in runs[0].recovery
    }
    densities = [run.density for run in runs if run.density is not None]
    return {
        "metrics": spread,
        "seconds": float(np.mean([run.seconds for run in runs])),
        "density": float(np.mean(densities)) if densities else None,
        "recovery": recovered,
    }


def compare(runs: Sequence[Run], encoder: EncoderName, graph: GraphName) -> list[dict[str, Any]]:
    """Paired t-tests of a graph against el over the seeds, with the variance corrected for test sets that are drawn
    again from the same samples (Nadeau and Bengio 2003, doi:10.1023/A:1024068626366).
    """
    by_model = {m: {run.seed: run.metrics for run in runs if run.model == m} for m in {run.model for run in runs}}
    ours, el = by_model.get(f"{encoder} LaMP {graph}", {}), by_model.get(f"{encoder} LaMP el", {})
    shared = sorted(ours.keys() & el.keys())
    if len(shared) < 2:
        return []
    tests = []
    for metric in TESTED:
        a, b = (np.array([rows[seed][metric] for seed in shared], dtype=float) for rows in (ours, el))
        difference = a - b
        tests.append(
            {
                "encoder": encoder,
                "graph": graph,
                "against": "el",
                "metric": metric,
                "num_seeds": len(shared),
                "mean_difference": float(difference.mean()),
                "sd": float(difference.std(ddof=1)),
                "p": corrected_p_value(difference),
            }
        )
    return tests


def corrected_p_value(difference: np.ndarray, test_share: float = 0.1, train_share: float = 0.8) -> float:
    """The two-sided p-value of a mean difference over random splits of one data set."""
    n = len(difference)
    spread = np.sqrt((1 / n + test_share / train_share) * difference.var(ddof=1))
    if spread == 0:
        return float(difference.mean() == 0)
    return float(2 * student_t.sf(abs(difference.mean()) / spread, df=n - 1))


def print_summary(summary: dict[str, dict[str, Any]], tests: Sequence[dict[str, Any]]) -> None:
    """Prints mean ± standard deviation of every row, then the tests and the recovery of the true graph."""
    columns = ("ACC", "HA", "ebF1", "miF1", "maF1", "maAUC", "maAP")
    print(f"\n{'model':<22}{'density':>8}" + "".join(f"{column:>15}" for column in columns))
    for model, row in summary.items():
        density = "" if row["density"] is None else f"{row['density']:.2f}"
        cells = (row["metrics"][column] for column in columns)
        print(f"{model:<22}{density:>8}" + "".join(f"{c['mean']:8.4f}±{c['sd'] or 0:.4f}" for c in cells))
    for test in tests:
        print(
            f"{test['encoder']} {test['graph']} - el, {test['metric']}: {test['mean_difference']:+.4f} "
            f"(sd {test['sd']:.4f}, corrected paired t-test p = {test['p']:.2f}, {test['num_seeds']} seeds)"
        )
    for model, row in summary.items():
        for score, values in row["recovery"].items():
            print(f"{model}, true graph from {score}: " + ", ".join(f"{name} {v:.3f}" for name, v in values.items()))


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
