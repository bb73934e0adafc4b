"""A small model of texts, trained and saved once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.saved import train_texts
from tests.training.conftest import batch, data, dataset, one_thread, split  # noqa: F401 - fixtures
from tg_mlc.training import Training


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory) -> Training:
    return train_texts(tmp_path_factory.mktemp("texts"))


@pytest.fixture
def folder(result: Training) -> Path:
    assert result.folder is not None
    return result.folder
