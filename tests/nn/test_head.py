import time

import pytest
import torch
from torch.nn.functional import binary_cross_entropy
from torch.testing import assert_close

from tests.nn.samples import path_graph
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected, tree
from tg_mlc.nn import CoherentHead, LabelHead, LabelMessagePassing


def test_a_tied_head_shares_the_embedding():
    labels = LabelMessagePassing(8, path_graph(5))
    readout = LabelHead(labels, tied=True)
    assert str(readout) == "LabelHead(8, num_labels=5, tied=True)"
    assert readout.weight is labels.embedding.weight
    u = torch.randn(3, 5, 8)
    expected = torch.stack([u[:, i] @ labels.embedding.weight[i] for i in range(5)], dim=1)
    assert_close(readout(u), expected)
    assert readout(u[0]).size() == (5,)
    original = labels.embedding.weight.clone()
    readout.reset_parameters()
    assert not torch.equal(labels.embedding.weight, original)


def test_an_untied_head_has_its_own_weights_and_a_bias():
    labels = LabelMessagePassing(8, path_graph(5))
    readout = LabelHead(labels, bias=True)
    assert str(readout) == "LabelHead(8, num_labels=5, tied=False)"
    assert readout.weight.data_ptr() != labels.embedding.weight.data_ptr()
    with torch.no_grad():
        readout.bias.copy_(torch.arange(5.0))
    assert_close(readout(torch.zeros(3, 5, 8)), torch.arange(5.0).expand(3, -1))
    original = readout.weight.clone()
    readout.reset_parameters()
    assert not torch.equal(readout.weight, original)
    assert (readout.bias == 0).all()


def test_logits_start_around_zero_unless_tied():
    labels = LabelMessagePassing(128, fully_connected(50)).eval()
    x, ptr = torch.randn(200, 128), torch.arange(0, 201, 20)
    states = labels(x, ptr=ptr, return_intermediate=True)
    readout = LabelHead(labels)
    for u in (*states.intermediate, states.states):
        logits = readout(u)
        # Logits differ between labels from the start, but no label is likelier by much.
        assert logits.mean().abs() < 0.5
        assert 0.5 < logits.std() < 2
    tied = LabelHead(labels, tied=True)
    assert labels.embedding.weight.std().item() == pytest.approx(128**-0.5, rel=0.05)
    first, *_ = labels(x, ptr=ptr, return_intermediate=True).intermediate
    assert tied(first).mean() > 3


def test_a_head_can_start_from_frequencies():
    labels, nan = LabelMessagePassing(8, path_graph(3), num_steps=1), float("nan")
    readout, log_odds = LabelHead(labels, bias=True), torch.tensor([1 / 3, 0.25, 0.5]).logit()
    y = torch.tensor([[1, 0, nan], [0, 0, nan], [nan, 1, nan], [0, 0, nan]])
    readout.start_from_frequencies(y)
    assert_close(readout.bias, log_odds)
    readout.start_from_frequencies(y, frequency_strength=0.5)
    assert_close(readout.bias, (log_odds + log_odds.mean()) / 2)


class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.labels = LabelMessagePassing(8, path_graph(5))
        self.readout = LabelHead(self.labels, tied=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model.labels, "embedding", torch.nn.Embedding(5, 8)),
        lambda model: model.to(torch.float64),
        lambda model: model.to("meta").to_empty(device="cpu"),
        lambda model: model.load_state_dict(Tied().state_dict(), assign=True),
    ],
    ids=["replace", "to", "to_empty", "assign"],
)
def test_a_tied_head_follows_changes_of_the_embedding(change):
    model = Tied()
    original = model.labels.embedding.weight.data
    change(model)
    assert model.readout.weight is model.labels.embedding.weight
    assert model.readout.weight.data is not original
    assert sum(module is model.labels for module in model.modules()) == 1


NO_NODE = torch.tensor([[0], [2]])
TREE = tree([(1, 0), (2, 0), (3, 1), (4, 1), (5, 2)])
GRAPHS = {
    "tree": TREE,
    "two parents": tree([(1, 0), (2, 0), (3, 1), (3, 2), (4, 3)], undirected=False),
    "no edge": tree([(0, None), (1, None)]),
}


def dense(scores, graph):
    """Computes the paper's definition: maxima over descendants, from a matrix of all pairs."""
    descendants = torch.eye(graph.num_labels, dtype=torch.bool)
    for _ in range(graph.num_labels):
        descendants[graph.parent_index[0]] |= descendants[graph.parent_index[1]]
        for parent, child in graph.parent_index.t().tolist():
            descendants[parent] |= descendants[child]
    return torch.where(descendants, scores.unsqueeze(1), -torch.inf).amax(-1)


