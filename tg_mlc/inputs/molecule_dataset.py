"""Molecules with labels from a table or from lists, and a report on each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data
from tqdm import tqdm
from typing_extensions import Unpack

from tg_mlc._files import sha256
from tg_mlc._frames import as_frame, check_same_rows
from tg_mlc._names import shorten
from tg_mlc._numbers import as_list
from tg_mlc._optional import require
from tg_mlc._options import check_choice
from tg_mlc.data import MultiLabelDataset
from tg_mlc.data._label_values import read_labels
from tg_mlc.data.samples import DamagedError, Samples, settings_key
from tg_mlc.inputs.checks import check_lost
from tg_mlc.inputs.smiles import MoleculeError, molecule_from_smiles, parse_smiles
from tg_mlc.inputs.tables import read_molecules, read_table

OnError = Literal["skip", "raise"]
#: The features of atoms in cached graphs: older caches had another order of chiral neighbours.
_FEATURES = "chirality of canonical SMILES"
NUM_SHOWN = 10  #: maximum number of rows per category in a printed report


class InvalidMolecule(NamedTuple):
    """A row whose SMILES could not be converted to a graph, with the reason."""

    row: int
    smiles: str
    reason: str


class DuplicateMolecule(NamedTuple):
    """A row whose canonical SMILES occurred before, in row ``first_row``."""

    row: int
    first_row: int
    smiles: str


@dataclass(frozen=True)
class MoleculeReport:
    """The outcome of each row of a table of molecules.

    Rows are counted from 0, without the header. Duplicates are kept in the data set, because only
    a person can know whether they are repeated measurements or mistakes.

    Args:
        num_rows (int): Number of rows read.
        invalid (list, optional): Rows that are skipped because their SMILES has no graph.
        duplicates (list, optional): Rows whose canonical SMILES occurred before.
        filtered (list, optional): Rows that :obj:`pre_filter` skips.
    """

    num_rows: int
    invalid: list[InvalidMolecule] = field(default_factory=list)
    duplicates: list[DuplicateMolecule] = field(default_factory=list)
    filtered: list[int] = field(default_factory=list)

    @property
    def kept_rows(self) -> list[int]:
        """The rows that became samples, in the order of the samples."""
        skipped = {entry.row for entry in self.invalid} | set(self.filtered)
        return [row for row in range(self.num_rows) if row not in skipped]

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as plain lists and numbers."""
        invalid, duplicates = list(map(list, self.invalid)), list(map(list, self.duplicates))
        return {**vars(self), "invalid": invalid, "duplicates": duplicates}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> MoleculeReport:
        """Restores a report from the result of :meth:`to_dict`."""
        invalid = [InvalidMolecule(*entry) for entry in values["invalid"]]
        duplicates = [DuplicateMolecule(*entry) for entry in values["duplicates"]]
        return cls(values["num_rows"], invalid, duplicates, values["filtered"])

    def __str__(self) -> str:
        names = ("invalid", "duplicates", "filtered")
        counts = ", ".join(f"{len(getattr(self, name))} {name}" for name in names)
        invalid = [
            f"  row {row}: invalid SMILES '{shorten(smiles)}': {reason}"
            for row, smiles, reason in self.invalid
        ]
        duplicates = [
            f"  row {row}: same molecule as row {first}" for row, first, _ in self.duplicates
        ]
        lines = [f"{self.num_rows} rows: {len(self.kept_rows)} kept ({counts})"]
        for group in (invalid, duplicates):
            num_hidden = len(group) - NUM_SHOWN
            lines += group[:NUM_SHOWN] + [f"  ... and {num_hidden} more"] * (num_hidden > 0)
        return "\n".join(lines)


class MoleculeOptions(TypedDict, total=False):
    """Options for the conversion of molecules to samples."""

    on_error: OnError
    pre_transform: Callable[[Data], Data] | None
    pre_filter: Callable[[Data], bool] | None


