"""Label graphs of a row: those of a recipe, and those that a model has learned."""

from __future__ import annotations

from typing import Any

from benchmarks.accuracy.runs import Task
from tg_mlc.data import Split
from tg_mlc.graphs import LabelGraph, learned
from tg_mlc.papers.recipes import EncoderName
from tg_mlc.training import FitResult, MultiLabelDataModule

#: How many sources a label keeps in the learned graph, if there are four times as many labels.
LEARNED_TOP_K = 10


def label_graph_of(
    task: Task, split: Split, seed: int, kind: str, encoder: EncoderName, options: dict[str, Any]
) -> LabelGraph:
    """The label graph of a variant; a learned one takes the training of a model along all pairs."""
    if kind != "learned":
        return task.recipe.label_graph(kind, task.dataset, split)
    return learned_by(
        task, *task.train(split, seed, task.recipe.label_graph("fc", task.dataset, split), encoder, options)
    )


def learned_by(task: Task, result: FitResult, data: MultiLabelDataModule) -> LabelGraph:
    """The pairs of labels that a model trained along all pairs attended to most."""
    return learned(
        result.module.model,
        data.train_dataloader(),
        top_k=max(1, min(LEARNED_TOP_K, task.dataset.num_labels // 4)),
        label_names=task.dataset.label_names,
    )
