"""The command ``tg-mlc export``."""

from __future__ import annotations

import json

from tests.requirements import needs_export
from tg_mlc.cli import main


@needs_export
def test_export_writes_a_folder(plain_model, tmp_path, capsys):
    out = tmp_path / "exported"
    assert (
        main(
            [
                "export",
                str(plain_model),
                "--out",
                str(out),
                "--base_scores",
                "input",
                "--no_given",
                "--json",
            ]
        )
        == 0
    )
    shown = json.loads(capsys.readouterr().out)
    assert shown["files"].keys() == {
        "README.md",
        "featurize.json",
        "golden.json",
        "model.json",
        "network.pt2",
    }
    assert json.loads((out / "model.json").read_text())["inputs"].keys() == {"x", "base_scores"}


def test_a_file_needs_a_model_that_knows_its_columns(plain_model, tmp_path, capsys):
    assert (
        main(["export", str(plain_model), "--out", str(tmp_path / "exported"), "--csv", "rows.csv"])
        == 1
    )
    assert "to be trained by 'tg-mlc train'" in capsys.readouterr().err
