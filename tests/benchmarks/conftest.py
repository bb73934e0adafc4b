"""Fixtures that tests of the benchmarks share."""

import pytest

from benchmarks import files
from tests.quick import read_few_molecules


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    """Returns the folder of data sets that all tests of a run share."""
    return tmp_path_factory.getbasetemp()


@pytest.fixture
def results(monkeypatch, tmp_path):
    """Replaces the folder of tracked results by an empty folder."""
    monkeypatch.setattr(files, "RESULTS", tmp_path / "results")
    (tmp_path / "results").mkdir()
    return files.RESULTS


@pytest.fixture
def own_runs(results, monkeypatch, tmp_path):
    """Replaces both folders of results by new ones. Returns the folder of untracked results."""
    monkeypatch.setattr(files, "RUNS", tmp_path / "runs")
    return files.RUNS


@pytest.fixture
def few_molecules(monkeypatch):
    """Reduces NCI to its first 300 molecules."""
    pytest.importorskip("rdkit")
    read_few_molecules(monkeypatch)


@pytest.fixture
def needs_emotions(real_file):
    """Skips the test if the files of Emotions, the smallest data set, are missing."""
    real_file("emotions/raw")
