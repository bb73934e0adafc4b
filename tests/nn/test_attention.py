import re

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.testing import assert_close

from tests.nn.samples import ragged
from tg_mlc.nn import AttentionConv
from tg_mlc.ops import Blocks, Edges

SIZES = ("heads", "mlp_channels", "head_channels", "value_channels")
DROPOUTS = ("dropout", "attention_dropout")
EDGE_INDEX = torch.tensor([[0, 1, 2, 2, 0], [1, 0, 1, 2, 2]])  # nothing reaches node 3


def restated(conv, source, target, edge_index):
    """Computes the paper's equations by target, head and edge, in double precision."""
    weights = {name: p.detach().double().numpy() for name, p in conv.state_dict().items()}
    x, u = source.detach().double().numpy(), target.detach().double().numpy()
    size = u.shape[1] // conv.heads
    out = np.empty_like(u)
    for i in range(len(u)):
        neighbours = edge_index[0, edge_index[1] == i].tolist()
        heads = []
        for k in range(conv.heads):
            rows = slice(k * size, (k + 1) * size)
            query = weights["lin_query.weight"][rows] @ u[i]
            keys = [weights["lin_key.weight"][rows] @ x[j] for j in neighbours]
            scores = np.array([query @ key for key in keys]) * conv.scale
            alpha = np.exp(scores) / np.exp(scores).sum()
            values = [weights["lin_value.weight"][rows] @ x[j] for j in neighbours]
            heads.append(sum((a * v for a, v in zip(alpha, values, strict=True)), np.zeros(size)))
        m = u[i] + weights["lin_out.weight"] @ np.concatenate(heads)
        m = normalised(m, weights["attention_norm.weight"], weights["attention_norm.bias"])
        hidden = np.maximum(weights["mlp.0.weight"] @ m + weights["mlp.0.bias"], 0)
        out[i] = m + weights["mlp.2.weight"] @ hidden + weights["mlp.2.bias"]
        out[i] = normalised(out[i], weights["mlp_norm.weight"], weights["mlp_norm.bias"])
    return out


def normalised(x, weight, bias):
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5) * weight + bias


def randomised(conv):
    """Draws every parameter, so that no bias is zero and no normalisation the identity."""
    with torch.no_grad():
        for parameter in conv.parameters():
            parameter.normal_()
    return conv


@pytest.mark.parametrize("mlp_channels", [None, 5])
@pytest.mark.parametrize("scale", [None, 8**-0.5])
@pytest.mark.parametrize("structured", [False, True])
def test_the_block_equals_the_equations(mlp_channels, scale, structured):
    conv = randomised(AttentionConv(8, heads=2, mlp_channels=mlp_channels, scale=scale)).double()
    x = torch.randn(4, 8, dtype=torch.float64)
    out = conv(x, Edges(EDGE_INDEX, 4, 4) if structured else EDGE_INDEX)
    assert_allclose(out.detach().numpy(), restated(conv, x, x, EDGE_INDEX), rtol=1e-10, atol=1e-10)


def test_source_and_target_states_may_have_other_sizes():
    conv = randomised(AttentionConv((5, 8), heads=4)).double()
    assert str(conv) == "AttentionConv((5, 8), heads=4)"
    x, u = torch.randn(3, 5, dtype=torch.float64), torch.randn(4, 8, dtype=torch.float64)
    out = conv((x, u), EDGE_INDEX)
    assert out.size() == (4, 8)
    assert_allclose(out.detach().numpy(), restated(conv, x, u, EDGE_INDEX), rtol=1e-10, atol=1e-10)
    assert_close(conv((x, u), Edges(EDGE_INDEX, 4, 3)), out)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_attending_to_projected_sources_equals_the_block(norm):
    conv = AttentionConv(8, heads=2, norm=norm, value_channels=3, bias=True)
    u, x = torch.randn(6, 8), torch.randn(2, 4, 8)
    key, value = (states.view(2, 4, 2, -1) for states in conv.project(x.flatten(end_dim=1)))
    mask = torch.tensor([[True, True, True, True], [True, True, False, False]])
    expected = conv((x[mask], u), Blocks(torch.tensor([0, 3, 6]), torch.tensor([0, 4, 6])))
    assert_close(conv.attend(u, key, value, mask), expected)
    assert_close(conv.attend(u[:3], key[:1], value[:1]), expected[:3])


