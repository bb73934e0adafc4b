"""Streams one array of a MATLAB 5 file, which may be too large to be held whole.

The format is that of `MAT-File Format
<https://www.mathworks.com/help/pdf_doc/matlab/matfile_format.pdf>`_; :func:`scipy.io.loadmat` reads arrays whole.
"""

from __future__ import annotations

import math
import struct
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_MATRIX, _COMPRESSED = 14, 15
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_NUMERIC_CLASSES = range(6, 16)
_MAX_HEADER = 1 << 16  # bytes of an array's shape or name
_MAX_ARRAY = 1 << 31  # bytes, the format's own limit
_BLOCK = 1 << 16


class Mat5Array(NamedTuple):
    """An array whose entries are still to be read, in MATLAB's order: the first index runs fastest."""

    shape: tuple[int, ...]
    dtype: np.dtype
    read: Callable[[int], bytes]

    def columns(self) -> Iterator[np.ndarray]:
        """The entries ``[shape[0]]`` for every combination of the other indices, of which the second runs fastest."""
        for _ in range(math.prod(self.shape[1:])):
            yield np.frombuffer(self.read(self.shape[0] * self.dtype.itemsize), dtype=self.dtype)


@contextmanager
def open_array(path: Path, name: str) -> Iterator[Mat5Array]:
    """Finds an array of numbers by its name.

    Raises:
        ValueError: If the file is none of MATLAB 5, is damaged or truncated, or has no such array of numbers.
    """
    with path.open("rb") as file:
        try:
            yield _find(file, name)
        except (struct.error, zlib.error, EOFError) as error:
            raise ValueError(
                f"Expected '{path}' to be a whole MATLAB 5 file with an array '{name}' (got a damaged or truncated "
                f"one: {error})"
            ) from error
        except _UnfitError as error:
            raise ValueError(f"Expected '{path}' to be a MATLAB 5 file with an array '{name}' (got {error})") from error


class _UnfitError(Exception):
    """A file that does not have what is looked for; the message says what it has."""


def _find(file: IO[bytes], name: str) -> Mat5Array:
    header = file.read(128)
    order = {b"IM": "<", b"MI": ">"}.get(header[126:128])
    if order is None:
        raise _UnfitError(f"one that begins with {header[:40]!r}")
    found: list[str] = []
    while tag := file.read(8):
        kind, size = struct.unpack(order + "II", tag)
        end = file.tell() + size
        reader = _Reader(_unpacked(file, size) if kind == _COMPRESSED else _plain(file, size), order)
        if kind == _COMPRESSED:
            kind, _ = reader.unpack("II")
        if kind == _MATRIX:
            found_name, array = reader.array()
            if found_name == name:
                return array()
            found.append(found_name)
        file.seek(end)
    raise _UnfitError(f"the arrays {found}")


class _Reader:
    """Reads parts of one element, which comes in blocks."""

    def __init__(self, blocks: Iterator[bytes], order: str) -> None:
        self.blocks, self.order = blocks, order
        self.rest = b""

    def read(self, size: int) -> bytes:
        parts, missing = [self.rest[:size]], size - len(self.rest)
        self.rest = self.rest[size:]
        while missing > 0:
            block = next(self.blocks, None)
            if block is None:
                raise EOFError("it ends early")
            parts.append(block[:missing])
            self.rest, missing = block[missing:], missing - len(block)
        return b"".join(parts)

    def unpack(self, form: str) -> tuple[int, ...]:
        form = self.order + form
        return struct.unpack(form, self.read(struct.calcsize(form)))

    def array(self) -> tuple[str, Callable[[], Mat5Array]]:
        """The name of an array, and what makes the array."""
        (flags, _), shape = struct.unpack(self.order + "II", self._small()), self._small()
        name = self._small().decode("ascii", "replace")

        def make() -> Mat5Array:
            if flags & 0xFF not in _NUMERIC_CLASSES or flags & 0x800:
                raise _UnfitError(f"'{name}' of another class than real numbers, {flags & 0xFF}")
            lengths = struct.unpack(f"{self.order}{len(shape) // 4}i", shape)
            kind, _ = self._tag()
            if kind not in _TYPES or min(lengths, default=-1) < 0:
                raise _UnfitError(f"'{name}' of type {kind} and shape {lengths}")
            dtype = np.dtype(self.order + _TYPES[kind])
            if math.prod(lengths) * dtype.itemsize > _MAX_ARRAY:
                raise _UnfitError(f"'{name}' of shape {lengths}, which no such file can hold")
            return Mat5Array(lengths, dtype, self.read)

        return name, make

    def _tag(self) -> tuple[int, int]:
        """The type and size of a part; of a small one, which lies in its tag, the size is negative."""
        kind, size = self.unpack("II")
        if kind >> 16:
            self.rest = struct.pack(self.order + "I", size) + self.rest
            return kind & 0xFFFF, -(kind >> 16)
        return kind, size

    def _small(self) -> bytes:
        """A whole part with what fills it up."""
        _, size = self._tag()
        if size > _MAX_HEADER or size < -4:
            raise EOFError(f"a part of its header claims {abs(size)} bytes")
        content = self.read(4 if size < 0 else size + -size % 8)
        return content[: abs(size)]


def _plain(file: IO[bytes], size: int) -> Iterator[bytes]:
    while size > 0 and (block := file.read(min(size, _BLOCK))):
        size -= len(block)
        yield block


def _unpacked(file: IO[bytes], size: int) -> Iterator[bytes]:
    unpack = zlib.decompressobj()
    for block in _plain(file, size):
        yield unpack.decompress(block, _BLOCK)
        while unpack.unconsumed_tail:
            yield unpack.decompress(unpack.unconsumed_tail, _BLOCK)
    yield unpack.flush()
