"""DeepSEA: windows of the human genome."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.io
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data, Dataset
from tqdm import tqdm

from tg_mlc._files import FilePath, read_names, replace_when_done
from tg_mlc._names import few, shorten
from tg_mlc._optional import require
from tg_mlc.data.samples import DamagedError
from tg_mlc.data.splits import Split
from tg_mlc.datasets.downloads import DatasetUnavailableError, fetch_all, placed_in
from tg_mlc.datasets.registry import published
from tg_mlc.inputs.dna_dataset import LETTERS, UNKNOWN_LETTER

PARTS = ("train", "valid", "test")
SUFFIXES = (".mat", ".h5", ".hdf5")
FOLDER = "deepsea/raw"
LETTER_FILE, LABEL_FILE, SHAPE = "letters.bin", "labels.bin", "shape.npy"
(NAMES,) = published("deepsea").files[0]
NUM_ROWS_AT_ONCE = 1 << 14  # number of samples whose labels are unpacked together
ROWS = "AGCT"  # DeepSEA's order of one-hot letters
BLOCK_BYTES = 1 << 24  # size of blocks in which arrays are read
_HDF5 = b"\x89HDF\r\n\x1a\n"
_INVALID = 255
# Codes of letters, indexed by the one-hot column as a number of four bits.
_LETTER_OF_ROWS = np.full(1 << len(ROWS), _INVALID, dtype=np.uint8)
_LETTER_OF_ROWS[0] = UNKNOWN_LETTER
_LETTER_OF_ROWS[[1 << row for row in range(len(ROWS))]] = [LETTERS.index(letter) for letter in ROWS]
# Open chromatin, modified histones (H3K4me3) and a histone variant (H2AZ); all other targets are
# binding proteins.
_NOT_FACTOR = re.compile(r"DNase$|H[234][AB]?K\d|H2AZ$")


class DeepSEA(Dataset):
    """The windows of 1,000 letters of the human genome with the proteins that bind to them, from
    the `"Predicting Effects of Noncoding Variants with Deep Learning-based Sequence Model"
    <https://doi.org/10.1038/nmeth.3547>`_ paper; its labels come from the ENCODE and Roadmap
    Epigenomics projects.

    The files are converted once to letters and bits (5 GB), which are memory-mapped. ``x`` has
    the codes of the letters, of shape ``[1000]`` in uint8, as in :class:`DNADataset`. 690 of the
    919 outputs are binding proteins, with 172 targets. Both strands of each window are samples.

    The files ``train.mat``, ``valid.mat``, ``test.mat`` of the authors' training bundle (or ``.h5``
    of the same layout) and ``predictor.names`` must be in ``root/raw`` or in ``deepsea/raw`` of
    the folder :obj:`TG_MLC_DATA`. They can be deleted after the conversion.

    The LaMP paper's TFBS set (1,671,873 / 301,823 / 323,796 sequences with 179 labels) was not
    published; :obj:`per_target` and :obj:`labelled_only` give the closest data set.

    Args:
        root (str or Path): Folder to keep the data set in.
        cells (list[str], optional): The cells of the outputs. (default: :obj:`None`, all)
        factors_only (bool, optional): If set to :obj:`False`, DNase and histone marks are outputs
            as well. (default: :obj:`True`)
        per_target (bool, optional): If set to :obj:`True`, each target is one label, the union over
            cells and treatments, named ``target``, not ``cell|target|treatment``.
            (default: :obj:`False`)
        labelled_only (bool, optional): Whether sequences without a label are skipped.
            (default: :obj:`False`)
        transform, force_reload (optional): As in :class:`~tg_mlc.datasets.base.PublishedDataset`.

    Raises:
        DatasetUnavailableError: If a file is missing; the message says where to get it.
        ValueError: If a file is malformed, a cell is unknown, or no label is left.
        RuntimeError: If the converted files are damaged.
    """

    kind: str | None = "sequence"
    feature_names = [*LETTERS]
    num_inputs = len(LETTERS)

    def __init__(
        self,
        root: str | Path,
        cells: Sequence[str] | None = None,
        *,
        factors_only: bool = True,
        per_target: bool = False,
        labelled_only: bool = False,
        transform: Callable[[Data], Data] | None = None,
        force_reload: bool = False,
    ) -> None:
        super().__init__(str(root), transform, force_reload=force_reload)
        folder = Path(self.processed_dir)
        outputs = read_outputs(folder / NAMES.name)
        self._selection = select_outputs(outputs, cells, factors_only, per_target)
        self.label_names = self._selection.names
        try:
            length, *ends = np.load(folder / SHAPE).tolist()
            self._letters = MappedRows(folder / LETTER_FILE, (ends[-1], length))
            self._bits = MappedRows(folder / LABEL_FILE, (ends[-1], -(-len(outputs) // 8)))
        except (OSError, ValueError, EOFError) as error:
            expected = f"letters and labels of the same samples in '{folder}'"
            raise DamagedError(f"Expected {expected} (got {error})") from error
        self._rows = np.flatnonzero(self._selection.any(self._bits.rows)) if labelled_only else None
        self._ends = np.asarray(ends) if self._rows is None else np.searchsorted(self._rows, ends)

    @property
    def processed_file_names(self) -> list[str]:
        return [LETTER_FILE, LABEL_FILE, SHAPE, NAMES.name]

    def process(self) -> None:
        folders = placed_in(Path(self.raw_dir), FOLDER)
        sources: dict[str, Path] = {}
        for part in PARTS:
            paths = (folder / f"{part}{suffix}" for folder in folders for suffix in SUFFIXES)
            if (path := next(filter(Path.is_file, paths), None)) is None:
                tried = " or ".join(f"'{folder}'" for folder in folders)
                expected = f"Expected DeepSEA's file '{part}.mat' (got none in {tried})"
                hint = "Place train.mat, valid.mat and test.mat there, of the training bundle"
                url = published("deepsea").urls[0]
                raise DatasetUnavailableError(f"{expected}\n{hint} (unpack it):\n{url}")
            sources[part] = path
        fetch_all([NAMES], Path(self.raw_dir))
        raw_names, folder = Path(self.raw_dir) / NAMES.name, Path(self.processed_dir)
        num_labels = len(read_outputs(raw_names))
        with (
            replace_when_done(folder / LETTER_FILE) as letters,
            replace_when_done(folder / LABEL_FILE) as labels,
            letters.open("wb") as letter_file,
            labels.open("wb") as label_file,
        ):
            shapes = [
                convert(path, part, num_labels, letter_file, label_file)
                for part, path in sources.items()
            ]
        lengths, sizes = zip(*shapes, strict=True)
        np.save(folder / SHAPE, [max(lengths), *np.cumsum(sizes)])
        with replace_when_done(folder / NAMES.name) as unfinished:
            shutil.copyfile(raw_names, unfinished)

    def len(self) -> int:
        return int(self._ends[-1])

    def get(self, idx: int) -> Data:
        row = idx if self._rows is None else int(self._rows[idx])
        x, y = np.array(self._letters.rows[row]), self._selection.take(self._bits.rows[[row]])
        return Data(x=torch.from_numpy(x), y=torch.from_numpy(y).float())

    @property
    def num_labels(self) -> int:
        """The number of labels."""
        return len(self.label_names)

    num_classes = num_labels

    @property
    def y(self) -> Tensor:
        """The labels of all samples, ``[num_samples, num_labels]``: 12 GB for all proteins.
        :meth:`sparse_y` needs much less memory.
        """
        return torch.from_numpy(self.sparse_y().toarray()).float()

    def sparse_y(self) -> sparse.csr_array:
        """Returns the labels of all samples as a sparse matrix."""
        rows = np.asarray(self.indices())
        rows = rows if self._rows is None else self._rows[rows]
        blocks = np.array_split(rows, len(rows) // NUM_ROWS_AT_ONCE + 1)
        parts = [sparse.csr_array(self._selection.take(self._bits.rows[block])) for block in blocks]
        return sparse.vstack(parts, "csr")

    def official_split(self) -> Split:
        """Returns the published split. Raises ValueError for a part of the data set."""
        if self._indices is not None:
            raise ValueError(f"Expected a whole data set (got a part of {len(self)} samples)")
        train, val, test = torch.arange(len(self)).tensor_split(self._ends[:-1].tolist())
        return Split(train, val, test, "official")


class DeepSEAOutput(NamedTuple):
    """The cell and the target of one output of DeepSEA."""

    cell: str
    target: str  #: a protein that binds, a histone mark, or DNase
    treatment: str


class Selection(NamedTuple):
    """The selected labels. Each label is the union of one or more outputs."""

    names: list[str]
    columns: np.ndarray  #: indices of outputs, grouped by label
    starts: np.ndarray  #: index in :obj:`columns` of each label's first output

    def take(self, bits: np.ndarray) -> np.ndarray:
        """Returns the labels ``[N, L]`` in uint8, from the bits ``[N, B]`` of all outputs."""
        outputs = np.unpackbits(bits, axis=1)[:, self.columns]
        if len(self.starts) == len(self.columns):
            return outputs
        return np.asarray(np.maximum.reduceat(outputs, self.starts, axis=1))

    def any(self, bits: np.ndarray) -> np.ndarray:
        """Returns a mask ``[N]`` of samples with at least one label."""
        mask = np.zeros(8 * bits.shape[1], dtype=bool)
        mask[self.columns] = True
        return np.asarray((bits & np.packbits(mask)).any(axis=1))


def read_outputs(path: FilePath) -> list[DeepSEAOutput]:
    """Reads a file of lines ``cell|target|treatment``."""
    outputs = []
    for number, name in enumerate(read_names(path), start=1):
        fields = [field.strip() for field in name.split("|")]
        if len(fields) != 3 or not all(fields):
            expected = f"'cell|target|treatment' in line {number} of '{path!s}'"
            raise ValueError(f"Expected {expected} (got '{name[:80]}')")
        outputs.append(DeepSEAOutput(*fields))
    return outputs


def select_outputs(
    outputs: Sequence[DeepSEAOutput],
    cells: Sequence[str] | None,
    factors_only: bool,
    per_target: bool,
) -> Selection:
    """Returns the labels that the options select."""
    all_cells = list(dict.fromkeys(output.cell for output in outputs))
    cells = all_cells if cells is None else cells
    if isinstance(cells, str) or not set(cells) <= set(all_cells):
        got = f"(got {cells!r}); known are {few(all_cells)}"
        raise ValueError(f"Expected 'cells' to be a list of cells {got}")
    columns: dict[str, list[int]] = {}
    for column, (name, output) in enumerate(zip(unique_names(outputs), outputs, strict=True)):
        is_factor = not _NOT_FACTOR.match(output.target)
        if output.cell in cells and (is_factor or not factors_only):
            columns.setdefault(output.target if per_target else name, []).append(column)
    if not columns:
        got = f"none for cells={shorten(cells)}, factors_only={factors_only}"
        raise ValueError(f"Expected at least one label (got {got})")
    starts = np.cumsum([0, *map(len, columns.values())])[:-1]
    return Selection(list(columns), np.concatenate([*columns.values()]), starts)


def unique_names(outputs: Sequence[DeepSEAOutput]) -> list[str]:
    """Returns unique names of outputs: ``"K562|YY1|None (2)"`` is the second ``K562|YY1|None``."""
    counts: Counter[str] = Counter()
    names = []
    for name in map("|".join, outputs):
        counts[name] += 1
        names.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return names


class MappedRows:
    """The rows of a memory-mapped file. A pickled copy maps the file again."""

    def __init__(self, path: Path, shape: tuple[int, int]) -> None:
        self._arguments = path, shape
        self.rows = np.memmap(path, dtype=np.uint8, mode="r").reshape(shape)

    def __reduce__(self) -> tuple[type[MappedRows], tuple[Path, tuple[int, int]]]:
        return MappedRows, self._arguments


def convert(
    path: Path, part: str, num_labels: int, letters: IO[bytes], labels: IO[bytes]
) -> tuple[int, int]:
    """Appends letters ``[N, n]`` and bits of labels ``[N, ceil(L / 8)]`` to two open files, and
    returns :obj:`n` and :obj:`N`.

    The source is a MATLAB 5 file with arrays ``[N, 4, n]`` and ``[N, L]``, or HDF5 (MATLAB 7.3)
    with arrays ``[n, 4, N]`` and ``[L, N]``, called *e.g.* ``trainxdata`` and ``traindata``.
    """
    names = f"{part}xdata", f"{part}data"
    with path.open("rb") as file:
        is_hdf5 = file.read(len(_HDF5)) == _HDF5
    with (_open_hdf5 if is_hdf5 else _open_mat5)(path, *names) as (x, y):
        is_one_hot = len(x.shape) == 3 and x.shape[1] == len(ROWS) and 0 not in x.shape
        if not is_one_hot or y.shape != (num_labels, x.shape[2]):
            expected = f"{' and '.join(names)} of shapes [n, 4, N] and [{num_labels}, N] (HDF5)"
            got = f"{list(x.shape)} and {list(y.shape)}; are these the labels of 'predictor.names'?"
            raise _wrong(path, f"{expected}, or their transposes", got)
        for block in _blocks(x, path, f"{part} sequences"):
            bits = [block[:, row] << row for row in range(len(ROWS))]
            codes = _LETTER_OF_ROWS[bits[0] | bits[1] | bits[2] | bits[3]]
            if (codes == _INVALID).any():
                raise _wrong(path, "at most one of the four letters at each position", "several")
            letters.write(np.ascontiguousarray(codes.T).data)
        for block in _blocks(y, path, f"{part} labels"):
            labels.write(np.ascontiguousarray(np.packbits(block, axis=0).T).data)
        return x.shape[0], x.shape[2]


@contextmanager
def _open_hdf5(path: Path, *names: str) -> Iterator[tuple[Any, ...]]:
    h5py = require("h5py", extra="data")
    try:
        with h5py.File(path, "r") as file:
            if not all(isinstance(file.get(name), h5py.Dataset) for name in names):
                raise _wrong(path, f"the arrays {' and '.join(names)}", f"{list(file)}")
            yield tuple(file[name] for name in names)
    # h5py raises a TypeError for types that NumPy lacks.
    except (OSError, RuntimeError, KeyError, TypeError) as error:
        raise _wrong(path, "a whole HDF5 file", f"one that cannot be read: {error}") from error


@contextmanager
def _open_mat5(path: Path, *names: str) -> Iterator[tuple[Any, ...]]:
    try:
        arrays = scipy.io.loadmat(path, variable_names=names)
    except Exception as error:  # SciPy has no specific exception for damaged files
        raise _wrong(path, "a whole MATLAB 5 file", f"one that cannot be read: {error}") from error
    yield tuple(np.asarray(arrays.get(name, ())).T for name in names)


def _blocks(array: Any, path: Path, title: str) -> Iterator[np.ndarray]:
    """Yields blocks along the last dimension, as 0 and 1 in uint8."""
    if array.dtype.kind not in "biuf":
        raise _wrong(path, "arrays of 0 and 1", f"{title} of type {array.dtype}")
    num_samples = array.shape[-1]
    step = max(1, BLOCK_BYTES * num_samples // array.size)
    chunk = (getattr(array, "chunks", None) or (1,))[-1]
    # Blocks are whole chunks, because h5py unpacks a whole chunk for every block inside it.
    step = max(1, round(step / chunk)) * chunk if chunk <= 8 * step else step
    # Without a terminal, disable=None shows no progress bar.
    for start in tqdm(range(0, num_samples, step), desc=title, leave=False, disable=None):
        values = array[..., start : start + step]
        bits = values.astype(bool)
        if not np.array_equal(bits, values):
            raise _wrong(path, "arrays of 0 and 1", f"{values[bits != values][0]}")
        yield bits.view(np.uint8)


def _wrong(path: Path, expected: str, got: str) -> ValueError:
    return ValueError(f"Expected {expected} in '{path}' (got {got})")
