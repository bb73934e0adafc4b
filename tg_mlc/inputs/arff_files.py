"""Data sets from ARFF files, as Mulan, MEKA and mldr write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from torch_geometric.data import Data

from tg_mlc._files import read_unpacked
from tg_mlc.data import ArrayDataset
from tg_mlc.inputs._inputs import announce_kind
from tg_mlc.inputs.readers.arff import read_arff
from tg_mlc.inputs.readers.arff_labels import LabelFile, parse_label_xml
from tg_mlc.inputs.readers.arff_table import make_records

_MAX_LABEL_BYTES = 2**26
_REASONS = {
    "bag": "the rows are sparse, or all values 0 and 1",
    "vector": "the rows are dense, with values other than 0 and 1",
}


def from_arff(
    train: str | Path,
    test: str | Path | None = None,
    labels: str | Path | Sequence[str] | int | None = None,
    kind: Literal["bag", "vector"] | None = None,
    drop: Sequence[str] | Literal["text"] = (),
    transform: Callable[[Data], Data] | None = None,
) -> ArrayDataset:
    """Makes a data set in memory from any other ARFF files.

    .. code-block:: python

        dataset = from_arff("enron-train.arff", "enron-test.arff", labels="enron.xml")
        dataset = from_arff("meka.arff")  # @relation 'meka: -C 6'

    Args:
        train (str or Path): All samples, or the training samples; may be compressed (.gz, .bz2, .xz).
        test (str or Path, optional): The test samples, which become those of the official split.
            (default: :obj:`None`)
        labels (str or Path or list of str or int, optional): Which attributes are labels: Mulan's XML file, their
            names, or how many stand first (or, negative, last). (default: :obj:`None`, as MEKA and mldr tell
            it by ``-C`` in the relation)
        kind (str, optional): What the other attributes are: :obj:`"bag"` (words) or :obj:`"vector"`.
            (default: :obj:`None`, a bag if the rows are sparse or all values 0 and 1; the choice is printed)
        drop (list of str or str, optional): Attributes to leave out, or :obj:`"text"` for all that are no
            numbers. (default: :obj:`()`)
        transform (callable, optional): Applied to a sample at every access. (default: :obj:`None`)

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a file is malformed, the files do not fit together, or a label is no attribute or has
            values that are not known to mean 0 and 1.
    """
    names = read_label_xml(labels).names if isinstance(labels, str | Path) else labels
    records = make_records(read_arff(train, drop), None if test is None else read_arff(test, drop), names, kind)
    if kind is None:
        announce_kind(records.kind, _REASONS[records.kind])
    return ArrayDataset(records.to_samples(), transform)


def read_label_xml(path: str | Path) -> LabelFile:
    """Reads the names of the labels, and their hierarchy if there is one, from Mulan's XML file.

    .. code-block:: python

        names, parents = read_label_xml("enron.xml")
        label_graph = tg_mlc.graphs.tree(parents, names)

    Args:
        path (str or Path): The file, which may be compressed.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is malformed, or declares entities.
    """
    return parse_label_xml(read_unpacked(path, _MAX_LABEL_BYTES), f"'{path}'")
