from __future__ import annotations

import os
import re
import signal
import sys
import warnings

import pandas as pd
import pytest
import torch
from lightning.pytorch.callbacks import Callback
from torch_geometric.nn import global_add_pool

from tests.training.conftest import GINE, LABELS, LabelModel, make_module, train
from tg_mlc.data import Split
from tg_mlc.inference import read_checkpoint
from tg_mlc.metrics import evaluate, macro_roc_auc, tune_thresholds
from tg_mlc.nn.encoders.graphs import CategoricalEmbedding
from tg_mlc.training import BinaryObjective, MultiLabelDataModule
from tg_mlc.training.fitting import MONITORS
from tg_mlc.training.module import PLATEAU_FACTOR


def targets_of(dataset, indices):
    return torch.cat([dataset[int(index)].y for index in indices])


@pytest.mark.parametrize("model", [GINE, LabelModel])
def test_models_learn(tmp_path, dataset, split, data, model):
    objective, aucs = BinaryObjective(intermediate_weight=0.2 if model is LabelModel else 0.0), []
    for seed in range(3):  # The few test samples may be ranked well by chance.
        module, folder = make_module(model, seed, objective=objective), tmp_path / str(seed)
        result = train(module, data, folder, max_epochs=30, patience=None)
        scores = result.scores(data.test_dataloader())
        assert scores.shape == (len(split.test), len(LABELS))
        aucs.append(float(macro_roc_auc(targets_of(dataset, split.test), scores)))
    assert sum(aucs) / len(aucs) > 0.8


@pytest.mark.parametrize(
    ("monitor", "ema_decay"), [("val/macro_roc_auc", 0.9), ("val/loss", None), ("val/loss", 0.9)]
)
def test_the_result_holds_the_best_weights_and_their_thresholds(
    tmp_path, dataset, split, data, monitor, ema_decay
):
    module = make_module(lr=0.1)
    options = {"monitor": monitor, "ema_decay": ema_decay, "logger": True}
    result = train(module, data, tmp_path, max_epochs=6, patience=None, **options)
    table = pd.read_csv(tmp_path / "logs" / "version_0" / "metrics.csv")
    best = table[monitor].max() if monitor == "val/macro_roc_auc" else table[monitor].min()
    assert result.best_value == pytest.approx(best)
    assert result.module is module
    assert not module.training

    y, scores = targets_of(dataset, split.val), result.scores(data.val_dataloader())
    if monitor == "val/macro_roc_auc":
        assert macro_roc_auc(y, scores) == pytest.approx(result.best_value)
    else:
        known = ~y.isnan()
        loss = torch.nn.functional.binary_cross_entropy(scores[known], y[known])
        assert float(loss) == pytest.approx(result.best_value, rel=1e-5)
    tuners = module.tuners, tune_thresholds(y, scores)
    actual, expected = ({key: tuner.threshold for key, tuner in group.items()} for group in tuners)
    assert actual == expected
    actual, expected = (evaluate(y, scores, group).values for group in tuners)
    assert actual == expected


def test_logs_are_complete(tmp_path, data):
    module = make_module(lr_schedule="linear", warmup=0.1, config={"heads": 4})
    train(module, data, tmp_path, max_epochs=3, logger=True)
    folder = tmp_path / "logs" / "version_0"
    table = pd.read_csv(folder / "metrics.csv")
    for name in ("train/loss", *MONITORS):
        assert table[name].notna().sum() == 3
    assert any(column.startswith("lr-") for column in table.columns)
    assert list(folder.glob("events.out.tfevents*"))
    assert "heads: 4" in (folder / "hparams.yaml").read_text()


def test_training_prints_nothing(tmp_path, data, capfd):
    modules = [make_module(lr_schedule="cosine") for _ in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # PyG's own layers warn on Python 3.13 when they are made.
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="torch_geometric")
        for module, resume in zip(modules, (False, True), strict=True):
            options = {"ema_decay": 0.9, "resume": resume, "logger": True}
            result = train(module, data, tmp_path, max_epochs=2, **options)
            result.scores(data.test_dataloader())
    assert capfd.readouterr() == ("", "")


