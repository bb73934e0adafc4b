"""Converter of DeepSEA's files of one-hot sequences and labels to letters and bits, a block at a time."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from tqdm import tqdm

from tg_mlc._files import most_unpacked, replace_when_done
from tg_mlc._optional import require
from tg_mlc.data.readers.fasta import LETTERS, UNKNOWN_LETTER

ROWS = "AGCT"  # DeepSEA's order of one-hot letters
BLOCK_BYTES = 1 << 24  # of an array that are read at once
MAX_BLOCK = 1 << 28  # bytes that have to be read at once, as a sample or a compressed chunk
_HDF5 = b"\x89HDF\r\n\x1a\n"
_STRANGE = 255


# The code of a letter by its one-hot column, read as bits.
_LETTER_OF_ROWS = np.full(1 << len(ROWS), _STRANGE, dtype=np.uint8)
_LETTER_OF_ROWS[0] = UNKNOWN_LETTER
_LETTER_OF_ROWS[[1 << row for row in range(len(ROWS))]] = [LETTERS.index(letter) for letter in ROWS]


def convert(path: Path, part: str, num_labels: int, letters: Path, labels: Path) -> None:
    """Writes the letters ``[N, n]`` and the bits of the labels ``[N, ceil(L / 8)]`` of a file as two ``.npy`` files.

    Args:
        path (Path): A file of MATLAB 5 with arrays ``[N, 4, n]`` and ``[N, L]``, or one of HDF5, which MATLAB 7.3
            writes, with arrays ``[n, 4, N]`` and ``[L, N]``.
        part (str): What the names of the arrays begin with, *e.g.* :obj:`"train"` for ``trainxdata`` and ``traindata``.
        num_labels (int): The number of labels :math:`L`.
        letters (Path): Where the letters go.
        labels (Path): Where the bits of the labels go.
    """
    with path.open("rb") as file:
        is_hdf5 = file.read(len(_HDF5)) == _HDF5
    with (_open_hdf5 if is_hdf5 else _open_mat5)(path, part, num_labels) as source:
        num_bytes = -(-num_labels // 8)
        _check_space(letters.parent, path, source.num_samples * (source.length + num_bytes))
        shape = source.num_samples, source.length
        _write(letters, shape, (_letters(rows, path).T for rows in source.rows()), f"{part} sequences")
        shape = source.num_samples, num_bytes
        _write(labels, shape, (bits.T for bits in source.bits()), f"{part} labels")


class _Source:
    """The arrays of a file, in blocks of samples."""

    def __init__(self, path: Path, x: Any, y: Any, samples_first: bool) -> None:
        self.path, self.x, self.y = path, x, y
        self.samples_first = samples_first
        self.num_samples, self.length = (x.shape[0], x.shape[2]) if samples_first else (x.shape[2], x.shape[0])

    def rows(self) -> Iterator[np.ndarray]:
        """The four rows of one-hot letters as bits, blocks ``[n, b]``."""
        for block in self._blocks(self.x):
            yield block[:, 0] | block[:, 1] << 1 | block[:, 2] << 2 | block[:, 3] << 3

    def bits(self) -> Iterator[np.ndarray]:
        """Eight labels each as bits, blocks ``[ceil(L / 8), b]``."""
        for block in self._blocks(self.y):
            yield np.packbits(block, axis=0)

    def _blocks(self, array: Any) -> Iterator[np.ndarray]:
        step = max(1, BLOCK_BYTES * self.num_samples // array.size)
        chunk = (getattr(array, "chunks", None) or (1,))[0 if self.samples_first else -1]
        step = max(1, round(step / chunk)) * chunk if chunk <= 8 * step else step  # else chunks are unpacked repeatedly
        for start in range(0, self.num_samples, step):
            part = slice(start, start + step)
            block = array[part].T if self.samples_first else array[..., part]
            yield _zero_one(block, self.path)


@contextmanager
def _open_hdf5(path: Path, part: str, num_labels: int) -> Iterator[_Source]:
    h5py = require("h5py", extra="data")
    try:
        with h5py.File(path, "r") as file:
            if not all(isinstance(file.get(name), h5py.Dataset) for name in _names(part)):
                raise _wrong(path, f"the arrays {' and '.join(_names(part))}", f"{list(file)}")
            x, y = (file[name] for name in _names(part))
            samples_first = _samples_first(path, part, x.shape, y.shape, num_labels)
            for array in (x, y):
                _check_plausible(array, array.shape[0 if samples_first else -1], path)
            yield _Source(path, x, y, samples_first)
    except (OSError, RuntimeError, KeyError, TypeError) as error:  # TypeError: of a type that numpy does not have
        raise _wrong(path, "a whole HDF5 file", f"one that cannot be read: {error}") from error


@contextmanager
def _open_mat5(path: Path, part: str, num_labels: int) -> Iterator[_Source]:
    names = _names(part)
    try:
        arrays = scipy.io.loadmat(path, variable_names=names)
    except Exception as error:  # SciPy has none of its own for what is damaged
        raise _wrong(path, "a whole MATLAB 5 file", f"one that cannot be read: {error}") from error
    x, y = (np.asarray(arrays.get(name, ())) for name in names)
    if any(array.dtype.kind not in "biuf" for array in (x, y)):
        raise _wrong(path, "arrays of 0 and 1", f"{x.dtype} and {y.dtype}")
    yield _Source(path, x, y, _samples_first(path, part, x.shape, y.shape, num_labels))


def _names(part: str) -> tuple[str, str]:
    return f"{part}xdata", f"{part}data"


def _samples_first(path: Path, part: str, x: tuple[int, ...], y: tuple[int, ...], num_labels: int) -> bool:
    """Tells whether arrays are ``[N, 4, n]`` and ``[N, L]``, and not ``[n, 4, N]`` and ``[L, N]``."""
    if len(x) == 3 and x[1] == len(ROWS) and 0 not in x and y in ((num_labels, x[2]), (x[0], num_labels)):
        return y != (num_labels, x[2])
    names = " and ".join(_names(part))
    expected = f"{names} of shapes [n, 4, N] and [{num_labels}, N] (HDF5), or [N, 4, n] and [N, {num_labels}]"
    raise _wrong(path, expected, f"{list(x)} and {list(y)}; are these the labels of 'predictor.names'?")


def _check_plausible(array: Any, num_samples: int, path: Path) -> None:
    """Refuses an array of HDF5 that claims to hold what is not there: a few bytes can claim any shape."""
    if array.dtype.kind not in "biuf":
        raise _wrong(path, "arrays of 0 and 1", f"'{array.name}' of type {array.dtype}")
    claimed, stored = array.size * array.dtype.itemsize, array.id.get_storage_size()
    if claimed > most_unpacked(stored):
        got = f"'{array.name}' of shape {list(array.shape)}, {claimed:,} bytes, of which {stored:,} are there"
        raise _wrong(path, "a whole array", f"{got}; get the file once more")
    at_once = max(math.prod(array.chunks or ()) * array.dtype.itemsize, claimed // num_samples)
    if at_once > MAX_BLOCK:
        got = f"{at_once:,} bytes in '{array.name}'"
        raise _wrong(path, f"samples and chunks of at most {MAX_BLOCK:,} bytes", f"{got}; store it in smaller chunks")


def _check_space(folder: Path, path: Path, needed: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if needed > free:
        expected = f"{needed:,} bytes of free space in '{folder}' for what '{path}' holds"
        raise ValueError(f"Expected {expected} (got {free:,}); make room, or take another root")


def _letters(rows: np.ndarray, path: Path) -> np.ndarray:
    letters: np.ndarray = _LETTER_OF_ROWS[rows]
    if (letters == _STRANGE).any():
        raise _wrong(path, "at most one of the four letters at a place", "several")
    return letters


def _zero_one(values: np.ndarray, path: Path) -> np.ndarray:
    bits = values.astype(bool)
    if not np.array_equal(bits, values):
        raise _wrong(path, "arrays of 0 and 1", f"{values[bits != values][0]}")
    return bits.view(np.uint8)


def _write(path: Path, shape: tuple[int, int], blocks: Iterator[np.ndarray], what: str) -> None:
    """Writes blocks of rows one after another: a memory map would stay in memory until it is written."""
    bar = tqdm(total=shape[0], desc=what, unit=" samples", leave=False, disable=None)  # None: hidden without a terminal
    with replace_when_done(path) as unfinished, unfinished.open("wb") as file, bar as progress:
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(np.ascontiguousarray(block).data)
            progress.update(len(block))


def _wrong(path: Path, expected: str, got: str) -> ValueError:
    return ValueError(f"Expected {expected} in '{path}' (got {got})")
