"""What happens between raw data and a model: own data, vocabularies, splits."""

from __future__ import annotations

from tg_mlc.data.arrays import from_arrays
from tg_mlc.data.csv_files import from_csv
from tg_mlc.data.events import EventSequences, from_events
from tg_mlc.data.splits import Split, predefined_split, random_split, scaffold_split, stratified_split
from tg_mlc.data.tf_idf import TfIdf
from tg_mlc.data.vocabulary import Vocabulary, tokenize

__all__ = [
    "EventSequences",
    "Split",
    "TfIdf",
    "Vocabulary",
    "from_arrays",
    "from_csv",
    "from_events",
    "predefined_split",
    "random_split",
    "scaffold_split",
    "stratified_split",
    "tokenize",
]
