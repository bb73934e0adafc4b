"""Labels on nodes: the categories of bloggers, from their friendships alone.

    python -m benchmarks.accuracy.blogcatalog --seeds 10

The protocol of the papers on node embeddings: a random fraction of the nodes is labelled for
training, and each other node is predicted to have the k labels with the highest scores, where k is
its true number of labels. Because that number is not known in practice, predictions by thresholds
are reported too: the other nodes are halved, and the best thresholds for each half are applied to
the other half. All rows see the same embeddings, NetMF of the whole graph; label messages take
their components from a NeighborLoader, which needs torch-sparse or pyg-lib. The row of node2vec
needs gensim. Settings are constants, tuned on held-out nodes of a few other random splits.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from joblib import delayed
from scipy.sparse.linalg import eigsh
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import GATConv, SAGEConv
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

from benchmarks.command_line import run
from benchmarks.files import Run, collect
from tg_mlc._optional import how_to_install, is_installed
from tg_mlc.datasets import BlogCatalog
from tg_mlc.datasets.card import content_sha256
from tg_mlc.graphs import edgeless
from tg_mlc.metrics import macro_f1, micro_f1, tune_thresholds
from tg_mlc.nn import LabelHead, LabelMessagePassing, NeighbourComponents
from tg_mlc.nn.base_scores import ScoreEncoder, SharedLogits

NAME = "blogcatalog"
SHARES = (0.1, 0.5, 0.9)
METRICS = {"f1_micro": micro_f1, "f1_macro": macro_f1}
PROPAGATION, NODE2VEC = "label propagation", "node2vec, logistic regression"
NETMF, WIDE = "NetMF, logistic regression", "NetMF of 256, logistic regression"
SAGE, GAT = "GraphSAGE", "GAT"
BASE, WITH_GIVEN = "both regressions", "both regressions and label propagation"
ALONE, WITH_KNOWN = "label messages", "label messages, known labels of neighbours"
ON_BASE, ON_GIVEN = f"label messages on {BASE}", f"label messages on {WITH_GIVEN}"

SIZES = {NETMF: 128, WIDE: 256}
#: Penalties of the regressions: half a penalty times the squared weights is added to the loss.
PENALTIES = {NODE2VEC: 40.0, NETMF: 40.0, WIDE: 80.0}
WINDOW, DAMPING, NUM_ROUNDS, NUM_FOLDS = 10, 0.5, 15, 4
CHANNELS, NUM_NEIGHBOURS, BATCH_SIZE, DROPOUT = 64, 10, 128, 0.3
#: Steps and learning rate of networks on embeddings, and of networks on base scores.
FROM_EMBEDDINGS, FROM_SCORES = (300, 1e-2), (40, 1e-3)


def main(
    seeds: int = 10, first_seed: int = 0, root: Path = Path("data"), replace: bool = False
) -> None:
    """Runs all rows of every fraction and seed, and writes benchmarks/runs/.

    A run that was interrupted continues.

    Args:
        seeds: Number of seeds, of splits and weights.
        first_seed: The first seed.
        root: Folder that keeps the data.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
    """
    if not (WITH_PYG_LIB or WITH_TORCH_SPARSE):
        cure = how_to_install("sparse")
        raise SystemExit(f"Expected torch-sparse, which NeighborLoader needs (got none); {cure}")
    dataset = BlogCatalog(root / NAME)
    sizes = {"name": NAME, "num_samples": dataset.y.size(0)}
    content: dict[str, Any] = {
        "dataset": {**sizes, "sha256": content_sha256(dataset)},
        "settings": {
            "penalties": PENALTIES,
            "window": WINDOW,
            "damping": DAMPING,
            "num_rounds": NUM_ROUNDS,
            "num_folds": NUM_FOLDS,
            "channels": CHANNELS,
            "num_neighbours": NUM_NEIGHBOURS,
            "batch_size": BATCH_SIZE,
            "from_embeddings": FROM_EMBEDDINGS,
            "from_scores": FROM_SCORES,
        },
        "seeds": list(range(first_seed, first_seed + seeds)),
    }
    calls = {key: delayed(run_share)(*key, root) for key in product(content["seeds"], SHARES)}
    collect(NAME, content, calls, itemgetter("seed", "share"), _in_short, replace=replace)


def _in_short(run: Run) -> str:
    metrics = [run[protocol][metric] for protocol in ("known", "thresholds") for metric in METRICS]
    values = " ".join(f"{value:.4f}" for value in metrics)
    title = f"{run['model']:<55} seed {run['seed']}, {run['share']:.0%}"
    return f"{title}: {values} ({run['seconds']:.0f} s)"


class Graph(NamedTuple):
    """The graph, its labels, and an embedding of every node for each regression."""

    adjacency: sp.csr_array
    edge_index: Tensor
    y: Tensor
    embeddings: dict[str, Tensor]


@cache
def load(root: Path) -> Graph:
    """Loads the graph and embeds its nodes once for all seeds. A file caches the embeddings."""
    data, path = BlogCatalog(root / NAME)[0], root / NAME / "embeddings.pt"
    ones = np.ones(data.num_edges, dtype=np.float32)
    shape = (data.num_nodes, data.num_nodes)
    adjacency = sp.csr_array((ones, data.edge_index.numpy()), shape=shape)
    embeddings: dict[str, Tensor] = torch.load(path, weights_only=True) if path.exists() else {}
    if WIDE not in embeddings:
        widest = netmf(adjacency, max(SIZES.values()))
        embeddings |= {row: widest[:, :size].clone() for row, size in SIZES.items()}
        torch.save(embeddings, path)
    if NODE2VEC not in embeddings and is_installed("gensim"):
        embeddings[NODE2VEC] = node2vec(adjacency)
        torch.save(embeddings, path)
    scaled = {row: _scaled(embedding) for row, embedding in embeddings.items()}
    return Graph(adjacency, data.edge_index, data.y, scaled)


def netmf(adjacency: sp.csr_array, size: int, rank: int = 256) -> Tensor:
    """The embedding of `"Network Embedding as Matrix Factorization"
    <https://arxiv.org/abs/1710.02971>`_.
    """
    degree = adjacency.sum(axis=0).astype(np.float64)
    scale = sp.diags_array(1 / np.sqrt(degree.clip(min=1)))
    normalised = sp.csr_array(scale @ adjacency @ scale)
    values, vectors = eigsh(normalised, min(rank, len(degree) - 2), which="LA")
    mean_of_powers = np.mean([values**power for power in range(1, WINDOW + 1)], axis=0).clip(min=0)
    factor = torch.from_numpy((scale @ vectors * np.sqrt(mean_of_powers)).astype(np.float32))
    matrix = (factor @ factor.T).mul_(float(degree.sum())).clamp_(min=1).log_()
    torch.manual_seed(0)
    left, singular, _ = torch.svd_lowrank(matrix, q=min(size + 32, len(degree)), niter=6)
    return (left * singular.sqrt())[:, :size]


def node2vec(
    adjacency: sp.csr_array, size: int = 128, num_walks: int = 10, length: int = 80
) -> Tensor:
    """The embedding of `"node2vec" <https://arxiv.org/abs/1607.00653>`_ for p = q = 1."""
    rng, degree = np.random.default_rng(0), np.diff(adjacency.indptr)
    steps = [np.tile(np.arange(len(degree)), num_walks)]
    for _ in range(length - 1):
        index = (rng.random(len(steps[-1])) * degree[steps[-1]]).astype(int)
        steps.append(adjacency.indices[adjacency.indptr[steps[-1]] + index])
    walks = rng.permutation(np.stack(steps, axis=1)).astype(str).tolist()
    options = {"window": WINDOW, "sg": 1, "negative": 5, "min_count": 0}
    options |= {"epochs": 1, "seed": 0, "workers": 1}
    vectors = import_module("gensim.models").Word2Vec(walks, vector_size=size, **options).wv
    return torch.from_numpy(np.stack([vectors[str(node)] for node in range(len(degree))]))


def _scaled(embedding: Tensor) -> Tensor:
    """Scales rows ``[N, C]`` to length ``sqrt(C)``, so that squared entries average 1."""
    return F.normalize(embedding) * embedding.size(1) ** 0.5


def logistic(x: Tensor, y: Tensor, penalty: float) -> Callable[[Tensor], Tensor]:
    """Fits a logistic regression per label. Returns a function from inputs to logits."""
    weight = torch.zeros(x.size(1) + 1, y.size(1), requires_grad=True)
    options = {"max_iter": 100, "history_size": 10, "line_search_fn": "strong_wolfe"}
    optimizer = torch.optim.LBFGS([weight], **options)

    def loss() -> Tensor:
        optimizer.zero_grad()
        bce = F.binary_cross_entropy_with_logits(x @ weight[:-1] + weight[-1], y, reduction="sum")
        value = bce + penalty / 2 * weight[:-1].square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    return lambda x: x @ weight[:-1].detach() + weight[-1].detach()


def propagated(graph: Graph, train: Tensor) -> Tensor:
    """Propagates training labels, minus their frequency, along the normalised graph."""
    degree = graph.adjacency.sum(axis=0).clip(min=1)
    scale = sp.diags_array(degree**-0.5)
    initial = np.zeros(graph.y.shape, dtype=np.float32)
    initial[train] = graph.y[train] - graph.y[train].mean(dim=0)
    state, transition = initial, sp.csr_array(DAMPING * (scale @ graph.adjacency @ scale))
    for _ in range(NUM_ROUNDS):
        state = transition @ state + (1 - DAMPING) * initial
    return torch.from_numpy(10 * state * np.sqrt(degree.mean() / degree)[:, None]).float()


class Trial(NamedTuple):
    """One split of the nodes, and the scores of every base classifier."""

    graph: Graph
    train: Tensor
    test: Tensor
    #: Scores of all nodes. Those of a training node come from classifiers fitted without it.
    scores: dict[str, Tensor]

    @classmethod
    def of(cls, graph: Graph, seed: int, fraction: float) -> Trial:
        """Splits the nodes and fits the base classifiers, with and without each training fold."""
        order = torch.randperm(graph.y.size(0), generator=torch.Generator().manual_seed(seed))
        train, test = order.tensor_split([round(fraction * len(order))])
        scores = dict(_base_scores(graph, train))
        for fold in range(NUM_FOLDS):
            fold_nodes = train[fold::NUM_FOLDS]
            other_nodes = train[torch.arange(len(train)) % NUM_FOLDS != fold]
            for row, fold_scores in _base_scores(graph, other_nodes):
                scores[row][fold_nodes] = fold_scores[fold_nodes]
        return cls(graph, train, test, scores)

    def stacked(self, rows: tuple[str, ...]) -> Tensor:
        """The scores of the base classifiers ``rows``, ``[N, L, C]``."""
        return torch.stack([self.scores[row] for row in rows], dim=-1)


def _base_scores(graph: Graph, train: Tensor) -> Iterator[tuple[str, Tensor]]:
    for row, x in graph.embeddings.items():
        yield row, logistic(x[train], graph.y[train], PENALTIES[row])(x)
    yield PROPAGATION, propagated(graph, train)


class Messages(nn.Module):
    """Label messages from a node and its neighbours, with base scores and known labels if any."""

    def __init__(self, trial: Trial, num_scores: int, *, known: bool) -> None:
        super().__init__()
        size, num_labels = SIZES[NETMF] + num_scores * trial.graph.y.size(1), trial.graph.y.size(1)
        self.lin = nn.Linear(size, CHANNELS)
        self.components = NeighbourComponents(CHANNELS, num_labels=num_labels if known else None)
        options = {"heads": 2, "dropout": DROPOUT, "norm": "pre"}
        self.labels = LabelMessagePassing(CHANNELS, edgeless(num_labels), 1, **options)
        self.head = LabelHead(self.labels, bias=True)
        self.encoder = ScoreEncoder(CHANNELS, num_scores) if num_scores else None
        self.skip = SharedLogits(num_scores) if num_scores else None

    def forward(self, batch: Data) -> Tensor:
        """Logits of the seed nodes."""
        x = self.lin(torch.cat([batch.x, batch.scores.sigmoid().flatten(1)], dim=1))
        x = F.dropout(x, DROPOUT, self.training)
        known = None if self.components.lin_known is None else batch.known
        x, pairs = self.components(x, batch.edge_index, batch.batch_size, known)
        scores = batch.scores[: batch.batch_size]
        base = None if self.encoder is None else self.encoder(scores)
        logits = self.head(self.labels(x, components=pairs, base_scores=base))
        return logits if self.skip is None else logits + self.skip(scores)


class Convolutions(nn.Module):
    """A convolution over the neighbours, and a linear head."""

    def __init__(self, trial: Trial, conv: nn.Module) -> None:
        super().__init__()
        self.conv, self.head = conv, nn.Linear(128, trial.graph.y.size(1))

    def forward(self, batch: Data) -> Tensor:
        """Logits of the seed nodes."""
        x = F.dropout(self.conv(batch.x, batch.edge_index).relu(), DROPOUT, self.training)
        return self.head(x[: batch.batch_size])


def trained(trial: Trial, net: nn.Module, scores: Tensor, steps: int, lr: float) -> Tensor:
    """Trains a network, and returns its logits of the test nodes."""
    graph = trial.graph
    known = torch.full_like(graph.y, torch.nan)
    known[trial.train] = graph.y[trial.train]
    inputs = {"x": graph.embeddings[NETMF], "edge_index": graph.edge_index, "y": graph.y}
    data = Data(**inputs, known=known, scores=scores)
    train = NeighborLoader(data, [NUM_NEIGHBOURS], trial.train, batch_size=BATCH_SIZE, shuffle=True)
    optimizer = torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    batches = (batch for _ in range(steps) for batch in train)
    net.train()
    for _, batch in zip(range(steps), batches, strict=False):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(net(batch), batch.y[: batch.batch_size]).backward()
        optimizer.step()
        schedule.step()
    net.eval()
    with torch.no_grad():
        test = NeighborLoader(data, [2 * NUM_NEIGHBOURS], trial.test, batch_size=4 * BATCH_SIZE)
        return torch.cat([net(batch) for batch in test])


def _shared(trial: Trial, rows: tuple[str, ...]) -> SharedLogits:
    """Fits one function from classifiers' scores to logits for all labels on training nodes."""
    skip = SharedLogits(len(rows))
    skip.start_from_scores(trial.stacked(rows)[trial.train], trial.graph.y[trial.train])
    return skip


