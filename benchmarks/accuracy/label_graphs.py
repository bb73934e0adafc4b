"""Label graphs of rows, from recipes or learned, and how well scores of pairs recover a graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from benchmarks.accuracy.runs import Task
from tg_mlc.data import Split
from tg_mlc.graphs import LabelGraph, co_occurrence, learned
from tg_mlc.metrics import micro_average_precision, micro_roc_auc
from tg_mlc.training import MultiLabelDataModule, Training

#: The number of sources per label in a learned graph, but at most a quarter of all labels.
LEARNED_TOP_K = 10


def label_graph_of(
    task: Task, split: Split, seed: int, kind: str, node_messages: bool, options: dict[str, Any]
) -> LabelGraph:
    """The label graph of a row. A learned graph comes from a model trained along all pairs."""
    if kind != "learned":
        return task.recipe.label_graph(kind, task.dataset, split)
    complete = task.recipe.label_graph("complete", task.dataset, split)
    return learned_by(task, *task.train(split, seed, complete, node_messages, options))


def learned_by(task: Task, result: Training, data: MultiLabelDataModule) -> LabelGraph:
    """The graph of the largest attention in a model that was trained along all pairs of labels."""
    top_k = max(1, min(LEARNED_TOP_K, task.dataset.num_labels // 4))
    names = task.dataset.label_names
    return learned(result.module.model, data.train_dataloader(), top_k=top_k, label_names=names)


def mean_label_attention(model: nn.Module, loader: Iterable[Data]) -> Tensor:
    """Attention of each label (row) to each label (column), over samples, heads and steps."""
    return _weights(learned(model, loader))


def recovery(
    scores: Tensor, graph: LabelGraph, counted: Tensor | None = None
) -> dict[str, float | None]:
    """How well scores of label pairs find the pairs that a graph joins, by two metrics.

    The metrics are None for a graph that joins all pairs or none. Scores of both directions are
    averaged. Pairs of a label with itself, and labels that :obj:`counted` excludes, do not count.
    """
    adjacency = torch.zeros(graph.num_labels, graph.num_labels)
    adjacency[graph.edge_index[0], graph.edge_index[1]] = 1.0
    labels = torch.arange(graph.num_labels) if counted is None else counted.nonzero().flatten()
    row, column = labels[torch.triu_indices(labels.numel(), labels.numel(), offset=1)]
    y = torch.maximum(adjacency, adjacency.t())[row, column].unsqueeze(0)
    scores = ((scores + scores.t()) / 2)[row, column].unsqueeze(0)
    defined = bool(y.any()) and not bool(y.all())
    return {
        "ROC-AUC": micro_roc_auc(y, scores) if defined else None,
        "average precision": micro_average_precision(y, scores) if defined else None,
        "share of pairs joined": float(y.mean()),
    }


def co_occurrence_scores(
    y_train: Tensor, weight: Literal["count", "conditional", "correlation"]
) -> Tensor:
    """Co-occurrence of labels in training samples that know both, as a baseline for attention.

    A conditional probability is P(label of the row | label of the column).
    """
    if weight != "correlation":
        return _weights(co_occurrence(y_train, weight=weight))
    # tg_mlc.graphs.co_occurrence has no edge between labels that never occur together. Here such
    # pairs get their correlation, which is negative.
    positive, known = (y_train == 1).double(), (~y_train.isnan()).double()
    joint, num_known, row_count = positive.t() @ positive, known.t() @ known, positive.t() @ known
    column_count = row_count.t()
    variance = row_count * (num_known - row_count) * column_count * (num_known - column_count)
    return ((num_known * joint - row_count * column_count) / variance.sqrt()).nan_to_num().float()


def _weights(graph: LabelGraph) -> Tensor:
    """The weight of the edge to each label (row) from each label (column), or zero."""
    weights = torch.zeros(graph.num_labels, graph.num_labels)
    weights[graph.edge_index[1], graph.edge_index[0]] = graph.edge_weight
    return weights
