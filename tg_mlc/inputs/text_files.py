"""Text files of tables: their encoding, delimiter, header and cells."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import threading
import zipfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from tg_mlc._files import MAX_BYTES, open_unpacked, read_bounded
from tg_mlc._names import shorten
from tg_mlc._numbers import NUMBER
from tg_mlc._optional import require
from tg_mlc._options import argument
from tg_mlc._warnings import check_abandoned, warn
from tg_mlc.inputs.cells import clean
from tg_mlc.inputs.limits import TableLimits, check_unpacked

DELIMITERS = (",", ";", "\t", "|")  #: delimiters that are recognised
_CHUNK = 2**12  # rows of a whole file that are read at once
_LOCK = threading.Lock()  # The limit of the module csv applies to the whole process.
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
# Byte-order marks of UTF-32 are tested first, because they begin with the marks of UTF-16.
_BOMS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_NUMBERS = r"[0-9]{1,9}(?:\.0*)?(?:,[0-9]{1,9}(?:\.0*)?)*"
LIBSVM_LINE = re.compile(
    rf"(?:({_NUMBERS})(?=\s|\Z))?\s*((?:[0-9]{{1,9}}:{NUMBER}(?:\s+|\Z))*)(?:#.*)?"
)
LIBSVM_SIZES = re.compile(r"\s*([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})\s*")
#: Functions of pandas by the suffixes of binary files.
_READERS = {
    "sav": "spss",
    "dta": "stata",
    "h5": "hdf",
    "hdf5": "hdf",
    "sas7bdat": "sas",
    "xpt": "sas",
    "arrow": "feather",
    "feather": "feather",
    "orc": "orc",
}
_ENCODINGS = ("cp1252", "cp1251", "gb18030", "shift_jis")  # common encodings besides UTF-8
_LIBSVM = "rows in the form of LibSVM, svmlight or XMC; read it with tg_mlc.data.from_libsvm"
#: Patterns of texts that are not tables, with a hint for each pattern.
_OTHER_TEXTS = {
    r"\s*<(?:!doctype|html|\?xml)": "a web page or XML; get the file itself",
    r"@relation\b": "ARFF; read it with tg_mlc.data.from_arff, or with --arff of tg-mlc",
}


class TextFile:
    """A text file, or the content of one, with delimiters between cells.

    Args:
        path (Path): The file, or a name of the content for messages.
        delimiter (str, optional): The delimiter. (default: :obj:`None`, inferred from the header)
        encoding (str, optional): The encoding. (default: :obj:`None`, from the first bytes)
        header (Sequence[str], optional): The columns of a file without header.
        content (bytes, optional): The content. (default: :obj:`None`, read from the file)
        limits (TableLimits, optional): Limits on the table. (default: :obj:`None`, none)
    """

    def __init__(
        self,
        path: Path,
        delimiter: str | None = None,
        encoding: str | None = None,
        header: Sequence[str] | None = None,
        content: bytes | None = None,
        limits: TableLimits | None = None,
    ) -> None:
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
            expected = f"{argument('delimiter')} to be one character that may stand between cells"
            raise ValueError(f"Expected {expected} (got {delimiter!r})")
        self.path, self.content = path, content
        self.limits = limits or TableLimits(f"'{path}'")
        self.header = None if header is None else [name.strip() for name in header]
        with self._open() as file:
            head = file.read(2**16)
        self.encoding = encoding or _encoding_of(head)
        if encoding is None and b"\0" in head and self.encoding == "utf-8-sig":
            reader = _READERS.get(path.suffix.lower().lstrip("."))
            hint = f"read it with pandas.read_{reader}, and use 'from_arrays'"
            hint = hint if reader else "export the table as CSV"
            raise ValueError(f"Expected a table in '{path}' (got a binary file); {hint}")
        with self._explain_damage():
            text = codecs.getincrementaldecoder(self.encoding)().decode(head)
        suffixes = path.name.lower().split(".")[1:]
        has_json_suffix = not {"json", "jsonl", "ndjson"}.isdisjoint(suffixes)
        json_start = r"\s*[\[{]" if has_json_suffix else r"\s*(?:\[\s*)?\{\s*[\"}]"
        self.is_json = re.match(json_start, text) is not None
        lines = re.split(r"\r\n|\r|\n", text)  # splitlines() would also split at form feeds.
        self._find_header(lines, delimiter)
        self._refuse_foreign(lines[self.skips : self.skips + 3])

    def _find_header(self, lines: list[str], delimiter: str | None) -> None:
        """Finds the delimiter, and the number of lines above the header."""
        start = next((number for number, line in enumerate(lines) if line), 0)
        first_line = lines[start].strip(" \r\n") if lines else ""
        specified = re.fullmatch(r'"?sep=(.)"?', first_line, re.IGNORECASE)
        start += specified is not None
        non_blank = [number for number in range(start, len(lines)) if lines[number]]
        header_index = next((number for number in non_blank if lines[number][0] != "#"), start)
        header = lines[header_index] if header_index < len(lines) else ""
        width = None if self.header is None else len(self.header)
        inferred = specified[1] if specified else _delimiter_of(header, width)
        self.delimiter = delimiter or inferred
        # Lines with '#' are comments, unless they have as many cells as the first other line.
        num_delimiters = header.count(self.delimiter)
        comments = (number for number in non_blank if number < header_index)
        header_like = (i for i in comments if lines[i].count(self.delimiter) == num_delimiters)
        self.skips = next(header_like, header_index)

    def records(self) -> Any:
        """Returns the objects of a JSON file as a data frame."""
        with self._explain_damage(), self._text() as text:
            content = text.read().removeprefix("\ufeff")
        limits = TableLimits.of_file(self.path)
        limits.check_cells(sum(map(content.count, ",[{")))
        try:
            records = _records(content)
        except RecursionError as error:
            expected = f"'{self.path}' to be JSON of one table"
            raise ValueError(f"Expected {expected} (got values nested too deep)") from error
        except ValueError as error:
            expected = f"'{self.path}' to be JSON of one table"
            raise ValueError(f"Expected {expected} (got {error})") from error
        limits.check(len(records), len(set().union(*records)))
        return require("pandas", extra="data").DataFrame(records, dtype=object)

    def blocks(self, min_rows: int, size: int | None) -> Iterator[tuple[Any, int, Sequence[int]]]:
        """Yields blocks of :obj:`size` rows, or all rows at once if it is None: a data frame of
        texts, the index of its first row in the file, and the line on which each row ends.
        """
        pandas, num_rows = require("pandas", extra="data"), 0
        frames, lines = list[Any](), array("q")
        with self._explain_damage(), self._text() as text:
            reader = csv.reader(text, delimiter=self.delimiter, strict=True)
            if self.header is None:
                self.header = self._read_header(reader)
            self.limits.check(1, len(self.header))
            rows = self._rows(reader, self.header)
            while block := self._take(rows, size or _CHUNK):
                self.limits.check(num_rows + len(block), len(self.header))
                ends, cells = zip(*block, strict=True)
                # Equal cells share one string, which saves much memory for categories.
                columns = [list(map({}.setdefault, c, c)) for c in zip(*cells, strict=True)]
                frame = pandas.DataFrame(dict(enumerate(columns)), dtype=object)
                if size is not None:
                    yield frame, num_rows, ends
                else:
                    frames.append(frame)
                    lines.extend(ends)
                num_rows += len(frame)
        if num_rows < min_rows:
            got = f"{len(self.header or ())} columns and no row"
            expected = f"a header and at least one row in '{self.path}'"
            raise ValueError(f"Expected {expected} (got {got})")
        if num_rows == 0:
            yield pandas.DataFrame(columns=range(len(self.header or ()))), 0, lines
        elif frames:
            yield pandas.concat(frames, ignore_index=True), 0, lines

    def _read_header(self, reader: Iterator[list[str]]) -> list[str]:
        with self._long_cells():
            header = [clean(name) for name in next(reader, [])]
        titles = [name for name in header if name]
        if len(header) > 2 and len(titles) == 1:
            expected, got = f"names of columns in '{self.path}'", f"the title {titles[0]!r}"
            hint = "delete what stands above the line with the names of columns"
            raise ValueError(f"Expected {expected} (got {got}); {hint}")
        return header

    def _rows(self, reader: Any, header: list[str]) -> Iterator[tuple[int, list[str]]]:
        """Yields the number of the last line of each row, and the row's cells. In a file of one
        column, blank lines are rows, except at the end.
        """
        num_rows, blank, is_warned = 0, list[int](), False
        line = reader.line_num + self.skips
        for cells in reader:
            check_abandoned()
            first_line, line = line + 1, reader.line_num + self.skips
            if not cells:
                blank += [line] if len(header) == 1 else []
                continue
            if len(cells) != len(header):
                self._refuse_row(num_rows + len(blank), line, cells, header)
            if line > first_line and len(cells) > 1 and not is_warned:
                is_warned = self._warn_of_late_quote(cells, first_line)
            yield from ((number, [""]) for number in blank)
            yield line, cells
            num_rows, blank = num_rows + len(blank) + 1, []

    def _take(
        self, rows: Iterator[tuple[int, list[str]]], size: int
    ) -> list[tuple[int, list[str]]]:
        with self._long_cells():
            return list(islice(rows, size))

    @contextmanager
    def _long_cells(self) -> Iterator[None]:
        """Lets the module csv read cells up to the limit of this file."""
        with _LOCK:
            limit = csv.field_size_limit(self.limits.max_characters)
            try:
                yield
            except csv.Error as error:
                if "field limit" in str(error):
                    raise self.limits.too_long("more") from error
                raise
            finally:
                csv.field_size_limit(limit)

    def _open(self) -> io.BufferedReader:
        if self.content is not None:
            return io.BufferedReader(io.BytesIO(self.content))
        with self.path.open("rb") as file:
            head = file.read(4)
        if head != b"PK\x03\x04":
            return open_unpacked(self.path, MAX_BYTES)
        try:
            name, content = self._member()
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
            got = shorten(f"{type(error).__name__}: {error}", 200)
            expected = f"'{self.path}' to be a whole zip archive without a password"
            raise ValueError(f"Expected {expected} (got {got}); get it once more") from error
        return open_unpacked(name, MAX_BYTES, content)

    def _member(self) -> tuple[str, bytes]:
        """Returns the name and the content of the only file in a zip archive."""
        with zipfile.ZipFile(self.path) as archive:
            members = [name for name in archive.namelist() if not name.endswith("/")]
            names = [name for name in members if "__MACOSX" not in name]
            if len(names) != 1 or names[0].endswith(".npy"):
                are_arrays = bool(names) and all(name.endswith(".npy") for name in names)
                load = "load the arrays with NumPy, and use 'from_arrays'"
                hint, expected = load if are_arrays else "unpack it", "one file in the zip archive"
                raise ValueError(f"Expected {expected} '{self.path}' (got {names[:5]}); {hint}")
            check_unpacked(self.path, archive.getinfo(names[0]).file_size)
            member = f"'{names[0]}' in '{self.path}'"
            return names[0], read_bounded(archive.open(names[0]), member, MAX_BYTES)

    def _text(self) -> Any:
        text = io.TextIOWrapper(self._open(), encoding=self.encoding, newline="")
        for _ in range(self.skips):
            text.readline()
        return text

    def _warn_of_late_quote(self, cells: list[str], line: int) -> bool:
        """Warns of a quoted cell of several lines that holds whole rows."""
        inner_lines = [row for cell in cells for row in cell.splitlines()[1:-1]]
        has_rows = any(row.count(self.delimiter) == len(cells) - 1 for row in inner_lines)
        if has_rows:
            message = f"A quoted cell that begins in line {line} of '{self.path}' holds what"
            warn(f"{message} look like whole rows, as if its quote were closed too late")
        return has_rows

    def _refuse_row(self, row: int, line: int, cells: list[str], header: list[str]) -> None:
        """Raises the error for a row whose number of cells differs from the header's."""
        delimiter_hint = f"pass another {argument('delimiter')}"
        hint = f"quote cells that contain '{self.delimiter}', or {delimiter_hint}"
        if len(cells) < len(header):
            hint = f"add the missing cells, or {delimiter_hint}"
        if len(cells) == len(header) + 1 and row == 0:
            reason = "if it holds row names without a header, as R writes them"
            hint += f", or name the first column {reason}"
        if len(header) == 1:
            hint = f"if {header[0][:40]!r} is a title or a comment, delete it"
        expected = f"{len(header)} cells, as in the header,"
        where = f"row {row} (line {line}) of '{self.path}'"
        raise ValueError(f"Expected {expected} in {where} (got {len(cells)}); {hint}")

    def _refuse_foreign(self, lines: list[str]) -> None:
        """Raises if the text is not a table but a web page, ARFF, or the LibSVM format."""
        first_line = next((line for line in lines if line.strip()), "")
        hints = (hint for start, hint in _OTHER_TEXTS.items() if re.match(start, first_line, re.I))
        got = _LIBSVM if looks_like_libsvm(lines) else next(hints, None)
        if got is not None:
            raise ValueError(f"Expected a table with a header in '{self.path}' (got {got})")

    @contextmanager
    def _explain_damage(self) -> Iterator[None]:
        """Adds the file, and the line if known, to errors of damaged files."""
        try:
            yield
        except (UnicodeError, LookupError, csv.Error) as error:
            encoding = self.encoding.replace("utf-8-sig", "UTF-8")
            if isinstance(error, UnicodeDecodeError):
                self._refuse_encoding(error, encoding)
            got = f"{type(error).__name__}: {error}"
            hint = "is a quote not closed, or is it of another encoding?"
            if isinstance(error, LookupError):
                hint = f"pass a name that Python knows: {argument('encoding')}"
            expected = f"'{self.path}' to be a CSV file in {encoding}"
            raise ValueError(f"Expected {expected} (got {got}); {hint}") from error

    def _refuse_encoding(self, error: UnicodeDecodeError, encoding: str) -> None:
        """Raises with the text of the line in likely encodings, among which the user can choose."""
        decoder, where, content = codecs.getincrementaldecoder(self.encoding)(), "", b""
        with self._open() as file, suppress(UnicodeDecodeError):
            for number, line in enumerate(file, start=1):
                where, content = f" in line {number}", line
                decoder.decode(line)
        readings = dict[str, str]()
        for name in _ENCODINGS:
            with suppress(UnicodeDecodeError):
                text = content.decode(name).strip()
                non_ascii = (index for index, letter in enumerate(text) if not letter.isascii())
                start = max(next(non_ascii, 0) - 5, 0)
                readings.setdefault(text[start : start + 20], name)
        choices = " or ".join(
            f"{argument('encoding', name)} for {text!r}" for text, name in readings.items()
        )
        expected = f"'{self.path}' to be a text file in {encoding}"
        got = f"the byte {error.object[error.start]:#x}{where}"
        hint = f"pass how its characters are stored, such as {choices}"
        raise ValueError(f"Expected {expected} (got {got}); {hint}") from error


