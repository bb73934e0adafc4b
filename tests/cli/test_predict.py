from __future__ import annotations

import csv
import json
import os
import re
from contextlib import nullcontext
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import tg_mlc
from tests.cli.conftest import run, write_rows
from tests.quick import train_little
from tg_mlc.cli._inputs import Predictions
from tg_mlc.cli._output import resumable
from tg_mlc.data import from_arrays, from_csv
from tg_mlc.inputs import tables
from tg_mlc.metrics import LabelSets

# The package's attribute "predict" is a function, so the module is imported by name.
predicting = import_module("tg_mlc.cli.predict")


def read(text):
    return list(csv.DictReader(text.splitlines()))


def test_predictions_of_a_file_equal_those_of_the_model(rows, tmp_path, capsys):
    paths = {"csv": rows / "rows.csv"}
    assert run("predict", rows / "model", **paths) == 0
    lines = read(capsys.readouterr().out)
    assert len(lines) == 80
    table = read((rows / "rows.csv").read_text())
    values = [[float(row["height"] or "nan"), float(row["width"])] for row in table]
    frame = tg_mlc.load(rows / "model").predict(np.array(values))
    expected = frame["probability"]["tall"].tolist()
    assert [float(line["tall"]) for line in lines] == pytest.approx(expected, abs=1e-6)
    names = [";".join(frame["decision"].columns[row]) for row in frame["decision"].to_numpy()]
    assert [line["predicted"] for line in lines] == names
    assert run("predict", rows / "model", out=tmp_path / "predictions.csv", **paths) == 0
    assert read((tmp_path / "predictions.csv").read_text()) == lines
    assert run("predict", rows / "model", "--json", **paths) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[0])
    assert record["tall"] == pytest.approx(float(lines[0]["tall"]))


def test_evaluate_names_the_option_of_a_file_that_it_cannot_write(rows, tmp_path, capsys):
    for name in ("by_label", "reliability"):
        options = {name: tmp_path / "missing" / "file"}
        assert run("evaluate", rows / "model", csv=rows / "rows.csv", **options) == 1
        assert f"Expected --{name} to be a file" in capsys.readouterr().err
    both = dict.fromkeys(("by_label", "reliability"), tmp_path / "one")
    assert run("evaluate", rows / "model", csv=rows / "rows.csv", **both) == 1
    assert "--by_label to be another file than --reliability" in capsys.readouterr().err


def test_evaluate_prints_metrics_and_draws_reliability(rows, write, capsys):
    paths, picture = {"csv": rows / "rows.csv"}, rows / "reliability.svg"
    assert run("evaluate", rows / "model", "--json", **paths) == 0
    values = json.loads(capsys.readouterr().out)
    assert run("evaluate", rows / "model", reliability=picture, **paths) == 0
    printed = capsys.readouterr().out
    for name in ("roc_auc_macro", "ece_macro", "brier_macro"):
        assert f"{values[name]:.4f}" in printed
    assert "<circle" in picture.read_text()
    one_row = write("one.csv", "height,width,tall,broad\n9,5,1,1\n")
    assert run("evaluate", rows / "model", "--json", csv=one_row) == 0
    values = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert values["roc_auc_macro"] is None
    assert values["hamming_accuracy"] is not None


def test_predict_gives_label_sets_of_a_coverage(tmp_path, capsys):
    file, model = write_rows(tmp_path / "rows.csv"), tmp_path / "model"
    options = "--labels tall,broad --seconds 0 --coverage_share 0.5"
    assert run(f"train {options}", csv=file, out=model) == 0
    capsys.readouterr()
    assert run("predict", model, csv=file, coverage=0.8) == 0
    lines = read(capsys.readouterr().out)
    inputs = [[float(line["height"] or "nan"), float(line["width"])] for line in lines]
    expected = tg_mlc.load(model).predict(np.array(inputs), coverage=0.8)["decision"].to_numpy()
    predicted = [[name in line["predicted"] for name in ("tall", "broad")] for line in lines]
    assert predicted == expected.tolist()
    for options in ("--coverage 2", "--coverage 0.8 --given all", "--coverage 0.99"):
        assert run(f"predict {model} {options}", csv=file) == 1
        assert "coverage" in capsys.readouterr().err


