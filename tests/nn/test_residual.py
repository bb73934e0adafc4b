import copy

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Data

from tests.requirements import needs_export
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected
from tg_mlc.inputs.tables import read_molecules
from tg_mlc.nn import ResidualMessages, residual

NAN = torch.nan


def planted(num_samples=400, num_labels=6, seed=0):
    """Returns base logits and targets; label 1 copies label 0, and label 2 is its opposite."""
    generator = torch.Generator().manual_seed(seed)
    b = torch.randn(num_samples, num_labels, generator=generator)
    y = (torch.rand(b.shape, generator=generator) < b.sigmoid()).float()
    y[:, 1], y[:, 2] = y[:, 0], 1 - y[:, 0]
    return b, y


def fitted(label_graph=None, **options):
    b, y = planted()
    return ResidualMessages(label_graph or fully_connected(6)).start_from_residuals(b, y, **options)


def some_given(y, fraction=0.5, seed=1):
    uniform = torch.rand(y.shape, generator=torch.Generator().manual_seed(seed))
    return torch.where(uniform < fraction, y, NAN)


def conditional_means(model, b, given, own=False):
    """Returns the messages of a dense float64 solution, one label at a time."""
    correlation, noise = model.pairs.correlation.double().numpy(), float(model.noise)
    z = model.residuals(b, given).double().numpy()
    means = np.zeros(z.shape)
    for row, label in np.ndindex(z.shape):
        others = np.flatnonzero(~np.isnan(given[row].numpy()))
        others = others[others != label] if own else others
        matrix = correlation[np.ix_(others, others)] + noise * np.eye(len(others))
        means[row, label] = correlation[label, others] @ np.linalg.solve(matrix, z[row, others])
    return means


