"""The command ``tg-mlc tune``: training with the best settings of label message passing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import tg_mlc
from tg_mlc._optional import require
from tg_mlc._options import check_count
from tg_mlc.cli._options import InputColumns, TableOptions, TrainOptions


def tune(
    options: TrainOptions,
    columns: InputColumns,
    table: TableOptions,
    *,
    trials: int = 20,
    force: bool = False,
    json: bool = False,
) -> int:
    """Trains as "tg-mlc train" does, with the best of many settings of label message passing.

    Trials that are worse than most after the same number of epochs stop early. Trials take their
    own time, on top of --seconds.

    Args:
        trials (NUMBER): The number of settings to try.
        force: Replaces a model that exists.
        json: Prints the result as JSON.

    Examples:
        tg-mlc tune --csv songs.csv --labels calm,sad --trials 50 --out model
    """
    from tg_mlc.cli._training import Run, time_left

    check_count("--trials", trials)
    optuna = require("optuna", extra="tune")
    run = Run(options, columns, table, force=force, json=json)
    with ExitStack() as clock:
        dataset = run.train

        def search(*args: Any) -> dict[str, Any]:
            settings = _search(optuna, options.seed, trials, *args)
            clock.enter_context(time_left(options.seconds))
            return settings

        model = tg_mlc.auto(dataset, options.seconds, options.seed, search=search)
    run.finish(model, settings=model.report["lamp"])
    return 0


def _search(
    optuna: Any, seed: int, trials: int, attempt: Callable[..., float], defaults: dict[str, Any]
) -> dict[str, Any]:
    """Returns the best settings of all trials. The first trial uses the defaults."""
    from lightning.pytorch.callbacks import Callback
    from tqdm import trange

    class Pruning(Callback):
        """Stops a trial that is worse than most after the same number of epochs."""

        def __init__(self, trial: Any) -> None:
            self.trial = trial

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            self.trial.report(float(trainer.callback_metrics["val/loss"]), trainer.current_epoch)
            if self.trial.should_prune():
                raise optuna.TrialPruned

    def objective(trial: Any) -> float:
        changes = {
            "channels": trial.suggest_categorical("channels", [32, 64, 128]),
            "num_steps": trial.suggest_int("num_steps", 1, 3),
            "dropout": trial.suggest_float("dropout", 0.0, 0.5),
            "lr": trial.suggest_float("lr", 1e-4, 1e-2, log=True),
            "weight_decay": trial.suggest_float("weight_decay", 1e-3, 0.3, log=True),
        }
        try:
            return attempt(changes, Pruning(trial))
        except FloatingPointError as error:
            raise optuna.TrialPruned(f"diverged: {error}") from error

    # Optuna would print each trial.
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=seed),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2),
    )
    names = ("channels", "num_steps", "dropout", "lr", "weight_decay")
    study.enqueue_trial({name: defaults[name] for name in names})
    for _ in trange(trials, desc="Trials", disable=None, leave=False):
        study.optimize(objective, n_trials=1)
    return dict(study.best_params)
