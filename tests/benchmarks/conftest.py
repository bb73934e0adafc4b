"""Fixtures that tests of the benchmarks share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks import files


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    """Returns the folder of all data sets, some of which other tests may have made."""
    return tmp_path_factory.getbasetemp()


@pytest.fixture
def results(monkeypatch, tmp_path):
    """Replaces the folder of tracked results by an empty folder."""
    monkeypatch.setattr(files, "RESULTS", tmp_path / "results")
    (tmp_path / "results").mkdir()
    return files.RESULTS


@pytest.fixture
def own_runs(results, monkeypatch, tmp_path):
    """Replaces the folder of untracked results by a new folder, beside :func:`results`."""
    monkeypatch.setattr(files, "RUNS", tmp_path / "runs")
    return files.RUNS


@pytest.fixture
def needs_emotions():
    """Skips the test without the data set, which is the smallest."""
    if not (Path(os.environ.get("TG_MLC_DATA", "")) / "emotions" / "raw").is_dir():
        pytest.skip("TG_MLC_DATA does not name a folder with emotions/raw")
