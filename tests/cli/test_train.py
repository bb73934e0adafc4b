from __future__ import annotations

import json
import re
from unittest.mock import Mock

import pandas as pd
import pytest

import tg_mlc
from tests.cli.conftest import run, write_drugs, write_rows
from tests.quick import train_little
from tg_mlc.stacking import StackingFeatures

ROWS = "train --labels tall,broad --seconds 0"
FRUIT = "--text body --labels colours --label_separator ;"
DRUGS = "train --smiles smiles --labels liver,skin --seconds 0"


@pytest.fixture
def train(tmp_path, capsys):
    """Trains on a file and returns the printed result."""

    def train_on(file, options, seconds=0):
        assert run(f"train {options}", csv=file, out=tmp_path / "model", seconds=seconds) == 0
        return capsys.readouterr().out

    return train_on


def file_names(folder):
    return sorted(path.name.split("-")[0] for path in folder.iterdir())


def test_the_folder_holds_only_the_model(rows):
    assert file_names(rows / "model") == ["model.json", "weights"]
    facts = tg_mlc.load(rows / "model").facts
    names = {"columns": ["height", "width"], "labels": ["tall", "broad"]}
    unknown = dict.fromkeys(("separator", "delimiter", "encoding", "parts"))
    assert facts["inputs"] == {"kind": "rows", **names, **unknown}
    assert facts["test"]["roc_auc_macro"] > 0.8


def write_fruit(path):
    texts = ["a red apple", "a green pear", "red plums", "green apples and a red pear"] * 10
    colours = [";".join(word for word in ("red", "green") if word in text) for text in texts]
    rows = [f'{text},"{names}"' for text, names in zip(texts, colours, strict=True)]
    path.write_text("\n".join(["body,colours", *rows]))
    return path


def write_sites(path):
    rows = [f"{'ACGT' * (3 + i % 3)}{'TTTT' if i % 2 else 'GGGG'},{i % 2}" for i in range(40)]
    path.write_text("\n".join(["site,bound", *rows]))
    return path


@pytest.mark.parametrize(
    ("write", "options", "new", "labels"),
    [
        (write_drugs, "--smiles smiles --labels rest", {"smiles": "CCO"}, ["liver", "skin"]),
        (write_fruit, FRUIT, {"text": "red"}, ["green", "red"]),
        (write_sites, "--dna site --labels b*", {"dna": "ACGTACGTACGTTTTT"}, ["bound"]),
    ],
)
def test_trained_models_predict_named_labels(write, options, new, labels, train, tmp_path, capsys):
    if "smiles" in new:
        pytest.importorskip("rdkit")
    file, out = write(tmp_path / "table.csv"), tmp_path / "model"
    result = json.loads(train(file, f"{options} --json"))
    assert result["model"] == str(out)
    assert result["without_lamp"] == "the time was too short to train it"
    assert 0 <= result["test"]["f1_micro"] <= 1
    assert run("predict", out, **new) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["label", "probability", "threshold", "predicted"]
    assert sorted(line.split()[0] for line in lines) == labels
    assert run("evaluate", out, "--json", csv=file) == 0
    assert json.loads(capsys.readouterr().out)["roc_auc_macro"] > 0.6


@pytest.mark.slow
def test_a_model_of_an_sdf_predicts_sdf_and_csv(tmp_path, capsys):
    chem = pytest.importorskip("rdkit.Chem")
    drugs, sdf, out = tmp_path / "drugs.csv", tmp_path / "drugs.sdf", tmp_path / "model"
    lines = write_drugs(drugs).read_text().splitlines()
    with chem.SDWriter(str(sdf)) as writer:
        for number, line in enumerate(lines[1:]):
            smiles, liver, skin = line.split(",")
            mol = chem.MolFromSmiles(smiles)
            for name, value in {"liver": liver, "skin": skin, "number": f"d{number}"}.items():
                mol.SetProp(name, value)
            writer.write(mol)
    assert run("train --labels rest --id number --seconds 0", sdf=sdf, out=out) == 0
    assert tg_mlc.load(out).label_names == ["liver", "skin"]
    capsys.readouterr()
    drugs.write_text(drugs.read_text().replace("smiles,", "structure,"))
    probabilities = []
    for file in ({"sdf": sdf}, {"csv": drugs}):
        assert run("predict", out, "--json", **file) == 0
        rows = map(json.loads, capsys.readouterr().out.splitlines())
        probabilities.append([row["liver"] for row in rows])
    assert probabilities[0] == pytest.approx(probabilities[1], abs=1e-5)
    sdf.write_text(sdf.read_text().replace("V2000", "Vxxxx", 1))
    assert run("predict", out, sdf=sdf) == 1
    assert "cannot read row 0: not a valid molblock" in capsys.readouterr().err
    assert run("evaluate", out, sdf=sdf) == 1


