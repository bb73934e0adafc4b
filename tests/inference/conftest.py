"""A small model of texts, trained and saved once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tg_mlc
from tests.training.conftest import batch, data, dataset, one_thread, split  # noqa: F401 - fixtures
from tg_mlc.data import from_arrays, random_split, tokenize
from tg_mlc.graphs import co_occurrence
from tg_mlc.inference import Model
from tg_mlc.inputs.dna import DNA
from tg_mlc.models import table_lamp
from tg_mlc.stacking import table_preprocessor
from tg_mlc.training import BinaryObjective, MultiLabelDataModule, MultiLabelModule, Training, fit

TEXTS = ["a red apple", "a green pear", "red plums", "green apples and a red pear"] * 10
LABELS = ["green", "red"]


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory) -> Training:
    labels = [{name for name in LABELS if name in text} for text in TEXTS]
    texts = from_arrays([tokenize(text) for text in TEXTS], labels, kind="bag")
    parts = random_split(len(texts), seed=0)
    preprocessor = table_preprocessor(texts.kind, ["svm"])
    known = preprocessor.fit_transform(texts, parts)
    graph = co_occurrence(texts, weight="count", split=parts)
    model = table_lamp(known[parts.train], graph, channels=8, num_steps=1, heads=2, given_labels=True)
    objective = BinaryObjective(max_given=0.5)
    module = MultiLabelModule(model, LABELS, objective, config={"note": "ü"}, preprocessor=preprocessor)
    folder = tmp_path_factory.mktemp("texts")
    batches = MultiLabelDataModule(known, parts)
    return fit(module, batches, folder, max_epochs=2, monitor="val/loss", logger=False).training


@pytest.fixture(scope="session")
def of_dna() -> Model:
    sequences = ["ACGTACGTACAC", "TTTTACGTTTGT", "GGGGACGCCCAA", "ACACACACACAC"] * 5
    y = np.eye(4, dtype=np.float32)[:, :2]
    return tg_mlc.auto(DNA.samples(sequences, np.tile(y, (5, 1)), LABELS), seconds=0)


@pytest.fixture(scope="session")
def of_vectors() -> Model:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 5))
    y = (x[:, :3] + rng.normal(size=(60, 3)) > 0).astype(np.float32)
    return tg_mlc.auto(from_arrays(x, y, ["a", "b", "c"], kind="vector"), seconds=5)


@pytest.fixture(scope="session")
def saved(
    tmp_path_factory: pytest.TempPathFactory, of_dna: Model, of_vectors: Model, result: Training
) -> dict[str, Path]:
    """Folders of models by their kinds of input."""
    assert result.folder is not None
    root = tmp_path_factory.mktemp("saved")
    return {
        "vectors": of_vectors.save(root / "vectors"),
        "dna": of_dna.save(root / "dna"),
        "texts": result.folder,
    }


@pytest.fixture
def folder(result: Training) -> Path:
    assert result.folder is not None
    return result.folder
