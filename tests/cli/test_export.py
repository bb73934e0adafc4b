"""The command ``tg-mlc export``."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import run
from tests.requirements import needs_export


@pytest.mark.slow
@needs_export
def test_export_writes_a_folder(plain_model, tmp_path, capsys):
    out = tmp_path / "exported"
    assert run("export --base_scores input --no_given --json", plain_model, out=out) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    names = ["README.md", "featurize.json", "featurize.py", "golden.json", "model.json"]
    assert sorted(files) == [*names, "network.pt2", "requirements.txt"]
    assert json.loads((out / "model.json").read_text())["inputs"].keys() == {"x", "base_scores"}


def test_csv_needs_a_model_that_the_command_line_trained(plain_model, tmp_path, capsys):
    assert run("export --csv rows.csv", plain_model, out=tmp_path / "exported") == 1
    assert "to be trained by 'tg-mlc train'" in capsys.readouterr().err