@pytest.fixture(scope="module")
def fruit(tmp_path_factory):
    """Returns a folder with a file of texts, with semicolons, and a model trained on the file."""
    home = tmp_path_factory.mktemp("fruit")
    texts = ["plums", "a pear", "pears"] * 10
    lines = [f"{text};{'red,green' if i % 3 else 'red'}" for i, text in enumerate(texts)]
    (home / "train.csv").write_text("\n".join(["body;colours", *lines]))
    options = "--text body --labels colours --label_separator , --delimiter ; --seconds 0"
    assert run(f"train {options}", csv=home / "train.csv", out=home / "model") == 0
    return home


def test_other_files_may_have_another_delimiter(fruit, tmp_path, capsys):
    assert run("predict", fruit / "model", csv=fruit / "train.csv") == 0
    expected = capsys.readouterr().out
    assert set(read(expected)[1]["predicted"].split(",")) == {"red", "green"}
    tabs = tmp_path / "tabs.csv"
    tabs.write_text((fruit / "train.csv").read_text().replace(";", "\t"))
    for options in ({}, {"delimiter": r"\t"}):
        assert run("predict", fruit / "model", csv=tabs, **options) == 0
        assert capsys.readouterr().out == expected
    assert run("evaluate", fruit / "model", csv=tabs, delimiter=r"\t") == 0
    assert "30 samples, 2 labels" in capsys.readouterr().out


def test_labels_in_lists_need_no_separator(tmp_path, capsys):
    lists, texts = ("""['red', 'green']""", '["red"]'), ["plums", "a pear", "pears"] * 10
    lines = [f'"{text}";{lists[i % 2]}' for i, text in enumerate(texts)]
    file, out = tmp_path / "train.csv", tmp_path / "model"
    file.write_text("\n".join(["body;colours", *lines]))
    assert run("train --text body --labels colours --seconds 0", csv=file, out=out) == 0
    assert run("evaluate", out, csv=file) == 0
    assert "30 samples, 2 labels" in capsys.readouterr().out
    assert run("predict", out, csv=file) == 0
    assert set(read(capsys.readouterr().out)[1]["predicted"].split(";")) <= {"red", "green"}


