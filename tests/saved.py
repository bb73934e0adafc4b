"""Small models of each kind of input, trained when a test first asks for one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import tg_mlc
from tg_mlc.data import Split, from_arrays, random_split, tokenize, with_hierarchy
from tg_mlc.graphs import co_occurrence, fully_connected
from tg_mlc.inputs import Chain, Scale, kind_of
from tg_mlc.inputs.dna import DNA
from tg_mlc.inputs.molecules import EXAMPLES, Molecules
from tg_mlc.models import molecule_lamp, table_lamp
from tg_mlc.papers.base_scores import table_preprocessor
from tg_mlc.training import BinaryObjective, MultiLabelDataModule, MultiLabelModule, Training, fit

TEXTS = ["a red apple", "a green pear", "red plums", "green apples and a red pear"] * 10
LABELS = ["green", "red"]


def train_texts(folder: Path) -> Training:
    """LaMP of texts with base scores, which takes given labels."""
    labels = [{name for name in LABELS if name in text} for text in TEXTS]
    texts = from_arrays([tokenize(text) for text in TEXTS], labels, kind="bag")
    parts = random_split(len(texts), seed=0)
    preprocessor = table_preprocessor(texts.kind, ["svm"])
    known = preprocessor.fit_transform(texts, parts)
    graph = co_occurrence(texts, weight="count", split=parts)
    model = table_lamp(
        known[parts.train], graph, channels=8, num_steps=1, heads=2, given_labels=True
    )
    objective = BinaryObjective(max_given=0.5)
    module = MultiLabelModule(
        model, LABELS, objective, config={"note": "ü"}, preprocessor=preprocessor
    )
    batches = MultiLabelDataModule(known, parts)
    training: Training = fit(
        module, batches, folder, max_epochs=2, monitor="val/loss", logger=False
    ).training
    return training


def make_vectors(folder: Path) -> Path:
    """The default of vectors, with LaMP."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 5))
    y = (x[:, :3] + rng.normal(size=(60, 3)) > 0).astype(np.float32)
    return tg_mlc.auto(from_arrays(x, y, ["a", "b", "c"], kind="vector"), seconds=5).save(folder)


def make_given(folder: Path) -> Path:
    """LaMP of vectors, which takes given labels."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 4)).astype(np.float32)
    y = (x[:, :3] > 0).astype(np.float32)
    samples = from_arrays(x, y, ["a", "b", "c"], kind="vector")
    rows = np.arange(40)
    split = Split(*map(_tensor, (rows[:30], rows[30:], rows[:0])), "first rows")
    preprocessor = Chain(kind_of(samples)(), Scale("standard"))
    known = preprocessor.fit_transform(samples, split)
    model = table_lamp(known, fully_connected(samples.label_names), channels=8, given_labels=True)
    module = MultiLabelModule(
        model, samples.label_names, BinaryObjective(max_given=0.5), preprocessor=preprocessor
    )
    batches = MultiLabelDataModule(known, split)
    fitted = fit(module, batches, folder / "run", max_epochs=2, monitor="val/loss", logger=False)
    return fitted.save(folder / "model")


def _tensor(rows: np.ndarray):  # type: ignore[no-untyped-def]
    import torch

    return torch.from_numpy(rows)


def make_dna(folder: Path) -> Path:
    """The default of DNA, of classifiers alone."""
    sequences = ["ACGTACGTACAC", "TTTTACGTTTGT", "GGGGACGCCCAA", "ACACACACACAC"] * 5
    y = np.eye(4, dtype=np.float32)[:, :2]
    return tg_mlc.auto(DNA.samples(sequences, np.tile(y, (5, 1)), LABELS), seconds=0).save(folder)


def make_molecules(folder: Path) -> Path:
    """The default of molecules, of classifiers alone."""
    y = (np.random.default_rng(0).random((40, 2)) < 0.5).astype(np.float32)
    return tg_mlc.auto(Molecules.samples([*EXAMPLES, *EXAMPLES], y, LABELS), seconds=0).save(folder)


def make_network(folder: Path) -> Path:
    """LaMP of molecules alone."""
    y = (np.random.default_rng(0).random((40, 3)) < 0.5).astype(np.float32)
    samples = Molecules.samples([*EXAMPLES, *EXAMPLES], y, ["a", "b", "c"])
    split, kind = random_split(len(samples), seed=0), Molecules()
    known = kind.fit_transform(samples, split)
    model = molecule_lamp(known, fully_connected(samples.label_names), channels=8, heads=2)
    module = MultiLabelModule(model, samples.label_names, preprocessor=kind)
    batches = MultiLabelDataModule(known, split)
    return fit(
        module, batches, folder / "run", max_epochs=1, monitor="val/loss", logger=False
    ).save(folder / "model")


def make_hierarchy(folder: Path) -> Path:
    """The default of labels with parents, whose predictions are coherent, calibrated and with a coverage."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 4)).astype(np.float32)
    noisy = x + 0.5 * rng.normal(size=x.shape)
    y = np.column_stack([noisy[:, 0] > -0.5, noisy[:, 0] > 0.5, noisy[:, 1] > 0]).astype(np.float32)
    samples = from_arrays(x, y, ["animal", "dog", "red"], kind="vector")
    samples = with_hierarchy(samples, [("dog", "animal"), ("red", None)])
    return tg_mlc.auto(samples, seconds=0, calibrate=True, coverage_share=0.3).save(folder)


def make_texts(folder: Path) -> Path:
    """The folder that :func:`train_texts` leaves."""
    saved = train_texts(folder).folder
    assert saved is not None
    return saved


MAKERS: dict[str, Callable[[Path], Path]] = {
    "vectors": make_vectors,
    "given": make_given,
    "dna": make_dna,
    "hierarchy": make_hierarchy,
    "molecules": make_molecules,
    "network": make_network,
    "texts": make_texts,
}
