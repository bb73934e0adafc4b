"""Runs the transcript of the command line in the docs again."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.snippets import ROOT, python_blocks
from tg_mlc import cli
from tg_mlc.stacking import folds

PAGE = "docs/command_line.md"
[TRANSCRIPT] = re.findall(
    r"^```console\n(.*?)^```", (ROOT / PAGE).read_text(), re.DOTALL | re.MULTILINE
)


def without_numbers(text):
    """Replaces numbers and joins spaces, because both differ between machines."""
    return re.sub(r"-?\d[\d.]*(e-?\d+)?", "#", " ".join(text.split()))


@pytest.mark.slow
def test_commands_print_the_transcript(tmp_path, monkeypatch, capsys):
    pytest.importorskip("rdkit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(folds, "MAX_EPOCHS", 3)
    monkeypatch.setattr(folds, "NUM_FOLDS", (2,))
    exec(python_blocks(PAGE)[0], {})
    entries = re.findall(r"^\$ tg-mlc (.*)\n((?:[^$].*\n)*)", TRANSCRIPT, re.MULTILINE)
    assert len(entries) == 6
    for command, expected in entries:
        cli.main(shlex.split(command))
        printed = capsys.readouterr()
        assert without_numbers(printed.out + printed.err) == without_numbers(expected), command
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 81
