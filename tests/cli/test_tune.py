from __future__ import annotations

import json

import pytest

import tg_mlc
from tests.cli.conftest import write_rows
from tg_mlc import cli
from tg_mlc.cli._training import Run


@pytest.fixture
def command(tmp_path):
    table = write_rows(tmp_path / "rows.csv")
    options = ["--epochs", "2", "--trials", "3", "--json"]
    return ["tune", "--csv", str(table), "--labels", "tall,broad", "--out", str(tmp_path / "model"), *options]


def test_the_best_trial_is_kept_and_what_was_interrupted_goes_on(command, tmp_path, capsys, monkeypatch):
    pytest.importorskip("optuna")
    train, trained = Run.train, []

    def interrupted(self, options, name, **changes):
        if len(trained) == 2:
            trained.append(name)
            raise KeyboardInterrupt
        trained.append(name)
        return train(self, options, name, **changes)

    monkeypatch.setattr(Run, "train", interrupted)
    assert cli.main(command) == 130
    assert cli.main(command) == 0
    assert len(trained) == 4
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    facts = tg_mlc.load(tmp_path / "model").facts
    assert facts["tuned"]["settings"] == result["settings"]
    assert facts["validation"]["val/loss"] == result["validation"]["val/loss"]
    assert [path.name.split("-")[0] for path in sorted((tmp_path / "model").iterdir())] == ["model.json", "weights"]


def test_without_the_extra(command, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    assert cli.main(command) == 1
    assert 'pip install "tg_mlc[tune]"' in capsys.readouterr().err