def _combined(trial: Trial, *rows: str) -> Tensor:
    return _shared(trial, rows)(trial.stacked(rows)[trial.test]).detach()


def _messages(trial: Trial, *rows: str, known: bool = False) -> Tensor:
    net = Messages(trial, len(rows), known=known)
    if not rows:
        net.head.start_from_frequencies(trial.graph.y[trial.train])
        return trained(trial, net, torch.empty(trial.graph.y.size(0), 0), *FROM_EMBEDDINGS)
    nn.init.zeros_(net.head.own_weight)  # At first, logits depend on base scores alone.
    net.skip.load_state_dict(_shared(trial, rows).state_dict())
    return trained(trial, net, trial.stacked(rows), *FROM_SCORES)


def _convolutions(trial: Trial, conv_class: type[nn.Module], **options: Any) -> Tensor:
    net = Convolutions(trial, conv_class(SIZES[NETMF], **options))
    return trained(trial, net, torch.empty(trial.graph.y.size(0), 0), *FROM_EMBEDDINGS)


def _alone(trial: Trial, row: str) -> Tensor:
    return trial.scores[row][trial.test]


#: Functions from a split to the logits of its test nodes.
ROWS: dict[str, Callable[[Trial], Tensor]] = {
    PROPAGATION: lambda trial: _combined(trial, PROPAGATION),
    **{row: partial(_alone, row=row) for row in (NODE2VEC, NETMF, WIDE)},
    SAGE: partial(_convolutions, conv_class=SAGEConv, out_channels=128),
    GAT: partial(_convolutions, conv_class=GATConv, out_channels=32, heads=4, residual=True),
    ALONE: _messages,
    WITH_KNOWN: partial(_messages, known=True),
    BASE: lambda trial: _combined(trial, NETMF, WIDE),
    ON_BASE: lambda trial: _messages(trial, NETMF, WIDE),
    WITH_GIVEN: lambda trial: _combined(trial, NETMF, WIDE, PROPAGATION),
    ON_GIVEN: lambda trial: _messages(trial, NETMF, WIDE, PROPAGATION, known=True),
}


