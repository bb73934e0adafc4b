import copy

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Data

from tests.requirements import needs_export
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected
from tg_mlc.nn import ResidualMessages, residual
from tg_mlc.nn.residual import conjugate_gradients

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
    return ResidualMessages(label_graph or fully_connected(6), **options).start_from_residuals(b, y)


def test_the_closed_form_is_the_conditional_mean_of_gaussian_residuals():
    b, y = (tensor.double() for tensor in planted())
    model = ResidualMessages(fully_connected(6), num_rounds=12).double()
    model.start_from_residuals(b, y, damping=0.5)
    given = y[:5].clone()
    given[:, 3:] = NAN
    p = 1 / (1 + np.exp(-b.numpy()))
    residuals = y.numpy() - p
    sd = np.sqrt((residuals**2).mean(axis=0) + 1e-4)
    correlation = (residuals / sd).T @ (residuals / sd) / (len(y) + 1)
    np.fill_diagonal(correlation, 1.0)
    weight = np.linalg.solve(correlation[:3, :3] + 0.5 * np.eye(3), (residuals[:5, :3] / sd[:3]).T)
    expected = b[:5, 3:].numpy() + (correlation[3:, :3] @ weight).T / sd[3:]
    np.testing.assert_allclose(model(b[:5], given)[:, 3:].detach().numpy(), expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_graph_may_be_an_adjacency():
    graph = fully_connected(6)
    ones = torch.ones(graph.num_edges)
    adjacency = torch.sparse_coo_tensor(graph.edge_index.flip(0), ones, (6, 6)).to_sparse_csr()
    model = ResidualMessages(Data(adj_t=adjacency, num_nodes=6))
    assert model.edge_index.equal(ResidualMessages(graph).edge_index)


def test_given_labels_move_the_labels_that_depend_on_them():
    given = torch.tensor([[1.0, NAN, NAN, NAN, NAN, NAN], [0.0, NAN, NAN, NAN, NAN, NAN]])
    z = fitted()(torch.zeros(2, 6), given)
    assert z[0, 1] > 1 > -1 > z[1, 1]
    assert z[0, 2] < -1 < 1 < z[1, 2]
    assert z[:, 3:].abs().max() < 0.5


def test_samples_without_given_labels_keep_their_base_logits():
    model, (b, y) = fitted(), planted()
    torch.nn.init.ones_(model.bias)
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


def test_sums_along_edges_equal_matrix_products(monkeypatch):
    b, y = planted()
    uniform = torch.rand(y.shape, generator=torch.Generator().manual_seed(1))
    given = torch.where(uniform < 0.5, y, NAN)
    actual = []
    for density in (0.0, 2.0):
        monkeypatch.setattr(residual, "DENSE", density)
        model = fitted()
        z = model(b, given)
        z.sum().backward()
        actual.append((model.correlation, z, model.to_others.grad, model.among_given.grad))
    for dense, sparse in zip(*actual, strict=True):
        assert_close(dense, sparse, rtol=1e-4, atol=1e-4)


def test_unknown_targets_are_skipped():
    b, y = planted()
    rows = torch.rand(len(y), generator=torch.Generator().manual_seed(1)) < 0.5
    model = ResidualMessages(fully_connected(6)).start_from_residuals(b[rows], y[rows])
    unknown = y.masked_fill(~rows.unsqueeze(-1), NAN)
    other = ResidualMessages(fully_connected(6)).start_from_residuals(b, unknown)
    assert_close(other.deviation, model.deviation)
    assert_close(other.correlation, model.correlation)


def test_training_starts_from_the_closed_form():
    b, y = planted()
    given = y.clone()
    given[:, 1:] = NAN
    closed_form, model = fitted(), fitted(channels=8, dropout=0.0)
    assert_close(model(b, given), closed_form(b, given))
    assert model.penalty() == 0
    model(b, given)[:, 1].sum().backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())
    assert model.attention.readout.grad.abs().sum() > 0
    with torch.no_grad():
        model.to_others.add_(0.1)
    assert model.penalty() > 0


def test_copies_and_saved_weights_predict_alike():
    b, y = planted()
    model = fitted(channels=8).eval()
    loaded = ResidualMessages(fully_connected(6), channels=8).eval()
    loaded.load_state_dict(model.state_dict())
    for other in (copy.deepcopy(model), loaded):
        assert torch.equal(other(b, y.masked_fill(b > 0, NAN)), model(b, y.masked_fill(b > 0, NAN)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fitted()(torch.zeros(2, 6), torch.zeros(2, 5)), r"'given' of shape \[B, 6\]"),
        (lambda: fitted().start_from_residuals(*torch.zeros(2, 2, 5)), r"'y' of shape \[B, 6\]"),
        (lambda: ResidualMessages(fully_connected(6), num_rounds=0), "'num_rounds'"),
        (lambda: ResidualMessages(fully_connected(6), channels=-1), "'channels'"),
    ],
)
def test_invalid_shapes_and_options_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_conjugate_gradients_solve_systems_and_stay_finite_where_there_is_no_solution():
    matrix = torch.tensor([[2.0, 0.5], [0.5, 1.0]])
    rhs = torch.tensor([[1.0, 2.0], [0.0, 0.0]])
    assert_close(conjugate_gradients(lambda x: x @ matrix, rhs, 4), rhs @ matrix.inverse())
    indefinite = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    solution = conjugate_gradients(lambda x: x @ indefinite, torch.tensor([[1.0, -1.0]]), 8)
    assert solution.isfinite().all()


@needs_export
@pytest.mark.parametrize(
    "graph", [fully_connected(3), LabelGraph(torch.arange(40).view(2, 20), num_nodes=40)]
)
def test_residual_messages_are_exported_for_any_number_of_samples(graph):
    messages = ResidualMessages(graph, channels=8).eval()
    with torch.no_grad():
        messages.attention.readout.normal_()
    logits = torch.randn(5, graph.num_labels)
    given = torch.where(torch.rand(logits.shape) < 0.5, (logits > 0).float(), torch.nan)
    sizes = 2 * ({0: torch.export.Dim.DYNAMIC},)
    inputs = (logits, given)
    program = torch.export.export(messages, inputs, dynamic_shapes=sizes, strict=False).module()
    for rows in (2, 5):
        expected = messages(logits[:rows], given[:rows])
        assert_close(program(logits[:rows], given[:rows]), expected, atol=1e-5, rtol=1e-5)
