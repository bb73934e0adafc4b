"""The command ``tg-mlc train``: a CSV file becomes the folder of a model."""

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
        label_separator: The mark between names, if --labels is one column that lists the names of a row's labels.
        delimiter: The mark between cells, \t for a tab.
        split: How to choose the rows for testing: random, stratified or (SMILES) scaffold.
        seconds: The time that training may take, roughly; small files take less.
        seed: Seed of the split, of folds, trees and weights; equal seeds give equal models where time ends no search.
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


def train(options: TrainOptions, *, force: bool = False, json: bool = False) -> int:
    """Trains a model on a CSV file and evaluates it on a tenth of the rows that it has not seen.

    Args:
        force: Replaces a model that is there, and starts anew what was interrupted.
        json: Prints the result as JSON.
    """
    from tg_mlc.cli._training import Run, time_left
    from tg_mlc.stacking import AutoModel

    with Run(options, force=force, json=json) as run:
        train = run.train
        with time_left(options.seconds):
            model = AutoModel(options.seconds, options.seed).fit(train, run.folder / f"train-{run.key}")
        run.finish(model)
    return 0
