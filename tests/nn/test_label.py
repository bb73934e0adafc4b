import re
from functools import partial

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.func import functional_call
from torch.testing import assert_close
from torch_geometric.data import Data

from tests.nn.samples import complete_edges, path_graph, ragged
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected
from tg_mlc.nn import FeatureMessagePassing, LabelMessagePassing
from tg_mlc.nn.label import LabelStates
from tg_mlc.ops import Blocks, Shared, to_dense_weights

X, BATCH = ragged([3, 1, 4], 8)


def layer(label_graph=None, **options):
    label_graph = path_graph(5) if label_graph is None else label_graph
    return LabelMessagePassing(8, label_graph, **{"heads": 2, **options})


def test_states_have_a_row_for_each_sample_and_label():
    labels = LabelMessagePassing((6, 8), path_graph(5), num_steps=3, heads=2)
    assert str(labels) == "LabelMessagePassing(8, num_labels=5, num_steps=3)"
    assert str(labels.feature_to_label[0]) == "FeatureToLabelConv((6, 8), heads=2)"
    assert str(labels.label_to_label[0]) == "LabelToLabelConv(8, heads=2)"
    x, batch = ragged([3, 1, 4], 6)
    states = labels(x, batch)
    assert states.size() == (3, 5, 8)
    assert states.isfinite().all()


def test_a_step_applies_its_two_blocks():
    labels = layer()
    states, intermediate, _ = labels(X, BATCH, return_intermediate=True)

    blocks = Blocks(torch.arange(4) * 5, torch.tensor([0, 3, 4, 8])).to_edge_index()
    shared = Shared(labels.label_graph.edge_index, 3, num_nodes=5).to_edge_index()
    u, expected = labels.embedding.weight.repeat(3, 1), []
    for first, second in zip(labels.feature_to_label, labels.label_to_label, strict=True):
        expected += [first((X, u), blocks), second(first((X, u), blocks), shared)]
        u = expected[-1]
    assert len(intermediate) == 3
    for actual, reference in zip([*intermediate, states], expected, strict=True):
        assert_close(actual.view(15, 8), reference)


def test_without_label_messages_there_are_no_blocks_among_labels():
    labels = layer(label_messages=False)
    states, intermediate, attention = labels(X, BATCH, return_attention_weights=True)
    blocks = Blocks(torch.arange(4) * 5, torch.tensor([0, 3, 4, 8]))
    first = labels.feature_to_label[0]((X, labels.embedding.weight.repeat(3, 1)), blocks)
    assert_close(intermediate[0].view(15, 8), first)
    assert_close(states.view(15, 8), labels.feature_to_label[1]((X, first), blocks))
    assert_close(labels(X, BATCH), states)
    assert len(intermediate) == 1
    assert [step.label_to_label for step in attention] == [None, None]
    assert len(labels.label_to_label) == 0


def test_missing_edges_are_masked():
    labels = LabelMessagePassing(8, path_graph(5), num_steps=1, heads=2)
    edge_index = complete_edges(BATCH, 5)
    edge_index = edge_index[:, torch.rand(edge_index.size(1)) < 0.5]
    conv = labels.feature_to_label[0]

    query = conv.lin_query(labels.embedding.weight).view(5, 2, 4)
    key, value = conv.lin_key(X).view(8, 2, 4), conv.lin_value(X).view(8, 2, 4)
    score = torch.einsum("lhc,nhc->lhn", query, key) * conv.scale
    mask = torch.zeros(3, 5, 8, dtype=torch.bool)
    mask[BATCH[edge_index[0]], edge_index[1], edge_index[0]] = True
    # [B, L, heads, N]
    alpha = score.masked_fill(~mask.unsqueeze(2), -torch.inf).softmax(dim=-1).nan_to_num()
    message = torch.einsum("blhn,nhc->blhc", alpha, value).flatten(2)
    hidden = conv.attention_norm(labels.embedding.weight + conv.lin_out(message))

    states = labels(X, BATCH, edge_index=edge_index, return_intermediate=True)
    assert_close(states.intermediate[0], conv.feed_forward(hidden))