def test_target_to_source_equals_flipped_edges():
    conv = AttentionConv((5, 8), heads=2)
    flipped = AttentionConv((5, 8), heads=2, flow="target_to_source")
    flipped.load_state_dict(conv.state_dict())
    x = (torch.randn(3, 5), torch.randn(4, 8))
    assert_close(flipped(x, EDGE_INDEX.flip(0)), conv(x, EDGE_INDEX))


def test_lazy_sizes_come_from_the_first_call():
    conv = AttentionConv((-1, 8), heads=2)
    assert str(conv) == "AttentionConv((-1, 8), heads=2)"
    assert conv((torch.randn(3, 5), torch.randn(4, 8)), EDGE_INDEX).size() == (4, 8)
    assert conv.lin_key.weight.size() == (8, 5)
    structured = AttentionConv((-1, 8), heads=2)
    states = (torch.randn(3, 6), torch.randn(4, 8))
    assert structured(states, Edges(EDGE_INDEX, 4, 3)).size() == (4, 8)


def test_reset_parameters_draws_new_values():
    conv = randomised(AttentionConv(8, heads=2, bias=True, edge_dim=3))
    original = {name: p.clone() for name, p in conv.named_parameters()}
    conv.reset_parameters()
    assert all(not torch.equal(p, original[name]) for name, p in conv.named_parameters())
    assert (conv.mlp_norm.weight == 1).all()
    assert (conv.lin_query.bias == 0).all()


def test_parameters_follow_the_options():
    plain, biased = AttentionConv(8, heads=2), AttentionConv(8, heads=2, mlp_channels=20, bias=True)
    assert str(plain) == "AttentionConv(8, heads=2)"
    added = dict(biased.named_parameters()).keys() - dict(plain.named_parameters()).keys()
    assert added == {f"lin_{name}.bias" for name in ("query", "key", "value", "out")}
    assert [tuple(p.shape) for p in biased.mlp.parameters()] == [(20, 8), (20,), (8, 20), (8,)]
    assert plain.mlp[0].out_channels == 8
    conv = AttentionConv(8, heads=3, head_channels=5, value_channels=2)
    assert conv.scale == pytest.approx(5**-0.5)
    x = torch.randn(4, 8)
    assert_close(conv(x, Edges(EDGE_INDEX, 4, 4)), conv(x, EDGE_INDEX))


def test_post_norm_normalises_outputs_and_pre_norm_inputs():
    x = torch.randn(4, 8)
    post, pre = AttentionConv(8, heads=2), AttentionConv(8, heads=2, norm="pre")
    out = post(x, EDGE_INDEX)
    assert_close(out.mean(dim=-1), torch.zeros(4), atol=1e-5, rtol=0)
    assert_close(out.var(dim=-1, unbiased=False), torch.ones(4), atol=1e-3, rtol=0)

    with torch.no_grad():
        pre.mlp[2].weight.zero_()
        pre.mlp[2].bias.zero_()
    # With pre-norm, attention adds the same to states that are scaled and shifted.
    rescaled = 3 * x + 1
    assert_close(pre(x, EDGE_INDEX) - x, pre(rescaled, EDGE_INDEX) - rescaled, atol=1e-3, rtol=0)
    assert_close(pre(x, EDGE_INDEX)[3], x[3])  # nothing reaches node 3


@pytest.mark.parametrize(
    "edges", [EDGE_INDEX, Edges(EDGE_INDEX, 4, 4)], ids=["edge_index", "pattern"]
)
@pytest.mark.parametrize(
    "rates", [{"dropout": 0.5}, {"attention_dropout": 0.5}, {"dropout": 0, "attention_dropout": 0}]
)
def test_dropout_is_random_in_training_only(edges, rates):
    conv = AttentionConv(8, heads=2, **rates)
    x = torch.randn(4, 8)
    assert torch.equal(conv(x, edges), conv(x, edges)) is not any(p > 0 for p in rates.values())
    conv.eval()
    assert torch.equal(conv(x, edges), conv(x, edges))


