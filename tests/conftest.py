"""Fixtures and settings that tests of all packages share."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

VARIABLE = "TG_MLC_DATA"

# No example fails because others share the cores: limits on time are asserted on that of the processor.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Weights and draws of a test do not hang on which tests ran before it."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _compile_anew():
    """Tests share no compiled code: PyTorch compiles one function at most eight times, for all modules together."""
    yield
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()


@pytest.fixture(scope="session")
def real_file():
    """Finds a real data file, or skips the test."""
    folder = os.environ.get(VARIABLE)

    def find(relative):
        if not folder:
            pytest.skip(f"the environment variable {VARIABLE} is not set")
        path = Path(folder) / relative
        if not path.exists():
            pytest.skip(f"there is no '{path}'")
        return path

    return find


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Makes the folder of a small model of a kind of input, once for all tests of a process."""
    from tests.saved import MAKERS

    folders = {}

    def find(name):
        if name in ("molecules", "network"):
            pytest.importorskip("rdkit")
        if name not in folders:
            folders[name] = MAKERS[name](tmp_path_factory.mktemp("saved") / name)
        return folders[name]

    return find


@pytest.fixture
def write(tmp_path):
    """Writes a text to a file of the test's own folder."""

    def write_file(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write_file
