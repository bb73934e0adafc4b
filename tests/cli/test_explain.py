from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

import tg_mlc
from tests.cli.conftest import run

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")


def explain(folder: Path, *options: str) -> tuple[int, Path]:
    report = folder / "report.html"
    report.unlink(missing_ok=True)
    return run("explain", folder / "model", *options, out=report), report


@pytest.fixture(scope="module")
def text(rows: Path) -> str:
    """Returns the report of three rows of the table that a model was trained on."""
    options = ["--csv", str(rows / "rows.csv"), "--rows", "3", "--title", "Tall & broad"]
    status, report = explain(rows, *options)
    assert status == 0
    return report.read_text(encoding="utf-8")


def data_of(text: str) -> dict:
    pattern = r'<script type="application/json" id="data">(.*?)</script>'
    return json.loads(re.search(pattern, text)[1])


def cells_of(text: str) -> list[str]:
    """Returns the cells of the table of metrics."""
    [table] = re.findall(r"<th scope=\"col\">share</th>.*?</table>", text, re.DOTALL)
    return re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", table)


def test_rows_of_a_file_are_explained(text: str):
    assert "<h1>Tall &amp; broad</h1>" in text
    data = data_of(text)
    assert data["labels"] == ["tall", "broad"]
    assert len(data["samples"]) == 3
    for row, sample in enumerate(data["samples"]):
        assert f"row {row}" in sample["name"]
        truth = dict(zip(sample["labels"], sample["truth"], strict=True))
        assert truth == {0: int(row % 10 > 5), 1: int(row % 7 > 3)}
    assert any(entry["chosen"] and entry["faithfulness"] is not None for entry in data["methods"])


def test_metrics_are_computed_from_all_rows(text: str):
    cells = cells_of(text)
    assert cells[cells.index("tall") + 2] == "0.4"
    assert "80 rows" in unescape(text)
    assert "ECE" in cells
    assert text.count("<polyline") == 1  # The polyline is the reliability curve.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--text", "a word"], r"--csv for a model of rows \(got --text\)"),
        (["--csv", "rows.csv", "--rows", "0"], r"--rows .*\(got 0\)"),
        (["--csv", "rows.csv", "--labels", "tal"], r"'tal'.*'tall'"),
        (["--csv", "rows.csv", "--names", "height_"], r"height_"),
        (["--csv", "rows.csv", "--given", "tal"], r"--given .*'tal'"),
        (["--csv", "rows.csv", "--given", "all"], r"all 2 labels given"),
    ],
)
def test_wrong_options_are_refused(rows, options, message, monkeypatch, capsys):
    monkeypatch.chdir(rows)
    status, report = explain(rows, *options)
    assert status == 1
    assert re.search(message, capsys.readouterr().err)
    assert not report.exists()


def test_given_labels_change_the_other_label(rows: Path):
    """The report shows what a known label changes, and metrics of the other label alone."""
    options = ["--csv", str(rows / "rows.csv"), "--rows", "3", "--method", "occlusion"]
    _, report = explain(rows, *options, "--given", "tall")
    data = data_of(report.read_text(encoding="utf-8"))
    table = pd.read_csv(rows / "rows.csv")
    inputs, given = table[["height", "width"]], table[["tall"]]
    expected = tg_mlc.load(rows / "model").probabilities(inputs, given=given)
    for row, sample in enumerate(data["samples"]):
        probabilities = dict(zip(sample["labels"], sample["probability"], strict=True))
        assert probabilities == pytest.approx(dict(enumerate(expected[row])), abs=1e-3)
        assert "given labels" in str(sample["parts"])
    cells = cells_of(report.read_text("utf-8"))
    fractions = {name: cells[cells.index(name) + 2] for name in ("tall", "broad")}
    assert fractions == {"tall": "", "broad": f"{table['broad'].mean():.3g}"}


def test_rows_whose_labels_are_all_given_are_skipped(rows: Path):
    table = pd.read_csv(rows / "rows.csv")
    table.loc[2:, "broad"] = None
    table.to_csv(rows / "part.csv", index=False)
    options = ["--csv", str(rows / "part.csv"), "--rows", "2", "--method", "occlusion"]
    status, report = explain(rows, *options, "--given", "all")
    assert status == 0
    names = [sample["name"] for sample in data_of(report.read_text(encoding="utf-8"))["samples"]]
    assert names == ["row 2 (line 4)", "row 3 (line 5)"]
