from __future__ import annotations

import json
import re

import pandas as pd
import pytest

import tg_mlc
from tests.cli.conftest import TRAIN_ROWS, write_drugs, write_rows
from tg_mlc import cli
from tg_mlc.stacking import StackingFeatures, features
from tg_mlc.stacking.classifiers import AUTOMATIC


def test_the_folder_holds_the_model_alone(rows):
    assert sorted(path.name.split("-")[0] for path in (rows / "model").iterdir()) == ["model.json", "weights"]
    facts = tg_mlc.load(rows / "model").facts
    assert facts["inputs"] == {
        "kind": "rows",
        "columns": ["height", "width"],
        "labels": ["tall", "broad"],
        "separator": None,
        "delimiter": ",",
    }
    assert facts["test"]["roc_auc_macro"] > 0.8


def test_molecules_from_file_to_named_predictions(tmp_path, capsys):
    pytest.importorskip("rdkit")
    drugs, out = write_drugs(tmp_path / "drugs.csv"), str(tmp_path / "model")
    words = [
        "--csv",
        str(drugs),
        "--smiles",
        "smiles",
        "--labels",
        "liver,skin",
        "--out",
        out,
        "--seconds",
        "0",
        "--json",
    ]
    assert cli.main(["train", *words]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["model"] == out
    assert result["without_lamp"] == "the time was too short to train it"
    assert 0 <= result["test"]["f1_micro"] <= 1
    assert cli.main(["predict", out, "--smiles", "CCO"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["label", "probability", "threshold", "predicted"]
    assert sorted(line.split()[0] for line in lines) == ["liver", "skin"]


def test_texts_with_names_of_labels_in_one_column(tmp_path, capsys):
    texts = ["a red apple", "a green pear", "red plums", "green apples and a red pear"] * 10
    rows = [f'{text},"{";".join(word for word in ("red", "green") if word in text)}"' for text in texts]
    (tmp_path / "fruit.csv").write_text("\n".join(["body,colours", *rows]))
    out = str(tmp_path / "model")
    words = ["--csv", str(tmp_path / "fruit.csv"), "--text", "body", "--labels", "colours", "--out", out]
    assert cli.main(["train", *words, "--label_separator", ";", "--seconds", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == out
    assert cli.main(["evaluate", out, "--csv", str(tmp_path / "fruit.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["roc_auc_macro"] > 0.9


def test_columns_of_words(tmp_path, capsys):
    rows = [f"{('red', 'green', 'blue')[i % 3]},{i % 5},{int(i % 3 == 0)}" for i in range(60)]
    (tmp_path / "fruit.csv").write_text("\n".join(["colour,size,ripe", *rows]))
    out, file = str(tmp_path / "model"), str(tmp_path / "fruit.csv")
    assert cli.main(["train", "--csv", file, "--labels", "ripe", "--out", out, "--seconds", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == out
    assert cli.main(["evaluate", out, "--csv", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["roc_auc_macro"] == 1.0
    frame = pd.read_csv(file)[["size", "colour"]]
    assert (tg_mlc.load(out).predict(frame)["decision"]["ripe"] == (frame["colour"] == "red")).all()
    frame[["size"]].to_csv(tmp_path / "new.csv", index=False)
    assert cli.main(["predict", out, "--csv", str(tmp_path / "new.csv")]) == 1
    assert "Expected the columns ['colour'] in" in capsys.readouterr().err


def test_dna(tmp_path, capsys):
    rows = [f"{'ACGT' * (3 + i % 3)}{'TTTT' if i % 2 else 'GGGG'},{i % 2}" for i in range(40)]
    (tmp_path / "dna.csv").write_text("\n".join(["site,bound", *rows]))
    out = str(tmp_path / "model")
    words = ["--csv", str(tmp_path / "dna.csv"), "--dna", "site", "--labels", "bound", "--out", out, "--seconds", "0"]
    assert cli.main(["train", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == out
    assert cli.main(["predict", out, "--dna", "ACGTACGTACGTTTTT"]) == 0
    assert "bound" in capsys.readouterr().out


def test_the_same_command_after_an_interruption(tmp_path, monkeypatch, capsys):
    pytest.importorskip("rdkit")
    drugs, out = write_drugs(tmp_path / "drugs.csv"), tmp_path / "model"
    words = ["train", "--csv", str(drugs), "--smiles", "smiles", "--labels", "liver,skin", "--seconds", "0"]
    words += ["--out", str(out)]

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(StackingFeatures, "fit_transform", interrupted)
        assert cli.main(words) == 130
    error = capsys.readouterr().err
    assert error.splitlines()[-1] == "tg-mlc: interrupted; run it again to go on"
    assert "Traceback" not in error
    assert [path.name for path in out.iterdir()] == ["training"]
    monkeypatch.setattr("tg_mlc.inputs.molecule_dataset.molecule_samples", interrupted)  # they were read before
    assert cli.main(words) == 0
    assert sorted(path.name.split("-")[0] for path in out.iterdir()) == ["model.json", "weights"]


@pytest.mark.parametrize(
    ("options", "missing"), [([], ["ridge", "forest"]), (["--seed", "1"], [*AUTOMATIC]), (["--force"], [*AUTOMATIC])]
)
def test_the_same_command_goes_on_with_what_is_missing(options, missing, tmp_path, monkeypatch):
    find, tuned = features.find_classifier, []
    kinds = {search.title: kind for kind, search in AUTOMATIC.items()}

    def recorded(search, *args):
        tuned.append(kinds[search.title])
        return find(search, *args)

    def interrupted(*args):
        if len(tuned) == 2:
            tuned.clear()
            raise KeyboardInterrupt
        return recorded(*args)

    table = write_rows(tmp_path / "rows.csv")
    command = ["train", "--labels", "tall,broad", "--csv", str(table), "--out", str(tmp_path / "model")]
    with monkeypatch.context() as patched:
        patched.setattr(features, "find_classifier", interrupted)
        assert cli.main([*command, "--seconds", "0"]) == 130
    monkeypatch.setattr(features, "find_classifier", recorded)
    assert cli.main([*command, "--seconds", "0", *options]) == 0
    assert tuned == missing
    assert sorted(path.name.split("-")[0] for path in (tmp_path / "model").iterdir()) == ["model.json", "weights"]


def test_what_a_model_is_made_of_is_told(tmp_path, capsys):
    table = write_rows(tmp_path / "rows.csv")
    command = ["train", "--labels", "tall,broad", "--csv", str(table), "--out", str(tmp_path / "model")]
    assert cli.main([*command, "--seconds", "0"]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Weights")]
    assert line.startswith("Weights of its parts: linear SVM ")
    assert line.endswith("; LaMP is left out, because the time was too short to train it.")
    assert cli.main([*command, "--seconds", "5", "--force"]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Weights")]
    assert re.search(r", LaMP \d\.\d\d\.$", line)


def test_metrics_that_are_undefined_are_null(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("height,tall\n" + "".join(f"{i},{int(i > 4)}\n" for i in range(10)))
    words = ["--csv", str(tmp_path / "rows.csv"), "--labels", "tall", "--out", str(tmp_path / "model")]
    assert cli.main(["train", *words, "--seconds", "0", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert printed["test"]["roc_auc_macro"] is None
    content = json.loads((tmp_path / "model" / "model.json").read_text(), parse_constant=pytest.fail)["content"]
    assert content["facts"]["test"] == printed["test"]


def test_few_rows_are_refused_in_words_of_the_command(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("height,tall\n1,0\n2,1\n")
    words = ["--csv", str(tmp_path / "rows.csv"), "--labels", "tall", "--out", str(tmp_path / "model")]
    assert cli.main(["train", *words]) == 1
    assert "Expected at least 10 rows to train and to test with" in capsys.readouterr().err


def test_a_model_is_replaced_on_request_only(tmp_path, capsys):
    table = write_rows(tmp_path / "rows.csv")
    command = [*TRAIN_ROWS, "--csv", str(table), "--out", str(tmp_path / "model")]
    assert cli.main(command) == 0
    assert cli.main(command) == 1
    assert "Expected no model in" in capsys.readouterr().err
    assert cli.main([*command, "--force"]) == 0


def test_a_command_with_a_wrong_column_may_be_corrected(tmp_path, capsys):
    table = write_rows(tmp_path / "rows.csv")
    command = [*TRAIN_ROWS, "--csv", str(table), "--out", str(tmp_path / "model")]
    assert cli.main([*command, "--features", "heihgt,width"]) == 1
    assert "heihgt" in capsys.readouterr().err
    assert cli.main(command) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--smiles", "a", "--text", "b"], "Expected one of --smiles, --text, --dna and --features"),
        (["--smiles", "a", "--label_separator", ";"], "Expected --label_separator with one column"),
        (["--split", "scaffold"], "Expected '--split' to be one of random, stratified"),
        (["--text", "nothing"], "Expected the columns ['nothing']"),
    ],
)
def test_wrong_options_are_messages(options, message, rows, tmp_path, capsys):
    words = [*TRAIN_ROWS, "--csv", str(rows / "rows.csv"), "--out", str(tmp_path / "model")]
    assert cli.main([*words, *options]) == 1
    assert message in capsys.readouterr().err


def test_seconds_are_checked_before_the_file_is_read(tmp_path, capsys):
    words = ["train", "--labels", "tall", "--csv", "none.csv", "--out", str(tmp_path / "model"), "--seconds", "-1"]
    assert cli.main(words) == 1
    assert "Expected '--seconds' to be a finite number of at least 0 (got -1.0)" in capsys.readouterr().err
