"""Small models of every kind of input. A model is trained when a test first asks for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

import tg_mlc
from tests.mixed import PLAIN, make_frame
from tg_mlc.data import from_arrays, random_split, tokenize, with_hierarchy
from tg_mlc.graphs import co_occurrence, fully_connected
from tg_mlc.inputs import Chain, Scale, kind_of
from tg_mlc.inputs.dna import DNA
from tg_mlc.inputs.molecules import EXAMPLES, Molecules
from tg_mlc.models import molecule_lamp, table_lamp
from tg_mlc.papers.base_scores import table_preprocessor
from tg_mlc.training import BinaryObjective, MultiLabelDataModule, MultiLabelModule, Training, fit

TEXTS = ["a red apple", "a green pear", "red plums", "green apples and a red pear"] * 10
LABELS = ["green", "red"]
ABC = ["a", "b", "c"]
RUN = {"max_epochs": 1, "monitor": "val/loss", "logger": False}


@cache  # A second call for the same folder returns the same training.
def train_texts(folder: Path) -> Training:
    """Trains a LaMP of texts that uses base scores and takes given labels."""
    labels = [{name for name in LABELS if name in text} for text in TEXTS]
    texts = from_arrays([tokenize(text) for text in TEXTS], labels, kind="bag")
    split = random_split(len(texts), seed=0)
    preprocessor = table_preprocessor(texts.kind, ["svm"])
    samples = preprocessor.fit_transform(texts, split)
    graph = co_occurrence(texts, weight="count", split=split)
    options = {"channels": 8, "num_steps": 1, "heads": 2, "given_labels": True}
    module = MultiLabelModule(
        table_lamp(samples[split.train], graph, **options),
        LABELS,
        BinaryObjective(max_given=0.5),
        config={"note": "ü"},
        preprocessor=preprocessor,
    )
    fitted = fit(module, MultiLabelDataModule(samples, split), folder, **RUN | {"max_epochs": 2})
    training: Training = fitted.training
    return training


def make_texts(folder: Path) -> Path:
    """Returns the folder of the model that :func:`train_texts` trains."""
    saved = train_texts(folder).folder
    assert saved is not None
    return saved


def make_vectors(folder: Path) -> Path:
    """Saves the default model of vectors, which includes LaMP."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 5))
    y = (x[:, :3] + rng.normal(size=(60, 3)) > 0).astype(np.float32)
    model = tg_mlc.auto(from_arrays(x, y, ABC, kind="vector"), seconds=60)
    assert model.networks
    return model.save(folder)


def make_given(folder: Path) -> Path:
    """Saves LaMP of vectors, which takes given labels."""
    x = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    samples = from_arrays(x, (x[:, :3] > 0).astype(np.float32), ABC, kind="vector")
    split = random_split(len(samples), (0.75, 0.25, 0.0), seed=0)
    preprocessor = Chain(kind_of(samples)(), Scale("standard"))
    prepared = preprocessor.fit_transform(samples, split)
    network = table_lamp(prepared, fully_connected(ABC), channels=8, given_labels=True)
    objective = BinaryObjective(max_given=0.5)
    module = MultiLabelModule(network, ABC, objective, preprocessor=preprocessor)
    fitted = fit(module, MultiLabelDataModule(prepared, split), folder / "run", **RUN)
    return fitted.save(folder / "model")


def make_dna(folder: Path) -> Path:
    """Saves the default model of DNA, which has classifiers alone."""
    sequences = ["ACGTACGTACAC", "TTTTACGTTTGT", "GGGGACGCCCAA", "ACACACACACAC"] * 5
    y = np.eye(4, dtype=np.float32)[:, :2]
    return tg_mlc.auto(DNA.samples(sequences, np.tile(y, (5, 1)), LABELS), seconds=0).save(folder)


def make_molecules(folder: Path) -> Path:
    """Saves the default model of molecules, which has classifiers alone."""
    y = (np.random.default_rng(0).random((40, 2)) < 0.5).astype(np.float32)
    return tg_mlc.auto(Molecules.samples([*EXAMPLES, *EXAMPLES], y, LABELS), seconds=0).save(folder)


def make_network(folder: Path) -> Path:
    """Saves LaMP of molecules without classifiers."""
    y = (np.random.default_rng(0).random((40, 3)) < 0.5).astype(np.float32)
    samples = Molecules.samples([*EXAMPLES, *EXAMPLES], y, ABC)
    split, kind = random_split(len(samples), seed=0), Molecules()
    prepared = kind.fit_transform(samples, split)
    network = molecule_lamp(prepared, fully_connected(ABC), channels=8, heads=2)
    module = MultiLabelModule(network, ABC, preprocessor=kind)
    fitted = fit(module, MultiLabelDataModule(prepared, split), folder / "run", **RUN)
    return fitted.save(folder / "model")


def make_hierarchy(folder: Path) -> Path:
    """Saves the default model of labels with parents, calibrated and conformalized."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 4)).astype(np.float32)
    noisy = x + 0.5 * rng.normal(size=x.shape)
    y = np.column_stack([noisy[:, 0] > -0.5, noisy[:, 0] > 0.5, noisy[:, 1] > 0]).astype(np.float32)
    samples = from_arrays(x, y, ["animal", "dog", "red"], kind="vector")
    samples = with_hierarchy(samples, [("dog", "animal"), ("red", None)])
    return tg_mlc.auto(samples, seconds=0, calibrate=True, coverage_share=0.3).save(folder)


def make_mixed(folder: Path) -> Path:
    """Saves the default model of rows of several kinds, which has classifiers alone."""
    frame, y = make_frame()
    return tg_mlc.auto(from_arrays(frame, y, ABC, kind=PLAIN), seconds=0).save(folder)


MAKERS: dict[str, Callable[[Path], Path]] = {
    "vectors": make_vectors,
    "given": make_given,
    "dna": make_dna,
    "hierarchy": make_hierarchy,
    "mixed": make_mixed,
    "molecules": make_molecules,
    "network": make_network,
    "texts": make_texts,
}