def test_the_closed_form_is_the_conditional_mean_of_gaussian_residuals():
    b, y = planted()
    model = fitted(noise=0.5)
    residuals = (y - b.sigmoid()).double().numpy()
    sd = np.sqrt((residuals**2).mean(axis=0) + 1e-4)
    correlation = (residuals / sd).T @ (residuals / sd) / (len(y) + 3)
    np.testing.assert_allclose(model.pairs.correlation.numpy(), correlation, atol=1e-5)
    given = some_given(y)
    change = sd * conditional_means(model, b, given)
    p = b.sigmoid().double().numpy()
    expected = np.clip(p + change, p / 64, 1 - (1 - p) / 64)
    expected = np.where(given.isnan(), expected, p)
    np.testing.assert_allclose(model(b, given).sigmoid().numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("value", [0.5, 7.0, -1.0])
def test_other_values_of_given_labels_are_refused(value):
    model, b = fitted(), torch.zeros(2, 6)
    for call in (model, model.leave_one_out, model.start_from_residuals):
        with pytest.raises(ValueError, match=rf"to hold 0, 1, or NaN for unknown \(got {value:g}"):
            call(b, torch.full_like(b, value))


@pytest.mark.parametrize("dtype", [torch.bool, torch.float64, torch.long])
@pytest.mark.parametrize("edges", [None, [[0, 1], [1, 2]]])
def test_given_labels_may_have_any_dtype(dtype, edges):
    graph = None if edges is None else LabelGraph(torch.tensor(edges), num_nodes=6)
    model, (b, y) = fitted(graph), planted(20)
    assert_close(model(b, y.to(dtype)), model(b, y))
    assert_close(model.leave_one_out(b, y.to(dtype)), model.leave_one_out(b, y))


def test_messages_may_be_added_to_logits():
    b, y = planted()
    model, given = fitted(noise=0.5, adds_logits=True), some_given(y)
    expected = b + conditional_means(model, b, given) / model.deviation
    assert_close(
        model(b, given)[given.isnan()], expected.float()[given.isnan()], rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("adds_logits", [False, True])
def test_leaving_one_out_equals_leaving_out_one_label_at_a_time(adds_logits):
    b, y = planted()
    model, known = fitted(adds_logits=adds_logits), some_given(y, 0.7)
    left_out = model.leave_one_out(b, known)
    for label in range(6):
        given = known.clone()
        given[:, label] = NAN
        assert_close(left_out[:, label], model(b, given)[:, label], rtol=1e-3, atol=1e-3)


def test_samples_share_memory_limits_and_factorisations(monkeypatch):
    b, y = planted()
    given = some_given(y)
    given[100:] = given[0]
    expected = fitted()(b, given)
    systems = list(fitted().pairs.systems(~given.isnan(), torch.tensor(0.3)))
    assert sum(len(system.rows) for system in systems) == len(y)
    assert sum(len(system.factor) for system in systems) == len((~given.isnan()).unique(dim=0))
    monkeypatch.setattr(residual, "_NUMBERS", 50)
    assert_close(fitted()(b, given), expected)


def test_many_unknown_targets_leave_every_system_solvable():
    generator = torch.Generator().manual_seed(0)
    score = torch.randn(200, 3, generator=generator) @ torch.randn(3, 80, generator=generator)
    y = (score > 0).float()
    y[torch.rand(y.shape, generator=generator) < 0.8] = NAN
    model = ResidualMessages(fully_connected(80)).start_from_residuals(torch.zeros(y.shape), y)
    assert torch.linalg.eigvalsh(model.pairs.correlation.double()).min() > -1e-6
    assert model(torch.zeros(y.shape), y).isfinite().all()
    assert model.leave_one_out(torch.zeros(y.shape), y).isfinite().all()


def test_every_row_of_toxcast_can_be_solved_with_all_known_labels(real_file):
    y = read_molecules(real_file("toxcast/raw/toxcast_data.csv.xz"), "smiles")[1].float()
    b = y.nanmean(dim=0).logit(eps=1e-3).expand_as(y)
    model = ResidualMessages(fully_connected(y.size(1))).start_from_residuals(b, y, noise=0.03)
    assert torch.linalg.eigvalsh(model.pairs.correlation.double()).min() > -1e-4
    # The matrix of a row is a principal submatrix, whose eigenvalues are not smaller.
    order = (~y.isnan()).sum(dim=1).argsort(descending=True)[::40]
    assert model.leave_one_out(b[order], y[order]).isfinite().all()


@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_graph_may_be_an_adjacency():
    graph = LabelGraph(torch.tensor([[0, 3], [1, 4]]), num_nodes=6)
    adjacency = torch.sparse_coo_tensor(graph.edge_index.flip(0), torch.ones(2), (6, 6))
    model = fitted(Data(adj_t=adjacency.to_sparse_csr(), num_nodes=6))
    (b, y) = planted()
    assert torch.equal(model(b, some_given(y)), fitted(graph)(b, some_given(y)))


def test_given_labels_move_the_labels_that_depend_on_them():
    given = torch.tensor([[1.0, NAN, NAN, NAN, NAN, NAN], [0.0, NAN, NAN, NAN, NAN, NAN]])
    z = fitted()(torch.zeros(2, 6), given)
    assert z[0, 1] > 1 > -1 > z[1, 1]
    assert z[0, 2] < -1 < 1 < z[1, 2]
    assert z[:, 3:].abs().max() < 0.5


def test_samples_without_given_labels_keep_their_base_logits():
    model, (b, y) = fitted(), planted()
    given = torch.full_like(y, NAN)
    given[0, 0] = 1.0
    z = model(b, given)
    assert torch.equal(z[1:], b[1:])
    assert not torch.equal(z[0], b[0])
    assert model(b) is b


def test_edges_restrict_messages():
    given = torch.tensor([[1.0, NAN, NAN, NAN, NAN, NAN]])
    graph = LabelGraph(torch.tensor([[0], [1]]), num_nodes=6)  # one direction is enough
    moved = (fitted(graph)(torch.zeros(1, 6), given) != 0)[0]
    assert moved.tolist() == [False, True, False, False, False, False]
    assert torch.equal(fitted(edgeless(6))(torch.zeros(1, 6), given), torch.zeros(1, 6))


def test_a_sparse_graph_solves_the_dense_system_of_each_neighbourhood():
    b, y = planted()
    graph = LabelGraph(torch.tensor([[0, 1, 2, 3, 3], [3, 3, 3, 4, 5]]), num_nodes=6)
    sparse, dense, given = fitted(graph), fitted(), some_given(y)
    neighbours = {0: [3], 1: [3], 2: [3], 3: [0, 1, 2, 4, 5], 4: [3], 5: [3]}
    for label, others in neighbours.items():
        of_others = torch.full_like(y, NAN)
        of_others[:, others] = given[:, others]
        expected = dense(b, of_others)[:, label]
        is_read = given[:, label].isnan()
        assert_close(sparse(b, given)[is_read, label], expected[is_read], rtol=1e-3, atol=1e-3)
    assert torch.equal(sparse.leave_one_out(b, y), sparse.leave_one_out(b, y))


@pytest.mark.parametrize("adds_logits", [False, True])
@pytest.mark.parametrize(
    "graph",
    [fully_connected(6), edgeless(6), LabelGraph(torch.tensor([[0, 1], [3, 3]]), num_nodes=6)],
    ids=["complete", "edgeless", "sparse"],
)
def test_contributions_of_known_labels_add_up_to_the_message(graph, adds_logits):
    (b, y), model = planted(), fitted(graph, adds_logits=adds_logits)
    known, label = some_given(y, 0.7), torch.arange(len(y)) % 6
    rows = torch.arange(len(y))
    parts = model.contributions(b, known, label)
    z = model.residuals(b, known)
    message = model.pairs.leave_one_out(z, ~known.isnan(), model.noise)
    scale = 1 / model.deviation if adds_logits else model.deviation
    assert_close(parts.sum(dim=1), (scale * message)[rows, label], rtol=1e-3, atol=1e-4)
    assert (parts[known.isnan()] == 0).all()
    assert (parts[rows, label] == 0).all()
    # Without the residual of a label, the message lacks the contribution of this label.
    without = z.clone()
    without[:, 3] = 0
    message = model.pairs.leave_one_out(without, ~known.isnan(), model.noise)
    parts[:, 3] = 0
    assert_close(parts.sum(dim=1), (scale * message)[rows, label], rtol=1e-3, atol=1e-4)


def test_a_label_reads_the_neighbours_of_the_largest_correlations(monkeypatch):
    monkeypatch.setattr(residual, "MAX_NEIGHBOURS", 2)
    edges = torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]])
    pairs = fitted(LabelGraph(edges, num_nodes=6)).pairs
    assert set(pairs.neighbour[0].tolist()) == {1, 2}


