from unittest.mock import Mock

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier

from tg_mlc._warnings import collected_warnings
from tg_mlc.data import from_arrays
from tg_mlc.graphs import LabelGraph, edgeless
from tg_mlc.stacking import comparison as module
from tg_mlc.stacking.comparison import METRICS, SINGLE, STACK, Comparison, compare

OFFSETS = np.array([0.01, -0.01, 0.02, 0.0, -0.02])


def result(epochs=8, models=(), **gains):
    rows = {SINGLE: 0.5 + OFFSETS, STACK: 0.5 + OFFSETS, "edgeless": 0.5 + OFFSETS}
    rows |= {row: 0.5 + OFFSETS + gain for row, gain in gains.items()}
    values = {row: {metric: list(scores) for metric in METRICS} for row, scores in rows.items()}
    sizes = 70, 10, 20
    return Comparison(values, METRICS[0], list(range(5)), 5, sizes, [epochs] * 5, models)


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
    test = {(test.row, test.against): test for test in comparison.tests}["complete", "edgeless"]
    assert test.outcome == outcome
    assert test.difference.low < gain.mean() < test.difference.high
    assert all(word in str(comparison) for word in words)


@pytest.mark.parametrize(("gain", "are_same"), [(OFFSETS, True), (OFFSETS + 1e-3, False)])
def test_graphs_with_equal_results_are_tested_once(gain, are_same):
    comparison = result(complete=OFFSETS, prior=gain)
    assert ("complete and prior are tested once" in comparison.conclusion) == are_same
    assert ("prior" in {test.row for test in comparison.tests}) == (not are_same)
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


def test_own_models_are_tested_against_classifiers_and_graphs():
    gain = 0.1 + OFFSETS[::-1] / 9
    comparison = result(models=["mine", "other"], mine=gain, other=-gain)
    assert comparison.graphs == ["edgeless"]
    wins = f"mine is significantly better than edgeless, {SINGLE}, {STACK}, and worse than none."
    assert wins in comparison.conclusion
    losses = f"better than no row, and worse than edgeless, {SINGLE}, {STACK}."
    assert f"other is significantly {losses}" in comparison.conclusion


def test_tables_in_markdown_and_latex_have_all_cells(tmp_path):
    comparison = result(**{"50%_of|all": OFFSETS[::-1]})
    lines = comparison.to_markdown().splitlines()
    assert lines[0] == f"|  | {' | '.join(METRICS)} |"
    assert lines[5].startswith(r"| 50%_of\|all | 0.5000 ± 0.0224 |")
    assert len({line.count("|") for line in lines[:5]}) == 1
    assert r"| 50%_of\|all - edgeless | +0.0000 | -0.0" in comparison.to_markdown()
    latex = comparison.to_latex()
    assert r"50\%\_of\textbar{}all & 0.5000 $\pm$ 0.0224 & " in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 2
    for text in ("5 of 5 seeds", "these are simpler"):
        assert text in comparison.to_markdown()
        assert text in latex
    comparison.save(tmp_path / "new" / "table.md")
    comparison.save(tmp_path / "new" / "table.tex")
    assert (tmp_path / "new" / "table.md").read_text() == comparison.to_markdown()
    assert (tmp_path / "new" / "table.tex").read_text() == latex
    assert len([*(tmp_path / "new").iterdir()]) == 2


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
    files = {path.suffix for path in (tmp_path / "new").iterdir()}
    assert {".csv", ".json", ".md", ".tex"} <= files


