import numpy as np
import pytest
import torch

from tg_mlc.metrics import evaluate
from tg_mlc.metrics.per_label import metrics_per_label


def test_means_over_labels_are_those_of_an_evaluation():
    rng = np.random.default_rng(0)
    y = np.where(rng.random((50, 4)) < 0.1, np.nan, (rng.random((50, 4)) < 0.4).astype(float))
    probabilities = rng.random((50, 4))
    decisions = probabilities >= 0.5
    metrics, reliability = metrics_per_label(torch.from_numpy(y), probabilities, decisions)
    evaluation = evaluate(y, probabilities)
    names = {"ROC-AUC": "roc_auc", "average precision": "average_precision", "F1": "f1"}
    for name, of_all in names.items():
        assert metrics[name].mean() == pytest.approx(evaluation[f"{of_all}_macro"])
    assert metrics["ECE"].mean() == pytest.approx(evaluation["ece_macro"])
    assert metrics["Brier score"].mean() == pytest.approx(evaluation["brier_macro"])
    assert metrics["share"] == pytest.approx(np.nanmean(y, axis=0))
    known = np.where(np.isnan(y), np.nan, probabilities)
    assert metrics["mean probability"] == pytest.approx(np.nanmean(known, axis=0))
    assert sum(number for *_, number in reliability.bins) == (~np.isnan(y)).sum()


def test_an_unknown_label_has_no_metrics():
    y, probabilities = np.array([[1.0, np.nan], [0.0, np.nan]]), np.full((2, 2), 0.25)
    metrics, _ = metrics_per_label(y, probabilities, probabilities > 0.5)
    expected = {"share": 0.5, "mean probability": 0.25, "ROC-AUC": 0.5, "average precision": 0.5}
    expected |= {"F1": 0.0, "ECE": 0.25, "Brier score": (0.75**2 + 0.25**2) / 2}
    assert {name: values[0] for name, values in metrics.items()} == pytest.approx(expected)
    assert all(np.isnan(values[1]) for name, values in metrics.items() if name != "F1")
    with pytest.raises(ValueError, match="at least one observed label"):
        metrics_per_label(np.full((2, 2), np.nan), probabilities, probabilities > 0.5)
