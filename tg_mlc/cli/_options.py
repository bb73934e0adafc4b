"""Options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class TrainOptions:
    r"""Options of the commands that train.

    Args:
        csv: The file, with a header.
        labels: The columns of labels, between commas; their cells are 0, 1 or blank (unknown).
        out: The folder of the model.
        smiles: The column of SMILES.
        text: The column of texts.
        dna: The column of DNA.
        features: The columns of numbers, or of few words, between commas; by default, all but the labels.
        label_separator: What stands between names, if --labels is one column that lists the names of a row's labels.
        delimiter: What stands between cells, \t for a tab.
        split: How to choose the rows for testing: random, stratified or (SMILES) scaffold.
        seconds: The time that training may take, roughly; small files take less.
        seed: Seed of the split, of folds, trees and weights; equal seeds give equal models where time ends no search.
        force: Replaces a model that is there, and starts anew what was interrupted.
        json: Prints the result as JSON.
    """

    csv: str
    labels: str | list[str]
    out: str
    smiles: str | None = None
    text: str | None = None
    dna: str | None = None
    features: str | list[str] | None = None
    label_separator: str | None = None
    delimiter: str = ","
    split: str = "random"
    seconds: float = 300.0
    seed: int = 0
    force: bool = False
    json: bool = False
