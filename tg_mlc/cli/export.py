"""The command ``tg-mlc export``: a model's folder becomes a program that runs without this package."""

from __future__ import annotations

from pathlib import Path

from tg_mlc.cli._output import show


def export_(
    model: str,
    *,
    out: str,
    format: str = "torch-export",  # noqa: A002 (the name of the option)
    csv: str | None = None,
    base_scores: str = "export",
    no_given: bool = False,
    coverage: float | None = None,
    coverage_per: str = "label",
    json: bool = False,
) -> int:
    """Exports a model as a program that runs without tg_mlc, and checks that both give the same probabilities.

    Args:
        model: The folder of the model.
        out: The new folder: the program, thresholds, names of labels, how inputs become tensors, and 20 golden inputs.
        format: torch-export, for PyTorch alone, or onnx.
        csv: A file whose first rows are the golden inputs; by default, the model makes some up.
        base_scores: Where base classifiers run: export puts them into the program, input takes their scores instead.
        no_given: Leaves out the input for labels that are known already.
        coverage: The share of true labels that label sets hold, such as 0.9; needs a model of "train --coverage_share";
            their thresholds are exported, too.
        coverage_per: The unit of --coverage: label, for each label, or sample, for the labels of a sample together.
        json: Prints JSON.
    """
    from tg_mlc.cli._inputs import inputs_of
    from tg_mlc.exporting.folder import NUM_GOLDEN
    from tg_mlc.inference import load
    from tg_mlc.inputs.tables import read_blocks

    loaded = load(model)
    rows = None
    if csv is not None:
        rows = inputs_of(loaded, model, None, None).raw(next(iter(read_blocks(Path(csv)))))[
            :NUM_GOLDEN
        ]
    folder = loaded.export(
        out,
        format,
        inputs=rows,
        base_scores=base_scores,
        given=not no_given,
        coverage=coverage,
        coverage_per=coverage_per,
    )
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    text = "\n".join(f"{name}: {size:,} bytes" for name, size in files.items())
    show({"out": str(folder), "files": files}, f"{folder}\n{text}", json)
    return 0