def run_share(seed: int, share: float, root: Path) -> list[Run]:
    """The scores of every row on one split."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "Using 'NeighborSampler' without")
    trial, runs = Trial.of(load(root), seed, share), []
    for row, fit in ROWS.items():
        if row == NODE2VEC and row not in trial.scores:
            continue
        torch.manual_seed(seed)
        start = time.perf_counter()
        values = measured(trial.graph.y[trial.test], fit(trial))
        # The time excludes the base classifiers, which rows share.
        seconds = time.perf_counter() - start
        runs.append({"model": row, "seed": seed, "share": share, "seconds": seconds, **values})
    return runs


def measured(y: Tensor, logits: Tensor) -> dict[str, dict[str, float]]:
    """F1 with a known number of labels per node, and with thresholds tuned on the other half."""
    rank = logits.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    top_labels = (rank < y.sum(dim=1, keepdim=True)).long()
    values: dict[str, dict[str, float]] = {"known": {}, "thresholds": {}}
    halves, probabilities = (slice(0, None, 2), slice(1, None, 2)), logits.sigmoid()
    for metric, compute in METRICS.items():
        values["known"][metric] = compute(y, top_labels)
        predicted = torch.empty_like(top_labels)
        for tuning, half in (halves, halves[::-1]):
            tuner = tune_thresholds(y[tuning], probabilities[tuning], metrics=[metric])[metric]
            predicted[half] = tuner.predict(probabilities[half])
        values["thresholds"][metric] = compute(y, predicted)
    return values


if __name__ == "__main__":
    sys.exit(run(main))
