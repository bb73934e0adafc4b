"""Recipes for data sets of DNA."""

from __future__ import annotations

import networkx as nx

from tg_mlc import inputs
from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.datasets import BindingSites
from tg_mlc.graphs import LabelGraph, from_networkx
from tg_mlc.models import dna_lamp
from tg_mlc.papers.recipes.recipe import Recipe, official_split

#: Interactions of the five factors with a combined score of at least 800 in STRING v12.0 (https://string-db.org,
#: CC BY 4.0), as ``string_ppi`` finds them in STRING's files.
INTERACTIONS = (
    ("CTCF", "EP300"), ("CTCF", "RAD21"), ("CTCF", "SIN3A"), ("EP300", "JUND"), ("EP300", "SIN3A"), ("JUND", "RAD21"),
)  # fmt: skip


def _string(dataset: MultiLabelDataset, split: Split) -> LabelGraph:
    interacting = nx.Graph(INTERACTIONS)
    graph = from_networkx(interacting, dataset.label_names, kind="string_ppi", source="STRING v12.0, 800")
    return graph.add_self_loops()


DNA = {
    "binding-sites": Recipe(
        load=lambda root: BindingSites(root / "binding-sites"),
        split=official_split,
        splits=("official",),
        graphs={"prior": _string, "string": _string},
        build=dna_lamp,
        preprocess=lambda dataset, root, classifiers: inputs.DNA(),
        model={"num_steps": 2, "num_feature_layers": 1, "dropout": 0.2},
        module={"lr": 1e-3, "weight_decay": 0.01, "lr_schedule": "cosine", "warmup": 0.05},
        objective={"intermediate_weight": 0.1},
        fit={"max_epochs": 15, "patience": None, "ema_decay": 0.99},
        batch_size=64,
        published={"model": {"num_feature_layers": 2, "dropout": 0.1}},
    )
}
