from __future__ import annotations

import json
import re
from unittest.mock import Mock

import pandas as pd
import pytest

import tg_mlc
from tests.cli.conftest import write_drugs, write_rows
from tests.quick import train_little
from tg_mlc import cli
from tg_mlc.stacking import StackingFeatures

ROWS = ["--labels", "tall,broad"]


@pytest.fixture
def train(tmp_path, capsys):
    """Trains on a file and returns the printed result."""

    def run(file, *words, seconds="0"):
        command = [
            "train",
            "--csv",
            str(file),
            "--out",
            str(tmp_path / "model"),
            "--seconds",
            seconds,
            *words,
        ]
        assert cli.main(command) == 0
        return capsys.readouterr().out

    return run


def files(folder):
    return sorted(path.name.split("-")[0] for path in folder.iterdir())


def test_the_folder_holds_the_model_alone(rows):
    assert files(rows / "model") == ["model.json", "weights"]
    facts = tg_mlc.load(rows / "model").facts
    assert facts["inputs"] == {
        "kind": "rows",
        "columns": ["height", "width"],
        "labels": ["tall", "broad"],
        "separator": None,
        "delimiter": None,
        "encoding": None,
    }
    assert facts["test"]["roc_auc_macro"] > 0.8


def fruit(path):
    texts = ["a red apple", "a green pear", "red plums", "green apples and a red pear"] * 10
    rows = [
        f'{text},"{";".join(word for word in ("red", "green") if word in text)}"' for text in texts
    ]
    path.write_text("\n".join(["body,colours", *rows]))
    return path


def sites(path):
    rows = [f"{'ACGT' * (3 + i % 3)}{'TTTT' if i % 2 else 'GGGG'},{i % 2}" for i in range(40)]
    path.write_text("\n".join(["site,bound", *rows]))
    return path


