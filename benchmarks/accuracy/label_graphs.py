"""Label graphs of a row: those of a recipe, those that a model has learned, and how well these find known ones."""

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

#: How many sources a label keeps in the learned graph, if there are four times as many labels.
LEARNED_TOP_K = 10


def label_graph_of(
    task: Task, split: Split, seed: int, kind: str, node_messages: bool, options: dict[str, Any]
) -> LabelGraph:
    """The label graph of a variant; a learned one takes the training of a model along all pairs."""
    if kind != "learned":
        return task.recipe.label_graph(kind, task.dataset, split)
    return learned_by(
        task,
        *task.train(
            split,
            seed,
            task.recipe.label_graph("complete", task.dataset, split),
            node_messages,
            options,
        ),
    )


def learned_by(task: Task, result: Training, data: MultiLabelDataModule) -> LabelGraph:
    """The pairs of labels that a model trained along all pairs attended to most."""
    return learned(
        result.module.model,
        data.train_dataloader(),
        top_k=max(1, min(LEARNED_TOP_K, task.dataset.num_labels // 4)),
        label_names=task.dataset.label_names,
    )


def mean_label_attention(model: nn.Module, loader: Iterable[Data]) -> Tensor:
    """The attention that each label (row) pays to each label (column), averaged over samples, heads and steps."""
    return _weights(learned(model, loader))


def recovery(
    scores: Tensor, graph: LabelGraph, counted: Tensor | None = None
) -> dict[str, float | None]:
    """ROC-AUC and average precision of the scores of label pairs against the pairs that a graph joins; None for a graph
    that joins all pairs or none.

    Scores of both directions are averaged; a label with itself does not count, nor does a label left out by
    :obj:`counted`.
    """
    joined = torch.zeros(graph.num_labels, graph.num_labels)
    joined[graph.edge_index[0], graph.edge_index[1]] = 1.0
    kept = torch.arange(graph.num_labels) if counted is None else counted.nonzero().flatten()
    row, column = kept[torch.triu_indices(kept.numel(), kept.numel(), offset=1)]
    y = torch.maximum(joined, joined.t())[row, column].unsqueeze(0)
    scores = ((scores + scores.t()) / 2)[row, column].unsqueeze(0)
    both = bool(y.any()) and not bool(y.all())
    return {
        "ROC-AUC": micro_roc_auc(y, scores) if both else None,
        "average precision": micro_average_precision(y, scores) if both else None,
        "share of pairs joined": float(y.mean()),
    }


def co_occurrence_scores(
    y_train: Tensor, weight: Literal["count", "conditional", "correlation"]
) -> Tensor:
    """The rival: how often, or how tightly, two labels occur together in the training samples that know both; the
    conditional probability is that of a row given a column.
    """
    if weight != "correlation":
        return _weights(co_occurrence(y_train, weight=weight))
    # As tg_mlc.graphs.co_occurrence weighs its edges, and for the pairs without one too: those never occur together, so
    # that they are correlated negatively, not at zero.
    positive, known = (y_train == 1).double(), (~y_train.isnan()).double()
    both, n, of_row = positive.t() @ positive, known.t() @ known, positive.t() @ known
    of_column = of_row.t()
    spread = of_row * (n - of_row) * of_column * (n - of_column)
    return ((n * both - of_row * of_column) / spread.sqrt()).nan_to_num().float()


def _weights(graph: LabelGraph) -> Tensor:
    """The weight of the edge to each label (row) from each label (column), zero if there is none."""
    weights = torch.zeros(graph.num_labels, graph.num_labels)
    weights[graph.edge_index[1], graph.edge_index[0]] = graph.edge_weight
    return weights
