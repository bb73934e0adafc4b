from __future__ import annotations

import csv

import pytest

import tg_mlc
from tests.cli.conftest import run
from tg_mlc.cli._inputs import Predictions
from tg_mlc.inputs import tables

pd = pytest.importorskip("pandas")

HEADER = "id;height;width;tall;note;broad;wide\n"
ROWS = ('"x;1";9;5; 0 ;"say ""hi""";;', 'y;2;1;;"two\nlines";no;?', "z;3;6;1;;1;1", "w;9;5;;;NA;0")


def read(path):
    with path.open(newline="") as file:
        return list(csv.reader(file, delimiter=";"))


@pytest.fixture
def table(write):
    return write("new.csv", HEADER + "\n".join(ROWS) + "\n")


def test_blanks_are_filled_and_all_else_is_kept(rows, table, tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert run("complete", rows / "model", csv=table, out=out) == 0
    assert (
        "are not calibrated for each label; for that, train with --calibrate"
        in capsys.readouterr().err
    )
    (header, *before), (new_header, *after) = read(table), read(out)
    assert new_header == [*header, "tall probability", "broad probability", "reason"]
    inputs = pd.DataFrame(before, columns=header)[["height", "width"]].astype(float)
    given = pd.DataFrame({"tall": [0, None, 1, None], "broad": [None, 0, 1, None]}, dtype=float)
    frame = tg_mlc.load(rows / "model").predict(inputs, given=given)
    for row, cells in enumerate(before):
        expected = [*cells, "", "", ""]
        for name in given.columns[given.isna().loc[row]]:
            expected[header.index(name)] = str(int(frame["decision"][name][row]))
            probability = frame["probability"][name][row].round(6)
            expected[new_header.index(f"{name} probability")] = str(probability)
        assert after[row] == expected


def test_labels_without_blanks_get_no_column_of_probabilities(rows, table, tmp_path, capsys):
    out, again = tmp_path / "out.csv", tmp_path / "again.csv"
    assert run("complete --labels tall", rows / "model", csv=table, out=out) == 0
    header, *cells = read(out)
    assert header[7:] == ["tall probability", "reason"]
    assert [row[5] for row in cells] == ["", "no", "1", "NA"]
    out.write_text(out.read_text().replace(";reason\n", ";why\n"))
    assert run("complete --labels tall", rows / "model", csv=out, out=again) == 1
    assert "blank cells in the columns ['tall'] of" in capsys.readouterr().err
    assert not again.exists()


def test_rows_that_cannot_be_read_stay_as_they_are(rows, write, tmp_path, capsys):
    out, new = tmp_path / "out.csv", write("new.csv", "height,width,tall\nmuch,5,\n9,5,\n")
    assert run("complete", rows / "model", csv=new, out=out) == 1
    lines = pd.read_csv(out, dtype=str, keep_default_na=False)
    assert lines.loc[0, ["height", "tall", "tall probability"]].tolist() == ["much", "", ""]
    assert "column 'height' (got 'much', text)" in lines["reason"][0]
    assert lines["tall"][1] == "1"
    assert "broad" not in lines
    assert "1 row could not be read as an input and is left unchanged" in capsys.readouterr().err


def test_an_interrupted_command_resumes(rows, table, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tables, "_BLOCK", 1)
    command, out = ["complete", rows / "model"], tmp_path / "out.csv"
    assert run(*command, csv=table, out=tmp_path / "straight.csv") == 0
    of_rows, blocks = Predictions.of_rows, []

    def interrupt(*arguments):
        blocks.append(arguments[1])
        if len(blocks) == 3:
            raise KeyboardInterrupt
        return of_rows(*arguments)

    monkeypatch.setattr(Predictions, "of_rows", interrupt)
    assert run(*command, csv=table, out=out) == 130
    assert not out.exists()
    capsys.readouterr()
    assert run(*command, "--labels", "tall", csv=table, out=out) == 1
    assert "(got another labels); run that command again" in capsys.readouterr().err
    assert run("predict", rows / "model", csv=table, out=out) == 1
    assert "(got another keep" in capsys.readouterr().err
    assert run(*command, csv=table, out=out) == 0
    assert out.read_bytes() == (tmp_path / "straight.csv").read_bytes()
    assert len(blocks) == 5  # One of the four blocks is begun twice.


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (None, "--labels wide", "--labels among labels of the model, such as ['tall', 'broad']"),
        ("height,width,tall\n1,2,\n", "--labels broad", "'broad'"),
        ("height,width\n1,2\n", "", "columns of labels in "),
        ("height,width,tall,tall\n1,2,,\n", "", "['tall'] more than once"),
        ("height,width,tall,tall probability\n1,2,,1\n", "", "no column 'tall probability'"),
        ("height,width,tall,reason\n1,2,,1\n", "", "no column 'reason'"),
        ("height,width,tall\n1,2,3\n", "", "to be 0, 1 or blank"),
        (None, "--metric best", "best"),
    ],
)
def test_files_that_cannot_be_completed_are_refused(
    text, options, message, rows, table, tmp_path, capsys
):
    if text is not None:
        table.write_text(text)
    out = tmp_path / "out.csv"
    assert run(f"complete {options}", rows / "model", csv=table, out=out) == 1
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_the_file_is_not_its_own_result(rows, table, capsys):
    content = table.read_bytes()
    assert run("complete", rows / "model", csv=table, out=table) == 1
    assert f"another --out than --csv (got '{table}'" in capsys.readouterr().err
    assert table.read_bytes() == content


def test_lists_of_names_have_no_blank_labels(tmp_path, capsys):
    path = tmp_path / "train.csv"
    texts = ["plums", "a pear", "pears"] * 10
    lines = [f"{text};{'red,green' if i % 3 else 'red'}" for i, text in enumerate(texts)]
    path.write_text("\n".join(["body;colours", *lines]))
    options = "--text body --labels colours --label_separator , --seconds 0"
    assert run(f"train {options}", csv=path, out=tmp_path / "model") == 0
    assert run("complete", tmp_path / "model", csv=path, out=tmp_path / "out.csv") == 1
    assert "a model with a column for each label" in capsys.readouterr().err