def looks_like_libsvm(first_lines: Iterable[str]) -> bool:
    """Returns whether lines are in the LibSVM format, perhaps after a line of three sizes."""
    lines = [line for line in first_lines if line.strip()]
    rows = lines[1:] if lines and LIBSVM_SIZES.fullmatch(lines[0]) else lines
    matches = [LIBSVM_LINE.fullmatch(line.rstrip()) for line in rows]
    return None not in matches and any(match is not None and match[2] for match in matches)


def _encoding_of(head: bytes) -> str:
    by_bom = next((name for bom, name in _BOMS.items() if head.startswith(bom)), None)
    even, odd = head[0:200:2].count(0), head[1:200:2].count(0)  # numbers of zero bytes
    if by_bom is None and min(even, odd) == 0 and (even + odd) * 3 > len(head[:200]):
        return "utf-16-le" if odd else "utf-16-be"
    return by_bom or "utf-8-sig"


def _delimiter_of(line: str, width: int | None) -> str:
    """Returns the delimiter that gives :obj:`width` cells, or else the most frequent one."""
    unquoted = re.sub(r'"[^"]*"', "", line)
    counts: Mapping[str, int] = {delimiter: unquoted.count(delimiter) for delimiter in DELIMITERS}
    if width is not None and width > 1 and width - 1 in counts.values():
        return next(delimiter for delimiter in DELIMITERS if counts[delimiter] == width - 1)
    return max(DELIMITERS, key=lambda delimiter: counts[delimiter])


def _records(text: str) -> list[dict[str, Any]]:
    """Returns the objects of a JSON array or of JSON lines."""
    try:
        records = json.loads(text)
    except json.JSONDecodeError as error:
        records = []
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                records += [json.loads(line)] if line.strip() else []
            except json.JSONDecodeError as line_error:
                raise error if number == 1 else ValueError(f"line {number}: {line_error}") from None
    rows = [records] if isinstance(records, dict) else records
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        expected = "objects with a name for each cell, in an array or one in each line"
        raise ValueError(f"other values than {expected}")
    is_nested = rows and all(isinstance(cell, (list, dict)) for cell in rows[0].values())
    if rows is not records and rows[0] and is_nested:
        got = f"one object of lists or objects under {list(records)[:5]}"
        hint = "pass a data frame to 'from_arrays'"
        raise ValueError(f"{got}, not one object for each row; {hint}")
    return rows
