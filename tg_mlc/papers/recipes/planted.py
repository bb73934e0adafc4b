"""Recipes for the data sets with a planted label graph."""

from __future__ import annotations

from functools import partial

from tg_mlc.datasets import Planted
from tg_mlc.models import node_lamp
from tg_mlc.papers.recipes.recipe import Recipe, correlated, official_split

#: The shares of information that neighbours carry, by the name of the data set.
SHARES = {f"planted-{percent}": percent / 100 for percent in (0, 25, 50, 75)}


def _recipe(share: float) -> Recipe:
    return Recipe(
        load=lambda root: Planted(share=share),
        split=official_split,
        splits=("official",),
        graphs={"prior": partial(correlated, top_k=3), "planted": lambda dataset, split: dataset.true_graph},
        build=node_lamp,
        model={"num_steps": 1, "heads": 4, "dropout": 0.0},
        module={"lr": 5e-3, "weight_decay": 0.01, "lr_schedule": "cosine", "warmup": 0.1},
        fit={"max_epochs": 40, "patience": None},
        batch_size=64,
        published={"model": {"num_steps": 2, "dropout": 0.1}},
        redraw=lambda seed: Planted(share=share, seed=seed),
    )


PLANTED = {name: _recipe(share) for name, share in SHARES.items()}
