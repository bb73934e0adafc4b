"""Kinds of input, one file per kind: classes that read raw inputs and encode samples."""

from tg_mlc.inputs.dna import DNA
from tg_mlc.inputs.embeddings import Embeddings
from tg_mlc.inputs.kind import InputKind
from tg_mlc.inputs.kinds import input_encoder
from tg_mlc.inputs.mixed import Mixed
from tg_mlc.inputs.molecules import Molecules
from tg_mlc.inputs.preprocessor import Chain, Preprocessor
from tg_mlc.inputs.registry import kind_of
from tg_mlc.inputs.scalers import QuantileScaler, Scale, TfIdf
from tg_mlc.inputs.smiles import Fingerprint, MoleculeDescriptors
from tg_mlc.inputs.vectors import Vectors
from tg_mlc.inputs.words import Words

__all__ = [
    "DNA",
    "Chain",
    "Embeddings",
    "Fingerprint",
    "InputKind",
    "Mixed",
    "MoleculeDescriptors",
    "Molecules",
    "Preprocessor",
    "QuantileScaler",
    "Scale",
    "TfIdf",
    "Vectors",
    "Words",
    "input_encoder",
    "kind_of",
]