class LabeledMolecules(MultiLabelDataset):
    """A data set of molecules with a report on each row of its table."""

    report: MoleculeReport  #: invalid rows of the whole table, and duplicates

    def _adopt(self, samples: Samples) -> None:
        super()._adopt(samples)
        if samples.report is None:
            raise DamagedError("Expected molecules with a report (got none)")
        self.report = MoleculeReport.from_dict(samples.report)


class MoleculeDataset(LabeledMolecules):
    """Molecules with any number of labels; make one with :meth:`from_csv` or :meth:`from_smiles`.

    Atoms and bonds have the features of :func:`torch_geometric.utils.from_smiles`, and each sample
    keeps its ``smiles``.
    """

    def __init__(
        self,
        samples: Samples,
        transform: Callable[[Data], Data] | None = None,
        max_lost: float = 1.0,
        where: Callable[[int], str] = "row {}".format,
    ) -> None:
        super().__init__(None, transform)
        self._adopt(samples)
        invalid = self.report.invalid
        reasons = {row: f"'{shorten(smiles, 40)}': {reason}" for row, smiles, reason in invalid}
        check_lost(reasons, self.report.num_rows, where, max_lost)

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
        """Makes a data set from SMILES (or InChI) strings and their labels.

        Args:
            smiles (list[str]): One string per molecule, as a list or a data frame's column. Other
                entries, such as missing ones, count as invalid molecules.
            y (Any): Labels ``[num_molecules, num_labels]`` of 0, 1 and NaN (unknown) in any type
                that :func:`~tg_mlc.data.from_arrays` accepts, such as a tensor.
            label_names (list[str], optional): Names of the labels. (default: the columns of a data
                frame, else ``label_0``, ``label_1``, ...)
            on_error (str, optional): :obj:`"skip"` skips invalid molecules and lists them in
                ``report``, :obj:`"raise"` raises. (default: :obj:`"skip"`)
            transform (callable, optional): Applied to a sample at every access.
                (default: :obj:`None`)
            pre_transform (callable, optional): Applied to every sample once.
                (default: :obj:`None`)
            pre_filter (callable, optional): Tells whether to keep a sample. (default: :obj:`None`)

        Raises:
            ValueError: If shapes or label values are wrong, two labels have the same name, no
                molecule is valid, or one is invalid and :obj:`on_error` is :obj:`"raise"`.
        """
        smiles, y = as_frame(smiles), as_frame(y)
        check_same_rows(smiles, y)
        smiles = as_list(smiles)
        is_list = hasattr(smiles, "__len__") and getattr(smiles, "ndim", 1) == 1
        if isinstance(smiles, str) or not is_list:
            got = f"(got {type(smiles).__name__}); choose a column of a table"
            raise ValueError(f"Expected 'smiles' to be a list of strings {got}")
        labels, names = read_labels(as_list(y), label_names)
        if len(labels) != len(smiles):
            expected = f"'y' of shape [{len(smiles)}, {len(names)}], one row per molecule"
            raise ValueError(f"Expected {expected} (got {list(labels.shape)})")
        samples = molecule_samples(list(smiles), torch.from_numpy(labels), names, **options)
        return cls(samples, transform)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        smiles_column: str,
        label_columns: Sequence[str] | None = None,
        *,
        delimiter: str | None = None,
        encoding: str | None = None,
        root: str | Path | None = None,
        transform: Callable[[Data], Data] | None = None,
        force_reload: bool = False,
        max_lost: float = 1.0,
        **options: Unpack[MoleculeOptions],
    ) -> MoleculeDataset:
        """Makes a data set from a CSV file with a header (plain, ``.gz``, ``.bz2`` or ``.xz``).

        Args:
            path (str or Path): The file.
            smiles_column (str): Name of the column of SMILES (or InChI) strings.
            label_columns (list[str], optional): The label columns, as in
                :func:`~tg_mlc.data.from_csv`. (default: all columns but :obj:`smiles_column`)
            delimiter, encoding: As in :func:`~tg_mlc.data.from_csv`.
            root (str or Path, optional): Folder to keep the graphs in; the next call with the same
                file and arguments reads them. Graphs are not kept if :obj:`pre_transform` or
                :obj:`pre_filter` is a function, because functions cannot be compared. Objects are
                compared by class and attributes. (default: :obj:`None`, keep nothing)
            transform (callable, optional): Applied to a sample at every access.
                (default: :obj:`None`)
            force_reload (bool, optional): If set to :obj:`True`, makes the graphs again.
                (default: :obj:`False`)
            max_lost (float, optional): Fraction of rows that may be skipped because they are not
                molecules; five rows may always be skipped. (default: :obj:`1.0`)
            **options (optional): :obj:`on_error`, :obj:`pre_transform` and :obj:`pre_filter` as in
                :meth:`from_smiles`.

        Raises:
            ValueError: If a column is missing, a label is not 0, 1 or blank, no molecule is valid,
                more rows than :obj:`max_lost` are not molecules, or any row is not and
                :obj:`on_error` is :obj:`"raise"`.
            RuntimeError: If the file kept in :obj:`root` is damaged.
        """

        def build() -> Samples:
            table = read_molecules(path, smiles_column, label_columns, delimiter, encoding)
            return molecule_samples(*table, **options)

        # The file is read again only to find the lines of lost rows.
        table = cache(lambda: read_table(path, delimiter, encoding))
        checks: Any = {"max_lost": max_lost, "where": lambda row: table().where(row)}
        columns = None if label_columns is None else list(label_columns)
        functions = options.get("pre_transform"), options.get("pre_filter")
        on_error = options.get("on_error", "skip")
        key = settings_key(smiles_column, columns, delimiter, encoding, on_error, *functions)
        if root is None or key is None:
            return cls(build(), transform, **checks)
        digest = sha256(Path(path).read_bytes() + f"{_FEATURES} {key}".encode())[:16]
        cached = Path(root) / "processed" / f"{Path(path).name.partition('.')[0]}-{digest}.pt"
        if force_reload or not cached.exists():
            build().save(cached)
        return cls(Samples.load(cached), transform, **checks)


