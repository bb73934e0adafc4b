from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import run
from tg_mlc import cli
from tg_mlc.cli import _COMMANDS


def error_of(command, capsys):
    with pytest.raises(SystemExit) as stop:
        run(command)
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("prdict", "(did you mean 'predict'?)"),
        ("data lst", "(did you mean 'list'?)"),
        ("predict model --smile CCO", "(did you mean '--smiles'?)"),
        ("train --cvs=drugs.csv", "(did you mean '--csv'?)"),
        ("train --csv a.csv", "the following arguments are required: --out"),
        ("predict model --smiles CCO --smiles=CCN", "argument --smiles: expected once"),
        ("", "error: "),
        ("data", "error: "),
        ("data fetch", "error: "),
        ("data get", "error: "),
        ("data info a --no b", "error: "),
    ],
)
def test_wrong_commands_exit_with_2(command, message, capsys):
    assert message in error_of(command, capsys)


def test_unlike_names_give_no_hint(capsys):
    assert "did you mean" not in error_of("predict model --xyz 1", capsys)


@pytest.mark.parametrize("command", ["train --csv a.csv", "train --seed x", "train --no 1"])
def test_errors_show_the_usage_of_the_command(command, capsys):
    error = error_of(command, capsys)
    assert error.startswith("usage: tg-mlc [options] train ")
    assert "--label_separator" in error


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("--csv a.csv", "--labels to name"),
        ("--labels x", "one of --csv, --sdf and --arff"),
        ("--csv a.csv --arff a.arff", "one of --csv, --sdf and --arff"),
        ("--labels x --arff a.csv", "ends in .arff"),
        ("--labels x --sdf a.csv", "ends in .sdf"),
    ],
)
def test_a_file_and_its_labels_are_needed(command, expected, tmp_path, capsys):
    assert run(f"train {command}", out=tmp_path / "m") == 1
    assert expected in capsys.readouterr().err


def test_options_come_from_a_file(tmp_path, capsys):
    with pytest.raises(SystemExit):
        run("train --csv a.csv --labels x,y --json --print_config", out=tmp_path)
    printed = capsys.readouterr().out
    assert "labels: x,y" in printed
    assert "json: true" in printed
    (tmp_path / "config.yaml").write_text(printed)
    assert run("train", config=tmp_path / "config.yaml") == 1
    assert "Expected the file 'a.csv'" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*(n for n in _COMMANDS if n != "data"), "data check", "data get"])
def test_help_has_groups_and_examples_without_python_types(name, capsys):
    with pytest.raises(SystemExit):
        run(f"{name} --help")
    printed = capsys.readouterr().out
    assert f"\nExamples:\n    tg-mlc {name} " in printed
    assert not [word for word in ("Union", "null", "type:", "list[", "+ ") if word in printed]
    if name == "train":
        assert " --force " in printed
        assert "--labels NAMES  " in printed
        assert "\nThe columns of inputs:\n" in printed
        assert "The columns of labels, separated by commas" in " ".join(printed.split())


def test_an_interruption_imports_nothing(monkeypatch):
    """A package whose import was interrupted would fail when it is imported again."""

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "parse", interrupt)
    monkeypatch.setattr(cli, "_expected", lambda: pytest.fail("imported"))
    assert cli.main([]) == 130


def test_help_does_not_import_pytorch():
    code = """
import sys
from tg_mlc import cli
for command in sys.argv[1:]:
    try:
        cli.main(command.split())
    except SystemExit:
        pass
print(sorted({"torch", "sklearn", "pandas"} & sys.modules.keys()))
"""
    commands = ["--help", "predict --help", "tune --help", "data info --help", "trian"]
    result = subprocess.run(
        [sys.executable, "-c", code, *commands], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "[]"
