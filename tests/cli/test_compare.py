import json

import pytest

from tests.cli.conftest import write_rows
from tg_mlc import cli


@pytest.fixture
def words(tmp_path):
    file = write_rows(tmp_path / "rows.csv")
    (tmp_path / "mine.csv").write_text("source,target\ntall,broad\n")
    graphs = f"edgeless,{tmp_path / 'mine.csv'}"
    words = [
        "compare",
        "--csv",
        str(file),
        "--labels",
        "tall,broad",
        "--graphs",
        graphs,
        "--seconds",
        "0",
    ]
    return [*words, "--seeds", "1", "--out", str(tmp_path / "out")]


def test_table_and_files(words, tmp_path, capsys):
    assert cli.main(words) == 0
    assert "mine.csv" in capsys.readouterr().out
    rows = (tmp_path / "out" / "comparison.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == [
        "row", "best classifier", "stack without messages", "edgeless", "mine.csv",
    ]  # fmt: skip
    assert set(json.loads((tmp_path / "out" / "comparison.json").read_text())["values"]) == {
        row.split(",")[0] for row in rows[1:]
    }


def test_files_of_graphs_are_looked_for_first_and_their_weights_have_no_effect(
    words, tmp_path, capsys
):
    assert cli.main(["edgeless,none.csv" if "mine.csv" in word else word for word in words]) == 1
    assert "'--graphs' to name files that there are (got ['none.csv']" in capsys.readouterr().err
    (tmp_path / "mine.csv").write_text("source,target,weight\ntall,broad,0.5\n")
    assert cli.main(words) == 0
    assert "weights of 'mine.csv' have no effect" in capsys.readouterr().err


def test_a_split_that_is_the_same_for_all_seeds_is_refused(words, capsys):
    assert cli.main([*words, "--split", "scaffold"]) == 1
    assert "scaffold" in capsys.readouterr().err
