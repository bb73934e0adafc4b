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

# Other processes share the cores, so no example has a deadline in elapsed time.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Seeds each test, so that its draws do not depend on the tests before it."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _compile_anew():
    """Resets the compiler, because PyTorch compiles a function at most eight times."""
    yield
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()


@pytest.fixture(scope="session")
def real_file():
    """Returns a function that finds a real data file, or skips the test."""
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
    """Returns a function that gives the folder of a model by its name in ``tests/saved.py``.

    Every model is trained once. Tests may load and change a model, but never its folder.
    """
    from tests.quick import train_little
    from tests.saved import MAKERS

    folders = {}

    def find(name):
        if name in ("molecules", "network"):
            pytest.importorskip("rdkit")
        if name not in folders:
            with pytest.MonkeyPatch.context() as patch:
                train_little(patch, max_epochs=1)
                folders[name] = MAKERS[name](tmp_path_factory.mktemp("saved") / name)
        return folders[name]

    return find


@pytest.fixture(scope="session")
def exported(saved, tmp_path_factory):
    """Returns a function that exports a saved model once, and gives the folder of the program."""
    import tg_mlc

    folders = {}

    def find(name, kind="torch-export"):
        if (name, kind) not in folders:
            out = tmp_path_factory.mktemp("exported") / name
            folders[name, kind] = tg_mlc.export(saved(name), out, kind)
        return folders[name, kind]

    return find


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes a text to a file in the folder of the test."""

    def write_file(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write_file
