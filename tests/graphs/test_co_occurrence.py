import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import sparse

from tg_mlc.data import DNADataset, Split, from_arrays, random_split
from tg_mlc.graphs import co_occurrence

NAN = float("nan")
Y = torch.tensor(
    [
        [1, 1, 0, 0],
        [1, 1, 0, 0],
        [1, 0, 1, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 0],
    ],
    dtype=torch.float,
)


def split_of(train, num_samples=5, name="by hand"):
    rest = sorted(set(range(num_samples)) - set(train))
    return Split(torch.tensor(train), torch.tensor(rest), torch.tensor([]), name)


def weights_of(graph):
    return dict(zip(map(tuple, graph.edge_index.t().tolist()), graph.edge_weight.tolist(), strict=True))


def expected_weight(y, source, target, weight):
    """The definition, on the samples in which both labels are known."""
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


def test_an_edge_wherever_a_pair_occurs():
    graph = co_occurrence(Y)
    assert weights_of(graph) == {
        (0, 0): 3.0, (1, 0): 2.0, (2, 0): 1.0,
        (0, 1): 2.0, (1, 1): 2.0,
        (0, 2): 1.0, (2, 2): 2.0,
        (3, 3): 0.0,
    }  # fmt: skip
    assert graph.kind == "co_occurrence"
    assert "5 training samples" in graph.source
    assert graph.validate()


def test_min_count():
    assert set(weights_of(co_occurrence(Y, min_count=2))) == {(0, 0), (1, 0), (0, 1), (1, 1), (2, 2), (3, 3)}


def test_labels_without_a_neighbour_keep_a_self_loop():
    graph = co_occurrence(Y, min_count=2, self_loops=False)
    assert set(weights_of(graph)) == {(1, 0), (0, 1), (2, 2), (3, 3)}


def test_conditional_is_the_probability_of_the_target_given_the_source():
    weights = weights_of(co_occurrence(Y, weight="conditional"))
    assert weights[1, 0] == 1.0  # whenever 1 occurs, so does 0
    assert weights[0, 1] == pytest.approx(2 / 3)


@pytest.mark.parametrize("weight", ["count", "conditional", "pmi", "correlation"])
@pytest.mark.parametrize("unknown", [0.0, 0.02, 0.3])
def test_weights_follow_their_definition_where_both_are_known(weight, unknown):
    rng = np.random.default_rng(0)
    y = (rng.random((200, 7)) < np.linspace(0.05, 0.9, 7)).astype(float)
    y[rng.random(y.shape) < unknown] = NAN
    weights = weights_of(co_occurrence(y, weight=weight))
    assert len(weights) > 30
    for (source, target), value in weights.items():
        assert value == pytest.approx(expected_weight(y, source, target, weight), abs=1e-5)


def test_correlation_is_that_of_numpy():
    y = (np.random.default_rng(1).random((500, 5)) < 0.5).astype(float)
    expected = np.corrcoef(y.T)
    for (source, target), value in weights_of(co_occurrence(y, weight="correlation")).items():
        assert value == pytest.approx(expected[source, target], abs=1e-6)


def test_a_constant_label_has_no_correlation():
    y = np.array([[1, 1], [1, 0]])
    assert weights_of(co_occurrence(y, weight="correlation")) == {(0, 0): 0.0, (1, 0): 0.0, (0, 1): 0.0, (1, 1): 1.0}


def test_threshold_keeps_edges_of_at_least_that_weight():
    assert set(weights_of(co_occurrence(Y, weight="conditional", threshold=1.0, self_loops=False))) == {
        (1, 0), (1, 1), (2, 2), (3, 3),
    }  # fmt: skip
    assert (1, 0) in weights_of(co_occurrence(Y, threshold=2))


def test_top_k_keeps_the_strongest_sources_of_each_target():
    y = (np.random.default_rng(2).random((300, 12)) < 0.4).astype(float)
    full = weights_of(co_occurrence(y, weight="correlation", self_loops=False))
    graph = co_occurrence(y, weight="correlation", top_k=3, self_loops=False)
    kept = weights_of(graph)
    for target in range(12):
        incoming = {source: value for (source, i), value in full.items() if i == target}
        strongest = sorted(incoming, key=lambda source: -incoming[source])[:3]
        assert {source for source, i in kept if i == target} == set(strongest)


def test_top_k_does_not_count_the_label_itself_and_breaks_ties_by_order():
    graph = co_occurrence(torch.ones(2, 5), top_k=2)
    assert graph.edge_index[:, graph.edge_index[1] == 3].tolist() == [[0, 1, 3], [3, 3, 3]]
    assert graph.num_edges == 15


