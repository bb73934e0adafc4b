"""Reads the published multi-label tables in the forms in which they are around: ARFF, pickles and MATLAB."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.io

from tg_mlc.data.readers.arff import Arff, read_arff
from tg_mlc.data.readers.arff_labels import parse_label_xml
from tg_mlc.data.readers.arff_table import make_records
from tg_mlc.datasets._pickled_arrays import read_pickled_arrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from tg_mlc.data.records import Records
    from tg_mlc.datasets._mulan_files import TableKind


def read_published(content: dict[str, bytes], kind: TableKind) -> Records:
    """Makes the table from the content of the files of one form."""
    suffix = Path(next(iter(content))).suffix
    return _READERS[suffix](content, kind)


def _read_mulan(content: dict[str, bytes], kind: TableKind) -> Records:
    *tables, (label_file, label_content) = content.items()
    parts = [read_arff(table, drop="text", name=name) for name, table in tables]
    labels = parse_label_xml(label_content, label_file).names
    return make_records(parts[0], parts[1] if len(parts) > 1 else None, labels, kind)


def _read_pickles(content: dict[str, bytes], kind: TableKind) -> Records:
    parts = []
    for name, pickled in content.items():
        arrays = read_pickled_arrays(pickled, name)
        parts.append(_numbered(arrays["X"], arrays["y"], "Att{}", "Class{}"))
    return make_records(parts[0], parts[1], -arrays["y"].shape[1], kind)


def _read_mat(content: dict[str, bytes], kind: TableKind) -> Records:
    (matlab,) = content.values()
    arrays = scipy.io.loadmat(io.BytesIO(matlab), variable_names=["data", "target"])
    y = arrays["target"].T
    return make_records(_numbered(arrays["data"], y, "word{}", "label{}"), None, -y.shape[1], kind)


def _numbered(x: np.ndarray, y: np.ndarray, feature: str, label: str) -> Arff:
    names = [feature.format(i + 1) for i in range(x.shape[1])] + [label.format(i + 1) for i in range(y.shape[1])]
    table = np.concatenate([x, y], axis=1, dtype=np.float32)
    return Arff(names, table, "")


_READERS: dict[str, Callable[[dict[str, bytes], TableKind], Records]] = {
    ".arff": _read_mulan,
    ".dump": _read_pickles,
    ".mat": _read_mat,
}
