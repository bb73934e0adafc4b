"""Multi-label tables in the format of the Mulan library."""

from __future__ import annotations

import io
import pickle
import re
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import scipy.io
from typing_extensions import Unpack

from tg_mlc.data.records import Records
from tg_mlc.datasets.base import DatasetOptions, PublishedTable
from tg_mlc.datasets.registry import RegistryEntry, catalogue
from tg_mlc.inputs._arff_table import Arff, Attribute, read_arff
from tg_mlc.inputs.arff import make_records, parse_label_xml

TableKind = Literal["bag", "vector"]


class MulanDataset(PublishedTable):
    """Multi-label tables in the format of the `"Mulan: A Java Library for Multi-Label Learning"
    <https://jmlr.org/papers/v12/tsoumakas11a.html>`_ paper, in its authors' training and test parts.

    There are Bibtex, Delicious, Bookmarks, Yeast, Genbase, Scene, Corel5k, NUS-WIDE, Mediamill, Emotions, and
    rcv1subset1 to rcv1subset5. The last five and Bookmarks have no split. :doc:`The page on data sets </datasets>`
    describes each, and says which files have to be placed by hand, in ``root/<name>/raw`` or in the folder that the
    environment variable :obj:`TG_MLC_DATA` names. The SHA-256 of all but Bookmarks and NUS-WIDE is checked; of these
    none is known here, and it is logged. No licence is stated for the tables.

    Mediamill is read from the two pickles of the scikit-multilearn package, which may hold arrays only, or, if they are
    in ``root/Mediamill/raw``, from Mulan's ARFF files.

    Args:
        root (str or Path): Folder to keep the data sets in, each in a folder of its own.
        name (str): Which one, in the spelling above or any with other capitals, spaces and hyphens.
        **options (optional), and further errors: As in :class:`~tg_mlc.datasets.base.PublishedDataset`.

    Raises:
        ValueError: If there is no data set of that name, or a raw file is malformed.
    """

    def __init__(self, root: str | Path, name: str, **options: Unpack[DatasetOptions]) -> None:
        entry = find_published(name)
        self.name, self._kind = entry.spelling, cast("TableKind", entry.kind)
        folder = Path(root) / self.name
        there = (
            form
            for form in entry.files
            if all((folder / "raw" / file.name).exists() for file in form)
        )
        self.files = next(there, entry.files[0])
        super().__init__(folder, **options)

    def read(self) -> Records:
        content = self.read_raw()
        match Path(self.files[0].name).suffix:
            case ".arff":
                *tables, (label_file, label_content) = content.items()
                labels = parse_label_xml(label_content, label_file).names
                train, *test = [
                    read_arff(table, drop="text", name=name, labels=labels)
                    for name, table in tables
                ]
            case ".dump":
                parts = [
                    _Arrays(io.BytesIO(pickled), encoding="latin1").load()
                    for pickled in content.values()
                ]
                train, *test = [
                    _numbered(part["X"], part["y"], "Att{}", "Class{}") for part in parts
                ]
            case _:
                arrays = scipy.io.loadmat(
                    io.BytesIO(*content.values()), variable_names=["data", "target"]
                )
                train, test = _numbered(arrays["data"], arrays["target"].T, "word{}", "label{}"), []
        return make_records(train, test[0] if test else None, self._kind)


def find_published(name: str) -> RegistryEntry:
    """The entry of a table, however its name is spelled."""
    tables = {entry.name: entry for entry in catalogue().values() if entry.spelling}
    key = re.sub(r"[^a-z0-9]", "", name.lower()) if isinstance(name, str) else None
    if key not in tables:
        known, hint = (
            ", ".join(entry.spelling for entry in tables.values()),
            "see 'tg_mlc.data.from_arff'",
        )
        raise ValueError(
            f"Expected 'name' to be one of {known} (got {name!r}); for other files {hint}"
        )
    return tables[key]


class _Arrays(pickle.Unpickler):
    """Reads arrays from the pickles of Python 2, and calls nothing but NumPy's constructors."""

    def find_class(self, module: str, name: str) -> Any:
        allowed = {
            "numpy.core.multiarray._reconstruct": np.zeros(0).__reduce__()[0],
            "numpy.ndarray": np.ndarray,
            "numpy.dtype": np.dtype,
        }
        if f"{module}.{name}" not in allowed:
            raise pickle.UnpicklingError(
                f"Expected a pickle of NumPy's arrays alone (got '{module}.{name}')"
            )
        return allowed[f"{module}.{name}"]


def _numbered(x: np.ndarray, y: np.ndarray, feature: str, label: str) -> Arff:
    labels = [label.format(i + 1) for i in range(y.shape[1])]
    names = [feature.format(i + 1) for i in range(x.shape[1])] + labels
    matrix = np.concatenate([x, y], axis=1, dtype=np.float32)
    return Arff([Attribute(name) for name in names], matrix, "", labels)
