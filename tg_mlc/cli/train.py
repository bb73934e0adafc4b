"""The command ``tg-mlc train``: a CSV file becomes the folder of a model."""

from __future__ import annotations

from tg_mlc.cli._output import show


def train(
    *,
    csv: str,
    labels: str | list[str],
    out: str,
    smiles: str | None = None,
    text: str | None = None,
    dna: str | None = None,
    features: str | list[str] | None = None,
    label_separator: str | None = None,
    split: str = "random",
    seed: int = 0,
    epochs: int | None = None,
    force: bool = False,
    json: bool = False,
) -> int:
    """Trains a model on a CSV file and evaluates it on a tenth of the rows that it has not seen.

    Run again after an interruption, it goes on where it stopped.

    Args:
        csv: The file, with a header.
        labels: The columns of labels, between commas; their cells are 0, 1 or blank (unknown).
        out: The folder of the model.
        smiles: The column of SMILES.
        text: The column of texts.
        dna: The column of DNA.
        features: The columns of numbers, between commas; by default, all but the labels.
        label_separator: What stands between names, if --labels is one column that lists the names of a row's labels.
        split: How to choose rows for validation and testing: random, stratified or (SMILES) scaffold.
        seed: Seed of the split, of weights and of dropout.
        epochs: The number of epochs; by default, by the number of rows.
        force: Replaces a model that is there, and starts anew what was interrupted.
        json: Prints the result as JSON.
    """
    from tg_mlc.cli._inputs import make_inputs
    from tg_mlc.cli._training import Run

    inputs = make_inputs(labels, {"smiles": smiles, "text": text, "dna": dna}, features, label_separator)
    run = Run(csv, inputs, out, split, seed, force)
    with run.started({"epochs": epochs}):
        predictor = run.train({} if epochs is None else {"max_epochs": epochs})
        report = run.finish(predictor)
    show({"model": out, **report}, f"{run.report}\nThe model is in '{out}'.", json)
    return 0
