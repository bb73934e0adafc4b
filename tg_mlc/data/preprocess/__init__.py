"""Preprocessing that is fitted to training samples and saved with a model, so that a saved model takes raw inputs."""

from tg_mlc.data.preprocess.described import Described
from tg_mlc.data.preprocess.evidence import ClassifierScores
from tg_mlc.data.preprocess.inputs import VECTORS, DNAInputs, MoleculeInputs, TableInputs
from tg_mlc.data.preprocess.preprocessor import Chain, Preprocessor, from_state, to_state
from tg_mlc.data.preprocess.scalers import LogCounts, QuantileScaler, Scale, StandardScaler, molecule_scaler
from tg_mlc.data.preprocess.tables import table_preprocessor
from tg_mlc.data.preprocess.tf_idf import TfIdf
from tg_mlc.data.preprocess.tuned_scores import TunedScores

__all__ = [
    "VECTORS",
    "Chain",
    "ClassifierScores",
    "DNAInputs",
    "Described",
    "LogCounts",
    "MoleculeInputs",
    "Preprocessor",
    "QuantileScaler",
    "Scale",
    "StandardScaler",
    "TableInputs",
    "TfIdf",
    "TunedScores",
    "from_state",
    "molecule_scaler",
    "table_preprocessor",
    "to_state",
]
