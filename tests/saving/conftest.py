"""A small model of texts, trained and saved once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.conftest import batch, data, dataset, one_thread, split  # noqa: F401 - fixtures
from tg_mlc.data import from_arrays, random_split, tokenize
from tg_mlc.graphs import co_occurrence
from tg_mlc.models import table_lamp
from tg_mlc.papers.base_scores import table_preprocessor
from tg_mlc.training import BinaryObjective, FitResult, MultiLabelDataModule, MultiLabelModule, fit

TEXTS = ["a red apple", "a green pear", "red plums", "green apples and a red pear"] * 10
LABELS = ["green", "red"]


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory) -> FitResult:
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
    return fit(module, MultiLabelDataModule(known, parts), folder, max_epochs=2, monitor="val/loss", logger=False)


@pytest.fixture
def folder(result: FitResult) -> Path:
    assert result.model_folder is not None
    return result.model_folder
