"""How the data set with a planted label graph is trained."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch_geometric.data import Data, Dataset

from tg_mlc.data import Split
from tg_mlc.datasets import MultiLabelDataset, Planted
from tg_mlc.graphs import LabelGraph, co_occurrence
from tg_mlc.models import LaMP
from tg_mlc.models._start import with_encoder
from tg_mlc.nn.encoders import NodeEncoder
from tg_mlc.recipes.recipe import Recipe

#: The shares of information that neighbours carry, by the name of the data set.
SHARES = {f"planted-{percent}": percent / 100 for percent in (0, 25, 50, 75)}


def _load(share: float, root: Path) -> Planted:
    return Planted(share=share)


def _redraw(share: float, seed: int) -> Planted:
    return Planted(share=share, seed=seed)


def _split(dataset: MultiLabelDataset, method: str, seed: int) -> Split:
    return dataset.official_split()


def _true_graph(dataset: MultiLabelDataset, split: Split) -> LabelGraph:
    return cast(Planted, dataset).true_graph


def _co_occurrence(dataset: MultiLabelDataset, split: Split) -> LabelGraph:
    return co_occurrence(dataset, weight="correlation", top_k=3, split=split)


def node_lamp(train: Dataset, label_graph: Data, encoder: str = "emb", *, channels: int = 32, **kwargs: Any) -> LaMP:
    r"""Builds a :class:`~tg_mlc.models.LaMP` whose components are nodes with features.

    Args:
        train (Dataset): The training samples, which give the frequency of every label.
        label_graph (LabelGraph): The label graph.
        encoder (str, optional): :obj:`"emb"` or :obj:`"fmp"`. (default: :obj:`"emb"`)
        channels (int, optional): Size of all states. (default: :obj:`32`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.
    """
    model = LaMP(NodeEncoder(train[0].x.size(1), channels), label_graph, **with_encoder(encoder, kwargs))
    model.readout.start_from_frequencies(torch.cat([data.y for data in train]))
    return model


PLANTED = {
    name: Recipe(
        load=partial(_load, share),
        split=_split,
        splits=("official",),
        graphs={"pr": _co_occurrence, "planted": _true_graph},
        build=node_lamp,
        model={"num_steps": 1, "heads": 4, "dropout": 0.0},
        module={"lr": 5e-3, "weight_decay": 0.01, "decay": "cosine", "warmup": 0.1},
        fit={"max_epochs": 40, "patience": None},
        batch_size=64,
        published={"model": {"num_steps": 2, "dropout": 0.1}},
        redraw=partial(_redraw, share),
    )
    for name, share in SHARES.items()
}