def test_the_progress_bar_shows_the_time_left(tmp_path, data, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    train(make_module(), data, tmp_path, max_epochs=2)
    out = capsys.readouterr().out
    assert "Training: 100%" in out
    assert re.search(r"10/10 \[\d\d:\d\d<00:00", out)
    assert "epoch=1, val/macro_roc_auc=" in out


@pytest.mark.filterwarnings("ignore:.*could not find the monitored key.*")
def test_training_does_not_change_with_validation(tmp_path, dataset, split):
    """Loaders for validation do not draw from the global generator."""
    weights = []
    for interval in (1, 2):
        data = MultiLabelDataModule(dataset, split, batch_size=8)
        options = {"patience": None, "check_val_every_n_epoch": interval}
        train(make_module(), data, tmp_path, max_epochs=2, **options)
        state = torch.load(tmp_path / "last.ckpt", weights_only=True)["state_dict"]
        weights.append(torch.cat([value.flatten().double() for value in state.values()]))
    assert torch.equal(*weights)


@pytest.mark.parametrize(
    ("error", "options", "message"),
    [
        (ValueError, {"module": "GINE"}, r"'module' to be a torch.nn.Module, .* \(got str\)"),
        (ValueError, {"monitor": "val/f1"}, "'monitor' to be one of"),
        (ValueError, {"label_names": ["a", *LABELS[1:]]}, "'sour' there and 'a' here"),
        (ValueError, {"patience": 0}, r"'patience' to be a whole number .* \(got 0\)"),
        (ValueError, {"patience": 2.5}, r"'patience' .* \(got 2\.5\)"),
        (ValueError, {"gradient_clip": -1.0}, r"'gradient_clip' .* \(got -1\.0\)"),
        (ValueError, {"gradient_clip": 0}, r"'gradient_clip' .* \(got 0\)"),
        (ValueError, {"ema_decay": 2.0}, r"'ema_decay' of fit\) between 0 and 1 \(got 2\.0\)"),
        (FloatingPointError, {"lr": 1e30}, "diverged"),
        (RuntimeError, {"max_epochs": 0}, "at least one epoch with validation"),
        (RuntimeError, {"max_steps": 1}, "at least one epoch with validation .* 'max_steps'"),
    ],
)
def test_invalid_trainings_are_refused(tmp_path, data, error, options, message):
    options = {"module": GINE(), **options}
    with pytest.raises(error, match=message):
        train(data=data, folder=tmp_path / "run", **options)
    assert (tmp_path / "run").exists() == (error is not ValueError)


def test_an_undefined_metric_chooses_no_epoch(tmp_path, dataset, split):
    one_sample = Split(split.train, split.val[:1], torch.cat([split.test, split.val[1:]]), "one")
    with pytest.raises(ValueError, match="monitor='val/loss'"):
        train(make_module(), MultiLabelDataModule(dataset, one_sample), tmp_path)


class TrainThereToo(Callback):
    def __init__(self, folder):
        self.folder = folder

    def on_train_epoch_end(self, trainer, pl_module):
        train(make_module(), trainer.datamodule, self.folder)


def test_a_folder_takes_one_training_at_a_time(tmp_path, data):
    with pytest.raises(RuntimeError, match=r"no other training that writes to .*another folder"):
        train(make_module(), data, tmp_path, max_epochs=1, callbacks=[TrainThereToo(tmp_path)])
    # The lock file that a crash leaves behind does not prevent another training.
    assert (tmp_path / ".lock").exists()
    assert train(make_module(), data, tmp_path, max_epochs=1).num_epochs == 1


class Categories(torch.nn.Module):
    """A model that looks rows up by an integer buffer, as embeddings of several categories do."""

    def __init__(self):
        super().__init__()
        self.inputs = CategoricalEmbedding([50, 70, 9], 8)
        self.lin = torch.nn.Linear(8, len(LABELS))

    def forward(self, batch):
        x = self.inputs((batch.x[:, :3] * 3).long().clamp(-4, 4) + 4)
        return self.lin(global_add_pool(x, batch.batch))


def test_averaged_weights_leave_integer_buffers_alone(tmp_path, split, data):
    options = {"max_epochs": 3, "patience": None, "ema_decay": 0.9}
    result = train(make_module(Categories), data, tmp_path, **options)
    assert result.module.model.inputs.offset.tolist() == [0, 50, 120]
    loaded = Categories()
    loaded.load_state_dict(read_checkpoint(result.checkpoint).state_dict)
    loader = data.test_dataloader()
    with torch.no_grad():
        expected = torch.cat([loaded.eval()(batch).sigmoid() for batch in loader])
    torch.testing.assert_close(result.scores(loader), expected)


def test_the_learning_rate_falls_where_validation_stalls(tmp_path, data, monkeypatch):
    monkeypatch.setattr("tg_mlc.training.module.PLATEAU_PATIENCE", 1)
    module = make_module(lr_schedule="plateau", lr=1e-12)  # no epoch is better than the first
    result = train(module, data, tmp_path, max_epochs=5, patience=None)
    rate = result.trainer.optimizers[0].param_groups[0]["lr"]
    assert rate == pytest.approx(1e-12 * PLATEAU_FACTOR**2)


class Terminating(Callback):
    """Sends the signal to terminate after an epoch."""

    def on_train_epoch_end(self, *_):
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_to_terminate_ends_the_process_with_an_error(data, tmp_path, capsys):
    options = {"max_epochs": 3, "monitor": "val/loss"}
    with pytest.raises(SystemExit) as stop:
        train(make_module(), data, tmp_path, callbacks=[Terminating()], **options)
    assert stop.value.code == 143
    assert f"'{tmp_path}' was terminated; call fit with resume=True" in capsys.readouterr().err
    assert train(make_module(), data, tmp_path, resume=True, **options).num_epochs == 3
