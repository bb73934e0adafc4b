"""Recipes for data sets of DNA, and for those with a planted label graph."""

from __future__ import annotations

from functools import partial

from tg_mlc.data import MultiLabelDataset, Split
from tg_mlc.datasets import BindingSites, Planted
from tg_mlc.graphs import LabelGraph, from_networkx
from tg_mlc.models import dna_lamp, node_lamp
from tg_mlc.papers.recipes.recipe import Recipe, Source, correlated
from tg_mlc.stacking.folds import MODULE

#: Interactions of the five factors with a combined score of at least 800 in STRING v12.0 (https://string-db.org,
#: CC BY 4.0), as ``string_ppi`` finds them in STRING's files.
INTERACTIONS = (
    ("CTCF", "EP300"), ("CTCF", "RAD21"), ("CTCF", "SIN3A"), ("EP300", "JUND"), ("EP300", "SIN3A"), ("JUND", "RAD21"),
)  # fmt: skip


def _string(dataset: MultiLabelDataset, split: Split) -> LabelGraph:
    import networkx as nx

    interacting = nx.Graph(INTERACTIONS)
    graph = from_networkx(interacting, dataset.label_names, kind="string_ppi", source="STRING v12.0, 800")
    return graph.add_self_loops()


DNA = {
    "binding-sites": Recipe(
        data=Source(lambda root: BindingSites(root / "binding-sites")),
        graphs={"prior": _string, "string": _string},
        build=dna_lamp,
        model={"num_steps": 2, "num_feature_layers": 1, "dropout": 0.2},
        module=MODULE,
        objective={"intermediate_weight": 0.1},
        fit={"max_epochs": 15, "patience": None, "ema_decay": 0.99},
        batch_size=64,
        published={"model": {"num_feature_layers": 2, "dropout": 0.1}},
    )
}

#: The shares of information that neighbours carry, by the name of the data set.
SHARES = {f"planted-{percent}": percent / 100 for percent in (0, 25, 50, 75)}


def _recipe(share: float) -> Recipe:
    return Recipe(
        data=Source(
            lambda root: Planted(share=share), redraw=lambda seed: Planted(share=share, seed=seed), preprocess=False
        ),
        graphs={"prior": partial(correlated, top_k=3), "planted": lambda dataset, split: dataset.true_graph},
        build=node_lamp,
        model={"num_steps": 1, "heads": 4, "dropout": 0.0},
        module={**MODULE, "lr": 5e-3, "warmup": 0.1},
        fit={"max_epochs": 40, "patience": None},
        batch_size=64,
        published={"model": {"num_steps": 2, "dropout": 0.1}},
    )


PLANTED = {name: _recipe(share) for name, share in SHARES.items()}
