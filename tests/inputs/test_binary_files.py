"""Damaged files, and files that would fill the memory, are refused with a reason."""

from __future__ import annotations

import io
import json
import time
import zipfile

import numpy as np
import pandas as pd
import pytest

from tg_mlc.inputs import binary_files, limits
from tg_mlc.inputs.limits import TooLargeError
from tg_mlc.inputs.tables import read_table

HEAD = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
TITLE = b'<row r="1"><c r="A1" t="inlineStr"><is><t>x</t></is></c><c r="B1"><v>2</v></c></row>'
ROW = b'<row r="%d"><c r="%s%d"><v>1</v></c></row>'
TAIL = b"</sheetData></worksheet>"


def workbook(path, *parts):
    """Writes a workbook whose sheet consists of these parts of XML."""
    pytest.importorskip("openpyxl")
    content = io.BytesIO()
    pd.DataFrame({"x": [1]}).to_excel(content, index=False)
    with zipfile.ZipFile(content) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            is_sheet = name == "xl/worksheets/sheet1.xml"
            new.writestr(name, b"".join([HEAD, TITLE, *parts]) if is_sheet else old.read(name))
    return path


def test_workbooks_that_span_many_blank_cells_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "ALWAYS_CELLS", 2**16)
    wide = [ROW % (row, b"XFD", row) for row in range(2, 50)]
    for name, rows in {"last": [ROW % (1_048_576, b"A", 1_048_576)], "wide": wide}.items():
        path = workbook(tmp_path / f"{name}.xlsx", *rows, TAIL)
        with pytest.raises(TooLargeError, match=rf"at most [\d,]+ cells in '{path}'"):
            read_table(path)


def test_workbooks_are_not_unpacked_without_limit(tmp_path):
    path = workbook(tmp_path / "big.xlsx", b"<row><c><v>1</v></c></row>" * 3_000_000, TAIL)
    with pytest.raises(TooLargeError, match="at most 67,108,864 bytes unpacked"):
        read_table(path)


def test_blank_rows_of_workbooks_are_no_samples(tmp_path):
    rows = [ROW % (row, b"A", row) for row in (2, 9)]
    table = read_table(workbook(tmp_path / "gaps.xlsx", *rows, TAIL))
    assert table.texts("x") == ["1", "1"]
    assert [table.where(row) for row in range(2)] == ["row 0 (line 2)", "row 1 (line 9)"]


def test_rows_that_are_only_formatted_do_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "ALWAYS_CELLS", 2**16)
    rows = ROW % (2, b"A", 2), b'<row r="1048576" s="1"></row>'
    assert len(read_table(workbook(tmp_path / "formatted.xlsx", *rows, TAIL))) == 1


@pytest.mark.parametrize(
    ("content", "extent"),
    [
        (b"<row><c/><c/></row><row/><row><c></c></row>", (3, 2)),
        (b'<x:row r="7"><x:c r="AB7" s="1"/><x:c/></x:row>', (7, 29)),
        (b'<row r="5"/>', (0, 0)),
        (b"<row><c>" + b"text " * 10 + b"</c></row>", (1, 1)),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 2**20])
def test_the_extent_of_a_sheet_does_not_depend_on_pieces(content, extent, size, monkeypatch):
    monkeypatch.setattr(binary_files, "_CHUNK", size)
    assert binary_files._extent(io.BytesIO(content)) == extent


def test_a_sheet_without_ends_of_tags_is_refused_at_once():
    with pytest.raises(ValueError, match="a tag of at most 65,536 bytes is needed"):
        binary_files._extent(io.BytesIO(b"<row " + b" " * 2**24))


def test_many_tags_without_ends_take_little_time():
    start = time.process_time()
    assert binary_files._extent(io.BytesIO(b"<row>" + b"<row" * 2**16)) == (0, 0)
    assert time.process_time() - start < 1


def test_a_damaged_workbook_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"Excel workbook of one table .*ParseError"):
        read_table(workbook(tmp_path / "cut.xlsx", b'<row r="2"><c'))


def test_parquet_files_that_repeat_values_are_refused_or_share_them(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    repeated = pd.DataFrame({"x": np.zeros(20_000), "y": ["a" * 1_000] * 20_000})
    repeated.to_parquet(tmp_path / "large.parquet")
    assert (tmp_path / "large.parquet").stat().st_size < 40_000
    table = read_table(tmp_path / "large.parquet")
    assert len({*map(id, table.frame[1])}) < 100
    monkeypatch.setattr(limits, "ALWAYS_CELLS", 2**12)
    monkeypatch.setattr(limits, "CELLS_PER_BYTE", 1)
    with pytest.raises(TooLargeError, match=r"at most [\d,]+ cells in .* \(got 40,000\)"):
        read_table(tmp_path / "large.parquet")


@pytest.mark.parametrize("dtype", [object, "category"])
def test_a_long_text_in_many_cells_is_refused(tmp_path, monkeypatch, dtype):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(limits, "ALWAYS_WHOLE", 2**20)
    for number in (10, 2_000):
        texts = pd.Series(["a" * 5_000] * number, dtype=dtype)
        pd.DataFrame({"x": texts, "y": 1.0}).to_parquet(tmp_path / f"{number}.parquet")
    assert len(read_table(tmp_path / "10.parquet")) == 10
    with pytest.raises(TooLargeError, match=r"at most [\d,]+ bytes unpacked \(got 10,000,000\)"):
        read_table(tmp_path / "2000.parquet")


def test_types_of_parquet_columns_remain(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"text": ["a", None, "b"], "kind": pd.Categorical(["u", "v", "u"])})
    frame.to_parquet(tmp_path / "x.parquet")
    table = read_table(tmp_path / "x.parquet")
    assert table.texts("text") == ["a", "", "b"]
    assert [table.frame[index].dtype.name for index in (0, 1)] == ["object", "category"]


ARCHIVE = io.BytesIO()
with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED) as written:
    written.writestr("a.csv", "x,l\n" + "1,0\n2,1\n" * 500)


def damaged(start, value, directory=None):
    """Returns the archive with other bytes, in the header of its file and in its directory."""
    content = bytearray(ARCHIVE.getvalue())
    content[start : start + len(value)] = value
    if directory is not None:
        start = content.rindex(b"PK\x01\x02") + directory
        content[start : start + len(value)] = value
    return bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        ARCHIVE.getvalue()[:-30],
        damaged(45, b"\xff" * 5),  # the packed bytes
        damaged(8, b"\x63", 10),  # an unknown method
        damaged(6, b"\x01", 8),  # a password
    ],
)
def test_damaged_archives_are_refused(tmp_path, content):
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(ValueError, match=r"Expected '.*x\.zip'.* \(got"):
        read_table(tmp_path / "x.zip")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"x":' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deep"),
        (json.dumps([{f"{row} {key}": 1 for key in range(50)} for row in range(900)]), "cells in"),
    ],
)
def test_json_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch, content, message):
    monkeypatch.setattr(limits, "ALWAYS_CELLS", 2**16)
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "x.json")


def test_files_that_do_not_fit_into_memory_are_named(tmp_path, monkeypatch):
    def fail(*_):
        raise MemoryError

    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    monkeypatch.setattr("tg_mlc.inputs.tables.TextFile.blocks", fail)
    with pytest.raises(ValueError, match=r"x\.csv' to fit into memory"):
        read_table(tmp_path / "x.csv")