@pytest.mark.parametrize(("seconds", "expected"), [(0, 1), (2.5, 2), (3, 3)])
def test_the_number_of_seeds_in_time_is_announced_before_all_others(
    seconds, expected, dataset, monkeypatch
):
    trials = []

    class Seed(Mock):
        epochs = 8

        def rows(self, *_):
            return {row: dict.fromkeys(METRICS, 0.5) for row in (SINGLE, STACK, "edgeless")}

    def start(*options):
        trials.append(len(messages))
        return Seed()

    # Each seed takes a second.
    monkeypatch.setattr(module.time, "monotonic", lambda: float(len(trials)))
    monkeypatch.setattr(module, "_Seed", start)
    with collected_warnings() as messages:
        comparison = compare(dataset, ["edgeless"], seeds=3, seconds=seconds)
    assert (comparison.seeds, comparison.wanted) == ([0, 1, 2][:expected], 3)
    assert trials == [0, *[len(messages)] * (expected - 1)]
    assert f"{expected} of 3 seeds" in str(comparison)
    if expected < 3:
        assert messages == [
            f"Expected 3 seconds for 3 seeds (got seconds={seconds}, and the first seed took 1); "
            f"{expected} of 3 seeds will run"
        ]


def test_a_seed_is_no_conclusion(dataset):
    with pytest.warns(UserWarning, match="1 of 3 seeds will run"):
        comparison = compare(dataset, ["edgeless"], seeds=3, seconds=0)
    assert "No conclusion: 1 of " in str(comparison)
    assert "inf" not in str(comparison)


class Frequencies:
    """An estimator that predicts frequencies, in the format of scikit-learn's forests."""

    def fit(self, x, y):
        assert len(x) == len(y) == 42
        self.frequency = y.mean(axis=0)
        self.classes_ = [np.array([0, 1])] * 2

    def predict_proba(self, x):
        return [np.tile([1 - p, p], (len(x), 1)) for p in self.frequency]


def test_own_models_have_rows_of_their_own(dataset):
    forest = RandomForestClassifier(20)
    seeds = []

    def half(data, split):
        seeds.append(torch.initial_seed())
        return np.full(data.y.shape, 0.5)

    models = {"constant": Frequencies, "function": half, "forest": forest}
    comparison = compare(dataset, [], models=models, seeds=2, seconds=600)
    assert not hasattr(forest, "estimators_")  # Each seed has its own clone.
    assert [*comparison.values] == [SINGLE, STACK, *models]
    for row in ("constant", "function"):
        assert comparison.values[row]["roc_auc_macro"] == [0.5, 0.5]
    assert np.mean(comparison.values["forest"]["roc_auc_macro"]) > 0.6
    assert seeds == [0, 1]
    again = compare(dataset, [], models={"forest": forest}, seeds=2, seconds=600)
    assert again.values["forest"] == comparison.values["forest"]
    assert "constant is significantly" in str(comparison)


def test_a_class_that_training_samples_lack_has_its_column():
    estimator = Mock(classes_=[np.array([0, 1]), np.array([1]), np.array([0])])
    both, one = np.array([[0.4, 0.6]]), np.array([[1.0]])
    assert module._matrix([both, one, one], estimator).tolist() == [[0.6, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        ({"edgeless": Frequencies}, ValueError, "names of their own"),
        ({"net": torch.nn.Linear(3, 2)}, TypeError, "to be a function .*got Linear.*tg_mlc.fit"),
        ({"mine": 3}, TypeError, "'models\\['mine'\\]' to have 'fit'"),
        (
            {"mine": lambda data, split: np.zeros((2, 2))},
            ValueError,
            r"shape \[60, 2\] \(got shape \[2, 2\]\)",
        ),
        ({"mine": lambda data, split: data.y.numpy() * 2}, ValueError, "from 0 to 2"),
        ({}, ValueError, "'graphs' or 'models' to compare"),
    ],
)
def test_wrong_models_are_refused(models, error, message, dataset):
    with pytest.raises(error, match=message):
        compare(dataset, ["edgeless"] if models else [], models=models, seeds=1, seconds=0)


def test_a_label_that_no_sample_knows_is_refused_before_any_work():
    y = np.array([[0.0, np.nan], [1.0, np.nan]] * 30)
    samples = from_arrays(np.eye(60), y, ["calm", "sad"], kind="vector")
    with pytest.raises(ValueError, match=r"known value of each label.* \(got none of sad\)"):
        compare(samples, [])


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