def test_attention_weights_sum_to_one():
    labels = layer()
    states = labels(X, BATCH, return_attention_weights=True)
    assert isinstance(states, LabelStates)
    assert len(states.intermediate) == 3
    assert_close(states.states, labels(X, BATCH))
    assert len(states.attention) == 2
    for (blocks, to_label), label_to_label in states.attention:
        dense = to_dense_weights(blocks, to_label)
        assert (dense > 0).sum(dim=-1)[:, 0, 0].tolist() == [3, 1, 4]
        assert_close(dense.sum(dim=-1), torch.ones(3, 2, 5))
        shared, weights = label_to_label
        assert weights.size() == (3, labels.label_graph.num_edges, 2)
        edge_index, flat = shared.to_edge_list(weights)
        total = torch.zeros(15, 2).index_add(0, edge_index[1], flat).view(3, 5, 2)
        assert_close(total[:, :4], torch.ones(3, 4, 2))
        assert (total[:, 4] == 0).all()  # No label sends to the last label.


def test_edges_pointers_and_batches_give_the_same_states():
    labels = layer()
    edge_index = complete_edges(BATCH, 5)
    structured = labels(X, BATCH, return_attention_weights=True).attention
    explicit = labels(X, BATCH, edge_index=edge_index, return_attention_weights=True).attention
    for (explicit_step, _), (structured_step, _) in zip(explicit, structured, strict=True):
        pairs = map(tuple, structured_step[0].to_edge_index().t().tolist())
        expected = dict(zip(pairs, structured_step[1], strict=True))
        for edge, weight in zip(explicit_step[0].t().tolist(), explicit_step[1], strict=True):
            assert_close(weight, expected[tuple(edge)])
    states = labels(X, BATCH)
    shuffled = edge_index[:, torch.randperm(edge_index.size(1))]
    assert_close(labels(X, BATCH, edge_index=shuffled), states)
    assert_close(labels(X, ptr=torch.tensor([0, 3, 4, 8])), states)
    assert_close(labels(X, BATCH, batch_size=3, max_num_nodes=4), states)
    assert_close(labels(X[:3]), states[:1])


def test_edges_lead_to_labels_of_the_same_sample():
    labels = layer(edgeless(5))
    edge_index = torch.tensor([[0, 4], [1, 1]])
    original = labels(X, BATCH, edge_index=edge_index)
    changed = labels(X.index_fill(0, torch.tensor(4), 1.0), BATCH, edge_index=edge_index)
    assert (original != changed).any(dim=-1).nonzero().tolist() == [[2, 1]]
    with pytest.raises(ValueError, match=r"target indices .* to lie in \[0, 5\) \(got values from"):
        labels(X, BATCH, edge_index=torch.tensor([[0, 4], [0, 5]]))
    with pytest.raises(ValueError, match=r"source indices of 'edge_index' to lie in \[0, 8\)"):
        labels(X, BATCH, edge_index=torch.tensor([[8], [0]]))


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("dtype", "size"), [(torch.float, 1e15), (torch.double, 1e100)])
def test_outputs_of_large_states_are_finite(dtype, size, norm):
    labels, scores = layer(norm=norm).to(dtype), torch.randn(3, 5, 8, dtype=dtype)
    x = (size * (X / X.abs().max()).to(dtype)).requires_grad_()
    out = labels(x, BATCH, base_scores=size * scores / scores.abs().max())
    out.square().sum().backward()
    gradients = [parameter.grad for parameter in labels.parameters()]
    assert all(tensor.isfinite().all() for tensor in (out, x.grad, *gradients))
    assert out.abs().sum(dim=-1).min() > 0


def test_samples_may_have_no_components():
    labels = layer()
    x, batch = ragged([3, 0, 2], 8)
    x.requires_grad_()
    states = labels(x, batch, batch_size=4)
    assert states.size() == (4, 5, 8)
    assert states.isfinite().all()
    assert_close(states[1], states[3])
    assert_close(states[:3], labels(x, batch))
    states.sum().backward()
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in labels.parameters())
    assert_close(labels(x[:0], batch[:0], batch_size=2), states[1].expand(2, -1, -1))


def test_the_first_step_projects_each_label_once():
    labels = layer()
    rows = []
    for conv in labels.feature_to_label:
        conv.lin_query.register_forward_hook(lambda module, args, out: rows.append(out.size(0)))
    labels(X, BATCH)
    assert rows == [5, 15]


def test_steps_share_no_weights():
    labels = LabelMessagePassing(8, path_graph(5), num_steps=3, heads=2)
    assert len({id(p) for p in labels.parameters()}) == 1 + 6 * 12
    first, second = (conv.lin_query.weight for conv in labels.feature_to_label[:2])
    assert not torch.equal(first, second)


