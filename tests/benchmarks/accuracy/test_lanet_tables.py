import json

import numpy as np
import pytest

from benchmarks.accuracy import lanet_tables
from benchmarks.accuracy.lanet_bootstrap import compare, resamples, weighted_metrics
from benchmarks.accuracy.lanet_models import CELLS
from benchmarks.report import lanet as report
from tests.sequences.histories import histories
from tg_mlc.metrics import macro_f1, macro_roc_auc, micro_f1, micro_roc_auc, ndcg_at_k, recall_at_k
from tg_mlc.sequences import EventPreprocessor, time_split
from tg_mlc.training import MultiLabelModule


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(lanet_tables, "load_events", lambda *_, **__: histories(num_rows=800))


def test_every_cell_has_a_finite_loss():
    events = histories()
    split = time_split(events)
    for cell in CELLS.values():
        dataset = EventPreprocessor(window_size=cell.window_size).fit_transform(events, split)
        model = cell.build(dataset, split, 8)
        module = MultiLabelModule(model, dataset.label_names, **cell.preset["module"])
        assert module.objective.loss(model, dataset.batch(split.train[-4:])).isfinite()


def test_cells_are_trained_once_and_compared(own_runs, capsys, monkeypatch):
    cells = "table_3.lstm,table_3.lanet_with_memory"
    options = {"cells": cells, "seeds": "0", "max_epochs": 1, "batches": 2, "draws": 3}
    lanet_tables.main(**options)
    folder = own_runs / "lanet" / "complete_journey-max_epochs=1-limit_train_batches=2"
    cell = json.loads((folder / "table_3.lstm-0.json").read_text())
    assert cell["epochs"] == 1
    assert set(report.COLUMNS) <= set(cell["metrics"])
    assert (folder / "table_3.lanet_with_memory-0.svg").exists()
    printed = capsys.readouterr().out
    assert "| table 3: LANET with memory | 1 |" in printed
    assert "Differences to TIFU-KNN" in printed
    assert "Differences to table 3: LANET with memory" in printed
    assert printed.index("| label frequency |") < printed.index("| table 3: LSTM |")
    assert "gradient boosting, whole history (" in printed  # The row names its library.
    monkeypatch.setattr(lanet_tables, "fit", None)  # The second call trains nothing.
    lanet_tables.main(**options)
    reprinted = capsys.readouterr().out
    assert reprinted.splitlines() == [line for line in printed.splitlines() if ".json:" not in line]


def test_resamples_contain_all_rows_of_an_entity():
    entity = np.array([0, 1, 1, 2, 2, 2, 0])
    for weight in resamples(entity, 20):
        assert all(len(set(weight[entity == i])) == 1 for i in range(3))
        assert sum(weight[[0, 1, 3]]) == 3


def test_weighted_rows_equal_repeated_rows():
    random = np.random.default_rng(0)
    y, scores = (random.random((40, 6)) < 0.3).astype(float), random.integers(5, size=(40, 6)) / 5
    y[3], y[:, 5] = 0.0, 0.0
    weight = random.integers(3, size=40)
    rows = np.repeat(np.arange(40), weight)
    expected = {
        "roc_auc_micro": micro_roc_auc,
        "roc_auc_macro": macro_roc_auc,
        "f1_micro": lambda y, scores: micro_f1(y, scores >= 0.4),
        "f1_macro": lambda y, scores: macro_f1(y, scores >= 0.6),
        "R@10": recall_at_k,
        "NDCG@10": ndcg_at_k,
    }
    metrics = weighted_metrics(y, scores, {"f1_micro": 0.4, "f1_macro": 0.6})
    assert metrics.keys() == expected.keys()
    for key, metric in metrics.items():
        unweighted, repeated = metric(np.stack([np.ones(40), weight], axis=1))
        assert unweighted == pytest.approx(expected[key](y, scores))
        assert repeated == pytest.approx(expected[key](y[rows], scores[rows]))


