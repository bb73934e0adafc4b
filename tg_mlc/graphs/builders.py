"""Label graphs that need no knowledge of the labels."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tg_mlc.graphs.label_graph import LabelGraph, check_label_names

Labels = int | Sequence[str]


def fully_connected(labels: Labels, self_loops: bool = True) -> LabelGraph:
    r"""The complete label graph, the "fc" graph of the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper: every label attends to every label.

    Args:
        labels (int or list of str): The number of labels, or their names.
        self_loops (bool, optional): If set to :obj:`False`, a label does not attend to itself.
            (default: :obj:`True`)

    Raises:
        ValueError: If :obj:`labels` is neither a number nor a list of unique names.
    """
    num_labels, label_names = _resolve(labels)
    index = torch.arange(num_labels)
    edge_index = torch.stack([index.repeat(num_labels), index.repeat_interleave(num_labels)])
    graph = LabelGraph(edge_index, num_nodes=num_labels, label_names=label_names, kind="fully_connected")
    return graph if self_loops else graph.remove_self_loops()


def edgeless(labels: Labels) -> LabelGraph:
    r"""The label graph without messages between different labels, the "el" graph of the `"Neural Message Passing for
    Multi-Label Classification" <https://arxiv.org/abs/1904.08049>`_ paper: each label attends to itself only.

    Args:
        labels (int or list of str): The number of labels, or their names.

    Raises:
        ValueError: If :obj:`labels` is neither a number nor a list of unique names.
    """
    num_labels, label_names = _resolve(labels)
    edge_index = torch.arange(num_labels).expand(2, -1)
    return LabelGraph(edge_index, num_nodes=num_labels, label_names=label_names, kind="edgeless")


def _resolve(labels: Labels) -> tuple[int, list[str] | None]:
    if isinstance(labels, int) and not isinstance(labels, bool) and labels >= 0:
        return labels, None
    if isinstance(labels, int | str) or not isinstance(labels, Sequence):
        raise ValueError(f"Expected 'labels' to be a non-negative number of labels or a list of names (got {labels!r})")
    return len(labels), check_label_names(labels)
