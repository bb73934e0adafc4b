"""The command ``tg-mlc evaluate``: the metrics of a model on labelled rows."""

from __future__ import annotations

from pathlib import Path

from tg_mlc.cli._output import show


def evaluate(model: str, *, csv: str, batch_size: int = 256, device: str = "cpu", json: bool = False) -> int:
    """Evaluates a model on the rows of a CSV file, whose labels are known.

    Args:
        model: The folder of the model.
        csv: A file with the columns of inputs and labels that the model was trained on.
        batch_size: The number of samples at a time.
        device: Where to compute.
        json: Prints JSON.
    """
    import numpy as np
    import torch

    from tg_mlc.cli._inputs import inputs_of
    from tg_mlc.metrics import evaluate as report_of
    from tg_mlc.predict import load

    predictor = load(model, device)
    inputs = inputs_of(predictor, model)
    scores, targets = [], []
    for table, raw in inputs.blocks(Path(csv)):
        table.require(predictor.label_names if inputs.separator is None else inputs.labels, inputs.columns)
        scores.append(predictor.scores(raw, batch_size=batch_size))
        targets.append(inputs.targets(table, predictor.label_names))
    y = torch.from_numpy(np.concatenate(targets))
    thresholds = predictor.scorer.tuners or 0.5
    report = report_of(y, torch.from_numpy(np.concatenate(scores)), thresholds, predictor.label_names)
    show({name: float(value) for name, value in report.values.items()}, str(report), json)
    return 0
