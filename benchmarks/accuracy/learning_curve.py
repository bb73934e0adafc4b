"""Learning curves: label message passing by default and with the paper's readout, and rivals.

    python -m benchmarks.accuracy.learning_curve --dataset bibtex --epochs 12
    python -m benchmarks.accuracy.learning_curve --dataset nci --epochs 12

On bags of words, LaMP is compared with the layout of the authors' released code, whose encoder
discards its attention; on molecules, the drop-in layer of the page on training is compared with the
pooling that it replaces. All models see the same samples in the same order, and are trained by Adam
with the same constant learning rate, without other classifiers' scores or averaged weights. Seconds
are processor time spent in training steps.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from joblib import delayed
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

from benchmarks.command_line import run
from benchmarks.files import Run, check_kept, collect, describe_dataset
from benchmarks.speed.released_layout import ReleasedLayout
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.graphs import fully_connected
from tg_mlc.metrics import evaluate, tune_thresholds
from tg_mlc.models import LaMP
from tg_mlc.nn import LabelHead
from tg_mlc.nn.encoders import BagEncoder
from tg_mlc.papers.recipes import RECIPES

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
DEFAULT, TIED = "by default", "tied readout (the paper's equation)"
RELEASED, POOLED = "released layout", "pooling"
METRICS = ("f1_samples", "f1_micro", "f1_macro", "roc_auc_macro", "average_precision_macro")


def main(
    dataset: str = "bibtex",
    epochs: int = 12,
    seeds: int = 3,
    first_seed: int = 0,
    channels: int = 128,
    lr: float = 1e-3,
    root: Path = Path("data"),
    jobs: int = 1,
    replace: bool = False,
) -> None:
    """Trains every model with every seed, evaluates every epoch and writes benchmarks/runs/.

    Args:
        dataset: A data set of bags of words, or nci.
        epochs: Number of epochs.
        seeds: Number of seeds, of the weights and the order of samples.
        first_seed: The first seed.
        channels: Size of the states on bags of words; the networks on molecules have their own.
        lr: The learning rate.
        root: Folder that keeps the data.
        jobs: Number of simultaneous trainings, each on one thread.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    if dataset not in RECIPES:
        raise SystemExit(f"Expected --dataset to be one of {', '.join(RECIPES)} (got {dataset})")
    recipe = RECIPES[dataset]
    samples = recipe.load_dataset(root)
    if kind_of(samples) not in ("bag", "molecule"):
        raise SystemExit(f"Expected --dataset to be one of bags of words, or nci (got {dataset})")
    split = recipe.split(samples, recipe.splits[0], first_seed)
    all_seeds = range(first_seed, first_seed + seeds)
    models, name = contenders(samples, channels), f"learning_curve-{dataset}"
    identities = set(product(models, all_seeds, range(1, epochs + 1)))
    check_kept(name, itemgetter("model", "seed", "epoch"), identities, replace=replace)
    settings = {"epochs": epochs, "seeds": list(all_seeds), "channels": channels}
    content = {
        "dataset": {**describe_dataset(dataset, samples), "kind": kind_of(samples)},
        "split": split.hash,
        "settings": {**settings, "lr": lr, "batch_size": 32},
    }
    counted = recipe.counted_labels(samples)
    calls = {
        (model, seed): delayed(curve)(model, samples, split, counted, seed, epochs, channels, lr)
        for seed, model in product(all_seeds, models)
    }
    identity = itemgetter("model", "seed")
    collect(name, content, calls, identity, _in_short, jobs=jobs, replace=replace)


def _in_short(run: Run) -> str:
    values = ", ".join(f"{metric} {value:.3f}" for metric, value in run["test"].items())
    title = f"{run['model']:<36} seed {run['seed']}, epoch {run['epoch']}"
    return f"{title}: loss {run['loss']:.4f}; test {values}"


def kind_of(samples: MultiLabelDataset) -> str | None:
    """The kind of the components of a sample."""
    return "molecule" if "smiles" in samples[0] else samples.kind


def contenders(samples: MultiLabelDataset, channels: int) -> dict[str, Callable[[], nn.Module]]:
    """Builders of the models, by name."""
    num_labels = samples.num_labels
    if kind_of(samples) == "molecule":
        pooled, drop_in = networks_of_page()
        return {
            DEFAULT: lambda: drop_in(num_labels),
            TIED: lambda: tied(drop_in(num_labels)),
            POOLED: lambda: pooled(num_labels),
        }

    def lamp(**options: Any) -> nn.Module:
        encoder = BagEncoder(samples.num_inputs, channels)
        return LaMP(encoder, fully_connected(num_labels), num_feature_layers=0, **options)

    return {
        DEFAULT: lamp,
        TIED: lambda: lamp(tied=True),
        RELEASED: lambda: Released(samples.num_inputs, num_labels, channels),
    }


def networks_of_page() -> list[Callable[[int], nn.Module]]:
    """The networks of the page on training: with pooling, and with label message passing."""
    networks = []
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        if "GINEConv" in block:
            namespace: dict[str, Any] = {}
            exec(block, namespace)
            networks.append(namespace["Net"])
    return networks


def tied(network: nn.Module) -> nn.Module:
    """Replaces a network's readout by a tied one, and returns the network."""
    network.readout = LabelHead(network.labels, tied=True)
    return network


class Released(nn.Module):
    """The released layout over padded batches. Word 0 is padding."""

    def __init__(self, num_inputs: int, num_labels: int, channels: int) -> None:
        super().__init__()
        options = {"heads": 4, "discard_feature_attention": True}
        self.layout = ReleasedLayout(num_inputs + 1, num_labels, channels, **options)

    def forward(self, batch: Batch) -> Tensor:
        words = (batch.x + 1).split(batch.ptr.diff().tolist())
        return self.layout(pad_sequence(list(words), batch_first=True))


def curve(
    name: str,
    samples: MultiLabelDataset,
    split: Split,
    counted: Tensor,
    seed: int,
    epochs: int,
    channels: int,
    lr: float,
) -> list[Run]:
    """The scores of one model after each epoch."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = contenders(samples, channels)[name]()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    order = torch.Generator().manual_seed(seed)
    loader = DataLoader(samples[split.train], batch_size=32, shuffle=True, generator=order)
    runs, seconds = [], 0.0
    for epoch in range(1, epochs + 1):
        model.train()
        losses = []
        for batch in loader:
            start = time.process_time()
            loss = F.binary_cross_entropy_with_logits(model(batch), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seconds += time.process_time() - start
            losses.append(loss.item())
        identity = {"model": name, "seed": seed, "epoch": epoch}
        run = {**identity, "seconds": seconds, "loss": float(np.mean(losses))}
        runs.append(run | _scores(model, samples, split, counted))
    return runs


@torch.no_grad()
def _scores(model: nn.Module, samples: MultiLabelDataset, split: Split, counted: Tensor) -> Run:
    """Validation and test metrics, with the thresholds that are best on validation samples."""
    model.eval()
    subsets = {"validation": samples[split.val], "test": samples[split.test]}
    y = {name: subset.y[:, counted] for name, subset in subsets.items()}
    scores = {}
    for name, subset in subsets.items():
        batches = [model(batch).sigmoid() for batch in DataLoader(subset, batch_size=64)]
        scores[name] = torch.cat(batches)[:, counted]
    tuners = tune_thresholds(y["validation"], scores["validation"])
    values = {name: evaluate(y[name], scores[name], tuners).to_dict()["values"] for name in subsets}
    return {name: {metric: result[metric] for metric in METRICS} for name, result in values.items()}


if __name__ == "__main__":
    sys.exit(run(main))
