from dataclasses import replace
from threading import Thread

import pytest
import torch
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

import tg_mlc
from tests.ops.random_patterns import ptr, random_edges, tensors
from tests.requirements import FULL_GRAPH
from tg_mlc.ops import Blocks, Shared, explain_choice, graph_attention
from tg_mlc.ops.attention import registry

BLOCKS = Blocks(ptr([2, 2]), ptr([3, 2]))
SHARED = Shared(random_edges(5, 5, 12, seed=0), 2)


def chosen(pattern=SHARED):
    return explain_choice(*tensors(pattern), pattern).split(":")[0]


@pytest.fixture(autouse=True)
def _as_before():
    """Checks that every test leaves the choice of backends as it was."""
    before = chosen()
    yield
    assert chosen() == before not in ("reference", "scatter")


def test_blocks_of_set_backend_may_be_nested_and_entered_again():
    reference = tg_mlc.set_backend("reference")
    with reference:
        with tg_mlc.set_backend("scatter"):
            assert chosen() == "scatter"
        assert chosen() == "reference"
    with reference:
        with reference:
            pass
        assert chosen() == "reference"


def test_leaving_a_block_restores_the_backend_that_was_set_on_entry():
    reference, scatter = tg_mlc.set_backend("reference"), tg_mlc.set_backend("scatter")
    with reference:
        assert chosen() == "reference"
    assert chosen() == "scatter"
    with scatter:
        pass


def test_blocks_may_be_left_in_any_order():
    reference, scatter = tg_mlc.set_backend("reference"), tg_mlc.set_backend("scatter")
    reference.__enter__()
    scatter.__enter__()
    reference.__exit__()
    assert chosen() == "scatter"
    scatter.__exit__()


def test_set_backend_holds_until_the_next_call():
    tg_mlc.set_backend("reference")
    try:
        assert chosen() == "reference"
    finally:
        tg_mlc.set_backend("auto")


def test_a_checkpoint_is_recomputed_in_another_thread_with_the_same_backend(monkeypatch):
    names = []
    for name in ("dense", "scatter"):
        backend = registry.BACKENDS[name]
        recorded = replace(
            backend,
            run=lambda call, backend=backend: names.append(backend.name) or backend.run(call),
        )
        monkeypatch.setitem(registry.BACKENDS, name, recorded)
    query = torch.randn(10, 2, 4, requires_grad=True)
    with tg_mlc.set_backend("scatter"):
        out = checkpoint(
            lambda query: graph_attention(query, query, query, SHARED), query, use_reentrant=False
        )
        backward = Thread(target=out.sum().backward)
        backward.start()
        backward.join()
    assert names == ["scatter", "scatter"]
    assert query.grad is not None


def test_the_first_backend_that_does_not_refuse_is_taken_unless_an_argument_names_one():
    with tg_mlc.set_backend("blocks", "scatter"):
        assert (chosen(BLOCKS), chosen(SHARED)) == ("blocks", "scatter")
    with tg_mlc.set_backend("blocks"):
        with pytest.raises(ValueError, match=r"None of the backends that were set .*: blocks:"):
            graph_attention(*tensors(SHARED), SHARED)
        assert graph_attention(*tensors(SHARED), SHARED, backend="dense").shape == (10, 2, 4)


def attend(query):
    return graph_attention(query, query, query, SHARED)


def test_compiled_models_notice_a_change_of_backends():
    SHARED.graph.prepare()
    query = torch.randn(10, 2, 4)
    compiled = torch.compile(attend, fullgraph=FULL_GRAPH, backend="aot_eager")
    expected = compiled(query)
    with tg_mlc.set_backend("scatter"):
        assert_close(compiled(query), expected)
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(query)
        with tg_mlc.set_backend("scatter"):
            compiled(query)
        with tg_mlc.set_backend("reference"), pytest.raises(RuntimeError, match="recompile"):
            compiled(query)


def test_a_compiled_model_may_set_its_backend():
    def by_scatter(query):
        with tg_mlc.set_backend("scatter"):
            return attend(query)

    SHARED.graph.prepare()
    query = torch.randn(10, 2, 4)
    compiled = torch.compile(by_scatter, fullgraph=FULL_GRAPH, backend="aot_eager")
    assert_close(compiled(query), by_scatter(query))


def test_invalid_backends_and_attributes_are_refused():
    with pytest.raises(ValueError, match=r"'backend' to be 'auto' or one of .* \(got 'fastest'\)"):
        tg_mlc.set_backend("fastest")
    with pytest.raises(ValueError, match=r"Expected backends or 'auto'"):
        tg_mlc.set_backend("auto", "dense")
    with pytest.raises(AttributeError, match="no attribute 'get_backend'"):
        tg_mlc.get_backend  # noqa: B018