def molecule_samples(
    smiles: Sequence[str],
    y: Tensor,
    label_names: Sequence[str],
    *,
    on_error: OnError = "skip",
    pre_transform: Callable[[Data], Data] | None = None,
    pre_filter: Callable[[Data], bool] | None = None,
) -> Samples:
    """Converts SMILES or InChI strings and labels to samples."""
    check_choice("on_error", on_error, get_args(OnError))
    report = MoleculeReport(num_rows=len(smiles))
    first_rows: dict[str, int] = {}
    samples = []
    write = require("rdkit.Chem", extra="molecules").MolToSmiles
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        rows = tqdm(smiles, desc="Molecules to graphs", disable=None, leave=False)
        for row, text in enumerate(rows):
            try:
                if not isinstance(text, str):  # Cells of data frames may be empty.
                    raise MoleculeError("not a string")
                data = molecule_from_smiles(text)
            except MoleculeError as error:
                if on_error == "raise":
                    got = f"got '{shorten(text)}': {error}); pass on_error='skip' to skip it"
                    raise ValueError(f"Expected a valid molecule in row {row} ({got}") from error
                report.invalid.append(InvalidMolecule(row, str(text), str(error)))
                continue
            canonical = write(parse_smiles(data.smiles))
            first = first_rows.setdefault(canonical, row)
            if first != row:
                report.duplicates.append(DuplicateMolecule(row, first, canonical))
            data.y = y[row : row + 1].clone()
            if pre_filter is None or pre_filter(data):
                samples.append(data if pre_transform is None else pre_transform(data))
            else:
                report.filtered.append(row)
    if not samples:
        raise ValueError(f"Expected at least one molecule to keep (got none)\n{report}")
    return Samples.collate(samples, label_names, report.to_dict())
