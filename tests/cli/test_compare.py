import json

import pytest

from tests.cli.conftest import run, write_rows


@pytest.fixture
def command(tmp_path):
    file = write_rows(tmp_path / "rows.csv")
    (tmp_path / "mine.csv").write_text("source,target\ntall,broad\n")
    return f"compare --csv {file} --labels tall,broad --seconds 0 --out {tmp_path / 'out'}"


def test_the_table_is_printed_and_saved(command, tmp_path, capsys):
    graphs = f"edgeless,{tmp_path / 'mine.csv'}"
    assert run(command, graphs=graphs, seeds=1) == 0
    assert "mine.csv" in capsys.readouterr().out
    rows = (tmp_path / "out" / "comparison.csv").read_text().splitlines()
    names = ["best classifier", "stack without messages", "edgeless", "mine.csv"]
    assert [row.split(",")[0] for row in rows] == ["row", *names]
    values = json.loads((tmp_path / "out" / "comparison.json").read_text())["values"]
    assert {*values} == {*names}
    assert "| mine.csv | " in (tmp_path / "out" / "comparison.md").read_text()


def test_the_ending_of_the_output_chooses_one_format(command, tmp_path, capsys):
    command = command.replace("/out", "/table.tex")
    assert run(command, graphs="edgeless", seeds=2) == 0
    assert "Expected " in (printed := capsys.readouterr().err)
    assert "1 of 2 seeds will run" in printed
    latex = (tmp_path / "table.tex").read_text()
    assert r"\begin{tabular}" in latex
    assert "1 of 2 seeds" in latex


def test_weights_of_graphs_have_no_effect(command, tmp_path, capsys):
    (tmp_path / "mine.csv").write_text("source,target,weight\ntall,broad,0.5\n")
    assert run(command, graphs=f"edgeless,{tmp_path / 'mine.csv'}", seeds=1) == 0
    assert "weights of 'mine.csv' have no effect" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--graphs edgeless,none.csv", "'--graphs' to name existing files (got ['none.csv']"),
        ("--split scaffold", "scaffold"),
    ],
)
def test_wrong_options_are_refused(options, message, command, capsys):
    assert run(f"{command} {options}") == 1
    assert message in capsys.readouterr().err