def test_columns_of_words_are_categories(train, tmp_path, capsys):
    file, out = tmp_path / "fruit.csv", tmp_path / "model"
    rows = [f"{('red', 'green', 'blue')[i % 3]},{i % 5},{int(i % 3 == 0)}" for i in range(60)]
    file.write_text("\n".join(["colour,size,ripe", *rows]))
    train(file, "--labels ripe --json")
    assert run("evaluate", out, "--json", csv=file) == 0
    assert json.loads(capsys.readouterr().out)["roc_auc_macro"] == 1.0
    frame = pd.read_csv(file)[["size", "colour"]]
    decisions = tg_mlc.load(out).predict(frame)["decision"]["ripe"]
    assert (decisions == (frame["colour"] == "red")).all()
    frame[["size"]].to_csv(file, index=False)
    assert run("predict", out, csv=file) == 1
    assert "Expected the columns ['colour'] in" in capsys.readouterr().err


def test_an_interruption_leaves_no_model(tmp_path, monkeypatch, capsys):
    paths = {"csv": write_rows(tmp_path / "rows.csv"), "out": tmp_path / "model"}
    with monkeypatch.context() as patched:
        interrupt = Mock(side_effect=KeyboardInterrupt)
        patched.setattr(StackingFeatures, "fit_transform", interrupt)
        assert run(ROWS, **paths) == 130
    error = capsys.readouterr().err
    assert error.splitlines()[-1] == "tg-mlc: interrupted; run it again"
    assert "Traceback" not in error
    assert file_names(tmp_path / "model") == []
    assert run(ROWS, **paths) == 0
    assert file_names(tmp_path / "model") == ["model.json", "weights"]


@pytest.mark.parametrize(
    ("seconds", "pattern"),
    [
        (0, r"; LaMP is left out, because the time was too short to train it\.$"),
        (12, r", LaMP \d\.\d\d\.$"),
    ],
)
def test_the_parts_of_a_model_are_printed(seconds, pattern, train, tmp_path, monkeypatch):
    train_little(monkeypatch, max_epochs=1)
    printed = train(write_rows(tmp_path / "rows.csv"), "--labels tall,broad", seconds)
    [line] = [line for line in printed.splitlines() if line.startswith("Weights")]
    assert line.startswith("Weights of its parts: linear SVM ")
    assert re.search(pattern, line)


def test_undefined_metrics_are_null(train, write, tmp_path):
    file = write("rows.csv", "height,tall\n" + "".join(f"{i},{int(i > 4)}\n" for i in range(10)))
    printed = json.loads(train(file, "--labels tall --json"), parse_constant=pytest.fail)
    assert printed["test"]["roc_auc_macro"] is None
    text = (tmp_path / "model" / "model.json").read_text()
    content = json.loads(text, parse_constant=pytest.fail)["content"]
    assert content["facts"]["test"] == printed["test"]


