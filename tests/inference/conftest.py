"""The small model of texts, and fixtures of the tests of training."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.saved import train_texts
from tests.training.conftest import batch, data, dataset, one_thread, split  # noqa: F401 - fixtures
from tg_mlc.training import Training


@pytest.fixture(scope="session")
def folder(saved) -> Path:
    return saved("texts")


@pytest.fixture(scope="session")
def result(folder: Path) -> Training:
    return train_texts(folder.parent)
