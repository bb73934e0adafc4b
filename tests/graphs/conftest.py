from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_file():
    """Finds a real data file, or skips the test."""
    folder = os.environ.get("TG_MLC_DATA")

    def find(relative):
        if not folder:
            pytest.skip("the environment variable TG_MLC_DATA is not set")
        path = Path(folder) / relative
        if not path.exists():
            pytest.skip(f"there is no '{path}'")
        return path

    return find
