"""Multi-label tables in the format of the Mulan library."""

from __future__ import annotations

import io
import pickle
import re
from functools import partial
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
    <https://jmlr.org/papers/v12/tsoumakas11a.html>`_ paper, with the authors' training and test
    parts.

    Tables are Bibtex, Delicious, Bookmarks, Yeast, Genbase, Scene, Corel5k, NUS-WIDE, Mediamill,
    Emotions, and rcv1subset1 to rcv1subset5. The last five and Bookmarks have no split. :doc:`The
    page on data sets </datasets>` describes each, and the files that must be placed by hand, in
    ``root/<name>/raw`` or in the folder :obj:`TG_MLC_DATA`. The SHA-256 is checked, except for
    Bookmarks and NUS-WIDE, where it is unknown. No licence is stated for the tables.

    Mediamill is read from Mulan's ARFF files if they are in ``root/Mediamill/raw``, else from two
    pickles of the scikit-multilearn package, which may hold nothing but arrays.

    Args:
        root (str or Path): Folder to keep the data sets in, each in its own folder.
        name (str): The data set; capitals, spaces and hyphens are ignored.
        **options (optional), and further errors: As in
            :class:`~tg_mlc.datasets.base.PublishedDataset`.

    Raises:
        ValueError: If there is no data set with this name, or a raw file is malformed.
    """

    def __init__(self, root: str | Path, name: str, **options: Unpack[DatasetOptions]) -> None:
        entry = find_published(name)
        self.name, self._kind = entry.spelling, cast("TableKind", entry.kind)
        folder = Path(root) / self.name
        raw = folder / "raw"
        forms = [form for form in entry.files if all((raw / file.name).exists() for file in form)]
        self.files = [*forms, entry.files[0]][0]
        super().__init__(folder, **options)

    def read(self) -> Records:
        content = self.read_raw()
        match Path(self.files[0].name).suffix:
            case ".arff":
                *tables, (label_file, label_content) = content.items()
                labels = parse_label_xml(label_content, label_file).names
                read = partial(read_arff, drop="text", labels=labels)
                parts = [read(table, name=name) for name, table in tables]
            case ".dump":
                files = (io.BytesIO(pickled) for pickled in content.values())
                arrays = [_Arrays(file, encoding="latin1").load() for file in files]
                parts = [_numbered(part["X"], part["y"], "Att{}", "Class{}") for part in arrays]
            case _:
                names, file = ["data", "target"], io.BytesIO(*content.values())
                matrices = scipy.io.loadmat(file, variable_names=names)
                y = matrices["target"].T
                parts = [_numbered(matrices["data"], y, "word{}", "label{}")]
        return make_records(parts[0], parts[1] if len(parts) > 1 else None, self._kind)


def find_published(name: str) -> RegistryEntry:
    """Returns the entry of a table. Capitals, spaces and hyphens in its name are ignored."""
    tables = {entry.name: entry for entry in catalogue().values() if entry.spelling}
    key = re.sub(r"[^a-z0-9]", "", name.lower()) if isinstance(name, str) else None
    if key not in tables:
        known = ", ".join(entry.spelling for entry in tables.values())
        got = f"(got {name!r}); for other files see 'tg_mlc.data.from_arff'"
        raise ValueError(f"Expected 'name' to be one of {known} {got}")
    return tables[key]


class _Arrays(pickle.Unpickler):
    """Reads arrays from pickles of Python 2; calls nothing but NumPy's constructors."""

    def find_class(self, module: str, name: str) -> Any:
        allowed = {
            "numpy.core.multiarray._reconstruct": np.zeros(0).__reduce__()[0],
            "numpy.ndarray": np.ndarray,
            "numpy.dtype": np.dtype,
        }
        if f"{module}.{name}" not in allowed:
            got = f"(got '{module}.{name}')"
            raise pickle.UnpicklingError(f"Expected a pickle of NumPy's arrays alone {got}")
        return allowed[f"{module}.{name}"]


def _numbered(x: np.ndarray, y: np.ndarray, feature: str, label: str) -> Arff:
    labels = [label.format(i + 1) for i in range(y.shape[1])]
    names = [feature.format(i + 1) for i in range(x.shape[1])] + labels
    matrix = np.concatenate([x, y], axis=1, dtype=np.float32)
    return Arff([Attribute(name) for name in names], matrix, "", labels)
