"""A block plans once for inputs of one shape, again after a change, and explains its choice."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch_geometric import EdgeIndex
from torch_geometric.nn import Linear

import tg_mlc
from tg_mlc.nn import AttentionConv, _plan
from tg_mlc.ops import Blocks, Edges, Shared

EDGE_INDEX = torch.tensor([[1, 2, 0, 4, 1, 3], [0, 0, 1, 1, 2, 2]])
X = torch.randn(5, 8)


@pytest.fixture
def decided(monkeypatch):
    """Records every plan."""
    calls = []
    decide = _plan._decide

    def spy(*args):
        calls.append(decide(*args))
        return calls[-1]

    monkeypatch.setattr(_plan, "_decide", spy)
    return calls


def hook_on_all_modules(conv):
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    conv.remove_it = handle.remove  # type: ignore[assignment]


CHANGES = {
    "hook": lambda conv: conv.mlp[0].register_forward_hook(lambda *_: None),
    "hook on all modules": hook_on_all_modules,
    "module": lambda conv: setattr(conv, "lin_out", nn.Linear(8, 8)),
    "mode": lambda conv: conv.eval(),
    "backend": lambda conv: setattr(conv, "backend", "dense"),
    "hook on messages": lambda conv: conv.register_message_forward_hook(lambda *_: None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_plan_holds_until_something_changes(change, decided):
    conv = AttentionConv(8, heads=2, dropout=0.5)
    edges = EdgeIndex(EDGE_INDEX, sparse_size=(5, 5), sort_order="col")
    conv(X, edges)
    conv(X + 1, edges)
    assert len(decided) == 1
    CHANGES[change](conv)
    try:
        conv(X, edges)
    finally:
        getattr(conv, "remove_it", lambda: None)()
    assert len(decided) == 2
    conv(X[:4], EDGE_INDEX[:, :2])
    assert len(decided) == 3


def test_backends_dtypes_and_modes_have_their_own_plans(decided):
    conv, edges = AttentionConv(8, heads=2), Edges(EDGE_INDEX, 5, 5)
    conv(X, edges)
    with tg_mlc.set_backend("scatter"):
        conv(X, edges)
        assert "the operator by scatter" in conv.explain_choice()
    with torch.autocast("cpu", torch.bfloat16):
        conv(X, edges)
    conv.double()(X.double(), edges)
    assert len(decided) == 4
    conv.float()(X, edges)
    assert len(decided) == 4
    torch.func.jvp(lambda x: conv(x, edges), (X,), (X,))
    assert len(decided) == 5  # Plans under forward mode are not kept.
    torch.func.jvp(lambda x: conv(x, edges), (X,), (X,))
    assert len(decided) == 6


def test_the_number_of_plans_is_limited():
    conv = AttentionConv(8, heads=2)
    for size in range(1, _plan.MAX_PLANS + 9):
        ptr = torch.tensor([0, size])
        conv(torch.randn(size, 8), Blocks(ptr, ptr))
    assert len(conv._plans) <= _plan.MAX_PLANS


def test_a_layer_explains_its_last_choice():
    conv = AttentionConv(8, heads=2)
    with pytest.raises(RuntimeError, match="a call of the layer before"):
        conv.explain_choice()
    conv(X, EDGE_INDEX)
    assert "messages one by one, along a list of edges" in conv.explain_choice()
    conv(X, Shared(EDGE_INDEX, 1, num_nodes=5))
    assert "the operator by dense: Shared(" in conv.explain_choice()
    ptr = torch.tensor([0, 50, 100])
    conv(torch.randn(100, 8), Blocks(ptr, ptr))
    assert "not folded, as that would take more multiplications" in conv.explain_choice()
    conv(torch.randn(100, 8), Blocks(ptr, ptr), return_attention_weights=True)
    assert "the operator by dense" in conv.explain_choice()
    conv.lin_out.register_forward_hook(lambda *_: None)
    conv(X, EDGE_INDEX)
    assert "residual branch of the attention: step by step" in conv.explain_choice()


def test_plans_can_be_copied_and_pickled():
    conv = AttentionConv(8, heads=2)
    expected = conv(X, Edges(EDGE_INDEX, 5, 5))
    for copied in (copy.deepcopy(conv), pickle.loads(pickle.dumps(conv))):
        assert torch.equal(copied(X, Edges(EDGE_INDEX, 5, 5)), expected)
        assert copied.explain_choice() == conv.explain_choice()


def test_states_that_do_not_fit_the_pattern_are_refused():
    with pytest.raises(ValueError, match=r"that match Edges\(.*\) \(got 5 and 5\)"):
        AttentionConv(8, heads=2)(X, Edges(EDGE_INDEX, 6, 5))


def test_layers_whose_sizes_do_not_fit_are_not_fused():
    pytest.importorskip("numba", reason="Numba is not installed")
    assert _plan.not_fused(6, Linear(8, 8), nn.LayerNorm(8)) is None
    mismatched = nn.Sequential(Linear(8, 4), nn.ReLU(), Linear(5, 8))
    for layers, norm in ((Linear(8, 6), 8), (mismatched, 8)):
        assert _plan.not_fused(6, layers, nn.LayerNorm(norm)) == "its sizes do not fit"
    assert "no rows" in (_plan.not_fused(0, Linear(8, 8), nn.LayerNorm(8)) or "")
