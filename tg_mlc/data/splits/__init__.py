"""Splits of a data set into training, validation and test samples, each deterministic and with its hash."""

from tg_mlc.data.splits.predefined import predefined_split
from tg_mlc.data.splits.random import random_split
from tg_mlc.data.splits.scaffold import scaffold_split
from tg_mlc.data.splits.split import Split
from tg_mlc.data.splits.stratified import stratified_folds, stratified_split

__all__ = ["Split", "predefined_split", "random_split", "scaffold_split", "stratified_folds", "stratified_split"]
