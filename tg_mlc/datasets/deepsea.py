"""DeepSEA: windows of the human genome."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data, Dataset

from tg_mlc._files import replace_when_done
from tg_mlc.data.splits import Split
from tg_mlc.datasets._deepsea_files import convert
from tg_mlc.datasets._deepsea_labels import read_outputs, select_outputs
from tg_mlc.datasets._download import DatasetUnavailableError
from tg_mlc.datasets._sources import fetch_all, placed_in
from tg_mlc.datasets.registry import published
from tg_mlc.inputs.fasta import LETTERS

PARTS = ("train", "valid", "test")
SUFFIXES = (".mat", ".h5", ".hdf5")
FOLDER = "deepsea/raw"
LETTER_FILE, LABEL_FILE, SHAPE = "letters.bin", "labels.bin", "shape.npy"
(NAMES,) = published("deepsea").files[0]
NUM_ROWS_AT_ONCE = 1 << 14


class MappedRows:
    """The rows of a file of bytes, of which none is read before it is asked for; a copy in another process maps the
    file anew instead of taking its content along. A file of another shape is a :class:`ValueError`.
    """

    def __init__(self, path: Path, shape: tuple[int, int]) -> None:
        self._made_of = path, shape
        self.rows = np.memmap(path, dtype=np.uint8, mode="r").reshape(shape)

    def __reduce__(self) -> tuple[type[MappedRows], tuple[Path, tuple[int, int]]]:
        return MappedRows, self._made_of


class DeepSEA(Dataset):
    """The windows of 1,000 letters of the human genome with the proteins that bind to them, from the `"Predicting
    Effects of Noncoding Variants with Deep Learning-based Sequence Model" <https://doi.org/10.1038/nmeth.3547>`_ paper,
    whose labels come from the ENCODE and Roadmap Epigenomics projects.

    Its files are converted once to letters and bits, which are then mapped into memory and read as they are needed: a
    sample takes 1,115 bytes on disk, 5 GB in all, and next to nothing in memory. ``x`` has the codes of the letters, of
    shape ``[1000]`` in uint8, as in :class:`DNADataset`.

    The files ``train.mat``, ``valid.mat``, ``test.mat`` (of the authors' training bundle; or of the same layout and
    called ``.h5``) and ``predictor.names`` have to be in ``root/raw`` or in ``deepsea/raw`` of the folder that the
    environment variable :obj:`TG_MLC_DATA` names; they can be deleted once converted. Every window is there on both
    strands.

    The set of 1,671,873 / 301,823 / 323,796 sequences with 179 labels that the LaMP paper calls TFBS was made by its
    authors from ENCODE and was not published; of these files, :obj:`per_target` and :obj:`labelled_only` give the
    nearest.

    .. code-block:: python

        dataset = DeepSEA("data/deepsea", cells=["GM12878", "H1-hESC", "K562"])
        data = MultiLabelDataModule(dataset, dataset.official_split())

    Args:
        root (str or Path): Folder to keep the data set in.
        cells (list[str], optional): The cells whose outputs are taken. (default: :obj:`None`, all)
        factors_only (bool, optional): If set to :obj:`False`, DNase and histone marks are taken as well as proteins
            that bind to DNA. (default: :obj:`True`)
        per_target (bool, optional): If set to :obj:`True`, each target is one label, which is 1 if it is so in any of
            the cells and treatments. (default: :obj:`False`)
        labelled_only (bool, optional): If set to :obj:`True`, sequences without a label are left out.
            (default: :obj:`False`)
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
        force_reload (bool, optional): Whether to convert the files again. (default: :obj:`False`)

    Attributes:
        label_names (list[str]): ``cell|target|treatment`` of each label, or ``target``.

    Raises:
        DatasetUnavailableError: If a file is missing; the message says where to get it.
        ValueError: If a file is malformed, a cell is unknown, or no label is left.
        RuntimeError: If the converted files are damaged.

    Of the 919 outputs, 690 are of proteins, with 172 targets; GM12878 has 90 of these, with 79 targets, H1-hESC 58 with
    51, and K562 150 with 108.
    """

    kind: str | None = "sequence"

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
        self.feature_names = list(LETTERS)
        try:
            length, *ends = np.load(folder / SHAPE).tolist()
            self._letters = MappedRows(folder / LETTER_FILE, (ends[-1], length))
            self._bits = MappedRows(folder / LABEL_FILE, (ends[-1], -(-len(outputs) // 8)))
        except (OSError, ValueError, EOFError) as error:
            expected = f"letters and labels of the same samples in '{folder}'"
            raise RuntimeError(f"Expected {expected} (got {error}); pass force_reload=True to convert again") from error
        self._rows = np.flatnonzero(self._selection.any(self._bits.rows)) if labelled_only else None
        self._ends = np.asarray(ends) if self._rows is None else np.searchsorted(self._rows, ends)

    @property
    def processed_file_names(self) -> list[str]:
        """The processed files in ``root/processed``."""
        return [LETTER_FILE, LABEL_FILE, SHAPE, NAMES.name]

    def process(self) -> None:
        """Converts the files."""
        sources = {part: self._find(part) for part in PARTS}
        fetch_all([NAMES], Path(self.raw_dir))
        raw_names, folder = Path(self.raw_dir) / NAMES.name, Path(self.processed_dir)
        num_labels = len(read_outputs(raw_names))
        with (
            replace_when_done(folder / LETTER_FILE) as letters,
            replace_when_done(folder / LABEL_FILE) as labels,
            letters.open("wb") as letter_file,
            labels.open("wb") as label_file,
        ):
            shapes = [convert(path, part, num_labels, letter_file, label_file) for part, path in sources.items()]
        lengths, sizes = zip(*shapes, strict=True)
        np.save(folder / SHAPE, [max(lengths), *np.cumsum(sizes)])
        with replace_when_done(folder / NAMES.name) as unfinished:
            shutil.copyfile(raw_names, unfinished)

    def len(self) -> int:
        """The number of samples."""
        return int(self._ends[-1])

    def get(self, idx: int) -> Data:
        """The sample of a number."""
        row = idx if self._rows is None else int(self._rows[idx])
        y = self._selection.take(self._bits.rows[[row]])
        return Data(x=torch.from_numpy(np.array(self._letters.rows[row])), y=torch.from_numpy(y).float())

    @property
    def num_labels(self) -> int:
        """The number of labels."""
        return len(self.label_names)

    num_classes = num_labels

    @property
    def num_inputs(self) -> int:
        """The number of letters."""
        return len(self.feature_names)

    @property
    def y(self) -> Tensor:
        """The labels of all samples, ``[num_samples, num_labels]``, in four bytes each: 12 GB for all proteins;
        :meth:`sparse_y` takes a fraction of that.
        """
        return torch.from_numpy(self.sparse_y().toarray()).float()

    def sparse_y(self) -> sparse.csr_array:
        """The labels of all samples as a sparse matrix, which :func:`~tg_mlc.graphs.co_occurrence` takes as well."""
        chosen = np.asarray(self.indices())
        rows = chosen if self._rows is None else self._rows[chosen]
        blocks = np.array_split(rows, len(rows) // NUM_ROWS_AT_ONCE + 1)
        return sparse.vstack(
            [sparse.csr_array(self._selection.take(self._bits.rows[block])) for block in blocks], "csr"
        )

    def official_split(self) -> Split:
        """The split that the data set was published with.

        Raises:
            ValueError: If this is a part of the data set.
        """
        if self._indices is not None:
            raise ValueError("Expected a whole data set that was published with a split (got a part of a data set)")
        train, val, test = torch.arange(len(self)).tensor_split(self._ends[:-1].tolist())
        return Split(train, val, test, "official")

    def _find(self, part: str) -> Path:
        folders = placed_in(Path(self.raw_dir), FOLDER)
        for path in (folder / f"{part}{suffix}" for folder in folders for suffix in SUFFIXES):
            if path.is_file():
                return path
        tried = " or ".join(f"'{folder}'" for folder in folders)
        how = "Place train.mat, valid.mat and test.mat there by hand, from the authors' training bundle (unpack it)"
        expected = f"Expected DeepSEA's file '{part}.mat' (got none in {tried})"
        raise DatasetUnavailableError(f"{expected}\n{how}:\n{published('deepsea').urls[0]}")