def test_unknown_labels_are_reported_and_count_in_no_metric(fruit, write, capsys, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK", 2)
    lines = ["body;colours", "plums;red", "a pear;red,green", "pears;red,green"]
    known_file = write("known.csv", "\n".join(lines))
    other_file = write("others.csv", "\n".join([*lines[:3], "", "pears;blue,red,pink,green"]))
    assert run("evaluate", fruit / "model", csv=known_file) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert run("evaluate", fruit / "model", csv=other_file) == 0
    out, error = capsys.readouterr()
    assert out == printed.out
    assert "count in no metric: ['blue', 'pink'] (in 1 of the rows" in error
    assert "first in row 2 (line 5)" in error


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    """Returns a folder with a model of DNA and with files, some of whose rows cannot be read."""
    home = tmp_path_factory.mktemp("dna")
    lines = [f"{'ACGT' * (3 + i % 3)}{'TTTT' if i % 2 else 'GGGG'},{i % 2}" for i in range(20)]
    (home / "train.csv").write_text("\n".join(["site,bound", *lines]))
    (home / "new.csv").write_text("\n".join(["site,bound", lines[0], "AC4T,1", lines[1], '"",0']))
    (home / "strange.csv").write_text("site,bound\nAC4T,1\n")
    options = "--dna site --labels bound --seconds 0"
    assert run(f"train {options}", csv=home / "train.csv", out=home / "model") == 0
    return home


def test_rows_that_cannot_be_read_are_reported(pieces, capsys):
    assert run("predict", pieces / "model", csv=pieces / "new.csv") == 1
    out, error = capsys.readouterr()
    assert [bool(line["bound"]) for line in read(out)] == [True, False, True, False]
    assert [bool(line["reason"]) for line in read(out)] == [False, True, False, True]
    assert "cannot read row 1 (line 3): Expected letters of DNA" in error
    assert error.endswith("tg-mlc: 2 rows could not be read as DNA and are left blank\n")
    assert run("predict", pieces / "model", "--json", csv=pieces / "strange.csv") == 1
    out, error = capsys.readouterr()
    line = json.loads(out)
    assert (line["predicted"], line["bound"]) == ("", None)
    assert "letters of DNA" in line["reason"]
    assert error.endswith("tg-mlc: 1 row could not be read as DNA and is left blank\n")
    assert run("evaluate", pieces / "model", csv=pieces / "new.csv") == 1
    out, error = capsys.readouterr()
    assert "2 samples, 1 labels" in out
    assert "2 rows could not be read as DNA and are skipped" in error
    assert run("evaluate", pieces / "model", csv=pieces / "strange.csv") == 1
    assert "Expected at least one row that can be evaluated" in capsys.readouterr().err
    assert run("predict --on_error raise", pieces / "model", csv=pieces / "new.csv") == 1
    assert "got row 1 (line 3): Expected letters of DNA" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_interrupted_prediction_resumes(options, pieces, tmp_path, monkeypatch, capsys):
    """The command is stopped twice in the middle of a block, as if it had been killed."""
    monkeypatch.setattr(tables, "_BLOCK", 2)
    path, out = tmp_path / "new.csv", tmp_path / "out.csv"
    path.write_bytes((pieces / "new.csv").read_bytes() + b"\nACGT,1" * 5)
    command = ["predict", pieces / "model", *options]
    assert run(*command, csv=path, out=tmp_path / "straight.csv") == 1
    capsys.readouterr()
    expected, of_rows, blocks = (tmp_path / "straight.csv").read_bytes(), Predictions.of_rows, []

    def interrupt(*arguments):
        blocks.append(arguments[1])
        if len(blocks) in (2, 4):
            (tmp_path / ".out.csv.partial").open("ab").write(b"half a li")
            raise KeyboardInterrupt
        return of_rows(*arguments)

    monkeypatch.setattr(Predictions, "of_rows", interrupt)
    for _ in range(2):
        assert run(*command, csv=path, out=out) == 130
        assert "run it again" in capsys.readouterr().err
        assert not out.exists()
    for name, value in (("metric", "f1_macro"), ("keep", "none")):
        assert run(*command, csv=path, out=out, **{name: value}) == 1
        assert f"(got another {name}); run that command again" in capsys.readouterr().err
    content = path.read_bytes()
    path.write_bytes(content + b"\nACGT,0")
    assert run(*command, csv=path, out=out) == 1
    assert "(got another csv)" in capsys.readouterr().err
    path.write_bytes(content)
    assert run(*command, csv=path, out=out) == 1
    assert "2 rows could not be read" in capsys.readouterr().err
    assert out.read_bytes() == expected
    assert len(blocks) == 7  # Two of the five blocks are begun twice.
    files = sorted(file.name for file in tmp_path.iterdir())
    assert files == ["new.csv", "out.csv", "straight.csv"]


@pytest.mark.parametrize("error", [ValueError, MemoryError])
def test_refused_inputs_leave_no_partial_file(error, pieces, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK", 2)

    def refuse(table, *_):
        if table.first:
            raise error
        return {}

    monkeypatch.setattr(predicting, "_file_columns", refuse)
    paths = {"csv": pieces / "new.csv", "out": tmp_path / "out.csv"}
    with nullcontext() if error is ValueError else pytest.raises(error):
        assert run("predict", pieces / "model", **paths) == 1
    names = {path.name for path in tmp_path.iterdir()}
    assert names == (set() if error is ValueError else {".out.csv.partial", ".out.csv.notes"})


def test_two_commands_do_not_write_to_one_file(rows, tmp_path, capsys):
    out = tmp_path / "out.csv"
    with resumable(str(out), {}):
        assert run("predict", rows / "model", csv=rows / "rows.csv", out=out) == 1
    assert f"no other command that writes to --out (got '{out}'" in capsys.readouterr().err


def test_label_sets_decide_without_a_threshold(fruit, tmp_path, capsys):
    loaded = tg_mlc.load(fruit / "model")
    loaded.decision.tuners["subset_accuracy"] = LabelSets([[1, 1]])  # All scores give this set.
    model = loaded.save(tmp_path / "model")
    command = ["predict --metric subset_accuracy", model]
    assert run(*command, "--json", text="plums") == 0
    records = json.loads(capsys.readouterr().out)
    assert [(record["decision"], record["threshold"]) for record in records] == [(True, None)] * 2
    assert run(*command, text="plums") == 0
    *_, first, second, note = capsys.readouterr().out.splitlines()
    assert all(re.search("label sets +yes$", line) for line in (first, second))
    assert note == "label sets: whole sets of labels are chosen, by no threshold of single labels"
    assert run(*command, csv=fruit / "train.csv") == 0
    assert {line["predicted"] for line in read(capsys.readouterr().out)} == {"green,red"}
    assert run("evaluate", model, csv=fruit / "train.csv") == 0
    output = capsys.readouterr().out
    assert "0.6667  label sets" in output
    assert note in output


def test_labels_of_rows_may_be_given(rows, write, capsys):
    new = write("new.csv", "height,width,tall,broad\n9,5,0,\n9,5,,\n9,5,1,0\n")
    assert run("predict", rows / "model", csv=new) == 0
    plain = read(capsys.readouterr().out)
    for columns in ("all", "tall,broad"):
        assert run("predict", rows / "model", csv=new, given=columns) == 0
        given = read(capsys.readouterr().out)
        assert [line["tall"] for line in given] == ["0.0", plain[1]["tall"], "1.0"]
        assert [given[1]["broad"], given[2]["broad"]] == [plain[1]["broad"], "0.0"]
        assert "tall" not in given[0]["predicted"]
        assert given[2]["predicted"] == "tall"
    for cells in ("much,5,1,\n9,5,1,", "much,5,1,\n9,5,1,0", "much,5,1,0\n9,5,1,0"):
        new.write_text(f"height,width,tall,broad\n{cells}\n")
        assert run("predict", rows / "model", csv=new, given="all") == 1
        # The first row cannot be read, and labels of the second are known.
        assert [line["predicted"][:4] for line in read(capsys.readouterr().out)] == ["", "tall"]


def test_labels_of_texts_may_be_given(fruit, write, capsys):
    new = write("new.csv", "body;colours\nplums;green\nplums;\n")
    assert run("predict", fruit / "model", csv=new, given="all") == 0
    lines = read(capsys.readouterr().out)
    assert lines[0]["green"] == "1.0"
    assert lines[1]["green"] != "1.0"
    command = ["predict --text plums --given green=0", fruit / "model"]
    assert run(*command, "--json") == 0
    records = {record["label"]: record for record in json.loads(capsys.readouterr().out)}
    assert (records["green"]["probability"], records["green"]["decision"]) == (0.0, False)
    assert [name for name, record in records.items() if record.get("given")] == ["green"]
    assert run(*command) == 0
    assert re.search(r"green +0\.000 +given +no", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("fruit", "--text plums --given green", "Expected --given as in nausea=1,rash=0"),
        ("fruit", "--text plums --given blue=1", "'given' to name labels of the model"),
        ("fruit", "--text plums --given green=1,red=0", "all 2 labels given"),
        ("fruit", "--csv {}/train.csv --given body", "columns of labels, such as ['colours']"),
        ("fruit", "--csv {}/train.csv --given green=1", "write the values into such columns"),
        ("pieces", "--csv {}/new.csv --on_error skip", "'--on_error'"),
        ("pieces", "--dna ACGT --out x.csv", "Expected --csv with --out"),
        ("pieces", "--dna AC4T", "an input that can be read for --dna (got 'AC4T': "),
        ("rows", "", "Expected --csv for a model of rows"),
        ("rows", "--smiles CCO", "Expected --csv for a model of rows"),
        ("rows", "--csv a.csv --text b", "Expected --csv for a model of rows"),
    ],
)
def test_wrong_options_are_named(model, options, message, request, capsys):
    home = request.getfixturevalue(model)
    assert run(f"predict {home / 'model'} {options.format(home)}") == 1
    assert message in capsys.readouterr().err


def test_folders_without_a_trained_model_are_refused(plain_model, tmp_path, capsys):
    assert run("predict", plain_model, text="a pear") == 1
    assert "to be trained by 'tg-mlc train'" in capsys.readouterr().err
    assert run("predict", tmp_path, text="a") == 1
    assert "to be the folder of a saved model" in capsys.readouterr().err


def test_columns_of_the_file_are_copied_beside_predictions(rows, write, capsys):
    new = write("new.csv", "Width,name,HEIGHT,tall\n5,ann,9,1\n5,bob,tall,\n3,cy,,0\n")
    command = ["predict", rows / "model"]
    assert run(*command, csv=new) == 1
    out, error = capsys.readouterr()
    lines = read(out)
    columns = ["Width", "name", "HEIGHT", "tall (in the file)"]
    assert list(lines[0]) == [*columns, "predicted", "tall", "broad", "reason"]
    assert [line["name"] for line in lines] == ["ann", "bob", "cy"]
    assert [line["tall (in the file)"] for line in lines] == ["1", "", "0"]
    assert [bool(line["tall"]) for line in lines] == [True, False, True]
    assert "column 'height' (got 'tall', text)" in lines[1]["reason"]
    assert "cannot read row 1 (line 3)" in error
    assert run(*command, csv=new, keep="name") == 1
    assert list(read(capsys.readouterr().out)[0])[:2] == ["name", "predicted"]
    assert run(*command, csv=new, keep="none") == 1
    assert [line["line"] for line in read(capsys.readouterr().out)] == ["2", "3", "4"]
    assert run(*command, csv=new, keep="nme") == 1
    assert "is 'name' meant?" in capsys.readouterr().err


def test_blank_lines_of_texts_keep_their_rows(fruit, write, capsys):
    assert run("predict", fruit / "model", csv=write("new.csv", "body\nplums\n\npears\n")) == 0
    assert [line["body"] for line in read(capsys.readouterr().out)] == ["plums", "", "pears"]


@pytest.fixture(scope="module")
def with_lamp(tmp_path_factory):
    """Returns a model of rows that contains LaMP, even on a busy machine."""
    home = tmp_path_factory.mktemp("rows")
    path = write_rows(home / "rows.csv")
    with pytest.MonkeyPatch.context() as patched:
        train_little(patched, max_epochs=1)
        assert run("train --labels tall,broad --seconds 60", csv=path, out=home / "model") == 0
    assert tg_mlc.load(home / "model").networks
    return home / "model"


@pytest.mark.parametrize("size", ["1e300", "-1e39", "3e38"])
def test_rows_with_too_large_numbers_are_left_blank(size, with_lamp, write, monkeypatch, capsys):
    monkeypatch.setattr(tables, "_BLOCK", 2)
    text = f"height,width,tall,broad\n1,2,0,0\n9,4,1,0\n{size},5,1,1\n5,6,0,1\n"
    file = write("new.csv", text)
    for name, outcome in (("predict", "is left blank"), ("evaluate", "3 samples, 2 labels")):
        assert run(name, with_lamp, csv=file) == 1
        out, error = capsys.readouterr()
        assert "cannot read row 2 (line 4): Expected " in error
        assert outcome in out + error
        if name == "predict":
            assert [bool(line["tall"]) for line in read(out)] == [True, True, False, True]


HEADER = "height,width,tall,broad\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "header and at least one row"),
        (HEADER, "header and at least one row"),
        (b"\x8f\x03" * 99, "a text file in UTF-8"),
        ("height,width\n" + "1,2\n" * 20, "the columns ['tall', 'broad']"),
        ("width,tall,broad\n" + "1,1,0\n" * 20, "['height"),
        (HEADER + "1,2,3,1\n" * 20, "to be 0, 1 or blank (unknown) in row 0 (line 2)"),
        (HEADER + "1,2,nan,\n2,1,,?\n" * 20, "a label that is known"),
        (f'{HEADER}1,"2,1,1\n' + "1,2,0,1\n" * 20, "is a quote not closed"),
        (HEADER + "1,2,0,1\n" * 20 + "1,2\n", "4 cells, as in the header, in row 20 (line 22)"),
        ("folder", "a folder"),
        ("pipe", "no regular file"),
        ("device", "no regular file"),
    ],
)
@pytest.mark.parametrize("name", ["evaluate", "train", "tune"])
def test_files_that_cannot_be_used_are_named(name, content, message, rows, tmp_path, capsys):
    if name == "tune":
        pytest.importorskip("optuna")
    path, out = tmp_path / "table.csv", tmp_path / "model"
    special = {
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
    }
    if content in special:
        special[content]()
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if name == "evaluate":
        assert run("evaluate", rows / "model", csv=path) == 1
    else:
        options = "--features height,width --labels tall,broad --seconds 0"
        assert run(f"{name} {options}", csv=path, out=out) == 1
    error = capsys.readouterr().err
    assert message in error
    assert str(path) in error
    assert not out.exists()


