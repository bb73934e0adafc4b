"""Commands take several columns of inputs together."""

import json

import pandas as pd
import pytest

from tests.cli.conftest import run
from tests.mixed import LABELS, make_frame

TRAIN = f"train --labels {','.join(LABELS)} --seconds 0"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    frame, y = make_frame(40)
    frame["title"] = frame.note.fillna("one more text").str.upper()
    labels = pd.DataFrame(y.astype(int), columns=LABELS)
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    pd.concat([frame.drop(columns="drug"), labels], axis=1).to_csv(path, index=False)
    return path


def columns_of(folder):
    content = json.loads((folder / "model.json").read_text())["content"]
    return content["facts"]["inputs"]


def test_a_schema_of_texts_and_numbers_trains_both(table, tmp_path, capsys):
    schema, out = tmp_path / "schema.yaml", tmp_path / "model"
    labels = ",".join(LABELS)
    assert run("data check --text note --features age", csv=table, labels=labels, write=schema) == 0
    printed = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1] for line in printed.splitlines() if line.strip()}
    expected = {"note": "text", "age": "number", "city": "ignored", "title": "text"}
    assert {name: rows[name] for name in expected} == expected
    assert "perhaps inputs: pass --text 'title'" in printed
    text = schema.read_text().replace(
        "- name: title\n  role: text", "- name: title\n  role: ignored"
    )
    schema.write_text(text)
    assert run(TRAIN, csv=table, schema=schema, out=out) == 0
    assert columns_of(out)["columns"] == ["note", "age"]
    assert columns_of(out)["parts"] == {"text": ["note"], "features": ["age"]}
    assert run("predict", out, csv=table) == 0
    assert run("predict", out, text="red") == 1
    assert "Expected --csv for a model of mixed (got --text)" in capsys.readouterr().err


def test_an_option_may_be_repeated(table, tmp_path, capsys):
    words = f"{TRAIN} --text note --text=title --features age --features city"
    assert run(words, csv=table, out=tmp_path / "model") == 0
    assert columns_of(tmp_path / "model")["columns"] == ["note", "title", "age", "city"]
    with pytest.raises(SystemExit):
        run(f"{TRAIN} --split random --split stratified", csv=table, out=tmp_path / "model")
    assert "argument --split: expected once" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--text note --text note", "used once (got ['note'] more than once)"),
        ("--text note --features note", "used once (got ['note'] more than once)"),
        ("--text note --text age", "Expected texts in column 'age' (got numbers, such as '"),
        ("--text note --features old,age", "used once (got ['old'] more than once in"),
        ("--text note --features age --split scaffold", "to be one of random, stratified"),
        ("--text note --smiles title --split scaffold", "at most 10% of the rows to be left out"),
    ],
)
def test_wrong_columns_give_messages(table, words, message, tmp_path, capsys):
    assert run(f"{TRAIN} {words}", csv=table, out=tmp_path / "model") == 1
    assert message in capsys.readouterr().err
