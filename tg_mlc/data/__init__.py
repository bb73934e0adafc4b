"""Data sets of samples with labels, and the steps between raw data and a model: own data, vocabularies, splits.

A sample is a PyG :class:`~torch_geometric.data.Data` whose ``y`` is a float tensor ``[1, num_labels]`` of 0, 1 and NaN
(unknown).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tg_mlc.data.dataset import ArrayDataset, MultiLabelDataset
from tg_mlc.data.given import given_labels
from tg_mlc.data.splits import Split, predefined_split, random_split, scaffold_split, stratified_split

__all__ = [
    "ArrayDataset",
    "MultiLabelDataset",
    "Split",
    "given_labels",
    "predefined_split",
    "random_split",
    "scaffold_split",
    "stratified_split",
]

# What reads own data is part of the room above, and is found here by name.
_READERS = {
    "DNADataset",
    "DuplicateMolecule",
    "EventSequences",
    "InvalidMolecule",
    "MoleculeDataset",
    "MoleculeError",
    "MoleculeReport",
    "build_vocabulary",
    "from_arff",
    "from_arrays",
    "from_csv",
    "from_events",
    "molecule_from_smiles",
    "read_label_xml",
    "tokenize",
}


def __getattr__(name: str) -> Any:
    if name in _READERS:
        return getattr(import_module("tg_mlc.inputs"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
