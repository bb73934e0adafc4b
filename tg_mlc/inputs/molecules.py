"""Molecules with labels, from a table or from lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data
from tqdm import tqdm
from typing_extensions import Unpack

from tg_mlc._files import sha256
from tg_mlc._frames import check_same_rows
from tg_mlc._numbers import as_list
from tg_mlc._optional import require
from tg_mlc._options import check_choice
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data._label_values import read_labels
from tg_mlc.data._settings import settings_key
from tg_mlc.data.samples import Samples
from tg_mlc.inputs.molecule_report import DuplicateMolecule, InvalidMolecule, MoleculeReport
from tg_mlc.inputs.smiles import MoleculeError, molecule_from_rdmol, parse_smiles
from tg_mlc.inputs.tables import read_molecules

OnError = Literal["skip", "raise"]


class MoleculeOptions(TypedDict, total=False):
    """The options of how molecules become samples."""

    on_error: OnError
    pre_transform: Callable[[Data], Data] | None
    pre_filter: Callable[[Data], bool] | None


class LabeledMolecules(MultiLabelDataset):
    """A data set of molecules that knows what became of each row of its table.

    Attributes:
        report (MoleculeReport): Which rows were invalid, and which were duplicates; also for a part of the data set,
            that of the whole table.
    """

    report: MoleculeReport

    def _adopt(self, samples: Samples) -> None:
        super()._adopt(samples)
        if samples.report is None:
            raise RuntimeError("Expected molecules with a report (got none); pass force_reload=True to make them again")
        self.report = MoleculeReport.from_dict(samples.report)


class MoleculeDataset(LabeledMolecules):
    """Molecules with any number of labels; make one with :meth:`from_csv` or :meth:`from_smiles`.

    Atoms and bonds have the features of :func:`torch_geometric.utils.from_smiles`, and each sample keeps its
    ``smiles``.

    .. code-block:: python

        dataset = MoleculeDataset.from_csv("tox21.csv", smiles_column="smiles", label_columns=["NR-AR", "SR-p53"])
        print(dataset.report)
    """

    def __init__(self, samples: Samples, transform: Callable[[Data], Data] | None = None) -> None:
        super().__init__(None, transform)
        self._adopt(samples)

    @classmethod
    def from_smiles(
        cls,
        smiles: Sequence[str],
        y: Any,
        label_names: Sequence[str] | None = None,
        *,
        transform: Callable[[Data], Data] | None = None,
        **options: Unpack[MoleculeOptions],
    ) -> MoleculeDataset:
        """Makes a data set from SMILES strings and their labels.

        Args:
            smiles (list[str]): One SMILES string per molecule, also as a column of a data frame; what is no string,
                as a missing entry, counts as an invalid molecule.
            y (Any): Labels ``[num_molecules, num_labels]`` of 0, 1 and NaN (unknown) in any form that
                :func:`~tg_mlc.data.from_arrays` takes, as a tensor or a data frame.
            label_names (list[str], optional): Names of the labels. (default: the columns of a data frame, else
                ``label_0``, ``label_1``, ...)
            on_error (str, optional): :obj:`"skip"` leaves invalid molecules out and lists them in ``report``,
                :obj:`"raise"` raises. (default: :obj:`"skip"`)
            transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
            pre_transform (callable, optional): Applied to every sample once. (default: :obj:`None`)
            pre_filter (callable, optional): Says which samples to keep. (default: :obj:`None`)

        Raises:
            ValueError: If shapes or label values are wrong, two labels have one name, no molecule is valid, or an
                invalid one is met and :obj:`on_error` is :obj:`"raise"`.
        """
        if isinstance(smiles, str) or not hasattr(smiles, "__len__") or getattr(smiles, "ndim", 1) != 1:
            kind = type(smiles).__name__
            raise ValueError(f"Expected 'smiles' to be a list of strings (got {kind}); choose a column of a table")
        check_same_rows(smiles, y)
        labels, names = read_labels(as_list(y), label_names)
        if len(labels) != len(smiles):
            shape = f"[{len(smiles)}, {len(names)}]"
            raise ValueError(f"Expected 'y' of shape {shape}, one row per molecule (got {list(labels.shape)})")
        return cls(molecule_samples(list(smiles), torch.from_numpy(labels), names, **options), transform)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        smiles_column: str,
        label_columns: Sequence[str] | None = None,
        *,
        delimiter: str = ",",
        root: str | Path | None = None,
        transform: Callable[[Data], Data] | None = None,
        force_reload: bool = False,
        **options: Unpack[MoleculeOptions],
    ) -> MoleculeDataset:
        """Makes a data set from a CSV file with a header (plain, ``.gz``, ``.bz2`` or ``.xz``).

        Args:
            path (str or Path): The file.
            smiles_column (str): Name of the column of SMILES strings.
            label_columns (list[str], optional): Names of the label columns, with cells 0, 1 or blank (unknown).
                (default: all columns but :obj:`smiles_column`)
            delimiter (str, optional): What stands between cells. (default: :obj:`","`)
            root (str or Path, optional): Folder to keep the finished graphs in, so that the next call with the same
                file and arguments need not make them again. Those of a function as :obj:`pre_transform` or
                :obj:`pre_filter` are not kept, as nothing tells two functions apart; those of an object are, by its
                class and its attributes. (default: :obj:`None`, keep nothing)
            transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)
            force_reload (bool, optional): Whether to make the graphs again. (default: :obj:`False`)
            **options (optional): :obj:`on_error`, :obj:`pre_transform` and :obj:`pre_filter` as of :meth:`from_smiles`.

        Raises:
            ValueError: If a column is missing, a label is not 0, 1 or blank, no molecule is valid, or an invalid one
                is met and :obj:`on_error` is :obj:`"raise"`.
            RuntimeError: If the file kept in :obj:`root` is damaged.
        """

        def build() -> Samples:
            smiles, y, names = read_molecules(path, smiles_column, label_columns, delimiter)
            return molecule_samples(smiles, y, names, **options)

        columns = None if label_columns is None else list(label_columns)
        changes = options.get("pre_transform"), options.get("pre_filter")
        key = settings_key(smiles_column, columns, delimiter, options.get("on_error", "skip"), *changes)
        if root is None or key is None:
            return cls(build(), transform)
        digest = sha256(Path(path).read_bytes() + key.encode())[:16]
        kept = Path(root) / "processed" / f"{Path(path).name.partition('.')[0]}-{digest}.pt"
        if force_reload or not kept.exists():
            build().save(kept)
        return cls(Samples.load(kept), transform)


def molecule_samples(
    smiles: Sequence[str],
    y: Tensor,
    label_names: Sequence[str],
    *,
    on_error: OnError = "skip",
    pre_transform: Callable[[Data], Data] | None = None,
    pre_filter: Callable[[Data], bool] | None = None,
) -> Samples:
    """Converts SMILES strings and labels to samples; what all molecule data sets share."""
    check_choice("on_error", on_error, get_args(OnError))
    report = MoleculeReport(num_rows=len(smiles))
    first_rows: dict[str, int] = {}
    samples = []
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        for row, text in enumerate(tqdm(smiles, desc="Molecules to graphs", disable=None, leave=False)):
            data = _convert(row, text, report, first_rows, on_error)
            if data is None:
                continue
            data.y = y[row : row + 1].clone()
            if pre_filter is None or pre_filter(data):
                samples.append(data if pre_transform is None else pre_transform(data))
            else:
                report.filtered.append(row)
    if not samples:
        raise ValueError(f"Expected at least one molecule to keep (got none)\n{report}")
    return Samples.collate(samples, label_names, report.to_dict())


def _convert(
    row: int, smiles: Any, report: MoleculeReport, first_rows: dict[str, int], on_error: OnError
) -> Data | None:
    """The graph of one row, or nothing if it is invalid; the report is written up."""
    try:
        if not isinstance(smiles, str):  # as where a cell of a data frame is empty
            raise MoleculeError("not a string")
        mol = parse_smiles(smiles)
        data = molecule_from_rdmol(mol, smiles)
    except MoleculeError as error:
        if on_error == "raise":
            hint = "pass on_error='skip' to leave it out"
            raise ValueError(f"Expected a valid molecule in row {row} (got '{smiles}': {error}); {hint}") from error
        report.invalid.append(InvalidMolecule(row, str(smiles), str(error)))
        return None
    canonical = require("rdkit.Chem", extra="molecules").MolToSmiles(mol)
    first = first_rows.setdefault(canonical, row)
    if first != row:
        report.duplicates.append(DuplicateMolecule(row, first, canonical))
    return data
