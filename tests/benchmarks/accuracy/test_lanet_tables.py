from __future__ import annotations

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


def test_every_cell_is_a_model_that_its_objective_takes():
    events = histories()
    split = time_split(events)
    for cell in CELLS.values():
        dataset = EventPreprocessor(window_size=cell.window_size).fit_transform(events, split)
        model = cell.build(dataset, split, 8)
        module = MultiLabelModule(model, dataset.label_names, **cell.preset["module"])
        assert module.objective.loss(model, dataset.batch(split.train[-4:])).isfinite()


def test_cells_are_made_once_and_compared(own_runs, capsys, monkeypatch):
    cells = "table_3.lstm,table_3.lanet_with_memory"
    options = {"cells": cells, "seeds": "0", "max_epochs": 1, "batches": 2, "draws": 3}
    lanet_tables.main(**options)
    place = own_runs / "lanet" / "complete_journey-max_epochs=1-limit_train_batches=2"
    found = json.loads((place / "table_3.lstm-0.json").read_text())
    assert found["epochs"] == 1
    assert set(report.COLUMNS) <= set(found["metrics"])
    assert (place / "table_3.lanet_with_memory-0.svg").exists()
    printed = capsys.readouterr().out
    assert "| table 3: LANET with memory | 1 |" in printed
    assert "Differences to TIFU-KNN" in printed
    assert "Differences to table 3: LANET with memory" in printed
    assert printed.index("| label frequency |") < printed.index("| table 3: LSTM |")
    assert "gradient boosting, whole history (" in printed  # The library stands behind it.
    monkeypatch.setattr(lanet_tables, "fit", None)  # Nothing is trained again.
    lanet_tables.main(**options)
    again = capsys.readouterr().out
    assert again.splitlines() == [line for line in printed.splitlines() if ".json:" not in line]


def test_entities_are_drawn_with_all_of_their_rows():
    entity = np.array([0, 1, 1, 2, 2, 2, 0])
    for weight in resamples(entity, 20):
        assert all(len(set(weight[entity == i])) == 1 for i in range(3))
        assert sum(weight[[0, 1, 3]]) == 3


def test_weights_of_rows_equal_rows_that_are_repeated():
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
    found = weighted_metrics(y, scores, {"f1_micro": 0.4, "f1_macro": 0.6})
    assert found.keys() == expected.keys()
    for key, metric in found.items():
        all_once, repeated = metric(np.stack([np.ones(40), weight], axis=1))
        assert all_once == pytest.approx(expected[key](y, scores))
        assert repeated == pytest.approx(expected[key](y[rows], scores[rows]))


def test_rows_are_compared_with_one_that_is_there(own_runs):
    options = {"cells": "table_3.lstm", "seeds": "0", "max_epochs": 1, "batches": 1, "draws": 2}
    with pytest.raises(ValueError, match=r"'against' to be some of .* \(got \['unknown'\]\)"):
        lanet_tables.main(**options, against="unknown")


SETTINGS = CELLS["table_3.lstm"].described


@pytest.mark.parametrize(
    ("other", "kept"),
    [
        ({}, True),
        ({"options": {}}, False),
        ({"settings": {**SETTINGS, "window_size": 4}}, False),
        ({"cell": "table_9.lstm"}, False),
        ({"split": "another"}, False),
        ({"metrics": {"f1_micro": 0.5}}, False),
    ],
)
def test_cells_of_other_options_or_targets_are_not_kept(other, kept, tmp_path):
    split, path = time_split(histories()), tmp_path / "table_3.lstm-0.json"
    assert not lanet_tables.is_current(path, split, {})
    found = {
        "cell": "table_3.lstm",
        "split": split.hash,
        "options": {"max_epochs": 1},
        "settings": SETTINGS,
    }
    path.write_text(json.dumps({**found, "metrics": dict.fromkeys(report.COLUMNS), **other}))
    assert lanet_tables.is_current(path, split, {"max_epochs": 1}) is kept


def test_no_two_cells_are_the_same():
    assert len({json.dumps(cell.described) for cell in CELLS.values()}) == len(CELLS)


def test_cells_without_a_later_column_get_it_from_their_checkpoint(own_runs, monkeypatch):
    options = {"cells": "table_3.lstm", "seeds": "0", "max_epochs": 1, "batches": 2, "draws": 2}
    lanet_tables.main(**options)
    (path,) = own_runs.rglob("table_3.lstm-0.json")
    made = json.loads(path.read_text())
    path.write_text(
        json.dumps(
            {**made, "metrics": {key: made["metrics"][key] for key in ("f1_micro", "f1_macro")}}
        )
    )
    trained = []
    monkeypatch.setattr(MultiLabelModule, "training_step", lambda *args: trained.append(args))
    lanet_tables.main(**options)
    found = json.loads(path.read_text())
    assert not trained
    assert (found["metrics"], found["thresholds"]) == (made["metrics"], made["thresholds"])


def test_metrics_without_a_frequent_label_are_undefined():
    y = {part: np.eye(6) for part in ("train", "val", "test")}
    y["test"] = np.zeros((6, 6))
    values, thresholds = lanet_tables.metrics(
        y, {part: np.full((6, 6), 0.3) for part in ("val", "test")}
    )
    assert values["roc_auc_macro10"] is None
    assert values["roc_auc_micro"] is None
    assert thresholds.keys() == {"f1_micro", "f1_macro"}
    assert set(values) == set(report.COLUMNS)


def test_seeds_are_no_ensemble(tmp_path):
    events = histories(num_rows=800)
    split = time_split(events)
    dataset = EventPreprocessor().fit_transform(events, split)
    shape, random = (len(split.test), dataset.num_labels), np.random.default_rng(0)
    y = dataset.y[split.test.numpy()].toarray()
    scores = [random.random(shape) for _ in range(3)]
    for seed, found in enumerate(scores):
        np.save(tmp_path / f"last set-{seed}.npy", found)
        (tmp_path / f"last set-{seed}.json").write_text(json.dumps({"cell": "last set"}))
    np.save(tmp_path / "TIFU-KNN-0.npy", np.zeros(shape))
    (tmp_path / "TIFU-KNN-0.json").write_text(json.dumps({"cell": "TIFU-KNN"}))
    found = compare(tmp_path.glob("*.json"), events, split, ["TIFU-KNN"], draws=3)["TIFU-KNN"][
        "last set"
    ]
    expected = np.mean([micro_roc_auc(y, score) for score in scores]) - 0.5
    assert found["roc_auc_micro"][0] == pytest.approx(expected)
    assert found["roc_auc_micro"][0] != pytest.approx(
        micro_roc_auc(y, np.mean(scores, axis=0)) - 0.5
    )
