"""Files: decompression by suffix or content, with limits of size, and atomic writes."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import torch

FilePath = str | bytes | os.PathLike[str]
Stream = IO[bytes] | io.BufferedIOBase

_OPENERS: dict[str, Any] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": partial(lzma.open, format=lzma.FORMAT_XZ),
}
_MAGIC = {".gz": b"\x1f\x8b\x08", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\x00"}
SUFFIXES = tuple(_OPENERS)  #: Suffixes of compressed files, in lower or upper case.
#: Errors that reading a damaged file raises. An OSError with an errno is an error of the disk.
DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError)

MAX_BYTES = 2**32  #: Maximum size of a file in memory.
MAX_LINE = 2**20  #: Maximum bytes of a line.
MAX_NAME = 2**16  #: Maximum bytes of a line in a file of names.
#: Maximum compression ratio of what is read piece by piece: gzip reaches 1,032 on zeros alone.
MAX_RATIO = 1000
ALWAYS_UNPACKED = 2**26  #: Unpacked bytes that are allowed at any compression ratio.
#: The same for a beginning of a file: Mediamill's files begin with many zeros.
ALWAYS_AT_FIRST = 2**27
#: Maximum number of lines per byte of a compressed file. More lines would take too long.
LINES_PER_BYTE = 8
ALWAYS_LINES = 2**20  #: Lines that are allowed in a compressed file of any size.
_CHUNK = 2**18
_BOM = b"\xef\xbb\xbf"


def most_unpacked(packed: int) -> int:
    """Returns the maximum unpacked size of a file, given its compressed size."""
    return max(ALWAYS_UNPACKED, MAX_RATIO * packed)


def open_unpacked(
    path: FilePath, max_bytes: int | None = None, content: bytes | None = None
) -> io.BufferedReader:
    """Opens a file or its content, and unpacks gz, bz2 and xz by the suffix or the first bytes.

    Reading raises ValueError for damage or more than :obj:`max_bytes`. A packed file may have at
    most max(64 MiB, 1000 * packed size) bytes and max(2**20, 8 * packed size) lines; each beginning
    of it at most so many lines, and max(128 MiB, 1000 * packed size) bytes.
    """
    name = os.fsdecode(path)
    suffix = Path(name).suffix.lower()
    file: Any = Path(name).open("rb") if content is None else io.BytesIO(content)  # noqa: SIM115
    if suffix not in _OPENERS:
        head = file.read(6)
        file.seek(0)
        suffix = next((name for name, magic in _MAGIC.items() if head.startswith(magic)), suffix)
    if suffix in _OPENERS:
        packed = os.fstat(file.fileno()).st_size if content is None else len(content)
        limit = most_unpacked(packed)
        max_bytes = limit if max_bytes is None else min(limit, max_bytes)
    try:
        unpacked = _OPENERS[suffix](file) if suffix in _OPENERS else file
    except BaseException:
        file.close()
        raise
    return io.BufferedReader(_Bounded(unpacked, file, f"'{name}'", max_bytes), _CHUNK)


def read_unpacked(
    path: FilePath, max_bytes: int = MAX_BYTES, content: bytes | None = None
) -> bytes:
    """Reads a whole file, unpacked as by :func:`open_unpacked`."""
    with open_unpacked(path, max_bytes, content) as file:
        return _read(file)


def read_bounded(file: Stream, called: str, max_bytes: int) -> bytes:
    """Reads a member of an archive, and closes it."""
    with io.BufferedReader(_Bounded(file, file, called, max_bytes), _CHUNK) as bounded:
        return _read(bounded)


def byte_lines(path: FilePath, max_line: int = MAX_LINE) -> Iterator[tuple[int, bytes]]:
    """Yields line numbers, starting at 1, and the bytes of lines, without a byte order mark.
    Unpacks the file like :func:`open_unpacked`.
    """
    with open_unpacked(path) as file:
        for number, line in enumerate(iter(partial(file.readline, max_line + 1), b""), start=1):
            if len(line) > max_line:
                expected = f"at most {max_line:,} bytes in line {number} of '{os.fsdecode(path)}'"
                raise ValueError(f"Expected {expected} (got more); is it of another format?")
            yield number, line.removeprefix(_BOM) if number == 1 else line


def read_lines(path: FilePath) -> Iterator[tuple[int, str]]:
    """Yields the numbers and texts of the lines of a UTF-8 file, without blank lines."""
    for number, line in byte_lines(path):
        text = decode(line, path, number)
        if text and not text.isspace():
            yield number, text.rstrip("\r\n")


def read_names(path: FilePath) -> list[str]:
    """Reads one name per line. Strips names, and skips blank lines at the end of the file."""
    names = [decode(line, path, number).strip() for number, line in byte_lines(path, MAX_NAME)]
    while names and not names[-1]:
        names.pop()
    if not names:
        raise ValueError(f"Expected at least one name in '{os.fsdecode(path)}' (got none)")
    if "" in names:
        expected, line = f"a name in every line of '{os.fsdecode(path)}'", names.index("") + 1
        raise ValueError(f"Expected {expected} (got none in line {line})")
    return names


def decode(line: bytes, path: FilePath, number: int) -> str:
    """Returns the text of a line in UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        expected = f"UTF-8 in line {number} of '{os.fsdecode(path)}'"
        got = f"byte {line[error.start]:#x} in {line[:40]!r}"
        raise ValueError(f"Expected {expected} (got {got}); store the text as UTF-8") from error