@pytest.fixture(params=["table", "array", "text", "dna"])
def python_model(request, tmp_path):
    """Returns a file, and the folder of a model that was trained on it in Python."""
    file, kind = tmp_path / "table.csv", request.param
    table = [f"{'pb'[i % 4 > 1]},{i % 5},{i % 2},{i % 3 > 0:d}" for i in range(40)]
    file.write_text("\n".join(["colour,size,red,big", *table]))
    if kind == "array":
        X = [[i % 4 > 1, i % 4 < 2, i % 5] for i in range(40)]
        y = np.array([[i % 2, i % 3 > 0] for i in range(40)], dtype=float)
        names = ["colour=b", "colour=p", "size"]
        dataset = from_arrays(np.array(X, dtype=float), y, ["red", "big"], names, kind="vector")
    elif kind == "table":
        dataset = from_csv(file, ["red", "big"])
    else:
        column = "body" if kind == "text" else "dna"
        cells = [f"{'ACGTAC' * (1 + i % 3)}{'AC'[i % 2] * 6}" for i in range(40)]
        lines = [f"{cell},{i % 2},{i % 3 > 0:d}" for i, cell in enumerate(cells)]
        file.write_text("\n".join([f"{column},red,big", *lines]))
        dataset = from_csv(file, ["red", "big"], **{f"{kind}_column": column})
    return file, tg_mlc.auto(dataset, seconds=0).save(tmp_path / "model")


def test_models_that_were_trained_in_python_find_their_columns(python_model, tmp_path, capsys):
    file, model = python_model
    inputs = pd.read_csv(file, dtype=str).drop(columns=["red", "big"])
    expected, first = tg_mlc.load(model).probabilities(inputs), inputs.columns[0]
    assert run("predict", model, csv=file) == 0
    predicted = read(capsys.readouterr().out)
    for name, column in zip(("red", "big"), np.transpose(expected), strict=True):
        np.testing.assert_allclose([float(line[name]) for line in predicted], column, atol=1e-6)
    assert run("evaluate", model, csv=file) == 0
    assert run("explain", model, csv=file, out=tmp_path / "report.html", rows=1) == 0
    capsys.readouterr()
    file.write_text(file.read_text().replace(first, "other", 1))
    assert run("predict", model, csv=file) == 1
    assert f"Expected the columns ['{first}']" in capsys.readouterr().err
