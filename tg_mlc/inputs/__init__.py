"""Kinds of input: recognised, read, fitted to training samples, encoded and named, each in one place."""

from tg_mlc.inputs.arff import from_arff, read_label_xml
from tg_mlc.inputs.arrays import from_arrays
from tg_mlc.inputs.csv_files import from_csv
from tg_mlc.inputs.described import Described
from tg_mlc.inputs.dna import DNADataset
from tg_mlc.inputs.encoders import input_encoder
from tg_mlc.inputs.events import EventSequences, from_events
from tg_mlc.inputs.kinds import VECTORS, DNAInputs, MoleculeInputs, TableInputs
from tg_mlc.inputs.molecule_report import DuplicateMolecule, InvalidMolecule, MoleculeReport
from tg_mlc.inputs.molecules import MoleculeDataset
from tg_mlc.inputs.preprocessor import Chain, Preprocessor, from_state, to_state
from tg_mlc.inputs.scalers import LogCounts, QuantileScaler, Scale, StandardScaler, molecule_scaler
from tg_mlc.inputs.smiles import MoleculeError, molecule_from_smiles
from tg_mlc.inputs.tf_idf import TfIdf
from tg_mlc.inputs.transforms import Fingerprint, MoleculeDescriptors
from tg_mlc.inputs.vocabulary import build_vocabulary, tokenize

__all__ = [
    "VECTORS",
    "Chain",
    "DNADataset",
    "DNAInputs",
    "Described",
    "DuplicateMolecule",
    "EventSequences",
    "Fingerprint",
    "InvalidMolecule",
    "LogCounts",
    "MoleculeDataset",
    "MoleculeDescriptors",
    "MoleculeError",
    "MoleculeInputs",
    "MoleculeReport",
    "Preprocessor",
    "QuantileScaler",
    "Scale",
    "StandardScaler",
    "TableInputs",
    "TfIdf",
    "build_vocabulary",
    "from_arff",
    "from_arrays",
    "from_csv",
    "from_events",
    "from_state",
    "input_encoder",
    "molecule_from_smiles",
    "molecule_scaler",
    "read_label_xml",
    "to_state",
    "tokenize",
]
