"""Data sets as PyG :class:`~torch_geometric.data.InMemoryDataset`, each with named labels and its source.

A sample is a PyG :class:`~torch_geometric.data.Data` whose ``y`` is a float tensor ``[1, num_labels]`` of 0, 1 and NaN
(unknown).
"""

from __future__ import annotations

from tg_mlc.datasets import registry
from tg_mlc.datasets._download import ChecksumError, DatasetUnavailableError
from tg_mlc.datasets.base import ArrayDataset, MultiLabelDataset
from tg_mlc.datasets.binding_sites import BindingSites
from tg_mlc.datasets.card import DatasetCard
from tg_mlc.datasets.deepsea import DeepSEA
from tg_mlc.datasets.dna import DNADataset
from tg_mlc.datasets.moleculenet import ClinTox, Tox21, ToxCast
from tg_mlc.datasets.molecules import MoleculeDataset
from tg_mlc.datasets.mulan import MulanDataset, read_labels
from tg_mlc.datasets.nci import NCIFunctionalGroups
from tg_mlc.datasets.planted import Planted
from tg_mlc.datasets.rcv1 import RCV1
from tg_mlc.datasets.report import DuplicateMolecule, InvalidMolecule, MoleculeReport
from tg_mlc.datasets.reuters import Reuters21578
from tg_mlc.datasets.sider import SIDER
from tg_mlc.datasets.smiles import MoleculeError, molecule_from_smiles

__all__ = [
    "RCV1",
    "SIDER",
    "ArrayDataset",
    "BindingSites",
    "ChecksumError",
    "ClinTox",
    "DNADataset",
    "DatasetCard",
    "DatasetUnavailableError",
    "DeepSEA",
    "DuplicateMolecule",
    "InvalidMolecule",
    "MoleculeDataset",
    "MoleculeError",
    "MoleculeReport",
    "MulanDataset",
    "MultiLabelDataset",
    "NCIFunctionalGroups",
    "Planted",
    "Reuters21578",
    "Tox21",
    "ToxCast",
    "molecule_from_smiles",
    "read_labels",
    "registry",
]
