"""The command ``tg-mlc train``: a CSV file becomes the folder of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(kw_only=True)
class FileFlags:
    r"""Options of how a file is read, which is inferred otherwise.

    Args:
        delimiter: The mark between cells, \t for a tab; by default, the one that occurs most in the header.
        encoding: The encoding of characters; by default, what the first bytes say, else UTF-8.
        decimal: The mark of decimals, a dot or a comma.
        ignore: Columns to leave out, separated by commas.
        id: Columns that name the rows and are no inputs, separated by commas.
        categorical: Columns whose numbers are names of categories, separated by commas.
        label_separator: The mark between names, if --labels is one column that lists the names of a row's labels.
        label_paths: The mark in names of labels that are paths, such as / in science/physics, to add their ancestors.
        hierarchy: A file of the parents of labels (OBO, SKOS in RDF/XML, or a table of child and parent), to add
            ancestors and to make predictions coherent.
        schema: A file that "tg-mlc data check --write" wrote, in place of what is inferred.
        max_lost: The share of rows that may be left out because they cannot be read; five rows always may be.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    ignore: str | list[str] | None = None
    id: str | list[str] | None = None
    categorical: str | list[str] | None = None
    label_separator: str | None = None
    label_paths: str | None = None
    hierarchy: str | None = None
    schema: str | None = None
    max_lost: float = 0.1


@dataclass(kw_only=True)
class TrainOptions:
    r"""Options of the commands that train.

    Args:
        out: The folder of the result: a model, or the tables of a comparison.
        csv: The file, with a header: CSV or other text, Parquet, Excel or JSON.
        labels: The columns of labels, separated by commas; their cells are 0, 1 or blank (unknown).
        arff: The file, if it is ARFF; leave out --labels if the file says which attributes are labels, as those of MEKA
            and, with paths of a hierarchy, of Clus do.
        smiles: The column of SMILES.
        text: The column of texts.
        dna: The column of DNA.
        features: The columns of inputs, separated by commas; by default, all but the labels and the names of rows.
        split: How to choose the rows for testing: random, stratified or, for SMILES, scaffold.
        seconds: The time that all trainings may take, roughly; small files take less.
        seed: Seed of the split, of folds, trees and weights; equal seeds give equal models unless time ends a search.
    """

    out: str
    csv: str | None = None
    labels: str | list[str] | None = None
    arff: str | None = None
    smiles: str | None = None
    text: str | None = None
    dna: str | None = None
    features: str | list[str] | None = None
    split: str = "random"
    seconds: float = 300.0
    seed: int = 0


def train(
    options: TrainOptions,
    file: FileFlags,
    *,
    given_masks: Literal["both", "present"] = "both",
    coverage_share: float = 0.0,
    calibrate: bool = False,
    force: bool = False,
    json: bool = False,
) -> int:
    """Trains a model on a CSV file and evaluates it on a tenth of the rows, which are kept out of training.

    Args:
        given_masks: The labels that "predict --given" will get: both (present and absent ones), or present (only those
            that apply).
        coverage_share: The share of training rows that no fit sees, so that "predict --coverage 0.9" can promise what
            label sets hold.
        calibrate: Calibrates the combined probabilities of each label once more.
        force: Replaces a model that exists, and starts interrupted training anew.
        json: Prints the result as JSON.
    """
    from tg_mlc.cli._training import Run, time_left
    from tg_mlc.stacking import AutoModel

    with Run(options, file, force=force, json=json) as run:
        train = run.train
        with time_left(options.seconds):
            own: dict[str, Any] = {"given_masks": given_masks, "coverage_share": coverage_share}
            parts = [str(value) for value in own.values() if value not in ("both", 0.0)]
            model = AutoModel(options.seconds, options.seed, **own, calibrate=calibrate)
            model.fit(train, run.folder / "-".join(["train", run.key, *parts]))
        run.finish(model)
    return 0
