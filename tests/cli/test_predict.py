from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import tg_mlc
from tests.predict.conftest import folder, result  # noqa: F401
from tg_mlc import cli


def read(text):
    return list(csv.DictReader(text.splitlines()))


def test_rows_of_a_file(rows, tmp_path, capsys):
    command = ["predict", str(rows / "model"), "--csv", str(rows / "rows.csv")]
    assert cli.main(command) == 0
    lines = read(capsys.readouterr().out)
    assert len(lines) == 80
    values = [[float(line["height"] or "nan"), float(line["width"])] for line in read((rows / "rows.csv").read_text())]
    frame = tg_mlc.load(rows / "model").predict(np.array(values))
    assert [float(line["tall"]) for line in lines] == pytest.approx(frame["probability"]["tall"].tolist(), abs=1e-6)
    names = [";".join(frame["decision"].columns[row]) for row in frame["decision"].to_numpy()]
    assert [line["predicted"] for line in lines] == names
    assert cli.main([*command, "--out", str(tmp_path / "predictions.csv")]) == 0
    assert read((tmp_path / "predictions.csv").read_text()) == lines
    assert cli.main([*command, "--json"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert first["tall"] == pytest.approx(float(lines[0]["tall"]))


def test_evaluation_of_a_file(rows, capsys):
    command = ["evaluate", str(rows / "model"), "--csv", str(rows / "rows.csv")]
    assert cli.main([*command, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert cli.main(command) == 0
    assert f"{values['maAUC']:.4f}" in capsys.readouterr().out


@pytest.mark.parametrize("options", [[], ["--smiles", "CCO"], ["--csv", "a.csv", "--text", "b"]])
def test_other_inputs_than_the_model_takes_are_refused(rows, options, capsys):
    assert cli.main(["predict", str(rows / "model"), *options]) == 1
    assert "Expected --csv for a model of rows" in capsys.readouterr().err


def test_a_model_that_does_not_say_what_its_inputs_are(folder, capsys):  # noqa: F811
    assert cli.main(["predict", str(folder), "--text", "a pear"]) == 1
    assert "to be trained by 'tg-mlc train'" in capsys.readouterr().err


def test_known_labels_are_read(rows, capsys):
    command = ["predict", str(rows / "model"), "--csv", str(rows / "rows.csv"), "--known"]
    assert cli.main([*command, "tall"]) == 1
    assert 'Expected --known in the form "liver=1,skin=0"' in capsys.readouterr().err
    assert cli.main([*command, "tall=1"]) == 1
    assert "Expected samples without known labels" in capsys.readouterr().err


def test_no_model(tmp_path, capsys):
    assert cli.main(["predict", str(tmp_path), "--text", "a"]) == 1
    assert "to be the folder of a saved model" in capsys.readouterr().err
