"""A custom kind of input adds its options to every command that takes inputs."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import run
from tests.inputs.test_kinds import Digits
from tg_mlc._input_options import INPUT_OPTIONS, InputOption
from tg_mlc.inference import Model
from tg_mlc.inputs.kinds import KINDS, kinds_by_columns


@pytest.fixture
def toy():
    """Registers a custom kind of input, strings of digits, for the time of a test."""

    class Toy(Digits):
        option, role, noun = "toy", "text", "a toy"
        command_option = InputOption("toy", "The column of toys.", "A toy.")

        @classmethod
        def check(cls, raw):
            if not raw.isdigit():
                raise ValueError(f"Expected digits (got {raw!r})")

        @classmethod
        def read(cls, X, kind, **options):
            for text in X:
                cls.check(text)
            return super().read(X, kind, **options)

    KINDS.append(Toy)
    yield Toy
    KINDS.remove(Toy)
    del INPUT_OPTIONS["toy"]


def test_options_of_a_custom_kind_take_a_column_or_one_input(toy, tmp_path, monkeypatch, capsys):
    toys = [f"{number:06d}" for number in range(0, 40_000, 997)]
    lines = [f"{entry},{int('9' in entry)},{int(entry.count('0') > 2)}" for entry in toys]
    (tmp_path / "toys.csv").write_text("\n".join(["code,nine,zeros", *lines, "none,0,0"]))
    out, file = tmp_path / "model", tmp_path / "toys.csv"
    assert run("train --toy code --labels nine,zeros --seconds 0", csv=file, out=out) == 0
    capsys.readouterr()
    assert run("predict", out, "--json", toy="999999") == 0
    assert {entry["label"] for entry in json.loads(capsys.readouterr().out)} == {"nine", "zeros"}
    assert run("predict", out, toy="nine") == 1
    assert "Expected an input that can be read for --toy (got 'nine'" in capsys.readouterr().err
    assert run("predict", out, "--json", csv=file) == 1
    assert "1 row could not be read as a toy" in capsys.readouterr().err
    explained = []

    def explain(model, raw, *options, **others):
        explained.extend(raw)
        raise ValueError("enough")

    monkeypatch.setattr(Model, "explain", explain)
    assert run("explain", out, toy="123", out=tmp_path / "report.html") == 1
    assert explained == ["123"]


def test_options_of_a_custom_kind_have_help(toy, capsys):
    columns = dict.fromkeys(("train", "data check"), "--toy COLUMN The column of toys.")
    for command, text in {**columns, "predict": "--toy TOY A toy.", "explain": "A toy."}.items():
        with pytest.raises(SystemExit):
            run(f"{command} --help")
        assert text in " ".join(capsys.readouterr().out.split())


def test_input_options_equal_those_of_the_kinds():
    assert {name: kind.command_option for name, kind in kinds_by_columns().items()} == INPUT_OPTIONS


def test_data_check_accepts_the_kind_of_a_column(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("site,bound\n" + "ACGT,1\nACCT,0\n" * 6)
    assert run("data check --dna site --labels bound", csv=tmp_path / "a.csv") == 0
    assert capsys.readouterr().out.splitlines()[2].split()[:2] == ["site", "dna"]