def dense_loss(p, y, graph):
    """Computes the paper's MCLoss from probabilities and labels that are all known."""
    return binary_cross_entropy((1 - y) * dense(p, graph) + y * dense(p * y, graph), y)


def samples(graph, num_samples=20):
    torch.manual_seed(0)
    logits = torch.randn(num_samples, graph.num_labels, dtype=torch.double, requires_grad=True)
    return logits, dense((torch.rand(num_samples, graph.num_labels) < 0.3).double(), graph)


@pytest.mark.parametrize("name", GRAPHS)
def test_outputs_and_gradients_equal_the_dense_definition(name):
    graph = GRAPHS[name]
    logits, y = samples(graph)
    head = CoherentHead(graph)
    weight = torch.randn_like(y)
    for actual, expected in [
        ((head(logits.sigmoid()) * weight).sum(), (dense(logits.sigmoid(), graph) * weight).sum()),
        ((head(logits) * weight).sum(), (dense(logits, graph) * weight).sum()),
        (head.loss(logits, y), dense_loss(logits.sigmoid(), y, graph)),
    ]:
        assert_close(actual, expected)
        (actual_grad,) = torch.autograd.grad(actual, logits)
        (expected_grad,) = torch.autograd.grad(expected, logits)
        assert_close(actual_grad, expected_grad)


def test_equal_scores_share_the_gradient_as_in_the_dense_definition():
    graph = GRAPHS["two parents"]
    scores, dense_scores = (torch.ones(2, 5, requires_grad=True) for _ in range(2))
    weight = torch.arange(10.0).view(2, 5)
    (CoherentHead(graph)(scores) * weight).sum().backward()
    (dense(dense_scores, graph) * weight).sum().backward()
    assert_close(scores.grad, dense_scores.grad)


def test_unknown_labels_add_nothing_to_the_loss():
    graph = TREE
    logits, y = samples(graph)
    y[:, 4] = torch.nan
    head = CoherentHead(graph)
    head.loss(logits, y).backward()
    assert logits.grad.isfinite().all()
    assert head.loss(logits, torch.full_like(y, torch.nan)) == 0
    y[y == 1] = torch.nan  # A negative label's maximum still includes unknown descendants.
    assert head.loss(logits, y).isfinite()


@pytest.mark.parametrize("make", [edgeless, fully_connected])
def test_parents_need_not_be_edges(make):
    graph = TREE
    other = LabelGraph(make(6).edge_index, num_nodes=6, parent_index=graph.parent_index)
    scores = torch.rand(3, 6)
    assert torch.equal(CoherentHead(other)(scores), CoherentHead(graph)(scores))


def readout(**options):
    return LabelHead(LabelMessagePassing(8, path_graph(5)), **options)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: LabelHead(4), TypeError, r"'labels' to be a LabelMessagePassing \(got int\)"),
        (lambda: readout().start_from_frequencies(torch.zeros(2, 5)), ValueError, "'bias=True'"),
        (lambda: readout()(torch.zeros(3, 8, 5)), ValueError, r"\[\*, 5, 8\] \(got \[3, 8, 5\]\)"),
        (lambda: CoherentHead(fully_connected(3)), ValueError, "'label_graph' to keep the parents"),
        (lambda: CoherentHead(TREE)(torch.rand(3, 5)), ValueError, r"'scores' of shape \[B, 6\]"),
        (
            lambda: CoherentHead(TREE).loss(*torch.rand(2, 6)),
            ValueError,
            r"'logits' of shape \[B, 6",
        ),
        (lambda: LabelGraph(num_nodes=2, parent_index=NO_NODE), ValueError, "'parent_index'"),
    ],
)
def test_invalid_arguments_are_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_time_grows_with_the_closure_and_not_with_all_pairs():
    num_labels = 3000
    graph = tree([(child, (child - 1) // 4) for child in range(1, num_labels)])
    head, scores, seconds = CoherentHead(graph), torch.rand(4, num_labels), [torch.inf, torch.inf]
    is_descendant = torch.eye(num_labels, dtype=torch.bool)
    is_descendant[head.pairs[0], head.pairs[1]] = True
    for _ in range(2):
        functions = (lambda: head(scores), lambda: (scores.unsqueeze(1) * is_descendant).amax(-1))
        for i, function in enumerate(functions):
            start = time.perf_counter()
            actual = function()
            seconds[i] = min(seconds[i], time.perf_counter() - start)
            assert actual[0, 0] == scores[0].max()
    assert 10 * seconds[0] < seconds[1]


def test_a_coherent_head_has_an_empty_state_dict_and_compiles():
    head = CoherentHead(TREE)
    assert not head.state_dict()
    scores = torch.rand(3, 6)
    compiled = torch.compile(head, fullgraph=True, backend="eager")
    assert torch.equal(compiled(scores), head(scores))
