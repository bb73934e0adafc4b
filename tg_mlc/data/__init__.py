"""Data sets of samples with labels, and the steps between raw data and a model: own data, vocabularies, splits.

A sample is a PyG :class:`~torch_geometric.data.Data` whose ``y`` is a float tensor ``[1, num_labels]`` of 0, 1 and NaN
(unknown).
"""

from tg_mlc.data.arff_files import from_arff, read_label_xml
from tg_mlc.data.arrays import from_arrays
from tg_mlc.data.csv_files import from_csv
from tg_mlc.data.dataset import ArrayDataset, MultiLabelDataset
from tg_mlc.data.dna import DNADataset
from tg_mlc.data.events import EventSequences, from_events
from tg_mlc.data.known import known_labels
from tg_mlc.data.molecule_report import DuplicateMolecule, InvalidMolecule, MoleculeReport
from tg_mlc.data.molecules import MoleculeDataset
from tg_mlc.data.smiles import MoleculeError, molecule_from_smiles
from tg_mlc.data.splits import Split, predefined_split, random_split, scaffold_split, stratified_split
from tg_mlc.data.vocabulary import build_vocabulary, tokenize

__all__ = [
    "ArrayDataset",
    "DNADataset",
    "DuplicateMolecule",
    "EventSequences",
    "InvalidMolecule",
    "MoleculeDataset",
    "MoleculeError",
    "MoleculeReport",
    "MultiLabelDataset",
    "Split",
    "build_vocabulary",
    "from_arff",
    "from_arrays",
    "from_csv",
    "from_events",
    "known_labels",
    "molecule_from_smiles",
    "predefined_split",
    "random_split",
    "read_label_xml",
    "scaffold_split",
    "stratified_split",
    "tokenize",
]
