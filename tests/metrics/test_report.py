import json
from itertools import product

import numpy as np
import pytest
import torch
from scipy.special import expit

from tests.fresh import run_python
from tests.metrics.test_decisions import METRICS as DECISIONS
from tg_mlc import metrics
from tg_mlc.metrics import LabelSets, ThresholdTuner, evaluate, macro_f1, tune_thresholds
from tg_mlc.metrics import report as report_module
from tg_mlc.metrics.report import metrics_per_label

NAN = float("nan")
RANKINGS = {
    f"{area}_{average}": getattr(metrics, f"{average}_{area}")
    for area, average in product(("roc_auc", "average_precision"), ("micro", "macro"))
}
NAMES = ["rash", "nausea", "always", "never", "unseen"]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, (30, 5)).astype(float)
    y[:, 2], y[:, 3], y[:, 4] = 1, 0, NAN
    y[::4, 0] = NAN
    return y, rng.random((30, 5))


@pytest.mark.parametrize("method", ["shared", "per_label"])
def test_values_equal_the_metrics(data, method):
    y, scores = data
    tuners = tune_thresholds(y, scores, method)
    evaluation = evaluate(y, scores, tuners, NAMES)
    at_k = [f"{name}_at_{k}" for k in (1, 3) for name in ("precision", "ndcg")]
    assert list(evaluation.values) == [*DECISIONS, *RANKINGS, "ece_macro", "brier_macro", *at_k]
    for name in at_k:
        metric, k = getattr(metrics, f"{name[:-2]}_k"), int(name[-1])
        assert evaluation[name] == metric(y, scores, k)
    for name, metric in DECISIONS.items():
        assert evaluation[name] == metric(y, tuners[name].predict(scores))
        expected = tuners[name].thresholds.squeeze()
        np.testing.assert_array_equal(evaluation.thresholds[name], expected)
    for name, metric in RANKINGS.items():
        assert evaluation[name] == metric(y, scores)


def test_undefined_labels_are_named(data):
    evaluation = evaluate(*data, label_names=NAMES)
    assert evaluation.undefined == ["always", "never", "unseen"]
    assert "leave out 3 of 5 labels (only one class observed): always, never" in str(evaluation)
    assert evaluate(*data).undefined == ["2", "3", "4"]
    evaluation = evaluate([[1, 0], [1, NAN]], [[0.2, 0.6], [0.4, 0.1]], label_names=["a", "b"])
    assert evaluation.undefined == ["a", "b"]
    assert np.isnan(evaluation["roc_auc_macro"])
    assert evaluation.to_dict()["values"]["roc_auc_macro"] is None


def test_labels_without_positives_and_predictions_are_named():
    y = [[1, 0, 0], [0, 0, 0], [1, 0, 0]]
    scores = [[0.9, 0.1, 0.8], [0.1, 0.2, 0.1], [0.8, 0.1, 0.2]]
    evaluation = evaluate(y, scores, 0.5, ["hit", "nothing", "false alarm"])
    assert evaluation.undefined_f1 == evaluation.to_dict()["undefined_f1"] == ["nothing"]
    assert "f1_macro counts 1 of 3 labels" in str(evaluation)
    assert "by zero_division=0: nothing" in str(evaluation)


def test_counts_and_zero_division_are_reported(data):
    evaluation = evaluate(*data, zero_division={"f1_macro": "drop"})
    assert (evaluation.num_samples, evaluation.num_labels, evaluation.num_unknown) == (30, 5, 38)
    assert evaluation.zero_division == {"f1_samples": 1, "f1_micro": 0, "f1_macro": "drop"}
    y, scores = data
    assert evaluation["f1_macro"] == macro_f1(y, scores >= 0.5, zero_division="drop")
    assert set(evaluate(*data, zero_division=0).zero_division.values()) == {0}


def test_the_table_and_json_show_everything(data):
    lines = str(evaluate(*data, 0.3)).splitlines()
    assert lines[0].split() == ["metric", "value", "threshold", "zero_division"]
    names = [*DECISIONS, *RANKINGS, "ece_macro", "brier_macro"]
    assert [line.split()[0] for line in lines[1:12]] == names
    assert lines[3].split()[2:] == ["0.3", "1"]
    assert lines[16] == "30 samples, 5 labels, 38 unknown entries"
    evaluation = evaluate(*data, np.full(5, 0.25), NAMES)
    restored = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert restored["values"] == evaluation.values
    assert restored["thresholds"]["f1_micro"] == [0.25] * 5
    assert restored["undefined"] == ["always", "never", "unseen"]


def test_thresholds_of_every_type_agree(data):
    y, scores = data
    tuner = ThresholdTuner(grid=[0.4]).fit(y, scores)
    expected = evaluate(y, scores, 0.4)
    per_label = torch.full((5,), 0.4, dtype=torch.float64)
    for thresholds in (tuner, [0.4], per_label, dict.fromkeys(DECISIONS, 0.4)):
        assert evaluate(torch.tensor(y), torch.tensor(scores), thresholds).values == expected.values


