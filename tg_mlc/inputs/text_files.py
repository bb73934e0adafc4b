"""Text files of tables: their encoding, delimiter, header and cells."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, NamedTuple

from tg_mlc._files import MAX_BYTES, open_unpacked, read_bounded
from tg_mlc._numbers import NUMBER
from tg_mlc._optional import require
from tg_mlc._options import argument
from tg_mlc._warnings import warn
from tg_mlc.inputs.cells import clean

DELIMITERS = (",", ";", "\t", "|")  #: the delimiters that are looked for
_LONGEST = 2**31 - 1  # characters of a cell, for the module csv
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
# The marks of 32 bits come first, because those of 16 bits begin alike.
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
_ENCODINGS = ("cp1252", "cp1251", "gb18030", "shift_jis")  # usual ones beside UTF-8
#: The beginnings of text that is no table, and what to do with it.
_OTHER_TEXTS = {
    r"\s*<(?:!doctype|html|\?xml)": "a web page or XML; get the file itself",
    r"@relation\b": "ARFF; read it with tg_mlc.data.from_arff",
}


class Block(NamedTuple):
    """Some rows of a text file."""

    header: list[str]
    frame: Any  #: the cells as texts, in columns by their number
    first: int  #: the number of the first row in the file
    find_lines: Any  #: returns the line of the file on which each row ends


class TextFile:
    """A text file, or the content of one, with delimiters between cells.

    pandas divides it into cells. The module csv reads it once more where pandas leaves open how
    many cells a record has, on which line it ends, and whether a quote was closed.

    Args:
        path (Path): The file, or a name for its content in messages.
        delimiter (str, optional): The delimiter. (default: :obj:`None`, found in the header)
        encoding (str, optional): The encoding. (default: :obj:`None`, by the first bytes)
        header (Sequence[str], optional): The columns of a file without header.
            (default: :obj:`None`)
        content (bytes, optional): The content, as it is. (default: :obj:`None`, that of the file)
    """

    def __init__(
        self,
        path: Path,
        delimiter: str | None = None,
        encoding: str | None = None,
        header: Sequence[str] | None = None,
        content: bytes | None = None,
    ) -> None:
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
            expected = f"{argument('delimiter')} to be one character that may stand between cells"
            raise ValueError(f"Expected {expected} (got {delimiter!r})")
        self.path, self.content = path, content
        self.header = None if header is None else [name.strip() for name in header]
        with self._open() as file:
            head = file.read(2**16)
        self.encoding = encoding or _encoding_of(head)
        if encoding is None and b"\0" in head and self.encoding == "utf-8-sig":
            reader = _READERS.get(path.suffix.lower().lstrip("."))
            hint = f"read it with pandas.read_{reader}, and use 'from_arrays'"
            hint = hint if reader else "export the table as CSV"
            raise ValueError(f"Expected a table in '{path}' (got a binary file); {hint}")
        with self._named_if_damaged():
            text = codecs.getincrementaldecoder(self.encoding)().decode(head)
        suffixes = {*path.name.lower().split(".")[1:]}
        is_json = text.lstrip()[:1] in ("[", "{") and not suffixes.isdisjoint(
            ("json", "jsonl", "ndjson")
        )
        self.is_json = is_json or re.match(r"\s*(?:\[\s*)?\{\s*[\"}]", text) is not None
        lines = text.splitlines()
        self._find_header(lines, delimiter)
        self._refuse_foreign(lines[self.skips : self.skips + 3])
        self._num_read, self._records = 0, self._read()

    def _find_header(self, lines: list[str], delimiter: str | None) -> None:
        """Finds the delimiter, and the number of lines above the header."""
        begin = next((number for number, line in enumerate(lines) if line), 0)
        first_line = lines[begin].strip(" \r\n") if lines else ""
        specified = re.fullmatch(r'"?sep=(.)"?', first_line, re.IGNORECASE)
        begin += specified is not None
        filled = [number for number in range(begin, len(lines)) if lines[number]]
        first = next((number for number in filled if lines[number][0] != "#"), begin)
        header = lines[first] if first < len(lines) else ""
        width = None if self.header is None else len(self.header)
        found = specified[1] if specified else _delimiter_of(header, width)
        self.delimiter = delimiter or found
        # Lines with '#' are comments, unless they have as many cells as the line after them.
        size = header.count(self.delimiter)
        comments = (number for number in filled if number < first)
        wide = (number for number in comments if lines[number].count(self.delimiter) == size)
        self.skips = next(wide, first)

    def records(self) -> Any:
        """The objects of a JSON file as a data frame."""
        with self._named_if_damaged(), self._text() as text:
            try:
                records = _records(text.read().removeprefix("\ufeff"))
            except UnicodeDecodeError:
                raise
            except ValueError as error:
                got = f"{error}"
                raise ValueError(
                    f"Expected '{self.path}' to be JSON of one table (got {got})"
                ) from error
        return require("pandas", extra="data").DataFrame(records, dtype=object)

    def blocks(self, min_rows: int, size: int | None) -> Iterator[Block]:
        """The rows of the file, some at a time, or all together; at least one block."""
        header, num_records, num_rows = self.header, 0, 0
        with self._named_if_damaged():
            self._check_quotes()
            for records in _without_last_blanks(self._frames(size)):
                frame, start, num_records = records, num_records, num_records + len(records)
                if header is None:
                    header = [clean(name) for name in frame.iloc[0]]
                    frame, start = frame.iloc[1:], start + 1
                    self._check_header(header)
                # pandas takes a row with too few cells, and a blank line, for one with blank cells.
                if len(header) != frame.shape[1] or not all(frame.iloc[:, -1].tolist()):
                    widths = [width for _, width in self._take(start, num_records)]
                    if not {0, len(header)}.issuperset(widths):
                        self._refuse_ragged()
                    if len(header) > 1:  # In a file of one column, a blank line is a blank cell.
                        frame = frame[[width > 0 for width in widths]]
                if len(frame):
                    is_single = len(header) == 1
                    find = partial(self._lines, start, num_records, keep_blank=is_single)
                    yield Block(header, frame, num_rows, find)
                num_rows += len(frame)
        header = header or []
        if num_rows < min_rows:
            expected, got = "a header and at least one row", f"{len(header)} columns and no row"
            raise ValueError(f"Expected {expected} in '{self.path}' (got {got})")
        if num_rows == 0:
            frame = require("pandas", extra="data").DataFrame(columns=range(len(header)))
            yield Block(header, frame, 0, list)

    def _check_header(self, header: list[str]) -> None:
        titles = [name for name in header if name]
        if len(header) > 2 and len(titles) == 1:
            expected, got = f"names of columns in '{self.path}'", f"the title {titles[0]!r}"
            hint = "delete what stands above the line with the names of columns"
            raise ValueError(f"Expected {expected} (got {got}); {hint}")

    def _open(self) -> io.BufferedReader:
        if self.content is not None:
            return io.BufferedReader(io.BytesIO(self.content))
        with self.path.open("rb") as file:
            head = file.read(4)
        if head != b"PK\x03\x04":
            return open_unpacked(self.path, MAX_BYTES)
        with zipfile.ZipFile(self.path) as archive:
            members = [name for name in archive.namelist() if not name.endswith("/")]
            names = [name for name in members if "__MACOSX" not in name]
            if len(names) != 1 or names[0].endswith(".npy"):
                are_arrays = bool(names) and all(name.endswith(".npy") for name in names)
                load = "load the arrays with NumPy, and use 'from_arrays'"
                hint, expected = load if are_arrays else "unpack it", "one file in the zip archive"
                raise ValueError(f"Expected {expected} '{self.path}' (got {names[:5]}); {hint}")
            member = f"'{names[0]}' in '{self.path}'"
            content = read_bounded(archive.open(names[0]), member, MAX_BYTES)
        return open_unpacked(names[0], MAX_BYTES, content)

    def _text(self) -> Any:
        text = io.TextIOWrapper(self._open(), encoding=self.encoding, newline="")
        for _ in range(self.skips):
            text.readline()
        return text

    def _frames(self, size: int | None) -> Iterator[Any]:
        """The records as data frames of texts, the header and blank lines among them."""
        pandas = require("pandas", extra="data")
        # Before pandas 3, the fast engine drops surplus cells of the first of some records.
        is_exact = size is None or int(pandas.__version__.split(".")[0]) >= 3
        engine: Any = "c" if is_exact and self.delimiter.isascii() else "python"
        with self._text() as text, suppress(pandas.errors.EmptyDataError, StopIteration):
            with _long_cells():  # pandas reads the first record here.
                frames = pandas.read_csv(
                    text,
                    sep=self.delimiter,
                    engine=engine,
                    header=None,  # pandas would change names that occur twice.
                    dtype=object,
                    na_filter=False,  # A cell "nan" may be a word.
                    skip_blank_lines=False,  # A line of spaces may be a cell.
                    iterator=True,
                )
            for number in chain([None if size is None else size + 1], repeat(size)):
                with _long_cells():
                    frame = frames.get_chunk(number)
                # The engine "python" has missing cells in blank lines.
                yield frame if engine == "c" else frame.fillna("")

    def _take(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The line on which each of these records ends, and its number of cells."""
        if start < self._num_read:
            self._num_read, self._records = 0, self._read()
        records = islice(self._records, start - self._num_read, stop - self._num_read)
        ends = [(line, len(cells)) for line, cells in records]
        self._num_read = stop
        return ends

    def _lines(self, start: int, stop: int, *, keep_blank: bool) -> list[int]:
        return [line for line, width in self._take(start, stop) if width or keep_blank]

    def _check_quotes(self) -> None:
        """Refuses a quoted cell that goes on after its closing quote, and warns of one that holds
        whole rows.
        """
        with self._open() as file:
            if not any(b'"' in block for block in iter(lambda: file.read(2**20), b"")):
                return
        begin, swallowing = self.skips + 1, 0
        for line, cells in self._read(strict=True):
            several = next((cell for cell in cells if "\n" in cell), None)
            if several is not None and len(cells) > 1:
                inner = several.splitlines()[1:-1]
                is_whole = any(row.count(self.delimiter) == len(cells) - 1 for row in inner)
                swallowing = swallowing or begin * is_whole
            begin = line + 1
        if swallowing:
            told = f"A quoted cell that begins in line {swallowing} of '{self.path}' holds what"
            warn(f"{told} look like whole rows, as if its quote were closed too late")

    def _refuse_ragged(self) -> None:
        """Names the first row that has not as many cells as the header."""
        records = self._read()
        names = list(next(records, (0, ()))[1]) if self.header is None else self.header
        rows = ((line, cells or [""]) for line, cells in records if cells or len(names) == 1)
        for row, (line, cells) in enumerate(rows):
            if len(cells) == len(names):
                continue
            other = f"pass another {argument('delimiter')}"
            hint = f"quote cells that contain '{self.delimiter}', or {other}"
            if len(cells) == len(names) + 1 and row == 0:
                hint += ", or name the first column, if the file has names of rows"
                hint += " without a name for them, as of R"
            if len(names) == 1:
                hint = f"if {names[0][:40]!r} is a title or a comment, delete it"
            expected = f"{len(names)} cells, as in the header,"
            where = f"row {row} (line {line}) of '{self.path}'"
            raise ValueError(f"Expected {expected} in {where} (got {len(cells)}); {hint}")

    def _refuse_foreign(self, lines: list[str]) -> None:
        """Refuses text that is no table: web pages, ARFF, and the form of LibSVM."""
        lines = [line for line in lines if line.strip()]
        first = lines[0] if lines else ""
        matches = (re.match(pattern, first, re.IGNORECASE) for pattern in _OTHER_TEXTS)
        pairs = zip(matches, _OTHER_TEXTS.values(), strict=True)
        other = next((described for match, described in pairs if match), None)
        if looks_like_libsvm(lines):
            form = "rows in the form of LibSVM, svmlight or XMC"
            other = f"{form}; read it with tg_mlc.data.from_libsvm"
        if other is not None:
            raise ValueError(f"Expected a table with a header in '{self.path}' (got {other})")

    @contextmanager
    def _named_if_damaged(self) -> Iterator[None]:
        """Names the file, and the line if it can be found, in errors of a damaged file."""
        refused = require("pandas.errors", extra="data").ParserError
        try:
            yield
        except (UnicodeError, LookupError, csv.Error, refused) as error:
            if isinstance(error, refused) and "EOF inside string" not in str(error):
                self._refuse_ragged()
            encoding = self.encoding.replace("utf-8-sig", "UTF-8")
            if isinstance(error, UnicodeDecodeError):
                self._refuse_encoding(error, encoding)
            got = f"{type(error).__name__}: {error}"
            hint = "is a quote not closed, or is it of another encoding?"
            if isinstance(error, LookupError):
                hint = f"pass an {argument('encoding')} that Python knows"
            expected = f"'{self.path}' to be a CSV file in {encoding}"
            raise ValueError(f"Expected {expected} (got {got}); {hint}") from error

    def _refuse_encoding(self, error: UnicodeDecodeError, encoding: str) -> None:
        """Names the line, and how it reads in likely encodings, among which a person can choose."""
        decoder, where, content = codecs.getincrementaldecoder(self.encoding)(), "", b""
        with self._open() as file, suppress(UnicodeDecodeError):
            for number, line in enumerate(file, start=1):
                where, content = f" in line {number}", line
                decoder.decode(line)
        readings: dict[str, str] = {}
        for name in _ENCODINGS:
            with suppress(UnicodeDecodeError):
                text = content.decode(name).strip()
                strange = (place for place, letter in enumerate(text) if not letter.isascii())
                begin = max(next(strange, 0) - 5, 0)
                readings.setdefault(text[begin : begin + 20], name)
        choices = " or ".join(f"encoding={name!r} for {text!r}" for text, name in readings.items())
        expected = f"'{self.path}' to be a text file in {encoding}"
        got = f"the byte {error.object[error.start]:#x}{where}"
        hint = f"pass how its characters are stored, such as {choices}"
        raise ValueError(f"Expected {expected} (got {got}); {hint}") from error

    def _read(self, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """The records, each with the line on which it ends."""
        with self._text() as text:
            reader = csv.reader(text, delimiter=self.delimiter, strict=strict)
            while True:
                with _long_cells():
                    cells = next(reader, None)
                if cells is None:
                    return
                yield reader.line_num + self.skips, cells


def looks_like_libsvm(first_lines: Iterable[str]) -> bool:
    """Whether lines are in the form of LibSVM, perhaps after one of three sizes."""
    lines = [line for line in first_lines if line.strip()]
    rows = lines[1:] if lines and LIBSVM_SIZES.fullmatch(lines[0]) else lines
    matches = [LIBSVM_LINE.fullmatch(line.rstrip()) for line in rows]
    return None not in matches and any(match is not None and match[2] for match in matches)


def _encoding_of(head: bytes) -> str:
    by_mark = next((name for mark, name in _BOMS.items() if head.startswith(mark)), None)
    even, odd = head[0:200:2].count(0), head[1:200:2].count(0)
    if by_mark is None and min(even, odd) == 0 and (even + odd) * 3 > len(head[:200]):
        return "utf-16-le" if odd else "utf-16-be"
    return by_mark or "utf-8-sig"


def _delimiter_of(line: str, width: int | None) -> str:
    """The delimiter that occurs most in the header, or as often as needed."""
    unquoted = re.sub(r'"[^"]*"', "", line)
    counts: Mapping[str, int] = {mark: unquoted.count(mark) for mark in DELIMITERS}
    if width is not None and width > 1 and width - 1 in counts.values():
        return next(mark for mark in DELIMITERS if counts[mark] == width - 1)
    return max(DELIMITERS, key=lambda mark: counts[mark])


def _records(text: str) -> list[dict[str, Any]]:
    """The objects of a JSON array, or of lines of JSON."""
    try:
        records = json.loads(text)
    except json.JSONDecodeError as error:
        records = []
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                records += [json.loads(line)] if line.strip() else []
            except json.JSONDecodeError as wrong:
                raise error if number == 1 else ValueError(f"line {number}: {wrong}") from None
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


@contextmanager
def _long_cells() -> Iterator[None]:
    """Lets the module csv read cells of any length, by a limit of the whole process."""
    limit = csv.field_size_limit(_LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _without_last_blanks(frames: Iterator[Any]) -> Iterator[Any]:
    """Records without the blank lines at the end of a file of one column."""
    # A frame, and the blank ones after it, whose lines are rows only if another one follows.
    pending: list[Any] = []
    for frame in frames:
        if pending and (frame.shape[1] > 1 or any(frame.iloc[:, 0].tolist())):
            yield from pending
            pending = []
        pending.append(frame)
    if pending:
        last, num_rows = pending[0], len(pending[0])
        while last.shape[1] == 1 and num_rows and last.iloc[num_rows - 1, 0] == "":
            num_rows -= 1
        yield last.iloc[:num_rows]
