"""Which samples have equal inputs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tg_mlc._optional import require
from tg_mlc.data import MultiLabelDataset

# The attributes of samples that kinds of inputs read, beside the SMILES of molecules.
_INPUTS = ("x", "weight", "edge_index", "edge_attr")


def distinct_inputs(dataset: MultiLabelDataset) -> np.ndarray:
    """Returns an index of each sample's input :math:`(N)`, in order of first appearance. Samples
    with equal inputs have the same index, whatever their labels.
    """
    indices: dict[bytes, int] = {}
    inputs = _molecules(dataset) if "smiles" in dataset._data else _arrays(dataset)
    return np.array([indices.setdefault(content, len(indices)) for content in inputs])


def _molecules(dataset: MultiLabelDataset) -> Iterator[bytes]:
    """Yields the canonical SMILES of molecules, which do not depend on their spelling."""
    chem = require("rdkit.Chem", extra="molecules")
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        for smiles in dataset.smiles:
            yield str(chem.CanonSmiles(smiles)).encode()


def _arrays(dataset: MultiLabelDataset) -> Iterator[bytes]:
    """Yields the inputs of samples as bytes; the order of words in a bag does not matter."""
    data, slices = dataset._data, dataset.slices or {}
    columns = {key: data[key].numpy() for key in _INPUTS if key in data and key in slices}
    parts = {key: np.moveaxis(x, data.__cat_dim__(key, data[key]), 0) for key, x in columns.items()}
    ends = {key: slices[key].tolist() for key in columns}
    for row in dataset._indices or range(len(dataset)):
        arrays = {key: x[ends[key][row] : ends[key][row + 1]] for key, x in parts.items()}
        if dataset.kind == "bag":
            order = np.argsort(arrays["x"], kind="stable")
            arrays = {key: x[order] for key, x in arrays.items()}
        yield b"".join(f"{x.shape}".encode() + x.tobytes() for x in arrays.values())
