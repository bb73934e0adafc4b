from unittest.mock import Mock

import numpy as np
import pytest

from tg_mlc.data import from_arrays
from tg_mlc.graphs import LabelGraph, edgeless
from tg_mlc.stacking import comparison as module
from tg_mlc.stacking.comparison import METRICS, SINGLE, STACK, Comparison, compare

OFFSETS = np.array([0.01, -0.01, 0.02, 0.0, -0.02])


def result(epochs=8, **gains):
    rows = {SINGLE: 0.5 + OFFSETS, STACK: 0.5 + OFFSETS, "edgeless": 0.5 + OFFSETS}
    rows |= {row: 0.5 + OFFSETS + gain for row, gain in gains.items()}
    values = {row: {metric: list(scores) for metric in METRICS} for row, scores in rows.items()}
    return Comparison(values, METRICS[0], list(range(5)), 5, (70, 10, 20), [epochs] * 5)


@pytest.mark.parametrize(
    ("gain", "outcome", "words"),
    [
        (0.1 + OFFSETS[::-1] / 9, "better", ["Messages help", "Better than both"]),
        (-0.1 + OFFSETS[::-1] / 9, "worse", ["Messages harm", "simpler"]),
        (OFFSETS[::-1], "no difference", ["No difference", "lies between -0.0", "simpler"]),
    ],
)
def test_conclusions_follow_the_tests(gain, outcome, words, tmp_path):
    comparison = result(complete=gain)
    test = {(test.graph, test.against): test for test in comparison.tests}["complete", "edgeless"]
    assert test.outcome == outcome
    assert test.difference.low < gain.mean() < test.difference.high
    assert all(word in str(comparison) for word in words)


@pytest.mark.parametrize(("gain", "are_same"), [(OFFSETS, True), (OFFSETS + 1e-3, False)])
def test_graphs_with_equal_results_are_tested_once(gain, are_same):
    comparison = result(complete=OFFSETS, prior=gain)
    assert ("complete and prior are tested once" in comparison.conclusion) == are_same
    assert ("prior" in {test.graph for test in comparison.tests}) == (not are_same)
    assert "at most 8 epochs" in str(comparison)


def test_one_seed_has_no_spread_and_too_few_epochs_are_reported():
    for epochs in (1, 8):
        conclusion = result(epochs, complete=OFFSETS[::-1]).conclusion
        assert ("too short" in conclusion) == (epochs == 1)
    rows = SINGLE, STACK, "edgeless", "complete"
    values = {row: {metric: [0.5] for metric in METRICS} for row in rows}
    printed = str(Comparison(values, METRICS[0], [0], 5, (70, 10, 20), [8]))
    assert not {"±", "nan", "p =", "inf"} & {*printed.replace("(", " ").split()}
    assert "No conclusion" in printed


def test_a_picture_has_a_row_per_method(tmp_path):
    pytest.importorskip("matplotlib")
    figure = result(complete=OFFSETS).plot(tmp_path / "a.png")
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == [SINGLE, STACK, "edgeless", "complete"]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    result(complete=OFFSETS).plot(tmp_path / "a.svg")
    assert "<svg" in (tmp_path / "a.svg").read_text()
    with pytest.raises(ValueError, match="'path' to end in a picture type"):
        result(complete=OFFSETS).plot(tmp_path / "a.doc")


@pytest.fixture
def dataset(capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return from_arrays(X, (X[:, :2] + rng.normal(size=(60, 2)) > 0).astype(float), kind="vector")


def test_the_learned_graph_needs_a_model_of_the_complete_graph(dataset, tmp_path, monkeypatch):
    train = Mock(side_effect=module.train_model)
    monkeypatch.setattr(module, "train_model", train)
    compare(dataset, ["edgeless", "learned"], seeds=1, seconds=0).save(tmp_path / "new")
    assert train.call_count == 3
    files = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert files == ["comparison.csv", "comparison.json"]


def test_seeds_without_enough_time_are_skipped(dataset):
    comparison = compare(dataset, ["edgeless"], seeds=3, seconds=0)
    assert (comparison.seeds, comparison.wanted) == ([0], 3)
    assert "No conclusion: 1 of " in str(comparison)
    assert "inf" not in str(comparison)


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        (["complet"], "'graphs' among"),
        (["edgeless", "edgeless"], "twice"),
        ([edgeless(3)], "labels of the samples"),
        ([LabelGraph.from_edges([("a", "b")])], "labels of the samples"),
    ],
)
def test_wrong_graphs_are_refused(graphs, message, dataset):
    with pytest.raises(ValueError, match=message):
        compare(dataset, graphs)
