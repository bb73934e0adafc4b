"""The command ``tg-mlc train``: a CSV file becomes the folder of a model."""

from __future__ import annotations

from tg_mlc.cli._options import TrainOptions


def train(options: TrainOptions) -> int:
    """Trains a model on a CSV file and evaluates it on a tenth of the rows that it has not seen."""
    from tg_mlc.cli._progress import time_left
    from tg_mlc.cli._training import Run
    from tg_mlc.stacking import AutoModel

    with Run(options) as run:
        train = run.train
        with time_left(options.seconds):
            model = AutoModel(options.seconds, options.seed).fit(train, run.folder / f"train-{run.key}")
        run.finish(model)
    return 0
