"""The command ``tg-mlc evaluate``: the metrics of a model on labelled rows."""

from __future__ import annotations

import reprlib
import sys

from tg_mlc.cli._options import RowsFile
from tg_mlc.cli._output import check_output, results_by_label, show


def evaluate(
    model: str,
    file: RowsFile,
    *,
    batch_size: int = 256,
    device: str = "cpu",
    reliability: str | None = None,
    by_label: str | None = None,
    json: bool = False,
) -> int:
    """Evaluates a model on the rows of a file with known labels.

    The file has the columns of inputs and labels that the model was trained on. Rows that cannot be
    read are reported and skipped; the exit status is then 1. Names of labels that the model does
    not know are reported, too, and count in no metric.

    Args:
        model (MODEL): The folder of the model.
        batch_size (NUMBER): The number of samples at a time.
        device (NAME): The device to compute on, such as cpu or cuda.
        reliability (FILE): A file for the reliability diagram (SVG), which compares probabilities
            with frequencies.
        by_label (FILE): A file for the results of each label (CSV): counts, ROC-AUC with its
            interval of 95 percent, average precision, F1 and threshold.
        json: Prints JSON, with the results of each label.

    Examples:
        tg-mlc evaluate model --csv test.csv --json
    """
    import numpy as np

    from tg_mlc._files import replace_when_done
    from tg_mlc.cli._inputs import Predictions, calibration_of, inputs_of
    from tg_mlc.inference import Query, load

    path, loaded = file.path, load(model, device=device)
    for name, out in (("--reliability", reliability), ("--by_label", by_label)):
        if out is not None:
            check_output(out, path, model, name)
    if by_label is not None and by_label == reliability:
        raise ValueError(f"Expected --by_label to be another file than --reliability ({by_label})")
    inputs = inputs_of(loaded, model, file)
    blocks = Predictions(loaded, inputs, path, Query(batch_size=batch_size))
    probabilities, targets = [], []
    new_names: dict[str, set[str]] = {}
    for table, prediction in blocks:
        probabilities.append(prediction.probabilities)
        targets.append(inputs.targets(table, loaded, new_names))
    y, scores = np.concatenate(targets), np.concatenate(probabilities)
    is_read = ~np.isnan(scores).any(axis=1)
    if not is_read.any():
        blocks.status("skipped")
        raise ValueError(f"Expected at least one row that can be evaluated in '{path}' (got none)")
    if np.isnan(y[is_read]).all():
        raise ValueError(f"Expected a label that is known in '{path}' (got none)")
    if new_names:
        unknown = reprlib.repr(sorted(set().union(*new_names.values())))
        where = f"{len(new_names)} of the rows of '{path}', first in {next(iter(new_names))}"
        message = f"labels that the model does not know count in no metric: {unknown} (in {where})"
        print(f"tg-mlc: {message}", file=sys.stderr)  # noqa: T201
    report = loaded.evaluation(y[is_read], scores[is_read])
    if reliability is not None and report.reliability is not None:
        with replace_when_done(reliability) as unfinished:
            unfinished.write_text(report.reliability.to_svg(), encoding="utf-8")
    if by_label is not None:
        with replace_when_done(by_label) as unfinished:
            report.frame().to_csv(unfinished)
    values = {**report.to_dict()["values"], "calibrated": loaded.is_calibrated}
    lines = [str(report), results_by_label(report), f"Probabilities are {calibration_of(loaded)}."]
    show({**values, "by_label": report.records()}, "\n".join(lines), json)
    return blocks.status("skipped")
