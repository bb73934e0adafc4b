"""Parquet and Excel files, whose sizes are checked before they are unpacked."""

from __future__ import annotations

import re
import zipfile
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import IO, Any

from tg_mlc._names import shorten
from tg_mlc._optional import require
from tg_mlc.inputs.limits import TableLimits, TooLargeError, check_unpacked

_CHUNK = 2**20
_MAX_TAG = 2**16  # Bytes of a tag in the XML of a sheet.
_TAG = re.compile(rb"<(?:\w+:)?(row|c)\b([^<>]*)>")
_PLACE = re.compile(rb'\sr="([A-Z]{0,3})([0-9]{1,9})"')


def read_binary(path: Path, head: bytes) -> Any:
    """Returns the data frame of a Parquet or Excel file, or None for a text file.

    Args:
        path (Path): The file.
        head (bytes): Its first bytes.
    """
    file_type = "a parquet file of one table"
    try:
        if head.startswith(b"PAR1"):
            return _checked(path, _read_parquet(path))
        file_type = "a zip archive or an Excel workbook of one table"
        with zipfile.ZipFile(path) if head.startswith(b"PK\x03\x04") else nullcontext() as archive:
            if archive is not None and "xl/workbook.xml" in archive.namelist():
                return _checked(path, _read_workbook(path, archive))
    except ImportError as error:
        raise ImportError(f"{error}; or save '{path}' as CSV") from error
    except (TooLargeError, MemoryError):
        raise
    except Exception as error:  # Damaged files may raise any error.
        got = shorten(f"{type(error).__name__}: {error}", 200)
        raise ValueError(f"Expected '{path}' to be {file_type} (got {got})") from error
    if path.suffix.lower() == ".parquet":
        got = f"one that begins with {head[:4]!r}"
        raise ValueError(f"Expected '{path}' to be a parquet file (got {got})")
    return None


def _checked(path: Path, frame: Any) -> Any:
    """Returns a data frame. Raises TooLargeError if its cells repeat long texts too often: they are
    stored once, but all steps that follow look at every cell.
    """
    # Categories become objects, which share the text; iterated, they would be copied.
    texts = frame.select_dtypes(exclude=["number", "bool", "datetime"]).astype(object)
    cells = chain.from_iterable(texts.iloc[:, index] for index in range(texts.shape[1]))
    check_unpacked(path, sum(len(cell) for cell in cells if isinstance(cell, str)))
    return frame


def _read_parquet(path: Path) -> Any:
    parquet = require("pyarrow.parquet", extra="parquet")
    file = parquet.ParquetFile(path)
    groups = [file.metadata.row_group(group) for group in range(file.metadata.num_row_groups)]
    chunks = [group.column(column) for group in groups for column in range(group.num_columns)]
    check_unpacked(path, sum(chunk.total_uncompressed_size for chunk in chunks))
    TableLimits.of_file(path).check_cells(sum(chunk.num_values for chunk in chunks))
    # Equal texts stay one object: a file of kilobytes may repeat a text of megabytes.
    types, schema = require("pyarrow", extra="parquet").types, file.schema_arrow
    is_text = (types.is_string, types.is_large_string)
    texts = [field.name for field in schema if any(test(field.type) for test in is_text)]
    categories = [field.name for field in schema if types.is_dictionary(field.type)]
    pandas = require("pandas", extra="parquet")
    frame = pandas.read_parquet(path, engine="pyarrow", read_dictionary=texts + categories)
    return frame.astype(dict.fromkeys(set(texts).intersection(frame.columns), object))


def _read_workbook(path: Path, archive: zipfile.ZipFile) -> Any:
    check_unpacked(path, sum(member.file_size for member in archive.infolist()))
    for name in archive.namelist():
        if name.startswith("xl/worksheets/") and name.endswith(".xml"):
            with archive.open(name) as sheet:
                TableLimits.of_file(path).check(*_extent(sheet))
    require("openpyxl", extra="excel")
    pandas = require("pandas", extra="excel")
    sheets = pandas.read_excel(path, sheet_name=None, dtype=object, na_filter=False)
    sheets = {name: sheet for name, sheet in sheets.items() if sheet.size}
    if len(sheets) != 1:
        got = f"one sheet with a table is needed, not {list(sheets)}"
        raise ValueError(f"{got}; save it as CSV")
    [sheet] = sheets.values()
    # Readers of text files skip blank lines, too.
    is_row = (sheet != "").any(axis=1)
    return sheet[is_row] if sheet.shape[1] > 1 else sheet


def _extent(sheet: IO[bytes]) -> tuple[int, int]:
    """Returns the numbers of rows and columns that the cells in a sheet's XML span. Rows without
    cells do not count.
    """
    row, last_row, column, num_columns, rest = 0, 0, 0, 0, b""
    while chunk := sheet.read(_CHUNK):
        content = rest + chunk
        start = content.rfind(b"<")
        is_whole = start < 0 or b">" in content[start:]
        rest = b"" if is_whole else content[start:]
        if len(rest) > _MAX_TAG:
            raise ValueError(f"a tag of at most {_MAX_TAG:,} bytes is needed")
        for kind, attributes in _TAG.findall(content):
            letters, number = match.groups() if (match := _PLACE.search(attributes)) else (b"", b"")
            if kind == b"row":
                row, column = int(number or row + 1), 0
                continue
            column = _index(letters) if letters else column + 1
            last_row, num_columns = max(last_row, row), max(num_columns, column)
    return last_row, num_columns


def _index(letters: bytes) -> int:
    """Returns the number of a column, such as 28 of AB."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number