def test_label_graph_can_be_replaced():
    labels = layer()
    on_path = labels(X, BATCH)
    labels.label_graph = fully_connected(5)
    other = layer(fully_connected(5))
    other.load_state_dict(labels.state_dict())
    assert not torch.allclose(labels(X, BATCH), on_path)
    assert torch.equal(labels(X, BATCH), other(X, BATCH))
    assert labels.label_graph.num_edges == 25
    with pytest.raises(ValueError, match=r"'label_graph' to hold 5 labels \(got 4\)"):
        labels.label_graph = fully_connected(4)
    assert labels.label_graph.num_labels == 5


def test_weights_of_another_label_graph_are_refused():
    labels, other = layer(fully_connected(5)), layer(edgeless(5))
    with pytest.raises(ValueError, match=r"same label graph, 5 edges of kind .* \(got .* 25 edges"):
        other.load_state_dict(labels.state_dict())
    other.label_graph = fully_connected(5).permute([4, 3, 2, 1, 0])
    other.load_state_dict(labels.state_dict())
    assert torch.equal(labels(X, BATCH), other(X, BATCH))

    labels = layer(edgeless(list("abc")))
    with pytest.raises(ValueError, match=r"Expected the weights to have .* label 0 is 'a' there"):
        layer(edgeless(list("cba"))).load_state_dict(labels.state_dict())
    layer(edgeless(3)).load_state_dict(labels.state_dict())


def test_weights_may_be_kept_as_safetensors_or_passed_as_a_state_dict(tmp_path):
    labels, other = layer(), layer()
    assert torch.equal(functional_call(other, labels.state_dict(), (X, BATCH)), labels(X, BATCH))
    save_file(labels.state_dict(), tmp_path / "labels.safetensors")
    other.load_state_dict(load_file(tmp_path / "labels.safetensors"))
    assert torch.equal(labels(X, BATCH), other(X, BATCH))
    with pytest.raises(ValueError, match="same label graph"):
        layer(edgeless(5)).load_state_dict(load_file(tmp_path / "labels.safetensors"))


@pytest.mark.parametrize("names", ["cba", "xyz"])
def test_a_label_graph_of_other_names_or_another_order_is_refused(names):
    labels = layer(fully_connected(list("abc")))
    with pytest.raises(ValueError, match=f"replaces .*'{names[0]}' there and 'a' here"):
        labels.label_graph = fully_connected(list(names))
    assert labels.label_graph.label_names == list("abc")
    labels.label_graph = fully_connected(3)
    labels.label_graph = fully_connected(list(names))


def test_blocks_among_labels_get_no_arguments_of_blocks_from_components():
    class Same(torch.nn.Module):
        def forward(self, x, edge_index, *, return_attention_weights=None):
            return x

    labels, without = layer(), layer(label_messages=False)
    without.load_state_dict(labels.state_dict(), strict=False)
    labels.label_to_label = torch.nn.ModuleList([Same(), Same()])
    assert_close(labels(X, BATCH), without(X, BATCH))


def test_self_loops_are_not_added():
    labels = layer(LabelGraph(torch.zeros(2, 0, dtype=torch.long), num_nodes=3))
    conv, u = labels.label_to_label[0], torch.randn(3, 8)
    expected = conv.feed_forward(conv.attention_norm(u))
    assert_close(conv(u, Shared(labels.label_graph.edge_index, 1, num_nodes=3)), expected)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_states_are_normalised(norm):
    labels = LabelMessagePassing(8, path_graph(5), heads=2, norm=norm)  # type: ignore[arg-type]
    states = labels(X, BATCH, return_intermediate=True)
    for u in (states.states, *states.intermediate):
        assert_close(u.mean(dim=-1), torch.zeros(3, 5), atol=1e-5, rtol=0)


def test_options_reach_every_block():
    options = {"mlp_channels": 3, "dropout": 0.2, "attention_dropout": 0.1}
    options |= {"bias": True, "scale": 0.7}
    labels = layer(heads=4, label_kwargs={"heads": 2}, **options)
    convs = (*labels.feature_to_label, *labels.label_to_label)
    for conv in convs:
        assert (conv.dropout, conv.attention_dropout, conv.scale) == (0.2, 0.1, 0.7)
        assert conv.mlp[0].out_channels == 3
        assert conv.lin_query.bias is not None
    assert [conv.heads for conv in convs] == [4, 4, 2, 2]
    labels.train()
    assert not torch.equal(labels(X, BATCH), labels(X, BATCH))
    labels.eval()
    assert torch.equal(labels(X, BATCH), labels(X, BATCH))


