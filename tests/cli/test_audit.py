from __future__ import annotations

import json
import re

import numpy as np
import pytest

from tests.cli.conftest import run
from tg_mlc.data import from_csv
from tg_mlc.joint import audit

pd = pytest.importorskip("pandas")


@pytest.fixture
def table(tmp_path):
    """Returns a table in which "copy" repeats "a", except in row 7; one cell is blank."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2)).round(3)
    a = (x[:, 0] > 0).astype(int)
    copy = np.where(np.arange(80) == 7, 1 - a, a)
    cells = [[*map(str, values)] for values in zip(*x.T, a, copy, strict=True)]
    cells[3][3] = ""
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["p,q,a,copy", *map(",".join, cells)]) + "\n")
    return path


def test_suspects_are_those_of_the_audit(table, tmp_path, capsys):
    out, content = tmp_path / "suspects.csv", table.read_bytes()
    options = "audit --labels a,copy --seconds 0"
    assert run(options, csv=table, out=out) == 0
    result = audit(from_csv(table, label_columns=["a", "copy"]), seconds=0)
    suspects = pd.read_csv(out)
    assert suspects.to_dict("list") == result.cells.round(6).to_dict("list")
    assert len(suspects) == 159
    assert suspects["row"][0] == 7
    printed = capsys.readouterr().out
    assert re.search(r"wrong labels: \d+\.\d% \(most: (a|copy) \d+\.\d%, ", printed)
    assert re.search(r"labels of another row: at most \d+\.\d%", printed)
    assert f"Blanks that are likely present: {len(result.blanks)} of 1\n" in printed
    assert f"'{out}' lists 159 labels" in printed
    assert run(f"{options} --top 5", csv=table, out=out) == 0
    assert pd.read_csv(out).to_dict("list") == suspects.head(5).to_dict("list")
    assert table.read_bytes() == content
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", "suspects.csv"}


def test_details_are_the_other_tables_of_the_audit(table, tmp_path):
    out, folder = tmp_path / "suspects.csv", tmp_path / "details"
    folder.mkdir()
    assert run("audit --labels a,copy --seconds 0", csv=table, out=out, details=folder) == 0
    result = audit(from_csv(table, label_columns=["a", "copy"]), seconds=0)
    for name in ("rows", "noise", "blanks"):
        expected, written = getattr(result, name).round(6), pd.read_csv(folder / f"{name}.csv")
        pd.testing.assert_frame_equal(written, expected, check_dtype=False, check_index_type=False)


@pytest.mark.parametrize("columns", ["--dna site", "--dna site --features size"])
def test_rows_are_counted_in_the_file(columns, tmp_path, capsys):
    """A row that cannot be read has no suspects, and the rows after it keep their numbers."""
    ends = ("GGGG,2.5,0,0", "TTTT,3.5,1,1")
    lines = [f"{'ACGT' * (3 + i % 3)}{ends[i % 2]}" for i in range(20)]
    path, out = tmp_path / "sites.csv", tmp_path / "suspects.csv"
    path.write_text("\n".join(["site,size,bound,open", *lines[:4], "AC4T,1,1,1", *lines[4:]]))
    assert run(f"audit {columns} --labels bound,open --seconds 0", csv=path, out=out) == 0
    assert "1 of 21 rows cannot be read" in capsys.readouterr().err
    assert set(pd.read_csv(out)["row"]) == {*range(21)} - {4}


def test_a_report_shows_rows_and_inputs_of_the_file(tmp_path):
    pytest.importorskip("jinja2")
    ends = ("GGGG,0,0", "TTTT,1,1")
    lines = [f"site {i},{'ACGT' * (3 + i % 3)}{ends[i % 2]}" for i in range(20)]
    path, out, report = (tmp_path / name for name in ("sites.csv", "suspects.csv", "a.html"))
    path.write_text("\n".join(["Id,site,bound,open", *lines[:4], "bad,AC4T,1,1", *lines[4:]]))
    options = "audit --dna site --labels bound,open --seconds 0 --names id"
    assert run(options, csv=path, out=out, report=report) == 0
    data = json.loads(re.search(r'id="data">(.*?)</script>', report.read_text())[1])
    suspects = [(suspect["row"], suspect["label"]) for suspect in data["suspects"]]
    assert suspects == [*pd.read_csv(out)[["row", "label"]].itertuples(index=False, name=None)]
    for suspect in data["suspects"]:
        row = suspect["row"]
        assert suspect["name"] == f"site {row - (row > 4)}"
        assert suspect["title"] == f"Row {row}, {suspect['name']}"
    assert run(options, csv=path, out=out, report=out) == 1
    assert run(options, csv=path, out=out, report=path) == 1
    assert path.read_text().startswith("Id,site")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--labels a,copy --report missing/a.html", "--report to be a file in an existing folder"),
        ("--labels a,copy --seconds 0 --names b", "'b'"),
        ("--labels a --seconds 0", "--labels to name several labels (got one)"),
        ("--labels a,copy --top 0", "'--top' to be a whole number of at least 1"),
        ("--labels a,copy --seconds -1", "'--seconds' to be a finite number"),
        ("--labels a,other", "'other'"),
        ("", "--labels to name the columns"),
    ],
)
def test_wrong_options_are_refused(options, message, table, tmp_path, capsys):
    out = tmp_path / "suspects.csv"
    assert run(f"audit {options}", csv=table, out=out) == 1
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_the_audited_file_is_not_replaced(table, capsys):
    content = table.read_bytes()
    assert run("audit --labels a,copy --seconds 0", csv=table, out=table) == 1
    assert f"another --out than --csv (got '{table}'" in capsys.readouterr().err
    assert table.read_bytes() == content


def test_molecules_have_a_report_whose_rows_are_those_of_the_file(tmp_path):
    pytest.importorskip("rdkit")
    smiles = ["C" * (1 + i % 12) + ("O" if i % 2 else "N") for i in range(24)]
    cells = [f"{text},{i % 2},{i % 2}" for i, text in enumerate(smiles)]
    path, page = tmp_path / "drugs.csv", tmp_path / "page.html"
    path.write_text("\n".join(["smiles,a,b", "C(C,1,1", *cells]))
    out, options = tmp_path / "suspects.csv", "audit --smiles smiles --labels a,b --seconds 0"
    assert run(f"{options} --names smiles", csv=path, out=out, report=page) == 0
    assert set(pd.read_csv(out)["row"]) == {*range(1, 25)}
    assert "CCCCCCCCCCCCO" in page.read_text() or "CCCCCCCCCCCO" in page.read_text()
