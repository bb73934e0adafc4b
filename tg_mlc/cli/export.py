"""The command ``tg-mlc export``: a model becomes a program that runs without this package."""

from __future__ import annotations

from tg_mlc.cli._options import RowsFile
from tg_mlc.cli._output import show


def export_(
    model: str,
    file: RowsFile,
    *,
    out: str,
    format: str = "torch-export",  # noqa: A002 (the name of the option)
    base_scores: str = "export",
    no_given: bool = False,
    coverage: float | None = None,
    coverage_per: str = "label",
    json: bool = False,
) -> int:
    """Exports a model as a program that runs without tg_mlc, and checks its probabilities.

    The first rows of a file, or inputs that the model makes up, become golden inputs, for which
    both give the same probabilities.

    Args:
        model (MODEL): The folder of the model.
        out (FOLDER): The new folder: the program, thresholds, names of labels, how inputs become
            tensors, and 20 golden inputs.
        format (NAME): torch-export, for PyTorch alone, or onnx.
        base_scores (NAME): Where base classifiers run: export puts them into the program, input
            takes their scores instead.
        no_given: Drops the input for labels that are known already.
        coverage (FRACTION): The fraction of true labels that label sets hold, such as 0.9, whose
            thresholds are exported, too; needs a model of "train --coverage_share".
        coverage_per (NAME): The unit of --coverage: label, for each label, or sample, for the
            labels of a sample together.
        json: Prints JSON.

    Examples:
        tg-mlc export model --format onnx --out exported
    """
    from tg_mlc.cli._inputs import inputs_of
    from tg_mlc.exporting.folder import NUM_GOLDEN
    from tg_mlc.inference import load

    loaded = load(model)
    rows = None
    if file.is_given:
        inputs = inputs_of(loaded, model, file)
        rows = inputs.raw(next(inputs.blocks(file.path)))[:NUM_GOLDEN]
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
