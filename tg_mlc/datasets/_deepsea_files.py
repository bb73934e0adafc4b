"""Converter of DeepSEA's files of one-hot sequences and labels to letters and bits, a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.io
from tqdm import tqdm

from tg_mlc._optional import require
from tg_mlc.inputs.fasta import LETTERS, UNKNOWN_LETTER

ROWS = "AGCT"  # DeepSEA's order of one-hot letters
BLOCK_BYTES = 1 << 24  # of an array that are read at once
_HDF5 = b"\x89HDF\r\n\x1a\n"
_STRANGE = 255


# The code of a letter by its one-hot column, read as bits.
_LETTER_OF_ROWS = np.full(1 << len(ROWS), _STRANGE, dtype=np.uint8)
_LETTER_OF_ROWS[0] = UNKNOWN_LETTER
_LETTER_OF_ROWS[[1 << row for row in range(len(ROWS))]] = [LETTERS.index(letter) for letter in ROWS]


def convert(path: Path, part: str, num_labels: int, letters: IO[bytes], labels: IO[bytes]) -> tuple[int, int]:
    """Appends the letters ``[N, n]`` and the bits of the labels ``[N, ceil(L / 8)]`` of a file to two others, and
    returns :obj:`n` and :obj:`N`.

    The file is of MATLAB 5 with arrays ``[N, 4, n]`` and ``[N, L]``, or of HDF5, which MATLAB 7.3 writes, with arrays
    ``[n, 4, N]`` and ``[L, N]``; their names begin with the part, *e.g.* ``trainxdata`` and ``traindata``.
    """
    names = f"{part}xdata", f"{part}data"
    with path.open("rb") as file:
        is_hdf5 = file.read(len(_HDF5)) == _HDF5
    with (_open_hdf5 if is_hdf5 else _open_mat5)(path, *names) as (x, y):
        if len(x.shape) != 3 or x.shape[1] != len(ROWS) or 0 in x.shape or y.shape != (num_labels, x.shape[2]):
            expected = f"{' and '.join(names)} of shapes [n, 4, N] and [{num_labels}, N] (HDF5), or their transposes"
            raise _wrong(
                path, expected, f"{list(x.shape)} and {list(y.shape)}; are these the labels of 'predictor.names'?"
            )
        for block in _blocks(x, path, f"{part} sequences"):
            codes = _LETTER_OF_ROWS[block[:, 0] | block[:, 1] << 1 | block[:, 2] << 2 | block[:, 3] << 3]
            if (codes == _STRANGE).any():
                raise _wrong(path, "at most one of the four letters at a place", "several")
            letters.write(np.ascontiguousarray(codes.T).data)
        for block in _blocks(y, path, f"{part} labels"):
            labels.write(np.ascontiguousarray(np.packbits(block, axis=0).T).data)
        return x.shape[0], x.shape[2]


@contextmanager
def _open_hdf5(path: Path, *names: str) -> Iterator[tuple[Any, Any]]:
    h5py = require("h5py", extra="data")
    try:
        with h5py.File(path, "r") as file:
            if not all(isinstance(file.get(name), h5py.Dataset) for name in names):
                raise _wrong(path, f"the arrays {' and '.join(names)}", f"{list(file)}")
            yield file[names[0]], file[names[1]]
    except (OSError, RuntimeError, KeyError, TypeError) as error:  # TypeError: of a type that numpy does not have
        raise _wrong(path, "a whole HDF5 file", f"one that cannot be read: {error}") from error


@contextmanager
def _open_mat5(path: Path, *names: str) -> Iterator[tuple[Any, Any]]:
    try:
        arrays = scipy.io.loadmat(path, variable_names=names)
    except Exception as error:  # SciPy has none of its own for what is damaged
        raise _wrong(path, "a whole MATLAB 5 file", f"one that cannot be read: {error}") from error
    yield np.asarray(arrays.get(names[0], ())).T, np.asarray(arrays.get(names[1], ())).T


def _blocks(array: Any, path: Path, what: str) -> Iterator[np.ndarray]:
    """The last dimension in blocks, each of 0 and 1 in uint8."""
    if array.dtype.kind not in "biuf":
        raise _wrong(path, "arrays of 0 and 1", f"{what} of type {array.dtype}")
    num_samples = array.shape[-1]
    step = max(1, BLOCK_BYTES * num_samples // array.size)
    chunk = (getattr(array, "chunks", None) or (1,))[-1]
    step = max(1, round(step / chunk)) * chunk if chunk <= 8 * step else step  # else chunks are unpacked repeatedly
    for start in tqdm(range(0, num_samples, step), desc=what, leave=False, disable=None):  # None: not without terminal
        values = array[..., start : start + step]
        bits = values.astype(bool)
        if not np.array_equal(bits, values):
            raise _wrong(path, "arrays of 0 and 1", f"{values[bits != values][0]}")
        yield bits.view(np.uint8)


def _wrong(path: Path, expected: str, got: str) -> ValueError:
    return ValueError(f"Expected {expected} in '{path}' (got {got})")
