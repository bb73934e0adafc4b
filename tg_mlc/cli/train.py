"""The command ``tg-mlc train``: a file becomes the folder of a model."""

from __future__ import annotations

from typing import Literal

import tg_mlc
from tg_mlc.cli._options import InputColumns, TableOptions, TrainOptions


def train(
    options: TrainOptions,
    columns: InputColumns,
    table: TableOptions,
    *,
    given_masks: Literal["both", "present"] = "both",
    coverage_share: float = 0.0,
    calibrate: bool = False,
    force: bool = False,
    json: bool = False,
) -> int:
    """Trains a model on a file, and evaluates it on a tenth of the rows that it is not trained on.

    Args:
        given_masks (NAME): The labels that "predict --given" will get: both (present and absent
            ones), or present (only those that apply).
        coverage_share (FRACTION): The fraction of training rows that no fit sees, so that
            "predict --coverage 0.9" can promise what label sets hold.
        calibrate: Calibrates the combined probabilities of each label once more.
        force: Replaces a model that exists.
        json: Prints the result as JSON.

    Examples:
        tg-mlc train --csv drugs.csv --smiles smiles --labels liver,skin --out model
        tg-mlc train --csv tox21.csv --smiles smiles --labels 'NR-*,SR-*' --out model
        tg-mlc train --sdf drugs.sdf --labels rest --ignore name --out model
        tg-mlc train --csv news.csv --text body --labels topics --label_separator ';' --out model
        tg-mlc train --csv visits.csv --text note --features age,city --labels rest --out model
    """
    from tg_mlc.cli._training import Run, time_left

    run = Run(options, columns, table, force=force, json=json)
    dataset = run.train
    with time_left(options.seconds):
        choices = given_masks, coverage_share, calibrate
        model = tg_mlc.auto(dataset, options.seconds, options.seed, *choices)
    run.finish(model)
    return 0
