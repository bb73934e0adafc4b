"""Properties of label message passing over any batch and any label graph."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from tests.nn.samples import complete_edges, ragged
from tg_mlc.graphs import LabelGraph
from tg_mlc.nn import LabelMessagePassing

CLOSE = {"atol": 1e-9, "rtol": 1e-9}
sizes_of_samples = st.lists(st.integers(0, 6), min_size=1, max_size=5)
seeds = st.integers(0, 2**31)


def layer(num_labels, num_edges, seed):
    torch.manual_seed(seed)
    graph = LabelGraph(torch.randint(0, num_labels, (2, num_edges)), num_nodes=num_labels)
    return LabelMessagePassing(8, graph, num_steps=2, heads=2).double()


EDGES = {"num_labels": st.integers(1, 6), "num_edges": st.integers(0, 12)}
GIVEN = {"sizes": sizes_of_samples, "seed": seeds, **EDGES}


@settings(max_examples=20)
@given(**GIVEN)
def test_samples_of_a_batch_are_independent(sizes, num_labels, num_edges, seed):
    labels = layer(num_labels, num_edges, seed)
    x, batch = ragged(sizes, 8, seed, torch.float64)
    batched = labels(x, batch, batch_size=len(sizes))
    single = [labels(x[batch == i]) for i in range(len(sizes))]
    assert batched.isfinite().all()
    assert_close(batched, torch.cat(single), **CLOSE)


@settings(max_examples=20)
@given(**GIVEN)
def test_equivalent_arguments_give_the_same_states(sizes, num_labels, num_edges, seed):
    labels = layer(num_labels, num_edges, seed)
    x, batch = ragged(sizes, 8, seed, torch.float64)
    expected = labels(x, batch, batch_size=len(sizes))
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    assert_close(labels(x, ptr=ptr), expected, **CLOSE)
    more_padding = labels(x, ptr=ptr, max_num_nodes=max(sizes) + 3)
    assert_close(more_padding, expected, **CLOSE)
    more_samples = labels(x, batch, batch_size=len(sizes) + 2)
    assert_close(more_samples[:-2], expected, **CLOSE)
    edges = complete_edges(batch, num_labels)
    shuffled = edges[:, torch.randperm(edges.size(1))]
    assert_close(labels(x, ptr=ptr, edge_index=shuffled), expected, **CLOSE)
    assert_close(labels(x, ptr=ptr, return_attention_weights=True).states, expected, **CLOSE)


@settings(max_examples=20)
@given(**GIVEN)
def test_the_order_of_components_does_not_matter(sizes, num_labels, num_edges, seed):
    labels = layer(num_labels, num_edges, seed)
    x, batch = ragged(sizes, 8, seed, torch.float64)
    order = torch.argsort(batch + torch.rand(batch.numel()) * 0.9)  # Samples stay in order.
    expected = labels(x, batch, batch_size=len(sizes))
    assert_close(labels(x[order], batch, batch_size=len(sizes)), expected, **CLOSE)
