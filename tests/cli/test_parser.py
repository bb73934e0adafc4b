from __future__ import annotations

import subprocess
import sys

import pytest

from tg_mlc import cli


def error_of(words, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["prdict"], "'predict'"),
        (["data", "lst"], "'list'"),
        (["predict", "model", "--smile", "CCO"], "'--smiles'"),
        (["train", "--csf=drugs.csv"], "'--csv'"),
    ],
)
def test_what_is_like_a_name_is_meant(words, meant, capsys):
    assert f"(did you mean {meant}?)" in error_of(words, capsys)


def test_what_is_like_no_name_gets_no_hint(capsys):
    assert "did you mean" not in error_of(["predict", "model", "--xyz", "1"], capsys)


@pytest.mark.parametrize(
    "words", [["train", "--csv", "a.csv"], ["train", "--seed", "x"], ["train", "--no", "1"]]
)
def test_errors_show_the_usage_of_the_command(words, capsys):
    error = error_of(words, capsys)
    assert error.startswith("usage: tg-mlc [options] train ")
    assert "--label_separator" in error


def test_what_is_missing_is_named_as_it_is_given(capsys):
    assert "the following arguments are required: --out" in error_of(
        ["train", "--csv", "a.csv"], capsys
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--csv", "a.csv"], "--labels to name"),
        (["--labels", "x"], "--csv, or --arff"),
        (["--csv", "a.csv", "--arff", "a.arff"], "one of --csv and --arff"),
        (["--arff", "a.csv"], "ends in .arff"),
    ],
)
def test_a_file_and_its_labels_are_needed(words, expected, tmp_path, capsys):
    assert cli.main(["train", "--out", str(tmp_path / "m"), *words]) == 1
    assert expected in capsys.readouterr().err


def test_options_come_from_a_file(tmp_path, capsys):
    with pytest.raises(SystemExit):
        cli.main(
            [
                "train",
                "--csv",
                "a.csv",
                "--labels",
                "x,y",
                "--out",
                str(tmp_path),
                "--json",
                "--print_config",
            ]
        )
    printed = capsys.readouterr().out
    assert "labels: x,y" in printed
    assert "json: true" in printed
    config = tmp_path / "config.yaml"
    config.write_text(printed)
    assert cli.main(["train", "--config", str(config)]) == 1
    assert "Expected the file 'a.csv'" in capsys.readouterr().err


def test_help_of_flags(capsys):
    with pytest.raises(SystemExit):
        cli.main(["train", "--help"])
    printed = capsys.readouterr().out
    assert " --force " in printed
    assert "{true,false}" not in printed
    assert "The columns of labels, separated by commas" in printed


def test_an_interruption_imports_nothing(capsys, monkeypatch):
    """Packages that were being imported would fail to be imported again, in ways of their own."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "parse", interrupted)
    monkeypatch.setattr(cli, "_expected", lambda: pytest.fail("imported"))
    assert cli.main([]) == 130


def test_an_option_that_is_given_twice_is_refused(capsys):
    error = error_of(["predict", "model", "--smiles", "CCO", "--smiles=CCN"], capsys)
    assert "argument --smiles: expected once" in error


def test_help_does_without_pytorch():
    code = (
        "import sys\nfrom tg_mlc import cli\ntry:\n    cli.main(sys.argv[1:])\nexcept SystemExit:\n"
        "    print(sorted({'torch', 'sklearn', 'pandas'} & sys.modules.keys()))"
    )
    for words in (
        ["--help"],
        ["predict", "--help"],
        ["tune", "--help"],
        ["data", "info", "--help"],
        ["trian"],
    ):
        printed = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        ).stdout
        assert printed.splitlines()[-1] == "[]"
