from __future__ import annotations

import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import hierarchies as benchmark
from benchmarks.accuracy.hierarchies import COHERENT, PLAIN, TOPICS, main
from tg_mlc.baselines import ForestBaseline, NetworkBaseline


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of a small tree; forests and networks are small, too."""
    rng = np.random.default_rng(0)
    header = "@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute c hierarchical x,x/y,x/z,u\n@data\n"
    for end, number in (("train", 60), ("test", 30)):
        inputs = rng.normal(size=(number, 2))
        labels = [("x/y" if a > 0 else "x/z") + ("@u" if b > 0 else "") for a, b in inputs]
        rows = "".join(
            f"{a:.3f},{b:.3f},{label}\n" for (a, b), label in zip(inputs, labels, strict=True)
        )
        (tmp_path / f"Diatoms_{end}.arff.xz").write_bytes(lzma.compress((header + rows).encode()))
    monkeypatch.setattr(
        benchmark,
        "NetworkBaseline",
        lambda **options: NetworkBaseline(16, 0.1, epochs=20, **options),
    )
    monkeypatch.setattr(
        benchmark, "ForestBaseline", lambda number, **options: ForestBaseline(10, **options)
    )
    return tmp_path


def test_rows_of_a_small_tree(root: Path, own_runs: Path) -> None:
    main(root, seeds=1, parts="frequency,alone,networks")
    found = json.loads((own_runs / "hierarchies.json").read_text())
    assert found["dataset"]["Diatoms"]["num_labels"] == 4
    values = {run["model"]: run["average_precision"] for run in found["runs"]}
    assert (
        min(values["random forest"], values["kernel ridge"], values[PLAIN], values[COHERENT]) > 0.8
    )
    assert values["label frequency"] < 0.85
    before = (own_runs / "hierarchies.json").read_text()
    main(root, seeds=1, parts="frequency,alone")  # goes on from what is there
    assert (
        json.loads(before)["runs"]
        == json.loads((own_runs / "hierarchies.json").read_text())["runs"]
    )


def test_stories_are_divided_by_a_seed(tmp_path: Path, real_file) -> None:
    real_file("rcv1v2/raw/rcv1_dev.json.xz")
    (train, test), (other, _) = (benchmark.load(tmp_path, TOPICS, seed) for seed in range(2))
    assert [len(train), len(test), len(other)] == [1853, 463, 1853]
    assert (train.y != other.y).any()
    child, above = train.label_graph.parent_index.flip(0)
    assert (train.y[:, child] <= train.y[:, above]).all()
