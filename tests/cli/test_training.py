from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

import tg_mlc
from tests.cli.conftest import run, write_rows
from tg_mlc._optional import is_installed
from tg_mlc.cli._training import time_left
from tg_mlc.stacking import StackingFeatures


def test_the_time_left_is_shown_during_training(monkeypatch, capsys):
    threads = threading.active_count()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with suppress(KeyboardInterrupt), time_left(90.0):
        time.sleep(0.2)
        raise KeyboardInterrupt
    assert "Training takes at most about 01:29 more" in capsys.readouterr().err
    assert threading.active_count() <= threads + 1  # tqdm has its own thread.
    monkeypatch.undo()
    with time_left(90.0):
        time.sleep(0.1)
    assert capsys.readouterr() == ("", "")


def command(tmp_path, options="", seconds=0):
    file = tmp_path / "rows.csv"
    if not file.exists():
        write_rows(file)
    paths = f"--csv {file} --out {tmp_path / 'model'}"
    return f"train --labels tall,broad {paths} --seconds {seconds} {options}"


@pytest.mark.slow
def test_a_signal_to_terminate_ends_a_training_like_an_interruption(tmp_path):
    (tmp_path / "passing").mkdir()
    rows = [f"{i % 97},{i % 7},{i % 13},{int(i % 97 > 50)},{int(i % 7 > 3)}" for i in range(200)]
    (tmp_path / "rows.csv").write_text("\n".join(["height,width,depth,tall,broad", *rows]))
    arguments = [sys.executable, "-m", "tg_mlc", *command(tmp_path, seconds=300).split()]
    env, pipe = {**os.environ, "TMPDIR": str(tmp_path / "passing")}, subprocess.PIPE
    process = subprocess.Popen(arguments, env=env, stdout=pipe, stderr=pipe, text=True)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("passing/**/last.ckpt")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.terminate()
    out, error = process.communicate(timeout=60)
    assert process.returncode == 143
    assert out == ""
    assert error.splitlines()[-1] == "tg-mlc: terminated; run it again"
    assert "Traceback" not in error
    assert not (tmp_path / "model" / "model.json").exists()


def test_signal_handlers_are_restored(tmp_path):
    handler = signal.getsignal(signal.SIGTERM)
    assert run("data list") == 0
    assert signal.getsignal(signal.SIGTERM) is handler


def test_a_refused_training_leaves_no_files(tmp_path, capsys):
    assert run(command(tmp_path, "--text nothing")) == 1
    assert "nothing" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_a_model_saved_meanwhile_is_not_replaced(tmp_path, monkeypatch, capsys):
    def auto(*args, **options):
        (tmp_path / "model" / "model.json").write_text("of another one")
        return original(*args, **options)

    original = tg_mlc.auto
    monkeypatch.setattr(tg_mlc, "auto", auto)
    assert run(command(tmp_path)) == 1
    assert "another program saved it meanwhile" in capsys.readouterr().err
    assert (tmp_path / "model" / "model.json").read_text() == "of another one"
    monkeypatch.setattr(StackingFeatures, "fit", pytest.fail)
    (tmp_path / "model" / "model.json").unlink()
    monkeypatch.setattr(tg_mlc, "auto", original)
    assert run(command(tmp_path)) == 0


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("out", "rows.csv", "to be a folder, or a name for a new one (got the file 'rows.csv')"),
        ("out", "rows.csv/model", "got the file 'rows.csv'"),
        ("out", "closed/model", "'closed/model"),
        ("seconds", ".nan", "'--seconds' to be a finite number of at least 0 (got nan)"),
        ("seconds", ".inf", "'--seconds' to be a finite number of at least 0 (got inf)"),
    ],
)
def test_wrong_options_are_refused_before_training(
    option, value, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tg_mlc, "auto", pytest.fail)
    mkdir = Path.mkdir

    def refuse(path, *args, **options):
        if path.parts[0] == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return mkdir(path, *args, **options)

    monkeypatch.setattr(Path, "mkdir", refuse)  # Permissions do not stop the root user.
    options = {"csv": "rows.csv", "out": "model", "seconds": 0, option: value}
    write_rows(tmp_path / "rows.csv")
    for name in ("train", "tune") if is_installed("optuna") else ("train",):
        assert run(f"{name} --labels tall,broad", **options) == 1
        assert message in capsys.readouterr().err


def test_predictions_do_not_replace_inputs_or_models(rows, tmp_path, monkeypatch, capsys):
    folder = shutil.copytree(rows, tmp_path / "copy")
    monkeypatch.chdir(folder)
    (folder / "link.csv").symlink_to("rows.csv")
    [weights] = Path("model").glob("weights-*")
    contents = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    messages = dict.fromkeys(("rows.csv", "../copy/rows.csv", "link.csv"), "--out than --csv")
    messages |= dict.fromkeys(("model/model.json", weights), "--out than a file of the model")
    messages |= {
        "model": "(got 'model', a folder)",
        "no/out.csv": "(got 'no/out.csv', whose folder does not exist)",
    }
    for out, message in messages.items():
        assert run("predict model --csv rows.csv", out=out) == 1
        assert message in capsys.readouterr().err
    assert contents == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert run("predict model --csv rows.csv --out model/new.csv") == 0


def test_a_full_disk_is_reported_with_the_path(rows, tmp_path, capsys):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        out = tmp_path / "out.csv"
        status = run("predict", rows / "model", csv=rows / "rows.csv", out=out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert status == 1
    assert f"File too large: '{out}'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
