import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tg_mlc.graphs import tree
from tg_mlc.graphs.hierarchy import (
    ancestor_pairs,
    coherent,
    coherent_decider,
    derive,
    pairs_of,
    propagate,
    roots_of,
)
from tg_mlc.metrics import LabelSets, ThresholdTuner

#    0   1
#   / \ /
#  2   3
#  |
#  4
PARENTS = torch.tensor([[0, 0, 1, 2], [2, 3, 3, 4]])
PAIRS = [(0, 2), (0, 3), (0, 4), (1, 3), (2, 4)]
NAN = float("nan")


def test_roots_are_known_ones_and_a_label_above_all_others_that_always_applies():
    pairs, names = ancestor_pairs(torch.tensor([[0, 0], [1, 2]]), 3), ["life", "dog", "oak"]
    always = torch.tensor([True, False, False])
    assert roots_of(always, pairs, names) == ["life"]
    assert roots_of(~always, pairs, names) == []
    assert roots_of(always, pairs[:, :1], names) == []
    assert roots_of(always, pairs[:, :0], ["GO:0008150", "dog", "GO:0003674"]) == [
        "GO:0008150",
        "GO:0003674",
    ]


def test_labels_without_values_follow_from_those_below_them():
    y = torch.tensor([[NAN, 0, NAN, 0, 1], [NAN, 0, NAN, 0, 0], [NAN, 1, NAN, NAN, 0]])
    is_derived = torch.tensor([True, False, True, False, False])
    derived = derive(y, ancestor_pairs(PARENTS, 5), is_derived)
    assert derived[:, 0].tolist()[:2] == [1, 0]
    assert derived[2, 0].isnan()  # Label 3 below it is unknown.
    assert derived[:, 2].tolist() == [1, 0, 0]
    assert torch.equal(derived[:, [1, 4]], y[:, [1, 4]])


def test_closure_and_scores_in_chunks(monkeypatch):
    assert list(zip(*ancestor_pairs(PARENTS, 5).tolist(), strict=True)) == PAIRS
    assert ancestor_pairs(PARENTS[:, :0], 5).shape == (2, 0)
    scores, pairs = torch.rand(7, 5), ancestor_pairs(PARENTS, 5)
    expected = coherent(scores, pairs)
    monkeypatch.setattr("tg_mlc.graphs.hierarchy._MAX_SCORES", 10)
    assert torch.equal(coherent(scores, pairs), expected)
    assert expected[0, 0] == scores[0, [0, 2, 3, 4]].max()


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30))
def test_closure_equals_networkx(edges):
    edges = sorted({(min(edge), max(edge)) for edge in edges if edge[0] != edge[1]})
    index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    expected = sorted(nx.transitive_closure(nx.DiGraph(edges)).edges)
    assert ancestor_pairs(index, 12).t().tolist() == [list(edge) for edge in expected]


@pytest.mark.parametrize(
    "cycle", [[[0], [0]], [[0, 1], [1, 0]], [[0, 1, 2, 4], [1, 2, 3, 4]], [[3, 1, 2], [1, 2, 3]]]
)
def test_the_labels_of_a_cycle_are_named(cycle):
    with pytest.raises(ValueError, match=r"without cycles \(got one through the labels \["):
        ancestor_pairs(torch.tensor(cycle), 5)


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([NAN, NAN, NAN, NAN, 1], [1, NAN, 1, NAN, 1]),
        ([0, NAN, NAN, NAN, NAN], [0, NAN, 0, 0, 0]),
        ([NAN, 0, 1, NAN, NAN], [1, 0, 1, 0, NAN]),
        ([1, 0, 0, 0, 0], [1, 0, 0, 0, 0]),
    ],
)
def test_known_labels_imply_ancestors_and_descendants(y, expected):
    rows = torch.tensor([y, [NAN] * 5], dtype=torch.double)
    out, expected = propagate(rows, ancestor_pairs(PARENTS, 5)), torch.tensor(expected).double()
    torch.testing.assert_close(out[0], expected, equal_nan=True)
    assert out[1].isnan().all()


@pytest.mark.parametrize(
    ("y", "names", "row"),
    [
        ([0, NAN, NAN, NAN, 1], ["e", "a"], 1),
        ([NAN, 0, NAN, 1, NAN], ["d", "b"], 1),
        ([1, 0, 0, 0, 1], ["e", "c"], 1),
    ],
)
def test_a_contradiction_names_row_label_and_ancestor(y, names, row):
    rows = torch.tensor([[NAN] * 5, y])
    with pytest.raises(ValueError, match=f"'given' .*row {row}, .*'{names[0]}' .*'{names[1]}'"):
        propagate(rows, ancestor_pairs(PARENTS, 5), list("abcde"), "given")


def test_labels_in_another_order_are_matched_by_name():
    graph = tree([("b", "a"), ("c", "b")], list("abc"))
    assert pairs_of(graph, list("cba")).t().tolist() == [[1, 0], [2, 0], [2, 1]]
    with pytest.raises(ValueError, match=r"'coherent' to have the labels of the model .*'c', 'd'"):
        pairs_of(graph, list("abd"), "coherent")


def tuner_of(*thresholds):
    tuner = ThresholdTuner("f1_micro", per_label=len(thresholds) > 1)
    tuner.thresholds, tuner.best_value = np.array(thresholds), 0.5
    return tuner


def test_thresholds_rise_towards_lower_labels():
    tuner = tuner_of(0.6, 0.2, 0.3, 0.5, 0.9)
    decider = coherent_decider(tuner, ancestor_pairs(PARENTS, 5))
    assert decider.thresholds.tolist() == [0.6, 0.2, 0.6, 0.6, 0.9]
    assert decider.best_value == 0.5
    assert tuner.thresholds.tolist() == [0.6, 0.2, 0.3, 0.5, 0.9]
    pairs = torch.tensor([[0], [1]])
    tuner, sets = tuner_of(0.5), LabelSets(np.array([[1.0, 1.0], [1.0, 0.0]]))
    assert coherent_decider(tuner, pairs) is tuner
    assert coherent_decider(sets, pairs) is sets


@pytest.mark.parametrize(
    ("y", "thresholds", "value"),
    [([[1.0, 1.0], [0.0, 0.0]], [0.3, 0.3], 1.0), ([[0.0, 0.0], [1.0, 1.0]], [0.6, 0.6], 0.0)],
)
def test_thresholds_are_lowered_if_the_metric_improves(y, thresholds, value):
    scores = np.array([[0.4, 0.4], [0.1, 0.1]])
    decider = coherent_decider(tuner_of(0.6, 0.3), torch.tensor([[0], [1]]), np.array(y), scores)
    assert decider.thresholds.tolist() == thresholds
    assert decider.best_value == value
