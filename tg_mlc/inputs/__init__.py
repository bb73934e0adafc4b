"""Kinds of input: recognised, read, fitted to training samples, encoded and named, each in one file."""

from tg_mlc.inputs.dna import DNA
from tg_mlc.inputs.encoders import input_encoder
from tg_mlc.inputs.kind import InputKind
from tg_mlc.inputs.kinds import KINDS, kind_of
from tg_mlc.inputs.molecules import Molecules
from tg_mlc.inputs.preprocessor import Chain, Preprocessor, from_state, to_state
from tg_mlc.inputs.scalers import LogCounts, QuantileScaler, Scale, StandardScaler
from tg_mlc.inputs.smiles import Fingerprint, MoleculeDescriptors
from tg_mlc.inputs.tf_idf import TfIdf
from tg_mlc.inputs.vectors import Vectors
from tg_mlc.inputs.words import Words

__all__ = [
    "DNA",
    "KINDS",
    "Chain",
    "Fingerprint",
    "InputKind",
    "LogCounts",
    "MoleculeDescriptors",
    "Molecules",
    "Preprocessor",
    "QuantileScaler",
    "Scale",
    "StandardScaler",
    "TfIdf",
    "Vectors",
    "Words",
    "from_state",
    "input_encoder",
    "kind_of",
    "to_state",
]
