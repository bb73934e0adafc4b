"""Data sets as PyG :class:`~torch_geometric.data.InMemoryDataset`, each with named labels and its source.

A sample is a PyG :class:`~torch_geometric.data.Data` whose ``y`` is a float tensor ``[1, num_labels]`` of 0, 1 and NaN
(unknown).
"""

from __future__ import annotations

from tg_mlc.datasets._download import ChecksumError, DatasetUnavailableError
from tg_mlc.datasets.base import MultiLabelDataset
from tg_mlc.datasets.molecules import MoleculeDataset
from tg_mlc.datasets.nci import NCIFunctionalGroups
from tg_mlc.datasets.report import DuplicateMolecule, InvalidMolecule, MoleculeReport
from tg_mlc.datasets.sider import SIDER
from tg_mlc.datasets.smiles import MoleculeError, molecule_from_smiles

__all__ = [
    "SIDER",
    "ChecksumError",
    "DatasetUnavailableError",
    "DuplicateMolecule",
    "InvalidMolecule",
    "MoleculeDataset",
    "MoleculeError",
    "MoleculeReport",
    "MultiLabelDataset",
    "NCIFunctionalGroups",
    "molecule_from_smiles",
]