@pytest.mark.parametrize(
    ("write", "words", "new", "labels"),
    [
        (
            write_drugs,
            ["--smiles", "smiles", "--labels", "liver,skin"],
            ["--smiles", "CCO"],
            ["liver", "skin"],
        ),
        (
            fruit,
            ["--text", "body", "--labels", "colours", "--label_separator", ";"],
            ["--text", "red"],
            ["green", "red"],
        ),
        (sites, ["--dna", "site", "--labels", "bound"], ["--dna", "ACGTACGTACGTTTTT"], ["bound"]),
    ],
)
def test_from_file_to_named_predictions(write, words, new, labels, train, tmp_path, capsys):
    if "--smiles" in words:
        pytest.importorskip("rdkit")
    file, out = write(tmp_path / "table.csv"), str(tmp_path / "model")
    result = json.loads(train(file, *words, "--json"))
    assert result["model"] == out
    assert result["without_lamp"] == "the time was too short to train it"
    assert 0 <= result["test"]["f1_micro"] <= 1
    assert cli.main(["predict", out, *new]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["label", "probability", "threshold", "predicted"]
    assert sorted(line.split()[0] for line in lines) == labels
    assert cli.main(["evaluate", out, "--csv", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["roc_auc_macro"] > 0.6


def test_columns_of_words(train, tmp_path, capsys):
    rows = [f"{('red', 'green', 'blue')[i % 3]},{i % 5},{int(i % 3 == 0)}" for i in range(60)]
    (tmp_path / "fruit.csv").write_text("\n".join(["colour,size,ripe", *rows]))
    train(file := tmp_path / "fruit.csv", "--labels", "ripe", "--json")
    out = str(tmp_path / "model")
    assert cli.main(["evaluate", out, "--csv", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["roc_auc_macro"] == 1.0
    frame = pd.read_csv(file)[["size", "colour"]]
    assert (tg_mlc.load(out).predict(frame)["decision"]["ripe"] == (frame["colour"] == "red")).all()
    frame[["size"]].to_csv(tmp_path / "new.csv", index=False)
    assert cli.main(["predict", out, "--csv", str(tmp_path / "new.csv")]) == 1
    assert "Expected the columns ['colour'] in" in capsys.readouterr().err


def test_an_interruption_leaves_no_model(tmp_path, monkeypatch, capsys):
    file, out = write_rows(tmp_path / "rows.csv"), tmp_path / "model"
    words = ["train", *ROWS, "--csv", str(file), "--seconds", "0", "--out", str(out)]
    with monkeypatch.context() as patched:
        interrupt = Mock(side_effect=KeyboardInterrupt)
        patched.setattr(StackingFeatures, "fit_transform", interrupt)
        assert cli.main(words) == 130
    error = capsys.readouterr().err
    assert error.splitlines()[-1] == "tg-mlc: interrupted; run it again"
    assert "Traceback" not in error
    assert files(out) == []
    assert cli.main(words) == 0
    assert files(out) == ["model.json", "weights"]


@pytest.mark.parametrize(
    ("seconds", "end"),
    [
        ("0", r"; LaMP is left out, because the time was too short to train it\.$"),
        ("12", r", LaMP \d\.\d\d\.$"),
    ],
)
def test_the_parts_of_a_model_are_told(seconds, end, train, tmp_path, monkeypatch):
    train_little(monkeypatch, max_epochs=1)
    printed = train(write_rows(tmp_path / "rows.csv"), *ROWS, seconds=seconds)
    [line] = [line for line in printed.splitlines() if line.startswith("Weights")]
    assert line.startswith("Weights of its parts: linear SVM ")
    assert re.search(end, line)


def test_metrics_that_are_undefined_are_null(train, tmp_path):
    (tmp_path / "rows.csv").write_text(
        "height,tall\n" + "".join(f"{i},{int(i > 4)}\n" for i in range(10))
    )
    printed = json.loads(
        train(tmp_path / "rows.csv", "--labels", "tall", "--json"), parse_constant=pytest.fail
    )
    assert printed["test"]["roc_auc_macro"] is None
    content = json.loads(
        (tmp_path / "model" / "model.json").read_text(), parse_constant=pytest.fail
    )["content"]
    assert content["facts"]["test"] == printed["test"]


def test_a_model_is_replaced_on_request_only(tmp_path, capsys):
    command = [
        "train",
        *ROWS,
        "--seconds",
        "0",
        "--csv",
        str(write_rows(tmp_path / "rows.csv")),
        "--out",
        str(tmp_path / "model"),
    ]
    assert cli.main([*command, "--features", "heihgt,width"]) == 1  # and may be corrected
    assert "heihgt" in capsys.readouterr().err
    assert cli.main(command) == 0
    assert cli.main(command) == 1
    assert "Expected no model in" in capsys.readouterr().err
    assert cli.main([*command, "--force"]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--smiles", "a", "--text", "b"],
            "Expected one of --smiles, --text, --dna and --features",
        ),
        (["--smiles", "a", "--label_separator", ";"], "Expected --label_separator with one column"),
        (["--split", "scaffold"], "Expected '--split' to be one of random, stratified"),
        (["--text", "nothing"], "Expected the columns ['nothing']"),
        (
            ["--csv", "none.csv", "--seconds", "-1"],
            "'--seconds' to be a finite number of at least 0 (got -1.0)",
        ),
        (
            ["--csv", "few.csv", "--labels", "tall"],
            "Expected at least 10 rows to train and to test with",
        ),
    ],
)
def test_wrong_options_are_messages(options, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "rows.csv")
    (tmp_path / "few.csv").write_text("height,tall\n1,0\n2,1\n")
    words = {"--csv": "rows.csv", "--labels": "tall,broad", "--out": "model", "--seconds": "1"}
    words |= dict(zip(options[::2], options[1::2], strict=True))
    assert cli.main(["train", *(word for pair in words.items() for word in pair)]) == 1
    assert message in capsys.readouterr().err


def test_what_is_read_is_printed_before_training(tmp_path, capsys):
    rows = [f"s{i},${i % 7}.50,{('red', 'blue')[i % 2]},{i % 3 == 0}" for i in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["name,price,colour,ripe", *rows]))
    words = ["--labels", "ripe", "--seconds", "0", "--out", str(tmp_path / "model")]
    assert cli.main(["train", "--csv", str(tmp_path / "a.csv"), *words]) == 0
    printed = capsys.readouterr().err
    assert "Left out: 'name' (another text in each row)." in printed
    assert "'price' (numbers in '$'), 'colour' (2 values: blue, red)" in printed
    (tmp_path / "new.csv").write_text("Colour,price\nRED,$3.25\ngreen,3\n")
    assert (
        cli.main(["predict", str(tmp_path / "model"), "--csv", str(tmp_path / "new.csv"), "--json"])
        == 1
    )
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["ripe"] is not None
    assert "numbers in '$'" in second["reason"]


def test_a_column_that_may_be_the_inputs_is_named(tmp_path, capsys):
    pytest.importorskip("rdkit")
    lines = [f"{'C' * (1 + i % 9)}{'N' * (i // 9)}O,{20 + i},{i % 2}" for i in range(40)]
    (tmp_path / "drugs.csv").write_text("\n".join(["smiles,weight,liver", *lines]))
    command = [
        "train",
        "--csv",
        str(tmp_path / "drugs.csv"),
        "--labels",
        "liver",
        "--seconds",
        "0",
        "--force",
    ]
    for more, is_named in (
        ((), True),
        (("--ignore", "smiles"), False),
        (("--features", "weight"), False),
    ):
        assert cli.main([*command, *more, "--out", str(tmp_path / "model")]) == 0
        assert ("pass --smiles 'smiles'" in capsys.readouterr().err) is is_named


def test_molecules_that_cannot_be_read_are_named(tmp_path, capsys):
    pytest.importorskip("rdkit")
    lines = write_drugs(tmp_path / "drugs.csv").read_text().splitlines()
    lines[3], lines[5] = "C1CC,1,0", "nothing,1,0"
    (tmp_path / "drugs.csv").write_text("\n".join(lines))
    words = [
        "train",
        "--csv",
        str(tmp_path / "drugs.csv"),
        "--smiles",
        "smiles",
        "--labels",
        "liver,skin",
    ]
    assert cli.main([*words, "--seconds", "0", "--out", str(tmp_path / "model")]) == 0
    told = capsys.readouterr().err
    assert (
        "tg-mlc: 2 of 80 rows cannot be read and are left out, the first of them row 2 (line 4): 'C1CC': "
        in told
    )
    assert told.count("cannot be read") == 1
    lines[10:40] = ["nothing,1,0"] * 30
    (tmp_path / "drugs.csv").write_text("\n".join(lines))
    assert cli.main([*words, "--out", str(tmp_path / "other")]) == 1
    assert (
        "at most 10% of the rows to be left out (got more: 32 of 80 rows" in capsys.readouterr().err
    )
