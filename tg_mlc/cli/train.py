"""The command ``tg-mlc train``: a CSV file becomes the folder of a model."""

from __future__ import annotations

from typing import Literal

import tg_mlc
from tg_mlc.cli._options import FileFlags, InputColumns, TrainOptions


def train(
    options: TrainOptions,
    columns: InputColumns,
    file: FileFlags,
    *,
    given_masks: Literal["both", "present"] = "both",
    coverage_share: float = 0.0,
    calibrate: bool = False,
    force: bool = False,
    json: bool = False,
) -> int:
    """Trains a model on a CSV file and evaluates it on a tenth of the rows, which are kept out of training.

    Args:
        given_masks: The labels that "predict --given" will get: both (present and absent ones), or present (only those
            that apply).
        coverage_share: The share of training rows that no fit sees, so that "predict --coverage 0.9" can promise what
            label sets hold.
        calibrate: Calibrates the combined probabilities of each label once more.
        force: Replaces a model that exists.
        json: Prints the result as JSON.
    """
    from tg_mlc.cli._training import Run, time_left

    run = Run(options, columns, file, force=force, json=json)
    dataset = run.train
    with time_left(options.seconds):
        choices = given_masks, coverage_share, calibrate
        model = tg_mlc.auto(dataset, options.seconds, options.seed, *choices)
    run.finish(model)
    return 0
