"""Recipe for data that nobody tuned anything to: that of a published data set of the same kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.preprocess import Chain, ClassifierScores, Scale, TableInputs
from tg_mlc.data.readers.fasta import LETTERS
from tg_mlc.recipes.dna import DNA
from tg_mlc.recipes.molecules import MOLECULES
from tg_mlc.recipes.recipe import Recipe
from tg_mlc.recipes.tables import TABLES

#: Samples from which the kernel matrix of a regression would take more than a gigabyte.
MANY = 12_000
# The number of steps that training takes at least, for few samples, and at most as many epochs.
_STEPS, _EPOCHS = 1_500, 60
# Few validation samples may lack a class of every label, of which other metrics need both.
_FIT: dict[str, Any] = {"monitor": "val/loss"}


def default_recipe(dataset: MultiLabelDataset) -> Recipe:
    """The recipe for the kind of a data set: molecules, DNA, words or vectors.

    Args:
        dataset (MultiLabelDataset): The data set.
    """
    if dataset.kind is None and "edge_attr" in dataset[0]:
        return MOLECULES["sider"]
    if dataset.feature_names == list(LETTERS):
        recipe = DNA["binding-sites"]
        return replace(recipe, fit={**recipe.fit, **_FIT})
    recipe = TABLES["bibtex" if dataset.kind in ("bag", "sequence") else "emotions"]
    epochs = min(_EPOCHS, max(recipe.fit["max_epochs"], _STEPS * recipe.batch_size // len(dataset)))
    return replace(
        recipe,
        classifiers=recipe.classifiers if len(dataset) < MANY else ("svm",),
        fit={**recipe.fit, **_FIT, "max_epochs": epochs},
        preprocess=_ranked if _has_gaps(dataset) else recipe.preprocess,
    )


def _has_gaps(dataset: MultiLabelDataset) -> bool:
    return dataset.kind == "vector" and bool(dataset.rows("x").isnan().any())


def _ranked(dataset: MultiLabelDataset, root: Path, classifiers: Sequence[str]) -> Chain:
    """Ranks in place of numbers, as a missing one has a rank too."""
    return Chain(TableInputs(), Scale("quantile"), ClassifierScores(classifiers, root / "evidence"))