@pytest.mark.parametrize("adds_logits", [False, True])
def test_certain_base_logits_give_finite_logits(adds_logits):
    model = fitted(adds_logits=adds_logits)
    b = torch.tensor([[100.0, 100.0, 100.0, -100.0, -100.0, -100.0]])
    given = torch.tensor([[1.0, NAN, NAN, 1.0, NAN, NAN]])
    assert model(b, given).isfinite().all()
    assert model.leave_one_out(b, given).isfinite().all()


def test_base_logits_receive_gradients():
    b, y = planted()
    for graph in (fully_connected(6), LabelGraph(torch.tensor([[0], [1]]), num_nodes=6)):
        model = fitted(graph).double()
        logits = b[:4].double().requires_grad_()
        given = some_given(y)[:4].double()
        assert torch.autograd.gradcheck(lambda b, m=model, g=given: m(b, g), logits, atol=1e-4)


def test_unknown_targets_are_skipped():
    b, y = planted()
    rows = torch.rand(len(y), generator=torch.Generator().manual_seed(1)) < 0.5
    model = ResidualMessages(fully_connected(6)).start_from_residuals(b[rows], y[rows])
    unknown = y.masked_fill(~rows.unsqueeze(-1), NAN)
    other = ResidualMessages(fully_connected(6)).start_from_residuals(b, unknown)
    assert_close(other.deviation, model.deviation)
    assert_close(other.pairs.correlation, model.pairs.correlation)


@pytest.mark.parametrize("graph", [fully_connected(6), edgeless(6)])
def test_copies_and_saved_weights_predict_alike(graph):
    b, y = planted()
    model = fitted(graph, adds_logits=True)
    loaded = ResidualMessages(graph)
    loaded.load_state_dict(model.state_dict())
    for other in (copy.deepcopy(model), loaded):
        assert torch.equal(other(b, some_given(y)), model(b, some_given(y)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fitted()(torch.zeros(2, 6), torch.zeros(2, 5)), r"'given' of shape \[B, 6\]"),
        (lambda: fitted().start_from_residuals(*torch.zeros(2, 2, 5)), r"'y' of shape \[B, 6\]"),
        (lambda: fitted(noise=-1.0), "'noise' to be a finite number of at least 0"),
        (lambda: fitted(noise=0.0), "'noise' to be a number above 0"),
    ],
)
def test_invalid_shapes_and_options_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@needs_export
@pytest.mark.parametrize(
    "graph", [fully_connected(6), LabelGraph(torch.arange(6).view(2, 3), num_nodes=6)]
)
def test_residual_messages_are_exported_for_any_number_of_samples(graph):
    (b, y), messages = planted(), fitted(graph, noise=0.03).eval()
    given, sizes = some_given(y), 2 * ({0: torch.export.Dim.DYNAMIC},)
    inputs = (b[:5], given[:5])
    program = torch.export.export(messages, inputs, dynamic_shapes=sizes, strict=False).module()
    for rows in (2, 50):
        expected = messages(b[:rows], given[:rows])
        assert_close(program(b[:rows], given[:rows]), expected, atol=1e-4, rtol=1e-4)