def test_pmi_ranks_sources_as_conditional_probability_does():
    y = (np.random.default_rng(3).random((300, 9)) < 0.4).astype(float)
    conditional, pmi = (co_occurrence(y, weight=weight, top_k=2) for weight in ("conditional", "pmi"))
    assert torch.equal(conditional.edge_index, pmi.edge_index)


@pytest.mark.parametrize(
    "form",
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
def test_reads_labels_in_any_form(form):
    assert weights_of(co_occurrence(form(Y), weight="pmi")) == weights_of(co_occurrence(Y, weight="pmi"))


def test_reads_names_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    graph = co_occurrence(pandas.DataFrame(Y.numpy(), columns=list("abcd")))
    assert graph.label_names == ["a", "b", "c", "d"]
    assert co_occurrence(Y, label_names=list("wxyz")).label_names == ["w", "x", "y", "z"]


def test_what_is_missing_in_a_data_frame_is_unknown():
    pandas = pytest.importorskip("pandas")
    y = pandas.DataFrame({"a": pandas.array([1, None, 1], dtype="Int64"), "b": [1, 1, 0]})
    expected = co_occurrence(torch.tensor([[1, 1], [NAN, 1], [1, 0]]), weight="conditional")
    assert weights_of(co_occurrence(y, weight="conditional")) == weights_of(expected)
    objects = pandas.DataFrame({"a": [1, None, True], "b": [1, 1, 0]}, dtype=object)
    assert weights_of(co_occurrence(objects, weight="conditional")) == weights_of(expected)
    with pytest.raises(ValueError, match=r"'y' to be numbers \(got 'x' in row 1, column 'a'\)"):
        co_occurrence(pandas.DataFrame({"a": ["1", "x"]}))


def test_a_data_frame_may_have_a_column_y():
    pandas = pytest.importorskip("pandas")
    y = pandas.DataFrame(Y[:, :2].numpy(), columns=["a", "y"])
    assert co_occurrence(y).label_names == ["a", "y"]
    assert weights_of(co_occurrence(y, split=split_of([0, 3]))) == weights_of(co_occurrence(Y[[0, 3], :2]))


def test_input_is_left_alone():
    y = sparse.csr_matrix(([1.0, 0.0, 1.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    co_occurrence(y)
    assert y.nnz == 3


def test_split_reads_training_samples_only():
    graph = co_occurrence(Y, split=split_of([0, 3], name="random"))
    assert weights_of(graph) == weights_of(co_occurrence(Y[[0, 3]]))
    assert graph.source.startswith("2 training samples of split 'random'")


def test_a_data_set_needs_its_split():
    dataset = SimpleNamespace(y=Y, label_names=list("abcd"))
    with pytest.raises(ValueError, match="'split'"):
        co_occurrence(dataset)
    assert co_occurrence(dataset, split=split_of(range(5))).label_names == ["a", "b", "c", "d"]


def test_a_part_of_a_data_set_is_not_called_whole():
    dataset = from_arrays(np.zeros((5, 2)), Y, kind="vector")
    with pytest.raises(
        ValueError, match=r"\(got the data set ArrayDataset without 'split'\).*dataset\[split.train\].y"
    ):
        co_occurrence(dataset[:3])
    assert weights_of(co_occurrence(dataset[:3].y)) == weights_of(co_occurrence(Y[:3]))


def test_samples_outside_of_the_split_are_warned_of():
    with pytest.warns(UserWarning, match="leaves out 2 of 5 samples of 'y'") as caught:
        co_occurrence(Y, split=random_split(3, (0.7, 0.3, 0)))
    assert caught[0].filename == __file__


def test_columns_of_a_data_frame_are_taken_by_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 1], "b": [0, 1]})
    graph = co_occurrence(frame, label_names=["b", "a"])
    assert (graph.label_names, weights_of(graph)[0, 0], weights_of(graph)[1, 1]) == (["b", "a"], 1, 2)
    assert weights_of(co_occurrence(frame, label_names=["x", "y"])) == weights_of(co_occurrence(frame))
    with pytest.raises(ValueError, match=r"new names for them \(got both: \['b'\]"):
        co_occurrence(frame, label_names=["b", "c"])


class Counted:
    """A data set of no samples, whose labels are counted as they are made."""

    label_names = list("abcd")

    def __init__(self, y):
        self.labels, self.times = y, 0

    @property
    def y(self):
        self.times += 1
        return self.labels


class SparselyCounted(Counted):
    def sparse_y(self):
        return sparse.csr_array(self.labels.numpy())


@pytest.mark.parametrize("weight", ["count", "conditional", "correlation"])
def test_labels_of_data_sets_are_made_once_and_sparse_if_they_can_be(weight):
    y = (torch.rand(60, 4, generator=torch.Generator().manual_seed(0)) < 0.5).float()
    y[torch.rand(60, 4, generator=torch.Generator().manual_seed(1)) < 0.3] = NAN
    split = split_of(range(40), 60)
    expected = weights_of(co_occurrence(y[:40], weight=weight))
    for dataset, times in ((Counted(y), 1), (SparselyCounted(y), 0)):
        graph = co_occurrence(dataset, weight=weight, split=split)
        assert (weights_of(graph), graph.label_names, dataset.times) == (expected, list("abcd"), times)


def test_unknown_labels_of_sequences_are_left_out(tmp_path):
    (tmp_path / "x.fa").write_text("".join(f">{number}\nA\n" for number in range(4)))
    (tmp_path / "x.csv").write_text("id,a,b\n0,1,1\n1,1,\n2,,1\n3,1,0\n")
    dataset = DNADataset.from_fasta(tmp_path / "x.fa", tmp_path / "x.csv")
    graph = co_occurrence(dataset, weight="conditional", split=split_of(range(4), 4))
    assert weights_of(graph) == weights_of(co_occurrence(dataset.y, weight="conditional"))
    assert weights_of(graph) == {(0, 0): 1.0, (1, 0): 1.0, (0, 1): 0.5, (1, 1): 1.0}


def test_training_labels_with_a_split_of_the_whole_are_refused():
    with pytest.raises(ValueError, match=r"'y' to hold all samples .* \(got 5 samples, and sample 7"):
        co_occurrence(Y, split=split_of([0, 7], 8))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": torch.ones(3)}, "matrix"),
        ({"y": torch.tensor([[2.0]])}, r"0, 1, or NaN.*got 2"),
        ({"y": torch.tensor([[-1.0]])}, r"got -1"),
        ({"y": Y * 1j}, r"'y' to be real numbers \(got complex64\)"),
        ({"y": sparse.csr_array(Y.numpy() * 1j)}, r"'y' to be real numbers \(got complex64\)"),
        ({"y": torch.ones(0, 3)}, "at least one training sample"),
        ({"split": [0, 1]}, r"'split' to be a Split \(got list\)"),
        ({"label_names": "abcd"}, r"'label_names' to be a list of names \(got 'abcd'\)"),
        ({"label_names": 4}, r"'label_names' to be a list of names \(got 4\)"),
        ({"min_count": 0}, "'min_count'"),
        ({"min_count": True}, "'min_count'"),
        ({"top_k": 0}, "'top_k'"),
        ({"weight": "lift"}, "'weight'.*lift"),
        ({"threshold": NAN}, "'threshold'"),
        ({"label_names": ["a"]}, "'label_names'"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        co_occurrence(**{"y": Y, **arguments})


def test_permuting_labels_permutes_the_graph():
    y = torch.from_numpy((np.random.default_rng(4).random((200, 6)) < 0.4).astype(np.float32))
    perm = [3, 1, 5, 0, 4, 2]
    here = co_occurrence(y, weight="correlation", threshold=0.0).permute(perm)
    there = co_occurrence(y[:, perm], weight="correlation", threshold=0.0)
    assert torch.equal(here.edge_index, there.edge_index)
    assert torch.allclose(here.edge_weight, there.edge_weight)


def test_a_thousand_labels_take_no_time():
    y = sparse.random_array((13_000, 983), density=0.02, format="csr", rng=np.random.default_rng(0))
    y.data[:] = 1
    start = time.process_time()  # others may share the cores
    graph = co_occurrence(y, weight="correlation", top_k=10)
    assert time.process_time() - start < 3.0  # about 0.2 s on a quiet core
    assert graph.num_edges == 983 * 11


@pytest.fixture(scope="module")
def sider():
    pandas = pytest.importorskip("pandas")
    path = Path(os.environ.get("TG_MLC_DATA", "")) / "sider" / "raw" / "sider.csv"
    if "TG_MLC_DATA" not in os.environ or not path.is_file():
        pytest.skip("needs sider/raw/sider.csv in the folder TG_MLC_DATA")
    return pandas.read_csv(path).drop(columns="smiles")


def test_on_sider_the_plain_graph_is_complete(sider):
    graph = co_occurrence(sider)
    assert (graph.num_labels, graph.density) == (27, 1.0)
    assert "Hepatobiliary disorders" in graph.label_names


@pytest.mark.parametrize("weight", ["conditional", "pmi", "correlation"])
def test_on_sider_top_k_gives_an_informative_graph(sider, weight):
    graph = co_occurrence(sider, weight=weight, top_k=5)
    assert graph.num_edges == 27 * 6
    assert 0 < co_occurrence(sider, weight="correlation", threshold=0.3).density < 0.5
