from __future__ import annotations

from dataclasses import replace
from threading import Thread

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import tg_mlc
from tests.ops.random_patterns import ptr, random_edges
from tg_mlc.ops import Blocks, Shared, explain_choice, graph_attention
from tg_mlc.ops.attention import registry

BLOCKS = Blocks(ptr([2, 2]), ptr([3, 2]))
SHARED = Shared(random_edges(5, 5, 12, seed=0), 2)


def tensors(num_queries: int, num_keys: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.randn(num_queries, 2, 4), torch.randn(num_keys, 2, 4), torch.randn(num_keys, 2, 4)


def test_set_backend_holds_within_its_block() -> None:
    before = explain_choice(*tensors(10, 10), SHARED)
    with tg_mlc.set_backend("reference"):
        assert explain_choice(*tensors(10, 10), SHARED).startswith("reference: Shared")
        with tg_mlc.set_backend("scatter"):
            assert explain_choice(*tensors(10, 10), SHARED).startswith("scatter: Shared")
        assert explain_choice(*tensors(10, 10), SHARED).startswith("reference: Shared")
    assert explain_choice(*tensors(10, 10), SHARED) == before


def test_a_block_may_be_entered_again() -> None:
    reference = tg_mlc.set_backend("reference")
    with reference:
        pass
    with reference:
        assert explain_choice(*tensors(10, 10), SHARED).startswith("reference: Shared")


def test_a_block_may_be_entered_within_itself() -> None:
    before = explain_choice(*tensors(10, 10), SHARED)
    reference = tg_mlc.set_backend("reference")
    with reference:
        with reference:
            pass
        assert explain_choice(*tensors(10, 10), SHARED).startswith("reference: Shared")
    assert explain_choice(*tensors(10, 10), SHARED) == before


def test_a_block_that_is_entered_late_gives_back_what_was_set_meanwhile() -> None:
    before = explain_choice(*tensors(10, 10), SHARED)
    reference, scatter = tg_mlc.set_backend("reference"), tg_mlc.set_backend("scatter")
    with reference:
        assert explain_choice(*tensors(10, 10), SHARED).startswith("reference: Shared")
    assert explain_choice(*tensors(10, 10), SHARED).startswith("scatter: Shared")
    with scatter:
        pass
    assert explain_choice(*tensors(10, 10), SHARED) == before


def test_blocks_may_be_left_in_any_order_as_those_of_threads_are() -> None:
    before = explain_choice(*tensors(10, 10), SHARED)
    reference, scatter = tg_mlc.set_backend("reference"), tg_mlc.set_backend("scatter")
    reference.__enter__()
    scatter.__enter__()
    reference.__exit__()
    assert explain_choice(*tensors(10, 10), SHARED).startswith("scatter: Shared")
    scatter.__exit__()
    assert explain_choice(*tensors(10, 10), SHARED) == before


def test_a_checkpoint_is_computed_anew_in_another_thread_with_the_same_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    dense = registry.BACKENDS["dense"]
    scatter = registry.BACKENDS["scatter"]
    for backend in (dense, scatter):
        watched = replace(backend, run=lambda call, backend=backend: taken.append(backend.name) or backend.run(call))
        monkeypatch.setitem(registry.BACKENDS, backend.name, watched)
    query = torch.randn(10, 2, 4, requires_grad=True)
    with tg_mlc.set_backend("scatter"):
        out = checkpoint(lambda query: graph_attention(query, query, query, SHARED), query, use_reentrant=False)
        backward = Thread(target=out.sum().backward)
        backward.start()
        backward.join()
    assert taken == ["scatter", "scatter"]
    assert query.grad is not None


def test_set_backend_holds_until_it_is_set_anew() -> None:
    before = explain_choice(*tensors(10, 10), SHARED)
    tg_mlc.set_backend("reference")
    try:
        assert explain_choice(*tensors(10, 10), SHARED).startswith("reference: Shared")
    finally:
        tg_mlc.set_backend("auto")
    assert explain_choice(*tensors(10, 10), SHARED) == before


def test_of_several_backends_the_first_that_does_not_refuse_is_taken() -> None:
    with tg_mlc.set_backend("blocks", "scatter"):
        assert explain_choice(*tensors(4, 5), BLOCKS).startswith("blocks: Blocks")
        assert explain_choice(*tensors(10, 10), SHARED).startswith("scatter: Shared")
    with (
        tg_mlc.set_backend("blocks"),
        pytest.raises(ValueError, match=r"None of the backends that were set .*: blocks: only for Blocks"),
    ):
        graph_attention(*tensors(10, 10), SHARED)


def test_an_argument_beats_what_was_set() -> None:
    with tg_mlc.set_backend("blocks"):
        out = graph_attention(*tensors(10, 10), SHARED, backend="dense")
    assert out.shape == (10, 2, 4)


def test_compiled_models_notice() -> None:
    class Attention(nn.Module):
        def forward(self, query: torch.Tensor) -> torch.Tensor:
            return graph_attention(query, query, query, SHARED)

    SHARED.graph.prepare()
    query = torch.randn(10, 2, 4)
    compiled = torch.compile(Attention(), fullgraph=True, backend="aot_eager")
    expected = compiled(query)
    with tg_mlc.set_backend("scatter"):
        torch.testing.assert_close(compiled(query), expected)
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(query)
        with tg_mlc.set_backend("scatter"):
            compiled(query)
        with tg_mlc.set_backend("reference"), pytest.raises(RuntimeError, match="recompile"):
            compiled(query)


def test_a_compiled_model_may_set_its_backend() -> None:
    def attend(query: torch.Tensor) -> torch.Tensor:
        with tg_mlc.set_backend("scatter"):
            return graph_attention(query, query, query, SHARED)

    SHARED.graph.prepare()
    before, query = explain_choice(*tensors(10, 10), SHARED), torch.randn(10, 2, 4)
    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(query), attend(query))
    assert explain_choice(*tensors(10, 10), SHARED) == before


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"'backend' to be 'auto' or one of .* \(got 'fastest'\)"):
        tg_mlc.set_backend("fastest")
    with pytest.raises(ValueError, match=r"Expected backends or 'auto'"):
        tg_mlc.set_backend("auto", "dense")
    with pytest.raises(AttributeError, match="no attribute 'get_backend'"):
        tg_mlc.get_backend  # noqa: B018