def test_a_model_is_replaced_on_request_only(tmp_path, capsys):
    paths = {"csv": write_rows(tmp_path / "rows.csv"), "out": tmp_path / "model"}
    assert run(f"{ROWS} --features heihgt,width", **paths) == 1  # A failed command leaves no model.
    assert "heihgt" in capsys.readouterr().err
    assert run(ROWS, **paths) == 0
    assert run(ROWS, **paths) == 1
    assert "Expected no model in" in capsys.readouterr().err
    assert run(f"{ROWS} --force", **paths) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smiles": "height", "text": "b"}, "Expected the columns ['b']"),
        ({"features": "height", "text": "height"}, "used once (got ['height'] more than once)"),
        ({"smiles": "a", "label_separator": ";"}, "Expected --label_separator with one column"),
        ({"split": "scaffold"}, "Expected '--split' to be one of random, stratified"),
        ({"text": "nothing"}, "Expected the columns ['nothing']"),
        ({"csv": "none.csv", "seconds": -1}, "'--seconds' to be a finite number of at least 0"),
        ({"csv": "few.csv", "labels": "tall"}, "at least 10 rows to train and to test with"),
        ({"labels": "rest"}, "--labels take the rest (got none)"),
        ({"labels": "tall-*"}, "'tall-*' (got none; near: 'tall'"),
        ({"labels": "rest", "features": "height", "csv": "ids.csv"}, "pass --ignore 'number'"),
        ({"labels": "height"}, r"choose other columns of labels, or pass --label_separator"),
    ],
)
def test_wrong_options_give_messages(options, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "rows.csv")
    (tmp_path / "few.csv").write_text("height,tall\n1,0\n2,1\n")
    ids = [f"{i % 7},{i % 2},n{i}" for i in range(20)]
    (tmp_path / "ids.csv").write_text("\n".join(["height,tall,number", *ids]))
    defaults = {"csv": "rows.csv", "labels": "tall,broad", "out": "model", "seconds": 1}
    assert run("train", **{**defaults, **options}) == 1
    error = capsys.readouterr().err
    assert message in error
    assert f"--labels {options.get('labels')}" not in error


def test_the_reading_of_columns_is_printed_before_training(write, tmp_path, capsys):
    rows = [f"s{i},${i % 7}.50,{('red', 'blue')[i % 2]},{i % 3 == 0}" for i in range(60)]
    file, out = write("a.csv", "\n".join(["name,price,colour,ripe", *rows])), tmp_path / "model"
    assert run("train --labels ripe --seconds 0", csv=file, out=out) == 0
    printed = capsys.readouterr().err
    assert "Left out: 'name' (another text in each row)." in printed
    assert "'price' (numbers in '$'), 'colour' (2 values: blue, red)" in printed
    new = write("new.csv", "Colour,price\nRED,$3.25\ngreen,3\n")
    assert run("predict", out, "--json", csv=new) == 1
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["ripe"] is not None
    assert "numbers in '$'" in second["reason"]


def test_a_column_that_may_be_the_inputs_is_named(write, tmp_path, capsys):
    pytest.importorskip("rdkit")
    lines = [f"{'C' * (1 + i % 9)}{'N' * (i // 9)}O,{20 + i},{i % 2}" for i in range(40)]
    file = write("drugs.csv", "\n".join(["smiles,weight,liver", *lines]))
    for options, is_named in (("", True), ("--ignore smiles", False), ("--features weight", False)):
        command = f"train --labels liver --seconds 0 --force {options}"
        assert run(command, csv=file, out=tmp_path / "model") == 0
        assert ("pass --smiles 'smiles'" in capsys.readouterr().err) is is_named


def test_molecules_that_cannot_be_read_are_named(tmp_path, capsys):
    pytest.importorskip("rdkit")
    file = write_drugs(tmp_path / "drugs.csv")
    lines = file.read_text().splitlines()
    lines[3], lines[5] = "C1CC,1,0", "nothing,1,0"
    file.write_text("\n".join(lines))
    assert run(DRUGS, csv=file, out=tmp_path / "model") == 0
    error = capsys.readouterr().err
    assert error.count("cannot be read") == 1
    assert "tg-mlc: 2 of 80 rows cannot be read" in error
    assert "row 2 (line 4): 'C1CC': " in error
    lines[10:40] = ["nothing,1,0"] * 30
    file.write_text("\n".join(lines))
    assert run(DRUGS, csv=file, out=tmp_path / "other") == 1
    error = capsys.readouterr().err
    assert "(got more: 32 of 80 rows" in error
    assert "--max_lost '0.4'" in error