@pytest.mark.parametrize("backend", ["auto", "dense", "reference"])
@pytest.mark.parametrize("return_attention_weights", [True, False])
def test_a_batch_may_have_no_samples(backend, return_attention_weights):
    labels = LabelMessagePassing(8, path_graph(5), heads=2, backend=backend)
    x, batch = torch.randn(0, 8), torch.zeros(0, dtype=torch.long)
    options = {"batch_size": 0, "return_attention_weights": return_attention_weights}
    out = labels(x, batch, **options)
    assert (out.states if return_attention_weights else out).shape == (0, 5, 8)
    no_edges = torch.zeros(2, 0, dtype=torch.long)
    assert labels(x, batch, batch_size=0, edge_index=no_edges).shape == (0, 5, 8)


def test_reset_parameters_draws_new_values():
    labels = LabelMessagePassing(256, path_graph(50), num_steps=1, norm="pre")
    assert labels.embedding.weight.std().item() == pytest.approx(1, rel=0.05)
    with torch.no_grad():
        for p in labels.parameters():
            p.fill_(0.5)
    labels.reset_parameters()
    assert not any((p == 0.5).all() for p in labels.parameters())


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: layer(num_steps=0), ValueError, "'num_steps' to be a whole number of at least 1"),
        (lambda: layer(heads=3), ValueError, "'heads' to divide 'channels' (got heads=3, "),
        (lambda: layer(LabelGraph(num_nodes=0)), ValueError, "'label_graph' to hold at least 1"),
        (lambda: LabelMessagePassing(path_graph(5), 8), TypeError, "'channels' to be a size or a"),
        (lambda: layer(edge_dim=3, flow="target_to_source"), TypeError, "(got edge_dim, flow)"),
        (lambda: layer(5), TypeError, "'label_graph' to be a LabelGraph"),
        (lambda: layer(torch.zeros(2, 0).long()), TypeError, "'label_graph' to be a LabelGraph"),
        (lambda: layer()(X, BATCH.flip(0)), ValueError, "'batch' in ascending order"),
        (lambda: layer()(X.unsqueeze(0), BATCH), ValueError, "'x' of shape [N, channels]"),
        (lambda: layer()(X[:, :5], BATCH), ValueError, "source states of shape [N, 8]"),
        (lambda: layer()(X, BATCH, max_num_nodes=3), ValueError, "'max_num_nodes' to be at least"),
    ],
)
def test_invalid_arguments_are_refused(make, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make()


LAYERS = {
    "known sizes": partial(LabelMessagePassing, (8, 8), path_graph(4)),
    "lazy": partial(LabelMessagePassing, (-1, 8), path_graph(4)),
    "features": partial(FeatureMessagePassing, 8),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_checkpointing_changes_nothing(dropout, name):
    x, batch = ragged([3, 2], 8)
    results = []
    for checkpointing in (False, True):
        torch.manual_seed(1)
        model = LAYERS[name](heads=2, dropout=dropout, checkpointing=checkpointing)
        out = model(x, batch)
        out.square().sum().backward()
        results.append([out, *(parameter.grad for parameter in model.parameters())])
    assert_close(results[1], results[0])


def test_checkpointing_saves_less_for_the_backward_pass():
    num_saved = []
    for checkpointing in (False, True):
        labels = LabelMessagePassing(8, path_graph(4), heads=2, checkpointing=checkpointing)
        x, batch = ragged([3, 2], 8)
        sizes = []
        hooks = torch.autograd.graph.saved_tensors_hooks
        with hooks(lambda t, sizes=sizes: sizes.append(t.numel()) or t, lambda t: t):
            labels(x, batch)
        num_saved.append(sum(sizes))
    assert num_saved[1] < num_saved[0] / 4


@pytest.mark.parametrize("kind", [torch.tensor(3), np.array("tree"), None])
@pytest.mark.parametrize("names", [np.array(["a", "b"]), ("a", "b"), torch.tensor([0, 1]), None])
def test_state_dicts_of_graphs_with_any_kind_and_names_are_loaded(names, kind):
    edge_index = torch.tensor([[0], [1]])
    labels = layer(Data(edge_index=edge_index, num_nodes=2, label_names=names, kind=kind))
    labels.load_state_dict(labels.state_dict())
