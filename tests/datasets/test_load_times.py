"""Limits on loading times, in seconds of CPU time, on a machine of 2020 or later."""

import time
from pathlib import Path

import pytest

from tg_mlc.datasets import MulanDataset, Reuters21578
from tg_mlc.graphs import co_occurrence

CACHE_LIMIT = 0.5

pytestmark = pytest.mark.slow


def seconds(make):
    start = time.process_time()
    result = make()
    return result, time.process_time() - start


@pytest.mark.parametrize(
    ("raw", "load", "limit"),
    [
        ("bibtex/raw/bibtex.xml", lambda root: MulanDataset(root, "Bibtex"), 3),
        ("delicious/raw/delicious.xml", lambda root: MulanDataset(root, "Delicious"), 5),
        ("reuters21578/raw/reut2-000.sgm.xz", Reuters21578, 20),
    ],
    ids=["Bibtex", "Delicious", "Reuters"],
)
def test_loading_is_fast(real_file, tmp_path, raw, load, limit):
    real_file(raw)

    def load_and_build():
        dataset = load(tmp_path)
        return dataset, co_occurrence(dataset, split=dataset.official_split())

    (first, graph), elapsed = seconds(load_and_build)
    assert graph.num_edges > 0
    assert elapsed < limit
    reloaded, elapsed = seconds(lambda: load(tmp_path))
    assert len(reloaded) == len(first)
    assert Path(reloaded.processed_paths[0]).exists()
    assert elapsed < CACHE_LIMIT
