import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from tests.graphs.helpers import edges_of, weights_of
from tg_mlc.data import Split, from_arrays, random_split
from tg_mlc.graphs import co_occurrence

NAN = float("nan")
Y = torch.tensor([[1.0, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
CERTAIN = {"weight": "conditional", "threshold": 1.0}


def draw(seed, *shape, density=0.4):
    return (np.random.default_rng(seed).random(shape) < density).astype(np.float32)


def split_of(train, num_samples=5, name="by hand"):
    other_samples = sorted(set(range(num_samples)) - set(train))
    return Split(torch.tensor(train), torch.tensor(other_samples), torch.tensor([]), name)


def expected_weight(y, source, target, weight):
    """Computes a weight by definition, from the samples in which both labels are known."""
    pair = y[:, [source, target]]
    pair = pair[~np.isnan(pair).any(axis=1)]
    a, b = pair.T
    with np.errstate(all="ignore"):
        match weight:
            case "count":
                out = (a * b).sum()
            case "conditional":
                out = (a * b).sum() / a.sum()
            case "pmi":
                out = np.log((a * b).mean() / (a.mean() * b.mean()))
            case "correlation":
                out = ((a * b).mean() - a.mean() * b.mean()) / (a.std() * b.std())
    return out if np.isfinite(out) else 0.0


def test_every_pair_that_occurs_is_an_edge():
    graph = co_occurrence(Y)
    assert weights_of(graph) == {
        (0, 0): 3.0, (1, 0): 2.0, (2, 0): 1.0,
        (0, 1): 2.0, (1, 1): 2.0,
        (0, 2): 1.0, (2, 2): 2.0,
        (3, 3): 0.0,
    }  # fmt: skip
    assert graph.kind == "co_occurrence"
    assert not graph.is_hierarchy
    assert "5 training samples" in graph.source
    assert graph.validate()


@pytest.mark.parametrize(
    ("options", "edges"),
    [
        ({"min_count": 2}, {(0, 0), (1, 0), (0, 1), (1, 1), (2, 2), (3, 3)}),
        ({"threshold": 2}, {(0, 0), (1, 0), (0, 1), (1, 1), (2, 2), (3, 3)}),
        # Loops of labels without a neighbour remain.
        ({"min_count": 2, "self_loops": False}, {(1, 0), (0, 1), (2, 2), (3, 3)}),
        ({**CERTAIN, "self_loops": False}, {(1, 0), (1, 1), (2, 2), (3, 3)}),
    ],
)
def test_options_remove_edges(options, edges):
    assert edges_of(co_occurrence(Y, **options)) == edges


@pytest.mark.parametrize("weight", ["count", "conditional", "pmi", "correlation"])
@pytest.mark.parametrize("unknown", [0.0, 0.02, 0.3])
def test_weights_follow_their_definition_on_known_pairs(weight, unknown):
    rng = np.random.default_rng(0)
    y = (rng.random((200, 7)) < np.linspace(0.05, 0.9, 7)).astype(float)
    y[rng.random(y.shape) < unknown] = NAN
    weights = weights_of(co_occurrence(y, weight=weight))
    assert len(weights) > 30
    for (source, target), value in weights.items():
        assert value == pytest.approx(expected_weight(y, source, target, weight), abs=1e-5)


def test_a_constant_label_has_no_correlation():
    constant = weights_of(co_occurrence(np.array([[1, 1], [1, 0]]), weight="correlation"))
    assert constant == {(0, 0): 0.0, (1, 0): 0.0, (0, 1): 0.0, (1, 1): 1.0}


def test_top_k_keeps_the_strongest_sources_and_the_first_of_ties():
    y = draw(2, 300, 12)
    full = weights_of(co_occurrence(y, weight="correlation", self_loops=False))
    top = weights_of(co_occurrence(y, weight="correlation", top_k=3, self_loops=False))
    for target in range(12):
        incoming = {source: value for (source, i), value in full.items() if i == target}
        strongest = sorted(incoming, key=lambda source: -incoming[source])[:3]
        assert {source for source, i in top if i == target} == set(strongest)
    graph = co_occurrence(torch.ones(2, 5), top_k=2)
    assert graph.edge_index[:, graph.edge_index[1] == 3].tolist() == [[0, 1, 3], [3, 3, 3]]
    assert graph.num_edges == 15
    y, weights = draw(3, 300, 9), ("conditional", "pmi")
    conditional, pmi = (co_occurrence(y, weight=weight, top_k=2) for weight in weights)
    assert torch.equal(conditional.edge_index, pmi.edge_index)


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        torch.Tensor.bool,
        torch.Tensor.long,
        torch.Tensor.bfloat16,
        torch.Tensor.to_sparse,
        lambda y: sparse.csr_matrix(y.numpy()),
        lambda y: sparse.coo_array(y.numpy().astype(np.int8)),
        lambda y: y.tolist(),
    ],
)
def test_all_types_of_matrices_give_the_same_graph(convert):
    expected = weights_of(co_occurrence(Y, weight="pmi"))
    assert weights_of(co_occurrence(convert(Y), weight="pmi")) == expected


def test_input_is_not_changed():
    y = sparse.csr_matrix(([1.0, 0.0, 1.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    co_occurrence(y)
    assert y.nnz == 3


def test_columns_of_data_frames_are_label_names():
    frame = pd.DataFrame(Y.numpy(), columns=list("abcd"))
    assert co_occurrence(frame).label_names == list("abcd")
    assert co_occurrence(Y, label_names=list("wxyz")).label_names == list("wxyz")
    y = pd.DataFrame(Y[:, :2].numpy(), columns=["a", "y"])
    assert co_occurrence(y).label_names == ["a", "y"]
    expected = co_occurrence(Y[[0, 3], :2], label_names=["a", "y"])
    assert weights_of(co_occurrence(y, split=split_of([0, 3]))) == weights_of(expected)
    frame = pd.DataFrame({"a": [1, 1], "b": [0, 1]})
    graph, swapped = co_occurrence(frame), co_occurrence(frame, label_names=["b", "a"])
    assert (weights_of(swapped), swapped.label_names) == (weights_of(graph), ["b", "a"])
    renamed = co_occurrence(frame, label_names=["x", "y"])
    assert renamed.edge_weight.tolist() == graph.edge_weight.tolist()
    with pytest.raises(ValueError, match=r"both: \['b'\]"):
        co_occurrence(frame, label_names=["b", "c"])


def test_missing_values_of_a_data_frame_are_unknown_labels():
    y = torch.tensor([[1, 1], [NAN, 1], [1, 0]])
    expected = co_occurrence(y, weight="conditional", label_names=["a", "b"])
    for column in (pd.array([1, None, 1], dtype="Int64"), pd.Series([1, None, True], dtype=object)):
        graph = co_occurrence(pd.DataFrame({"a": column, "b": [1, 1, 0]}), weight="conditional")
        assert weights_of(graph) == weights_of(expected)
    with pytest.raises(ValueError, match=r"'y' .*'x' in row 1, column 'a'"):
        co_occurrence(pd.DataFrame({"a": ["1", "x"]}))


def test_only_training_samples_of_a_split_count():
    graph = co_occurrence(Y, split=split_of([0, 3], name="random"))
    assert weights_of(graph) == weights_of(co_occurrence(Y[[0, 3]]))
    assert graph.source.startswith("2 training samples of split 'random'")
    with pytest.warns(UserWarning, match="leaves out 2 of 5 samples of 'y'") as caught:
        co_occurrence(Y, split=random_split(3, (0.7, 0.3, 0)))
    assert caught[0].filename == __file__
    with pytest.raises(ValueError, match=r"'y' .* \(got 5 samples, and sample 7"):
        co_occurrence(Y, split=split_of([0, 7], 8))


def test_a_data_set_needs_its_split():
    dataset = SimpleNamespace(y=Y, label_names=list("abcd"))
    with pytest.raises(ValueError, match="'split'"):
        co_occurrence(dataset)
    assert co_occurrence(dataset, split=split_of(range(5))).label_names == ["a", "b", "c", "d"]
    subset = from_arrays(np.zeros((5, 2)), Y, kind="vector")[:3]
    with pytest.raises(ValueError, match=r"ArrayDataset without 'split'.*dataset\[split.train\].y"):
        co_occurrence(subset)
    assert weights_of(co_occurrence(subset.y)) == weights_of(co_occurrence(Y[:3]))


class BuildCounter:
    """A data set without samples that counts how often its labels are built."""

    label_names = list("abcd")

    def __init__(self, y):
        self.labels, self.num_builds = y, 0

    @property
    def y(self):
        self.num_builds += 1
        return self.labels


class SparseCounter(BuildCounter):
    def sparse_y(self):
        return sparse.csr_array(self.labels.numpy())


@pytest.mark.parametrize("weight", ["count", "conditional", "correlation"])
@pytest.mark.parametrize(("dataset_class", "num_builds"), [(BuildCounter, 1), (SparseCounter, 0)])
def test_labels_of_data_sets_are_built_at_most_once(weight, dataset_class, num_builds):
    y = np.where(draw(1, 60, 4, density=0.3) == 1, NAN, draw(0, 60, 4, density=0.5))
    dataset = dataset_class(torch.from_numpy(y).float())
    graph = co_occurrence(dataset, weight=weight, split=split_of(range(40), 60))
    expected = co_occurrence(y[:40], weight=weight, label_names=list("abcd"))
    assert weights_of(graph) == weights_of(expected)
    assert dataset.num_builds == num_builds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": torch.ones(3)}, "matrix"),
        ({"y": torch.tensor([[2.0]])}, r"0, 1, or NaN.*got 2"),
        ({"y": torch.tensor([[-1.0]])}, r"got -1"),
        ({"y": Y * 1j}, r"'y' .*complex64"),
        ({"y": sparse.csr_array(Y.numpy() * 1j)}, r"'y' .*complex64"),
        ({"y": torch.ones(0, 3)}, "'y' .*training sample"),
        ({"split": [0, 1]}, r"'split' .*list"),
        ({"label_names": "abcd"}, r"'label_names' .*'abcd'"),
        ({"label_names": 4}, r"'label_names' .*4"),
        ({"label_names": ["a"]}, "'label_names'"),
        ({"min_count": 0}, "'min_count'"),
        ({"min_count": True}, "'min_count'"),
        ({"top_k": 0}, "'top_k'"),
        ({"weight": "lift"}, "'weight'.*lift"),
        ({"threshold": NAN}, "'threshold'"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        co_occurrence(**{"y": Y, **arguments})


def test_a_thousand_labels_are_quick():
    y = sparse.random_array((13_000, 983), density=0.02, format="csr", rng=np.random.default_rng(0))
    y.data[:] = 1
    start = time.process_time()  # Wall time would include other processes.
    graph = co_occurrence(y, weight="correlation", top_k=10)
    assert time.process_time() - start < 3.0  # A quiet core takes about 0.2 s.
    assert graph.num_edges == 983 * 11


def test_sider_graph_is_complete_without_top_k_and_threshold(real_file):
    sider = pd.read_csv(real_file("sider/raw/sider.csv")).drop(columns="smiles")
    graph = co_occurrence(sider)
    assert (graph.num_labels, graph.density) == (27, 1.0)
    assert "Hepatobiliary disorders" in graph.label_names
    for weight in ("conditional", "pmi", "correlation"):
        assert co_occurrence(sider, weight=weight, top_k=5).num_edges == 27 * 6
    assert 0 < co_occurrence(sider, weight="correlation", threshold=0.3).density < 0.5
