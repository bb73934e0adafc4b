from __future__ import annotations

import json
import sys

import pytest

import tg_mlc
from tests.cli.conftest import run, write_rows
from tests.quick import train_little
from tg_mlc.stacking import folds as _folds


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Returns a command that takes seconds because each training has two epochs."""
    train_little(monkeypatch, max_epochs=2)
    table = write_rows(tmp_path / "rows.csv")
    options = "--labels tall,broad --seconds 10 --trials 3 --json"
    return f"tune --csv {table} --out {tmp_path / 'model'} {options}"


def test_the_best_settings_train_the_model(command, tmp_path, capsys, monkeypatch):
    pytest.importorskip("optuna")
    train, trials = _folds._train, []

    def diverge(settings, dataset, split, options, epochs, seed, patience=None, callbacks=()):
        if callbacks:
            trials.append(options)
            if len(trials) == 2:
                raise FloatingPointError("loss is nan")
        return train(settings, dataset, split, options, epochs, seed, patience, callbacks)

    monkeypatch.setattr(_folds, "_train", diverge)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run(command) == 0
    assert len(trials) == 3
    assert trials[0]["channels"] == 64
    printed = capsys.readouterr()
    assert "Training takes at most about 00:" in printed.err
    settings = json.loads(printed.out)["settings"]
    assert settings["lr"] in (trials[0]["lr"], trials[2]["lr"])
    assert tg_mlc.load(tmp_path / "model").facts["settings"] == settings
    names = sorted(path.name.split("-")[0] for path in (tmp_path / "model").iterdir())
    assert names == ["model.json", "weights"]


def test_the_number_of_trials_is_checked_before_the_file_is_read(tmp_path, capsys):
    command = "tune --labels tall --csv none.csv --trials 0"
    assert run(command, out=tmp_path / "model") == 1
    assert "'--trials' to be a whole number of at least 1 (got 0)" in capsys.readouterr().err


def test_a_missing_extra_is_named(command, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert run(command) == 1
    assert 'pip install "tg_mlc[tune]"' in capsys.readouterr().err
