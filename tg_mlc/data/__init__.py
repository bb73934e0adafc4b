"""Data sets of samples with labels, and the steps from raw data to a model: readers,
vocabularies, splits.

A sample is a PyG :class:`~torch_geometric.data.Data` whose ``y`` is a float tensor ``[1,
num_labels]`` of 0, 1 and NaN (unknown).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tg_mlc.data.dataset import ArrayDataset, MultiLabelDataset
from tg_mlc.data.given import given_labels
from tg_mlc.data.scaffold import scaffold_split
from tg_mlc.data.splits import Split, predefined_split, random_split, stratified_split

# Readers are defined in tg_mlc.inputs, which imports this package, so they are imported on use.
_READERS = {
    "arff": ("from_arff", "read_label_xml"),
    "arrays": ("from_arrays",),
    "csv_files": ("from_csv", "from_sdf"),
    "dna_dataset": ("DNADataset",),
    "hierarchies": ("with_hierarchy",),
    "events": ("EventSequences", "from_events"),
    "libsvm": ("from_libsvm",),
    "molecule_dataset": ("MoleculeDataset", "MoleculeReport"),
    "smiles": ("MoleculeError", "molecule_from_smiles"),
    "words": ("build_vocabulary", "tokenize"),
}

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
__all__ += [name for names in _READERS.values() for name in names]


def __getattr__(name: str) -> Any:
    for module, names in _READERS.items():
        if name in names:
            return getattr(import_module(f"tg_mlc.inputs.{module}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
