import json
import lzma
from functools import partial

import numpy as np
import pytest

from benchmarks.accuracy import hierarchies as benchmark
from benchmarks.accuracy.hierarchies import COHERENT, PLAIN, TOPICS, main
from tg_mlc.baselines import ForestBaseline, NetworkBaseline


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Writes files of a small tree, and reduces forests and networks."""
    rng, kind = np.random.default_rng(0), "hierarchical x,x/y,x/z,u"
    attributes = "@attribute a numeric\n@attribute b numeric\n@attribute c"
    header = f"@relation r\n{attributes} {kind}\n@data\n"
    for part, num_rows in (("train", 60), ("test", 30)):
        text = header
        for a, b in rng.normal(size=(num_rows, 2)):
            label = ("x/y" if a > 0 else "x/z") + ("@u" if b > 0 else "")
            text += f"{a:.3f},{b:.3f},{label}\n"
        (tmp_path / f"Diatoms_{part}.arff.xz").write_bytes(lzma.compress(text.encode()))
    network = partial(NetworkBaseline, 16, 0.1, epochs=20)
    monkeypatch.setattr(benchmark, "NetworkBaseline", network)
    forest = lambda num_rows, **options: ForestBaseline(10, **options)  # noqa: E731
    monkeypatch.setattr(benchmark, "ForestBaseline", forest)
    return tmp_path


def test_rows_of_a_small_tree_are_computed_once(root, own_runs):
    main(root, seeds=1, parts="frequency,alone,networks")
    path = own_runs / "hierarchies.json"
    content = json.loads(path.read_text())
    assert content["dataset"]["Diatoms"]["num_labels"] == 4
    values = {run["model"]: run["average_precision"] for run in content["runs"]}
    assert min(values[row] for row in ("random forest", "kernel ridge", PLAIN, COHERENT)) > 0.8
    assert values["label frequency"] < 0.85
    main(root, seeds=1, parts="frequency,alone")  # Existing runs are kept.
    assert json.loads(path.read_text())["runs"] == content["runs"]


def test_the_seed_determines_the_division_of_stories(tmp_path, real_file):
    real_file("rcv1v2/raw/rcv1_dev.json.xz")
    (train, test), (other, _) = (benchmark.load(tmp_path, TOPICS, seed) for seed in range(2))
    assert [len(train), len(test), len(other)] == [1853, 463, 1853]
    assert (train.y != other.y).any()
    child, parent = train.label_graph.parent_index.flip(0)
    assert (train.y[:, child] <= train.y[:, parent]).all()
