"""How data sets of words and of vectors are trained."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from tg_mlc.baselines import LinearBaseline
from tg_mlc.data import Split
from tg_mlc.data.bags import tf_idf, with_attribute, with_words
from tg_mlc.datasets import MulanDataset, MultiLabelDataset, Reuters21578
from tg_mlc.datasets._records import Records
from tg_mlc.datasets.base import ArrayDataset
from tg_mlc.graphs import LabelGraph, co_occurrence, wordnet
from tg_mlc.models import LaMP, table_lamp
from tg_mlc.recipes._evidence import evidence
from tg_mlc.recipes.recipe import GraphBuilder, Recipe


class PreparedTable(ArrayDataset):
    """Samples with weighted words or standardised vectors, and what linear classifiers say of them.

    Attributes:
        linear (LinearBaseline): The classifiers.
        words (dict): What to look up for every label in a dictionary.
    """

    linear: LinearBaseline
    words: dict[str, str]


def prepare(dataset: MultiLabelDataset, split: Split, root: Path) -> PreparedTable:
    """Weighs words or standardises vectors by the training samples, and adds the scores of linear classifiers."""
    if dataset.kind == "vector":
        x = _standardised(dataset, split)
        records = Records(x, dataset.y.numpy(), dataset.label_names, dataset.feature_names)
        weighted = ArrayDataset(records.to_samples())
    else:
        x = tf_idf(dataset, split)
        weighted = with_words(dataset, x)
    linear, scores = evidence(x, dataset.y, split, root / "linear")
    prepared = PreparedTable(with_attribute(weighted, "evidence", torch.from_numpy(scores)).samples())
    prepared.linear = linear
    # Mulan's labels are "TAG_music"; Reuters' topics have descriptions such as "Coconut oil".
    described: dict[str, str] = getattr(dataset, "label_descriptions", {})
    prepared.words = {name: described.get(name, name.removeprefix("TAG_")) for name in dataset.label_names}
    return prepared


def inputs_of(prepared: PreparedTable) -> Any:
    """The matrix :math:`(N, F)` that linear classifiers take."""
    from tg_mlc.data.bags import bag_of_words

    return prepared._data.x.numpy() if prepared.kind == "vector" else bag_of_words(prepared)


def _standardised(dataset: MultiLabelDataset, split: Split) -> np.ndarray:
    x: np.ndarray = dataset._data.x.numpy()
    mean, spread = x[split.train].mean(axis=0), x[split.train].std(axis=0)
    scaled: np.ndarray = (x - mean) / np.where(spread > 0, spread, 1.0) / np.sqrt(x.shape[1])
    return scaled


def build(train: Dataset[Any], label_graph: LabelGraph, encoder: str = "emb", **kwargs: Any) -> LaMP:
    """A :func:`~tg_mlc.models.table_lamp` that knows the linear classifiers of the training samples."""
    assert isinstance(train, PreparedTable)
    return table_lamp(train, label_graph, encoder, linear=train.linear, **kwargs)  # type: ignore[arg-type]


def _split(dataset: MultiLabelDataset, method: str, seed: int) -> Split:
    # The seeds of a comparison vary the training alone: test and validation samples are the same for all.
    return dataset.official_split()


def _co_occurrence(dataset: MultiLabelDataset, split: Split) -> LabelGraph:
    return co_occurrence(dataset, split=split)


def _correlated(dataset: MultiLabelDataset, split: Split) -> LabelGraph:
    return co_occurrence(dataset, weight="correlation", top_k=10, split=split)


def _wordnet(dataset: MultiLabelDataset, split: Split) -> LabelGraph:
    assert isinstance(dataset, PreparedTable)
    return wordnet(dataset.label_names, words=dataset.words)


def _mulan(name: str) -> Callable[[Path], MultiLabelDataset]:
    return partial(MulanDataset, name=name)


def _reuters(root: Path) -> Reuters21578:
    return Reuters21578(root / "reuters")


_MODEL = {"channels": 64, "num_steps": 2, "dropout": 0.2, "attention_dropout": 0.0, "input_dropout": 0.3}
_GRAPHS: dict[str, GraphBuilder] = {"pr": _co_occurrence, "correlation": _correlated}
_TEXT_GRAPHS: dict[str, GraphBuilder] = {**_GRAPHS, "wordnet": _wordnet}


def _recipe(load: Callable[[Path], MultiLabelDataset], epochs: int, **changes: Any) -> Recipe:
    settings: dict[str, Any] = {
        "load": load,
        "split": _split,
        "splits": ("official",),
        "graphs": _GRAPHS,
        "prepare": prepare,
        "build": build,
        "model": _MODEL,
        "module": {"lr": 1e-3, "weight_decay": 0.01, "intermediate_weight": 0.1, "decay": "cosine", "warmup": 0.05},
        "fit": {
            "max_epochs": epochs,
            "monitor": "val/macro_average_precision",
            "patience": None,
            "ema_decay": 0.998,
        },
        "batch_size": 32,
        "settings": {"inputs": "TF-IDF (sublinear), unit length; vectors standardised", "linear": "one-vs-rest SVM"},
    }
    return Recipe(**{**settings, **changes})


# Found by trial on the validation samples of Bibtex, Reuters and Delicious; the small ones take over their settings.
TABLES = {
    "bibtex": _recipe(_mulan("bibtex"), epochs=10, graphs=_TEXT_GRAPHS),
    "delicious": _recipe(
        _mulan("delicious"), epochs=4, graphs=_TEXT_GRAPHS, model={**_MODEL, "num_steps": 1, "input_dropout": 0.1}
    ),
    "reuters": _recipe(
        _reuters, epochs=8, graphs=_TEXT_GRAPHS, model={**_MODEL, "channels": 128, "input_dropout": 0.4}
    ),
    "yeast": _recipe(_mulan("yeast"), epochs=30),
    "scene": _recipe(_mulan("scene"), epochs=30),
    "emotions": _recipe(_mulan("emotions"), epochs=60),
    "genbase": _recipe(_mulan("genbase"), epochs=30),
    "corel5k": _recipe(_mulan("corel5k"), epochs=8),
    "mediamill": _recipe(_mulan("mediamill"), epochs=4),
}