def test_label_sets_decide_without_a_threshold(data):
    y, scores = data
    sets = LabelSets(np.nan_to_num(y))
    evaluation = evaluate(y, scores, {**dict.fromkeys(DECISIONS, 0.4), "subset_accuracy": sets})
    assert evaluation["subset_accuracy"] == metrics.subset_accuracy(y, sets.predict(scores))
    assert evaluation.thresholds == {name: 0.4 for name in DECISIONS if name != "subset_accuracy"}
    [line] = [line for line in str(evaluation).splitlines() if line.startswith("subset_accuracy")]
    assert line.split()[2:] == ["label", "sets"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"thresholds": {"subset_accuracy": 0.5}}, r"each of .* \(got none for \['f1_macro"),
        ({"thresholds": [0.5, 0.5]}, "one threshold or 5"),
        ({"thresholds": [[0.5] * 5] * 2}, "one threshold or 5"),
        ({"thresholds": NAN}, "got NaN"),
        ({"label_names": ["a"]}, r"name each of the 5 labels \(got 1 names\)"),
        ({"zero_division": 2}, "0, 1 or 'drop'"),
        ({"zero_division": {"F1": 0}}, r"only for .* \(got \['F1'\]\)"),
    ],
)
def test_bad_arguments_are_named(data, arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate(*data, **arguments)


def test_logits_need_thresholds_of_their_own(data):
    y, scores = data
    logits = scores * 10 - 5
    for thresholds in (None, ThresholdTuner().fit(y, scores)):
        with pytest.raises(ValueError, match=r"got scores from -\S+ to \S+\); apply a sigmoid to"):
            evaluate(y, logits, thresholds)
    with pytest.raises(RuntimeError, match="'fit'"):
        evaluate(y, scores, ThresholdTuner())
    values, expected = evaluate(y, logits, 0.0).values, evaluate(y, expit(logits)).values
    different = {name for name in values if values[name] != expected[name]}
    assert different == {"ece_macro", "brier_macro"}
    assert evaluate(y, scores).thresholds == dict.fromkeys(DECISIONS, 0.5)


def test_metrics_need_no_extra():
    code = (
        "import sys\n"
        "for name in ('sklearn', 'rdkit', 'torchmetrics', 'pandas'): sys.modules[name] = None\n"
        "import tg_mlc.losses, tg_mlc.baselines\n"
        "from tg_mlc.metrics import evaluate, tune_thresholds\n"
        "y, scores = [[1, 0], [0, 1]], [[.9, .1], [.2, .7]]\n"
        "assert evaluate(y, scores, tune_thresholds(y, scores))['roc_auc_macro'] == 1\n"
    )
    run_python(code)


def test_added_metrics_are_in_every_evaluation(data, monkeypatch):
    monkeypatch.setitem(report_module.SCORE_METRICS, "toy", lambda scored: scored.scores.sum())
    evaluation = evaluate(*data)
    assert evaluation["toy"] == evaluation.to_dict()["values"]["toy"] == data[1].sum()
    assert "\ntoy " in str(evaluation)


def test_metrics_per_label_equal_an_evaluation(data):
    y, probabilities = data
    decisions = probabilities >= 0.5
    per_label, reliability = metrics_per_label(torch.from_numpy(y), probabilities, decisions)
    evaluation = evaluate(y, probabilities)
    names = {"ROC-AUC": "roc_auc", "average precision": "average_precision"}
    names |= {"ECE": "ece", "Brier score": "brier"}
    for name, metric in names.items():
        assert np.nanmean(per_label[name]) == pytest.approx(evaluation[f"{metric}_macro"])
    assert per_label["F1"][:4].mean() == pytest.approx(evaluation["f1_macro"])
    known = np.where(np.isnan(y), NAN, probabilities)
    for name, values in {"share": y, "mean probability": known}.items():
        assert per_label[name][:4] == pytest.approx(np.nanmean(values[:, :4], axis=0))
    assert np.isnan(per_label["ROC-AUC"]).tolist() == [False, False, True, True, True]
    assert all(np.isnan(values[4]) for name, values in per_label.items() if name != "F1")
    assert sum(number for *_, number in reliability.bins) == (~np.isnan(y)).sum()
    with pytest.raises(ValueError, match="at least one observed label"):
        metrics_per_label(np.full((2, 2), NAN), probabilities[:2, :2], decisions[:2, :2])


def test_results_of_each_label_are_those_of_the_label_alone(data):
    y, scores = data
    evaluation = evaluate(y, scores, [0.4, 0.5, 0.6, 0.5, 0.5], NAMES)
    frame = evaluation.frame()
    assert frame.index.tolist() == NAMES
    assert frame["known"].tolist() == [22, 30, 30, 30, 0]
    assert frame["positives"].tolist() == np.nansum(y, axis=0).tolist()
    assert frame["threshold"].tolist() == [0.4, 0.5, 0.6, 0.5, 0.5]
    for index, name in enumerate(NAMES[:2]):
        column, score = y[:, [index]], scores[:, [index]]
        row, threshold = frame.loc[name], frame.loc[name, "threshold"]
        assert row["roc_auc"] == metrics.macro_roc_auc(column, score)
        assert row["average_precision"] == metrics.macro_average_precision(column, score)
        assert row["f1"] == macro_f1(column, score >= threshold)
        assert row["roc_auc_low"] < row["roc_auc"] < row["roc_auc_high"]
    assert frame.loc["unseen", ["roc_auc", "roc_auc_low", "f1"]].isna().all()
    [*_, last] = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))["by_label"]
    assert last["label"] == "unseen"
    assert last["roc_auc"] is None


def test_averages_leave_out_roots(data):
    y, scores = data[0][:, [0, 1, 2]], data[1][:, [0, 1, 2]]
    evaluation = evaluate(y, scores, None, NAMES[:3], roots=["always"])
    alone = evaluate(y[:, :2], scores[:, :2], None, NAMES[:2], roots=[])
    for name, value in alone.values.items():
        assert evaluation[name] == pytest.approx(value), name
    assert evaluation.frame().loc["always", "positives"] == 30
    assert evaluation.undefined == alone.undefined == []
    assert "all averages leave out the roots: always" in str(evaluation)
    with pytest.raises(ValueError, match="besides the roots"):
        evaluate(y[:, 2:], scores[:, 2:], None, ["always"], roots=["always"])
