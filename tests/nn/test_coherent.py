import time

import pytest
import torch
from torch.nn.functional import binary_cross_entropy
from torch.testing import assert_close

from tg_mlc.graphs import LabelGraph, edgeless, fully_connected, tree
from tg_mlc.nn import CoherentHead

GRAPHS = {
    "tree": tree([(1, 0), (2, 0), (3, 1), (4, 1), (5, 2)]),
    "two parents": tree([(1, 0), (2, 0), (3, 1), (3, 2), (4, 3)], undirected=False),
    "no edge": tree([(0, None), (1, None)]),
}


def dense(scores, graph):
    """The definition in the paper: a maximum over a matrix of all labels, for every sample."""
    below = torch.eye(graph.num_labels, dtype=torch.bool)
    for _ in range(graph.num_labels):
        below[graph.parent_index[0]] |= below[graph.parent_index[1]]
        for parent, child in graph.parent_index.t().tolist():
            below[parent] |= below[child]
    return torch.where(below, scores.unsqueeze(1), -torch.inf).amax(-1)


def dense_loss(p, y, graph):
    """The paper's MCLoss, of probabilities and labels without unknown ones."""
    return binary_cross_entropy((1 - y) * dense(p, graph) + y * dense(p * y, graph), y)


def samples(graph, num_samples=20):
    torch.manual_seed(0)
    logits = torch.randn(num_samples, graph.num_labels, dtype=torch.double, requires_grad=True)
    return logits, dense((torch.rand(num_samples, graph.num_labels) < 0.3).double(), graph)


@pytest.mark.parametrize("name", GRAPHS)
def test_outputs_and_gradients_equal_the_dense_definition(name):
    graph, weight = GRAPHS[name], None
    logits, y = samples(graph)
    head = CoherentHead(graph)
    weight = torch.randn_like(y)
    for actual, expected in [
        ((head(logits.sigmoid()) * weight).sum(), (dense(logits.sigmoid(), graph) * weight).sum()),
        ((head(logits) * weight).sum(), (dense(logits, graph) * weight).sum()),
        (head.loss(logits, y), dense_loss(logits.sigmoid(), y, graph)),
    ]:
        assert_close(actual, expected)
        (here,) = torch.autograd.grad(actual, logits)
        (there,) = torch.autograd.grad(expected, logits)
        assert_close(here, there)


def test_equal_scores_share_the_gradient_as_in_the_dense_definition():
    graph = GRAPHS["two parents"]
    ours, theirs = (torch.ones(2, 5, requires_grad=True) for _ in range(2))
    weight = torch.arange(10.0).view(2, 5)
    (CoherentHead(graph)(ours) * weight).sum().backward()
    (dense(theirs, graph) * weight).sum().backward()
    assert_close(ours.grad, theirs.grad)


def test_unknown_labels_are_no_terms():
    graph = GRAPHS["tree"]
    logits, y = samples(graph)
    y[:, 4] = torch.nan
    head = CoherentHead(graph)
    head.loss(logits, y).backward()
    assert logits.grad.isfinite().all()
    assert head.loss(logits, torch.full_like(y, torch.nan)) == 0
    y[y == 1] = torch.nan  # 4 may yet be the largest below others
    assert head.loss(logits, y).isfinite()


@pytest.mark.parametrize("make", [edgeless, fully_connected])
def test_parents_need_not_be_edges(make):
    graph = GRAPHS["tree"]
    other = LabelGraph(make(6).edge_index, num_nodes=6, parent_index=graph.parent_index)
    scores = torch.rand(3, 6)
    assert torch.equal(CoherentHead(other)(scores), CoherentHead(graph)(scores))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: CoherentHead(fully_connected(3)), "'label_graph' to keep the parents"),
        (lambda: CoherentHead(GRAPHS["tree"])(torch.rand(3, 5)), r"'scores' of shape \[B, 6\]"),
        (lambda: CoherentHead(GRAPHS["tree"]).loss(*torch.rand(2, 6)), r"'logits' of shape \[B, 6"),
        (lambda: LabelGraph(num_nodes=2, parent_index=torch.tensor([[0], [2]])), "'parent_index'"),
    ],
)
def test_what_does_not_fit_is_named(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_time_grows_with_the_closure_and_not_with_all_pairs():
    num_labels = 4000
    graph = tree([(child, (child - 1) // 4) for child in range(1, num_labels)])
    head, scores, least = CoherentHead(graph), torch.rand(4, num_labels), [torch.inf, torch.inf]
    below = torch.eye(num_labels, dtype=torch.bool)
    below[head.pairs[0], head.pairs[1]] = True
    for _ in range(2):
        ways = (lambda: head(scores), lambda: (scores.unsqueeze(1) * below).amax(-1))
        for i, run in enumerate(ways):
            start = time.perf_counter()
            actual = run()
            least[i] = min(least[i], time.perf_counter() - start)
            assert actual[0, 0] == scores[0].max()
    assert 10 * least[0] < least[1]


def test_state_dicts_hold_no_pairs_and_it_compiles():
    head = CoherentHead(GRAPHS["tree"])
    assert not head.state_dict()
    scores = torch.rand(3, 6)
    compiled = torch.compile(head, fullgraph=True, backend="eager")
    assert torch.equal(compiled(scores), head(scores))
