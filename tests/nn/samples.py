"""Small ragged batches and label graphs, for the tests of the layers."""

import io

import torch

from tg_mlc.graphs import LabelGraph


def ragged(sizes, channels, seed=0, dtype=torch.float32):
    """Returns states of components, and the index of the sample of every component."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(sum(sizes), channels, generator=generator, dtype=dtype)
    return x, torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))


def path_graph(num_labels):
    """Returns a path with self-loops, without edges at the last label."""
    index = torch.arange(num_labels - 1)
    edge_index = torch.cat([torch.stack([index[:-1], index[1:]]), index.expand(2, -1)], dim=1)
    return LabelGraph(edge_index, num_nodes=num_labels)


def complete_edges(batch, num_labels):
    """Returns edges from every component to all labels, in the order of the labels."""
    labels = torch.arange(num_labels).repeat_interleave(batch.numel())
    return torch.stack([torch.arange(batch.numel()).repeat(num_labels), labels])


def through_a_file(stored, weights_only=True):
    """Returns a copy that was saved to a file in memory and loaded again."""
    file = io.BytesIO()
    torch.save(stored, file)
    file.seek(0)
    return torch.load(file, weights_only=weights_only)
