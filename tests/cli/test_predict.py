from __future__ import annotations

import csv
import json
import os
import re
from contextlib import nullcontext
from importlib import import_module

import numpy as np
import pytest

import tg_mlc
from tests.cli.conftest import write_rows
from tests.quick import train_little
from tg_mlc import cli
from tg_mlc.cli._inputs import Predictions
from tg_mlc.cli._output import resumable
from tg_mlc.inputs import tables
from tg_mlc.metrics import LabelSets

# the package's attribute of this name is the function
predicting = import_module("tg_mlc.cli.predict")


def read(text):
    return list(csv.DictReader(text.splitlines()))


def test_rows_of_a_file(rows, tmp_path, capsys):
    command = ["predict", str(rows / "model"), "--csv", str(rows / "rows.csv")]
    assert cli.main(command) == 0
    lines = read(capsys.readouterr().out)
    assert len(lines) == 80
    values = [
        [float(line["height"] or "nan"), float(line["width"])]
        for line in read((rows / "rows.csv").read_text())
    ]
    frame = tg_mlc.load(rows / "model").predict(np.array(values))
    assert [float(line["tall"]) for line in lines] == pytest.approx(
        frame["probability"]["tall"].tolist(), abs=1e-6
    )
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
    picture = rows / "reliability.svg"
    assert cli.main([*command, "--reliability", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert all(
        f"{values[name]:.4f}" in printed for name in ("roc_auc_macro", "ece_macro", "brier_macro")
    )
    assert "<circle" in picture.read_text()


def test_label_sets_of_a_coverage(tmp_path, capsys):
    file, model = str(write_rows(tmp_path / "rows.csv")), str(tmp_path / "model")
    train = ["train", "--csv", file, "--labels", "tall,broad", "--seconds", "0", "--out", model]
    assert cli.main([*train, "--coverage_share", "0.5"]) == 0
    capsys.readouterr()
    assert cli.main(["predict", model, "--csv", file, "--coverage", "0.8"]) == 0
    lines = read(capsys.readouterr().out)
    inputs = [[float(line["height"] or "nan"), float(line["width"])] for line in lines]
    expected = tg_mlc.load(model).predict(np.array(inputs), coverage=0.8)["decision"].to_numpy()
    assert [
        ["tall" in each["predicted"], "broad" in each["predicted"]] for each in lines
    ] == expected.tolist()
    for options in (
        ["--coverage", "2"],
        ["--coverage", "0.8", "--given", "all"],
        ["--coverage", "0.99"],
    ):
        assert cli.main(["predict", model, "--csv", file, *options]) == 1
        assert "coverage" in capsys.readouterr().err


def test_metrics_that_are_undefined_are_null(rows, tmp_path, capsys):
    (tmp_path / "one.csv").write_text("height,width,tall,broad\n9,5,1,1\n")
    assert (
        cli.main(["evaluate", str(rows / "model"), "--csv", str(tmp_path / "one.csv"), "--json"])
        == 0
    )
    values = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert values["roc_auc_macro"] is None
    assert values["hamming_accuracy"] is not None


@pytest.fixture(scope="module")
def fruit(tmp_path_factory):
    """The folder with a model of texts and names of labels, of a file with semicolons between its cells."""
    home = tmp_path_factory.mktemp("fruit")
    lines = [
        f"{text};{'red,green' if i % 3 else 'red'}"
        for i, text in enumerate(["plums", "a pear", "pears"] * 10)
    ]
    (home / "train.csv").write_text("\n".join(["body;colours", *lines]))
    words = [
        "--csv",
        str(home / "train.csv"),
        "--text",
        "body",
        "--labels",
        "colours",
        "--label_separator",
        ",",
    ]
    assert (
        cli.main(
            ["train", *words, "--delimiter", ";", "--seconds", "0", "--out", str(home / "model")]
        )
        == 0
    )
    return home


def test_what_stands_between_cells_is_known_and_other_files_may_differ(fruit, tmp_path, capsys):
    command = ["predict", str(fruit / "model"), "--csv"]
    assert cli.main([*command, str(fruit / "train.csv")]) == 0
    expected = capsys.readouterr().out
    assert set(read(expected)[1]["predicted"].split(",")) == {"red", "green"}
    (tmp_path / "tabs.csv").write_text((fruit / "train.csv").read_text().replace(";", "\t"))
    for options in ([], ["--delimiter", r"\t"]):
        assert cli.main([*command, str(tmp_path / "tabs.csv"), *options]) == 0
        assert capsys.readouterr().out == expected
    command = ["evaluate", str(fruit / "model"), "--csv", str(tmp_path / "tabs.csv")]
    assert cli.main([*command, "--delimiter", r"\t"]) == 0
    assert "30 samples, 2 labels" in capsys.readouterr().out


def test_labels_in_lists_need_no_separator(tmp_path, capsys):
    lists = ("""['red', 'green']""", '["red"]')
    rows = "".join(
        f'"{text}";{lists[i % 2]}\n' for i, text in enumerate(["plums", "a pear", "pears"] * 10)
    )
    (tmp_path / "train.csv").write_text(f"body;colours\n{rows}")
    file, out = ["--csv", str(tmp_path / "train.csv")], str(tmp_path / "model")
    words = ["--text", "body", "--labels", "colours", "--seconds", "0", "--out", out]
    assert cli.main(["train", *file, *words]) == 0
    assert cli.main(["evaluate", out, *file]) == 0
    assert "30 samples, 2 labels" in capsys.readouterr().out
    assert cli.main(["predict", out, *file]) == 0
    assert set(read(capsys.readouterr().out)[1]["predicted"].split(";")) <= {"red", "green"}


def test_labels_that_the_model_does_not_know_are_reported_and_count_in_no_metric(
    fruit, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(tables, "_BLOCK", 2)
    lines = ["body;colours", "plums;red", "a pear;red,green", "pears;red,green"]
    (tmp_path / "known.csv").write_text("\n".join(lines))
    (tmp_path / "others.csv").write_text("\n".join([*lines[:3], "", "pears;blue,red,pink,green"]))
    command = ["evaluate", str(fruit / "model"), "--csv"]
    assert cli.main([*command, str(tmp_path / "known.csv")]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert cli.main([*command, str(tmp_path / "others.csv")]) == 0
    assert capsys.readouterr() == (
        printed.out,
        f"tg-mlc: labels that the model does not know count in no metric: ['blue', 'pink'] (in 1 of the rows of "
        f"'{tmp_path / 'others.csv'}', first in row 2 (line 5))\n",
    )


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    """The folder with a file of DNA, of which two rows cannot be read, and a model of the others."""
    home = tmp_path_factory.mktemp("dna")
    lines = [f"{'ACGT' * (3 + i % 3)}{'TTTT' if i % 2 else 'GGGG'},{i % 2}" for i in range(20)]
    (home / "train.csv").write_text("\n".join(["site,bound", *lines]))
    (home / "new.csv").write_text("\n".join(["site,bound", lines[0], "AC4T,1", lines[1], '"",0']))
    (home / "strange.csv").write_text("site,bound\nAC4T,1\n")
    words = [
        "--csv",
        str(home / "train.csv"),
        "--dna",
        "site",
        "--labels",
        "bound",
        "--seconds",
        "0",
    ]
    assert cli.main(["train", *words, "--out", str(home / "model")]) == 0
    return home


def test_rows_that_cannot_be_read_are_reported_and_stay_blank(pieces, capsys):
    command = ["predict", str(pieces / "model"), "--csv"]
    assert cli.main([*command, str(pieces / "new.csv")]) == 1
    printed = capsys.readouterr()
    assert [bool(line["bound"]) for line in read(printed.out)] == [True, False, True, False]
    assert "cannot read row 1 (line 3): Expected letters of DNA" in printed.err
    assert [bool(line["reason"]) for line in read(printed.out)] == [False, True, False, True]
    assert printed.err.endswith("tg-mlc: 2 rows could not be read as DNA and are left blank\n")
    assert cli.main([*command, str(pieces / "strange.csv"), "--json"]) == 1
    printed = capsys.readouterr()
    line = json.loads(printed.out)
    assert (line["predicted"], line["bound"], "letters of DNA" in line["reason"]) == (
        "",
        None,
        True,
    )
    assert printed.err.endswith("tg-mlc: 1 row could not be read as DNA and is left blank\n")


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_prediction_that_was_stopped_goes_on(form, pieces, tmp_path, monkeypatch, capsys):
    """Twice, each time in the midst of a block, as if the process had been killed."""
    monkeypatch.setattr(tables, "_BLOCK", 2)
    path, out = tmp_path / "new.csv", tmp_path / "out.csv"
    path.write_bytes((pieces / "new.csv").read_bytes() + b"\nACGT,1" * 5)
    command = ["predict", str(pieces / "model"), "--csv", str(path), *form, "--out"]
    assert cli.main([*command, str(tmp_path / "straight.csv")]) == 1
    capsys.readouterr()
    straight, of_rows, blocks = (tmp_path / "straight.csv").read_bytes(), Predictions.of_rows, []

    def stops(*arguments):
        blocks.append(arguments[1])
        if len(blocks) in (2, 4):
            (tmp_path / ".out.csv.partial").open("ab").write(b"half a li")
            raise KeyboardInterrupt
        return of_rows(*arguments)

    monkeypatch.setattr(Predictions, "of_rows", stops)
    for _ in range(2):
        assert cli.main([*command, str(out)]) == 130
        assert "run it again" in capsys.readouterr().err
        assert not out.exists()
    for changed in (["--metric", "f1_macro"], ["--keep", "none"]):
        assert cli.main([*command, str(out), *changed]) == 1
        assert f"(got another {changed[0][2:]}); run that command again" in capsys.readouterr().err
    before = path.read_bytes()
    path.write_bytes(before + b"\nACGT,0")
    assert cli.main([*command, str(out)]) == 1
    assert "(got another csv)" in capsys.readouterr().err
    path.write_bytes(before)
    assert cli.main([*command, str(out)]) == 1
    assert "2 rows could not be read" in capsys.readouterr().err
    assert out.read_bytes() == straight
    assert len(blocks) == 7  # 5 blocks, two of which were begun twice
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "new.csv",
        "out.csv",
        "straight.csv",
    ]


@pytest.mark.parametrize("error", [ValueError, MemoryError])
def test_errors_of_the_input_leave_nothing_behind(error, pieces, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tables, "_BLOCK", 2)

    def refuse(table, *_):
        if table.first:
            raise error
        return {}

    monkeypatch.setattr(predicting, "_kept", refuse)
    command = [
        "predict",
        str(pieces / "model"),
        "--csv",
        str(pieces / "new.csv"),
        "--out",
        str(tmp_path / "out.csv"),
    ]
    with nullcontext() if error is ValueError else pytest.raises(error):
        assert cli.main(command) == 1
    left = {each.name for each in tmp_path.iterdir()}
    assert left == (set() if error is ValueError else {".out.csv.partial", ".out.csv.notes"})


def test_two_commands_do_not_write_to_one_file(rows, tmp_path, capsys):
    out = tmp_path / "out.csv"
    with resumable(str(out), {}):
        command = [
            "predict",
            str(rows / "model"),
            "--csv",
            str(rows / "rows.csv"),
            "--out",
            str(out),
        ]
        assert cli.main(command) == 1
    assert f"no other command that writes to --out (got '{out}'" in capsys.readouterr().err


def test_label_sets_decide_without_a_threshold(fruit, tmp_path, capsys):
    loaded = tg_mlc.load(fruit / "model")
    loaded.decision.tuners["subset_accuracy"] = LabelSets([[1, 1]])  # whatever the scores are
    model = str(loaded.save(tmp_path / "model"))
    command = ["predict", model, "--metric", "subset_accuracy"]
    assert cli.main([*command, "--text", "plums", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(each["decision"], each["threshold"]) for each in shown] == [(True, None)] * 2
    assert cli.main([*command, "--text", "plums"]) == 0
    assert all(
        "label sets" in line and line.endswith("yes")
        for line in capsys.readouterr().out.splitlines()[-2:]
    )
    assert cli.main([*command, "--csv", str(fruit / "train.csv")]) == 0
    assert {line["predicted"] for line in read(capsys.readouterr().out)} == {"green,red"}
    assert cli.main(["evaluate", model, "--csv", str(fruit / "train.csv")]) == 0
    assert "0.6667  label sets" in capsys.readouterr().out


def test_labels_that_are_given(rows, fruit, tmp_path, capsys):
    (tmp_path / "new.csv").write_text("height,width,tall,broad\n9,5,0,\n9,5,,\n9,5,1,0\n")
    command = ["predict", str(rows / "model"), "--csv", str(tmp_path / "new.csv")]
    assert cli.main(command) == 0
    plain = read(capsys.readouterr().out)
    for columns in ("all", "tall,broad"):
        assert cli.main([*command, "--given", columns]) == 0
        given = read(capsys.readouterr().out)
        assert [line["tall"] for line in given] == ["0.0", plain[1]["tall"], "1.0"]
        assert [given[1]["broad"], given[2]["broad"]] == [plain[1]["broad"], "0.0"]
        assert "tall" not in given[0]["predicted"]
        assert given[2]["predicted"] == "tall"
    for cells in ("much,5,1,\n9,5,1,", "much,5,1,\n9,5,1,0", "much,5,1,0\n9,5,1,0"):
        (tmp_path / "new.csv").write_text(f"height,width,tall,broad\n{cells}\n")
        assert cli.main([*command, "--given", "all"]) == 1
        # unread, then known
        assert [line["predicted"][:4] for line in read(capsys.readouterr().out)] == ["", "tall"]
    command = ["predict", str(fruit / "model")]
    (tmp_path / "new.csv").write_text("body;colours\nplums;green\nplums;\n")
    assert cli.main([*command, "--csv", str(tmp_path / "new.csv"), "--given", "all"]) == 0
    lines = read(capsys.readouterr().out)
    assert lines[0]["green"] == "1.0"
    assert lines[1]["green"] != "1.0"
    assert cli.main([*command, "--text", "plums", "--given", "green=0", "--json"]) == 0
    shown = {each["label"]: each for each in json.loads(capsys.readouterr().out)}
    assert (shown["green"]["probability"], shown["green"]["decision"]) == (0.0, False)
    assert [name for name, each in shown.items() if each.get("given")] == ["green"]
    assert cli.main([*command, "--text", "plums", "--given", "green=0"]) == 0
    assert re.search(r"green +0\.000 +given +no", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--text", "plums", "--given", "green"], "Expected --given as in nausea=1,rash=0"),
        (["--text", "plums", "--given", "blue=1"], "'given' to name labels of the model"),
        (["--text", "plums", "--given", "green=1,red=0"], "all 2 labels given"),
        (
            ["--csv", "{}/train.csv", "--given", "body"],
            "Expected --given to name columns of labels, such as ['colours']",
        ),
        (
            ["--csv", "{}/train.csv", "--given", "green=1"],
            "write the values into such columns of the file",
        ),
    ],
)
def test_wrong_given_labels_are_named(options, message, fruit, capsys):
    assert (
        cli.main(["predict", str(fruit / "model"), *[each.format(fruit) for each in options]]) == 1
    )
    assert message in capsys.readouterr().err


def test_rows_that_cannot_be_read_are_left_out_of_an_evaluation(pieces, capsys):
    assert cli.main(["evaluate", str(pieces / "model"), "--csv", str(pieces / "new.csv")]) == 1
    printed = capsys.readouterr()
    assert "2 samples, 1 labels" in printed.out
    assert "2 rows could not be read as DNA and are left out" in printed.err


def test_a_file_without_a_row_that_can_be_read_has_no_evaluation(pieces, capsys):
    assert cli.main(["evaluate", str(pieces / "model"), "--csv", str(pieces / "strange.csv")]) == 1
    assert "Expected at least one row that can be evaluated" in capsys.readouterr().err


def test_one_input_is_printed_alone(pieces, tmp_path, capsys):
    command = ["predict", str(pieces / "model"), "--dna"]
    assert cli.main([*command, "ACGT", "--out", str(tmp_path / "x.csv")]) == 1
    assert "Expected --csv with --out" in capsys.readouterr().err
    assert cli.main([*command, "AC4T"]) == 1
    assert "Expected an input that can be read for --dna (got 'AC4T': " in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--smiles", "CCO"], ["--csv", "a.csv", "--text", "b"]])
def test_other_inputs_than_the_model_takes_are_refused(rows, options, capsys):
    assert cli.main(["predict", str(rows / "model"), *options]) == 1
    assert "Expected --csv for a model of rows" in capsys.readouterr().err


def test_a_model_that_does_not_say_what_its_inputs_are(plain_model, capsys):
    assert cli.main(["predict", str(plain_model), "--text", "a pear"]) == 1
    assert "to be trained by 'tg-mlc train'" in capsys.readouterr().err


def test_no_model(tmp_path, capsys):
    assert cli.main(["predict", str(tmp_path), "--text", "a"]) == 1
    assert "to be the folder of a saved model" in capsys.readouterr().err


def test_the_columns_of_the_file_stand_beside_its_predictions(rows, tmp_path, capsys):
    (tmp_path / "new.csv").write_text("Width,name,HEIGHT,tall\n5,ann,9,1\n5,bob,tall,\n3,cy,,0\n")
    command = ["predict", str(rows / "model"), "--csv", str(tmp_path / "new.csv")]
    assert cli.main(command) == 1
    printed = capsys.readouterr()
    lines = read(printed.out)
    own = ["Width", "name", "HEIGHT", "tall (in the file)"]
    assert list(lines[0]) == [*own, "predicted", "tall", "broad", "reason"]
    assert [(line["name"], line["tall (in the file)"]) for line in lines] == [
        ("ann", "1"),
        ("bob", ""),
        ("cy", "0"),
    ]
    assert [bool(line["tall"]) for line in lines] == [True, False, True]
    assert "column 'height' (got 'tall', text)" in lines[1]["reason"]
    assert "cannot read row 1 (line 3)" in printed.err
    assert cli.main([*command, "--keep", "name"]) == 1
    assert list(read(capsys.readouterr().out)[0])[:2] == ["name", "predicted"]
    assert cli.main([*command, "--keep", "none"]) == 1
    assert [line["line"] for line in read(capsys.readouterr().out)] == ["2", "3", "4"]
    assert cli.main([*command, "--keep", "nme"]) == 1
    assert "is 'name' meant?" in capsys.readouterr().err


def test_blank_lines_of_texts_keep_their_place(fruit, tmp_path, capsys):
    (tmp_path / "new.csv").write_text("body\nplums\n\npears\n")
    assert cli.main(["predict", str(fruit / "model"), "--csv", str(tmp_path / "new.csv")]) == 0
    assert [line["body"] for line in read(capsys.readouterr().out)] == ["plums", "", "pears"]


def test_rows_that_cannot_be_read_may_stop_a_prediction(pieces, capsys):
    command = ["predict", str(pieces / "model"), "--csv", str(pieces / "new.csv")]
    assert cli.main([*command, "--on_error", "raise"]) == 1
    assert "got row 1 (line 3): Expected letters of DNA" in capsys.readouterr().err
    assert cli.main([*command, "--on_error", "skip"]) == 1
    assert "'--on_error'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def with_lamp(tmp_path_factory):
    """A model of the rows that has LaMP among its parts, however busy the machine is."""
    home = tmp_path_factory.mktemp("rows")
    path = write_rows(home / "rows.csv")
    with pytest.MonkeyPatch.context() as patched:
        train_little(patched, max_epochs=1)
        words = ["train", "--labels", "tall,broad", "--seconds", "60", "--csv", str(path)]
        assert cli.main([*words, "--out", str(home / "model")]) == 0
    assert tg_mlc.load(home / "model").networks
    return home


@pytest.mark.parametrize("size", ["1e300", "-1e39", "3e38"])
def test_numbers_too_large_to_compute_with_are_left_blank(
    size, with_lamp, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(tables, "_BLOCK", 2)
    (tmp_path / "new.csv").write_text(
        f"height,width,tall,broad\n1,2,0,0\n9,4,1,0\n{size},5,1,1\n5,6,0,1\n"
    )
    for name, found in (("predict", "is left blank"), ("evaluate", "3 samples, 2 labels")):
        assert cli.main([name, str(with_lamp / "model"), "--csv", str(tmp_path / "new.csv")]) == 1
        printed = capsys.readouterr()
        assert "cannot read row 2 (line 4): Expected " in printed.err
        assert found in printed.out + printed.err
        if name == "predict":
            assert [bool(line["tall"]) for line in read(printed.out)] == [True, True, False, True]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "header and at least one row"),
        ("height,width,tall,broad\n", "header and at least one row"),
        (b"\x8f\x03" * 99, "a text file in UTF-8"),
        ("height,width\n" + "1,2\n" * 20, "the columns ['tall', 'broad']"),
        ("width,tall,broad\n" + "1,1,0\n" * 20, "['height"),
        (
            "height,width,tall,broad\n" + "1,2,3,1\n" * 20,
            "to be 0, 1 or blank (unknown) in row 0 (line 2)",
        ),
        ("height,width,tall,broad\n" + "1,2,nan,\n2,1,,?\n" * 20, "a label that is known"),
        ('height,width,tall,broad\n1,"2,1,1\n' + "1,2,0,1\n" * 20, "is a quote not closed"),
        (
            "height,width,tall,broad\n" + "1,2,0,1\n" * 20 + "1,2\n",
            "4 cells, as in the header, in row 20 (line 22)",
        ),
        ("folder", "a folder"),
        ("pipe", "no regular file"),
        ("device", "no regular file"),
    ],
)
@pytest.mark.parametrize("name", ["evaluate", "train", "tune"])
def test_files_that_cannot_be_used_are_named(name, content, message, rows, tmp_path, capsys):
    if name == "tune":
        pytest.importorskip("optuna")
    path = tmp_path / "table.csv"
    special = {
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
    }
    if content in special:
        special[content]()
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    columns = [
        "--features",
        "height,width",
        "--labels",
        "tall,broad",
        "--out",
        str(tmp_path / "model"),
    ]
    words = [str(rows / "model")] if name == "evaluate" else [*columns, "--seconds", "0"]
    assert cli.main([name, *words, "--csv", str(path)]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert str(path) in error
    assert not (tmp_path / "model").exists()
