"""How data sets of DNA are trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch
from torch_geometric.data import Data

from tg_mlc.data import Split
from tg_mlc.datasets import BindingSites, MultiLabelDataset
from tg_mlc.graphs import LabelGraph
from tg_mlc.models import LaMP
from tg_mlc.models._start import with_encoder
from tg_mlc.nn.encoders import DNAEncoder
from tg_mlc.recipes.recipe import Recipe

#: Interactions of the five factors with a combined score of at least 800 in STRING v12.0 (https://string-db.org,
#: CC BY 4.0), as ``string_ppi`` finds them in STRING's files.
INTERACTIONS = (
    ("CTCF", "EP300"),
    ("CTCF", "RAD21"),
    ("CTCF", "SIN3A"),
    ("EP300", "JUND"),
    ("EP300", "SIN3A"),
    ("JUND", "RAD21"),
)


def _load(root: Path) -> BindingSites:
    return BindingSites(root / "binding-sites")


def _split(dataset: MultiLabelDataset, method: str, seed: int) -> Split:
    return dataset.official_split()


def _string(dataset: MultiLabelDataset, split: Split) -> LabelGraph:
    place = {name: i for i, name in enumerate(dataset.label_names)}
    pairs = torch.tensor([[place[a], place[b]] for a, b in INTERACTIONS]).t()
    edge_index = torch.cat([pairs, pairs.flip(0)], dim=1)
    graph = LabelGraph(edge_index, label_names=dataset.label_names, kind="string_ppi", source="STRING v12.0, 800")
    return graph.add_self_loops()


def dna_lamp(
    train: MultiLabelDataset,
    label_graph: Data,
    encoder: Literal["fmp", "emb"] = "fmp",
    *,
    channels: int = 64,
    kernel_size: int = 16,
    pool: int = 4,
    **kwargs: Any,
) -> LaMP:
    r"""Builds a :class:`~tg_mlc.models.LaMP` whose components are pieces of DNA under a convolution.

    Args:
        train (MultiLabelDataset): The training samples, which give the frequency of every label.
        label_graph (LabelGraph): The label graph.
        encoder (str, optional): :obj:`"fmp"` or :obj:`"emb"`. (default: :obj:`"fmp"`)
        channels (int, optional): Size of all states. (default: :obj:`64`)
        kernel_size (int, optional): The number of letters that a convolution sees. (default: :obj:`16`)
        pool (int, optional): The number of letters that become one component. (default: :obj:`4`)
        **kwargs (optional): Additional arguments of :class:`~tg_mlc.models.LaMP`.
    """
    model = LaMP(
        DNAEncoder(channels, kernel_size, pool, both_strands=True), label_graph, **with_encoder(encoder, kwargs)
    )
    model.readout.start_from_frequencies(train.y)
    return model


DNA = {
    "binding-sites": Recipe(
        load=_load,
        split=_split,
        splits=("official",),
        graphs={"pr": _string, "string": _string},
        build=dna_lamp,
        model={"num_steps": 2, "num_feature_layers": 1, "dropout": 0.2},
        module={"lr": 1e-3, "weight_decay": 0.01, "intermediate_weight": 0.1, "decay": "cosine", "warmup": 0.05},
        fit={"max_epochs": 15, "patience": None, "ema_decay": 0.99},
        batch_size=64,
        published={"model": {"num_feature_layers": 2, "dropout": 0.1}},
    )
}