def test_edge_features_change_the_target_of_their_edge():
    conv = AttentionConv(8, heads=2, edge_dim=3)
    x, edge_attr = torch.randn(4, 8), torch.randn(5, 3)
    out = conv(x, EDGE_INDEX, edge_attr)
    perm = torch.randperm(5)
    assert_close(conv(x, EDGE_INDEX[:, perm], edge_attr[perm]), out)
    changed = edge_attr.clone()
    changed[0] += 1  # the edge into node 1
    assert (conv(x, EDGE_INDEX, changed) - out).abs().sum(dim=1).nonzero().tolist() == [[1]]
    with pytest.raises(ValueError, match=r"'edge_attr' exactly .* \(got None, edge_dim=3\)"):
        conv(x, EDGE_INDEX)
    with pytest.raises(ValueError, match=r"exactly if 'edge_dim' was given \(got \[5, 3\]"):
        AttentionConv(8, heads=2)(x, EDGE_INDEX, edge_attr)
    with pytest.raises(ValueError, match=r"'edge_attr' only beside an edge list \(got a Pattern\)"):
        conv(x, Edges(EDGE_INDEX, 4, 4), edge_attr)


def test_attention_weights_sum_to_one():
    conv = AttentionConv(8, heads=2, attention_dropout=0.5)
    x = torch.randn(4, 8)
    pattern = Edges(EDGE_INDEX, 4, 4)
    _, (edge_index, weights) = conv(x, EDGE_INDEX, return_attention_weights=True)
    _, (returned, pattern_weights) = conv(x, pattern, return_attention_weights=True)
    assert edge_index is EDGE_INDEX
    assert returned is pattern
    assert_close(pattern_weights, weights)
    total = torch.zeros(4, 2).index_add(0, EDGE_INDEX[1], weights)
    assert_close(total, torch.tensor([1.0, 1.0, 1.0, 0.0]).unsqueeze(-1).expand(-1, 2))
    assert conv._alpha is None


def test_num_copies_repeats_the_targets():
    conv = AttentionConv((5, 8), heads=2)
    (x, _), u = ragged([2, 3], 5), torch.randn(4, 8)
    blocks = Blocks(torch.tensor([0, 4, 8]), torch.tensor([0, 2, 5]))
    assert_close(conv((x, u), blocks, num_copies=2), conv((x, u.repeat(2, 1)), blocks))
    edge_index = blocks.to_edge_index()
    assert_close(conv((x, u), edge_index, num_copies=2), conv((x, u.repeat(2, 1)), edge_index))


@pytest.mark.parametrize("structured", [False, True])
def test_gradients_equal_finite_differences(structured):
    conv = randomised(AttentionConv((2, 4), heads=2)).double()
    edges = Edges(EDGE_INDEX, 4, 3) if structured else EDGE_INDEX
    x = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in ((3, 2), (4, 4))]
    names, parameters = zip(*conv.named_parameters(), strict=True)

    def run(source, target, *values):
        weights = dict(zip(names, values, strict=True))
        return torch.func.functional_call(conv, weights, ((source, target), edges))

    assert torch.autograd.gradcheck(run, (*x, *parameters))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"heads": 3}, ValueError, "'heads' to divide 'channels' (got heads=3, channels=8)"),
        ({"channels": -1}, ValueError, "'channels' to be at least 1, or -1 for a source's"),
        ({"channels": "8"}, TypeError, "'channels' to be a size or a pair of sizes (got str)"),
        ({"norm": "batch"}, ValueError, "'norm' to be one of post, pre (got 'batch')"),
        ({"value_channels": 3, "edge_dim": 1}, ValueError, "'value_channels' to equal"),
        ({"backend": "fastest"}, ValueError, "'backend' to be 'auto' or one of"),
        ({"concat": True}, TypeError, "value_channels (got concat)"),
        *(
            ({name: 0}, ValueError, f"'{name}' to be a whole number of at least 1")
            for name in SIZES
        ),
        *(({name: -0.1}, ValueError, f"'{name}' to be a number in [0, 1]") for name in DROPOUTS),
        *(({name: 1.5}, ValueError, f"'{name}' to be a number in [0, 1]") for name in DROPOUTS),
    ],
    ids=str,
)
def test_invalid_options_are_refused(options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        AttentionConv(**{"channels": 8, **options})


def test_states_of_another_type_are_refused():
    with pytest.raises(TypeError, match=r"source states in torch.float32, as the parameters are"):
        AttentionConv(8)(torch.randn(4, 8).double(), EDGE_INDEX)