def test_comparisons_with_an_unknown_row_are_refused(own_runs):
    options = {"cells": "table_3.lstm", "seeds": "0", "max_epochs": 1, "batches": 1, "draws": 2}
    with pytest.raises(ValueError, match=r"'against' to be some of .* \(got \['unknown'\]\)"):
        lanet_tables.main(**options, against="unknown")


SETTINGS = CELLS["table_3.lstm"].described


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"options": {}}, False),
        ({"settings": {**SETTINGS, "window_size": 4}}, False),
        ({"cell": "table_9.lstm"}, False),
        ({"split": "another"}, False),
        ({"metrics": {"f1_micro": 0.5}}, False),
    ],
)
def test_only_cells_of_the_same_options_and_targets_are_current(changes, expected, tmp_path):
    split, path = time_split(histories()), tmp_path / "table_3.lstm-0.json"
    assert not lanet_tables.is_current(path, split, {})
    content = {"cell": "table_3.lstm", "split": split.hash, "settings": SETTINGS}
    content["options"] = {"max_epochs": 1}
    path.write_text(json.dumps({**content, "metrics": dict.fromkeys(report.COLUMNS), **changes}))
    assert lanet_tables.is_current(path, split, {"max_epochs": 1}) is expected


def test_all_cells_have_different_descriptions():
    assert len({json.dumps(cell.described) for cell in CELLS.values()}) == len(CELLS)


def test_missing_columns_are_computed_from_checkpoints(own_runs, monkeypatch):
    options = {"cells": "table_3.lstm", "seeds": "0", "max_epochs": 1, "batches": 2, "draws": 2}
    lanet_tables.main(**options)
    (path,) = own_runs.rglob("table_3.lstm-0.json")
    cell = json.loads(path.read_text())
    two_metrics = {key: cell["metrics"][key] for key in ("f1_micro", "f1_macro")}
    path.write_text(json.dumps({**cell, "metrics": two_metrics}))
    steps = []
    monkeypatch.setattr(MultiLabelModule, "training_step", lambda *args: steps.append(args))
    lanet_tables.main(**options)
    new = json.loads(path.read_text())
    assert not steps
    assert (new["metrics"], new["thresholds"]) == (cell["metrics"], cell["thresholds"])


def test_metrics_without_a_frequent_label_are_undefined():
    y = {part: np.eye(6) for part in ("train", "val", "test")}
    y["test"] = np.zeros((6, 6))
    scores = {part: np.full((6, 6), 0.3) for part in ("val", "test")}
    values, thresholds = lanet_tables.metrics(y, scores)
    assert values["roc_auc_macro10"] is None
    assert values["roc_auc_micro"] is None
    assert thresholds.keys() == {"f1_micro", "f1_macro"}
    assert set(values) == set(report.COLUMNS)


def test_differences_are_means_over_seeds_and_no_ensemble(tmp_path):
    events = histories(num_rows=800)
    split = time_split(events)
    dataset = EventPreprocessor().fit_transform(events, split)
    shape, random = (len(split.test), dataset.num_labels), np.random.default_rng(0)
    y = dataset.y[split.test.numpy()].toarray()
    scores = [random.random(shape) for _ in range(3)]
    for seed, values in enumerate(scores):
        np.save(tmp_path / f"last set-{seed}.npy", values)
        (tmp_path / f"last set-{seed}.json").write_text(json.dumps({"cell": "last set"}))
    np.save(tmp_path / "TIFU-KNN-0.npy", np.zeros(shape))
    (tmp_path / "TIFU-KNN-0.json").write_text(json.dumps({"cell": "TIFU-KNN"}))
    differences = compare(tmp_path.glob("*.json"), events, split, ["TIFU-KNN"], draws=3)
    difference = differences["TIFU-KNN"]["last set"]["roc_auc_micro"][0]
    expected = np.mean([micro_roc_auc(y, score) for score in scores]) - 0.5
    assert difference == pytest.approx(expected)
    assert difference != pytest.approx(micro_roc_auc(y, np.mean(scores, axis=0)) - 0.5)
