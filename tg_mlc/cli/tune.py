"""The command ``tg-mlc tune``: training with the settings that do best on validation samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tg_mlc._optional import require
from tg_mlc.cli._output import show

if TYPE_CHECKING:
    from tg_mlc.cli._training import Run


def tune(
    *,
    csv: str,
    labels: str | list[str],
    out: str,
    smiles: str | None = None,
    text: str | None = None,
    dna: str | None = None,
    features: str | list[str] | None = None,
    label_separator: str | None = None,
    trials: int = 20,
    split: str = "random",
    seed: int = 0,
    epochs: int | None = None,
    force: bool = False,
    json: bool = False,
) -> int:
    """Trains with many settings, and keeps the model that is best on validation rows.

    Trials that are worse than most after the same number of epochs stop early. Run again after an interruption, it goes
    on with the trials that are missing.

    Args:
        csv: The file, with a header.
        labels: As of "tg-mlc train", like all options that are not described here.
        out: The folder of the model.
        smiles: The column of SMILES.
        text: The column of texts.
        dna: The column of DNA.
        features: The columns of numbers.
        label_separator: What stands between names in the one column of --labels.
        trials: The number of settings to try.
        split: How to choose rows for validation and testing.
        seed: Seed of the split, of weights and of the settings that are tried.
        epochs: The largest number of epochs.
        force: Replaces a model that is there, and starts anew what was interrupted.
        json: Prints the result as JSON.
    """
    from tg_mlc.cli._inputs import make_inputs
    from tg_mlc.cli._training import Run
    from tg_mlc.predict import load

    optuna = require("optuna", extra="tune")
    inputs = make_inputs(labels, {"smiles": smiles, "text": text, "dna": dna}, features, label_separator)
    run = Run(csv, inputs, out, split, seed, force)
    with run.started({"epochs": epochs, "tune": True}):
        study = _study(optuna, run, seed)
        _optimise(optuna, study, run, trials, {} if epochs is None else {"max_epochs": epochs})
        best = study.best_trial
        predictor = load(run.folder / f"trial-{best.number}" / "model")
        predictor.facts["tuned"] = {"settings": best.params, "trials": len(study.trials)}
        report = run.finish(predictor)
    settings = "\n".join(f"{name}: {value:.4g}" for name, value in best.params.items())
    result = {"model": out, "settings": best.params, **report}
    show(result, f"{run.report}\nThe settings of the best trial:\n{settings}\nThe model is in '{out}'.", json)
    return 0


def _study(optuna: Any, run: Run, seed: int) -> Any:
    """The trials so far, which a file keeps."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it warns of an interruption by a traceback
    run.folder.mkdir(parents=True, exist_ok=True)
    file = optuna.storages.journal.JournalFileBackend(str(run.folder / "trials.log"))
    return optuna.create_study(
        study_name="tune",
        storage=optuna.storages.JournalStorage(file),
        # Seeded by what was tried before, too: a study that goes on would else try the same again.
        sampler=optuna.samplers.TPESampler(seed=seed + _num_lines(run.folder / "trials.log")),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2),
        load_if_exists=True,
    )


def _settings_of(run: Run) -> dict[str, Any]:
    """The settings of the recipe, which the first trial takes."""
    found = {
        "channels": 64,
        "num_steps": 2,
        "dropout": 0.1,
        "weight_decay": 0.0,
        **run.recipe.model,
        **run.recipe.module,
    }
    return {name: found[name] for name in ("channels", "num_steps", "dropout", "lr", "weight_decay")}


def _num_lines(path: Any) -> int:
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def _optimise(optuna: Any, study: Any, run: Run, trials: int, fit_options: dict[str, Any]) -> None:
    from lightning.pytorch.callbacks import Callback
    from tqdm import trange

    ended = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)

    class Pruning(Callback):
        """Stops a trial that is worse than most were after as many epochs."""

        def __init__(self, trial: Any) -> None:
            self.trial = trial

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            self.trial.report(float(trainer.callback_metrics["val/loss"]), trainer.current_epoch)
            if self.trial.should_prune():
                raise optuna.TrialPruned

    def objective(trial: Any) -> float:
        changes = {
            "model_options": {
                "channels": trial.suggest_categorical("channels", [32, 64, 128]),
                "num_steps": trial.suggest_int("num_steps", 1, 3),
                "dropout": trial.suggest_float("dropout", 0.0, 0.5),
            },
            "module_options": {
                "lr": trial.suggest_float("lr", 1e-4, 1e-2, log=True),
                "weight_decay": trial.suggest_float("weight_decay", 1e-3, 0.3, log=True),
            },
        }
        options = {**fit_options, "callbacks": [Pruning(trial)]}
        predictor = run.train(options, f"trial-{trial.number}", **changes)
        return float(predictor.facts["validation"]["val/loss"])

    if not any(trial.state in (*ended, optuna.trial.TrialState.WAITING) for trial in study.trials):
        study.enqueue_trial(_settings_of(run))
    done = sum(trial.state in ended for trial in study.trials)
    for _ in trange(done, trials, desc="Trials", initial=done, total=trials, disable=None, leave=False):
        study.optimize(objective, n_trials=1)