def sha256(content: bytes) -> str:
    """Returns the SHA-256 of bytes in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def file_sha256(path: Path) -> str:
    """Returns the SHA-256 of a file, which may be too large to hold in memory."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def find_damage(path: FilePath) -> str | None:
    """Describes damage of a file of :func:`torch.save`, or returns None if checksums match."""
    with Path(os.fsdecode(path)).open("rb") as file:
        try:
            damaged = zipfile.ZipFile(file).testzip()
        except Exception as error:  # The class of the error depends on the damaged bytes.
            return str(error)
    return None if damaged is None else f"wrong checksum of its member '{damaged}'"


def read_tensors(path: FilePath) -> Any:
    """Reads tensors and plain data of :func:`torch.save`. Raises ValueError for damaged files."""
    if (damage := find_damage(path)) is not None:
        got = f"one that is damaged: {damage}"
        raise ValueError(f"Expected '{os.fsdecode(path)}' to be whole (got {got})")
    return torch.load(os.fsdecode(path), weights_only=True)


@contextmanager
def named_if_full(path: Path) -> Iterator[None]:
    """Adds the path to system errors without a file name, such as the error of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error
        raise


@contextmanager
def replace_when_done(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary file in the same folder, and renames it to :obj:`path` on success."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".unfinished", dir=path.parent)
    os.close(handle)
    unfinished = Path(name)
    try:
        with named_if_full(path):
            yield unfinished
        mask = os.umask(0)  # mkstemp makes private files, but folders are often shared.
        os.umask(mask)
        unfinished.chmod(0o666 & ~mask)
        unfinished.replace(path)
    except RuntimeError as error:
        # PyTorch raises a RuntimeError with one of these texts if the disk is full.
        if "PytorchStreamWriter" in str(error) or "unexpected pos" in str(error):
            got = repr(str(error).splitlines()[0])
            raise OSError(f"Expected to write '{path}' whole (got {got})") from error
        raise
    finally:
        unfinished.unlink(missing_ok=True)


class _Bounded(io.RawIOBase):
    """A file that raises ValueError if it has too many bytes or lines, or is damaged."""

    def __init__(
        self,
        file: Stream,
        below: Stream,
        called: str,
        max_bytes: int | None,
    ) -> None:
        self._file: Any = file
        self._below = below
        self._called, self._max_bytes, self._num_bytes = called, max_bytes, 0
        self._num_lines = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            block = self._file.read1(len(buffer))  # read1 returns the bytes before the damage.
        except DAMAGED as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            got = f"one that cannot be unpacked after {self._num_bytes:,} bytes: {error}"
            expected = f"{self._called} to be whole"
            raise ValueError(f"Expected {expected} (got {got}); get it once more") from error
        self._num_bytes += len(block)
        self._check("bytes", self._num_bytes, self._max_bytes)
        if self._file is not self._below:  # Bombs are refused before they fill the memory.
            packed = self._below.tell()
            self._num_lines += block.count(b"\n")
            self._check("bytes", self._num_bytes, max(ALWAYS_AT_FIRST, MAX_RATIO * packed))
            self._check("lines", self._num_lines, max(ALWAYS_LINES, LINES_PER_BYTE * packed))
        buffer[: len(block)] = block
        return len(block)

    def _check(self, unit: str, number: int, limit: int | None) -> None:
        if limit is not None and number > limit:
            expected = f"{self._called} to have at most {limit:,} {unit} unpacked"
            raise ValueError(f"Expected {expected} (got more); unpack or divide it by hand")

    def close(self) -> None:
        with closing(self._below):
            self._file.close()
        super().close()


def _read(file: IO[bytes]) -> bytes:
    content = io.BytesIO()
    shutil.copyfileobj(file, content, _CHUNK)
    return content.getvalue()
