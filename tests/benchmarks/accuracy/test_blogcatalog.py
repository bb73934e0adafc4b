import json

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import torch
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

from benchmarks.accuracy import blogcatalog as benchmark
from benchmarks.accuracy.blogcatalog import (
    NETMF,
    NODE2VEC,
    PROPAGATION,
    ROWS,
    SHARES,
    SIZES,
    Graph,
    Trial,
    main,
)
from tg_mlc.datasets import BlogCatalog
from tg_mlc.datasets.downloads import RawFile

needs_loader = pytest.mark.skipif(
    not (WITH_PYG_LIB or WITH_TORCH_SPARSE), reason="PyG's neighbour loaders need torch-sparse"
)
NUM_NODES = 120


@pytest.fixture(scope="module")
def network():
    """Returns the adjacency matrix of two communities."""
    rng = np.random.default_rng(0)
    same = np.arange(NUM_NODES) % 2 == np.arange(NUM_NODES)[:, None] % 2
    edges = np.triu(rng.random((NUM_NODES, NUM_NODES)) < np.where(same, 0.3, 0.02), k=1)
    return (edges | edges.T).astype(np.float32)


@pytest.fixture
def graph(network):
    adjacency = sp.csr_array(network)
    edge_index = torch.from_numpy(np.stack(adjacency.nonzero())).long()
    even = torch.arange(NUM_NODES) % 2 == 0
    embedding = benchmark.netmf(adjacency, 16, rank=16)
    embeddings = {row: benchmark._scaled(embedding[:, :8]) for row in SIZES}
    return Graph(adjacency, edge_index, torch.stack([even, ~even], dim=1).float(), embeddings)


def test_netmf_separates_communities(graph):
    x = graph.embeddings[NETMF]
    similar = torch.nn.functional.cosine_similarity(x[:, None], x[None], dim=-1)
    same = (graph.y[:, :1] == graph.y[:, 0]).bool()
    assert similar[same].mean() > similar[~same].mean() + 0.3


@pytest.mark.parametrize("row", [NETMF, PROPAGATION])
def test_base_classifiers_predict_labels(graph, row):
    trial = Trial.of(graph, seed=0, fraction=0.5)
    scores = trial.scores[row]
    assert ((scores[:, 0] > scores[:, 1]) == graph.y[:, 0].bool()).float().mean() > 0.9


@pytest.mark.parametrize("row", [NETMF, PROPAGATION])
def test_scores_do_not_depend_on_test_labels_or_labels_of_the_same_node(graph, row):
    trial = Trial.of(graph, seed=0, fraction=0.5)
    hidden = graph.y.clone()
    hidden[trial.test] = 1 - hidden[trial.test]
    scores = Trial.of(graph._replace(y=hidden), 0, 0.5).scores[row]
    torch.testing.assert_close(scores, trial.scores[row])
    changed, node = graph.y.clone(), trial.train[0]
    changed[node] = 1 - changed[node]
    scores = Trial.of(graph._replace(y=changed), 0, 0.5).scores[row]
    torch.testing.assert_close(scores[node], trial.scores[row][node])
    assert not torch.equal(scores[trial.test], trial.scores[row][trial.test])


def test_the_known_number_of_labels_is_predicted_per_node():
    y = torch.tensor([[1.0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]])
    metrics = benchmark.measured(y, torch.tensor([[3.0, 2, 1], [0, 1, 2], [1, 2, 3], [-3, 3, -3]]))
    assert metrics["known"]["f1_micro"] == pytest.approx(4 / 5)


def test_thresholds_of_a_node_come_from_other_nodes():
    y = torch.tensor([[1.0, 0.0], [1.0, 0.0]]).repeat(8, 1)
    # Alternate nodes need different thresholds.
    logits = torch.tensor([[3.0, 1.0], [-1.0, -3.0]]).repeat(8, 1)
    metrics = benchmark.measured(y, logits)
    assert metrics["known"]["f1_micro"] == 1.0
    # Thresholds predict 16 labels. Only 8 of the predictions are correct.
    assert metrics["thresholds"]["f1_micro"] == pytest.approx(2 * 8 / (16 + 16))


@needs_loader
def test_an_extended_run_computes_only_missing_seeds(network, own_runs, tmp_path, monkeypatch):
    monkeypatch.delenv("TG_MLC_DATA", raising=False)
    monkeypatch.setattr(BlogCatalog, "files", (RawFile("blogcatalog.mat"),))
    sizes = {"SIZES": dict.fromkeys(SIZES, 8)}
    sizes |= {"FROM_EMBEDDINGS": (2, 1e-2), "FROM_SCORES": (2, 1e-3)}
    for name, value in {**sizes, "CHANNELS": 8, "is_installed": lambda package: False}.items():
        monkeypatch.setattr(benchmark, name, value)
    raw = tmp_path / "blogcatalog" / "raw"
    raw.mkdir(parents=True)
    group = np.eye(2)[np.arange(NUM_NODES) % 2]
    content = {"network": sp.csc_matrix(network), "group": sp.csc_matrix(group)}
    scipy.io.savemat(raw / "blogcatalog.mat", content)

    main(seeds=1, root=tmp_path)
    benchmark.load.cache_clear()
    calls = []
    run_share = lambda seed, share, root: calls.append((seed, share)) or []  # noqa: E731
    monkeypatch.setattr(benchmark, "run_share", run_share)
    main(seeds=2, root=tmp_path)
    assert calls == [(1, share) for share in SHARES]
    runs = json.loads((own_runs / "blogcatalog.json").read_text())["runs"]
    assert [run["model"] for run in runs] == [row for row in ROWS if row != NODE2VEC] * len(SHARES)


def test_a_missing_sampler_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(benchmark, "WITH_PYG_LIB", False)
    monkeypatch.setattr(benchmark, "WITH_TORCH_SPARSE", False)
    with pytest.raises(SystemExit, match=r"torch-sparse.*\[sparse\]"):
        main(root=tmp_path)
