"""The command ``tg-mlc evaluate``: the metrics of a model on labelled rows."""

from __future__ import annotations

import reprlib
import sys

from tg_mlc.cli._output import check_output, show


def evaluate(
    model: str,
    *,
    csv: str | None = None,
    arff: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    batch_size: int = 256,
    device: str = "cpu",
    reliability: str | None = None,
    json: bool = False,
) -> int:
    """Evaluates a model on the rows of a CSV file with known labels.

    Rows whose molecule or DNA cannot be read are reported and left out; the exit status is then 1. Names of labels that
    the model does not know are reported, too, and count in no metric.

    Args:
        model: The folder of the model.
        csv: A file with the columns of inputs and labels that the model was trained on.
        arff: The file, if it is ARFF.
        delimiter: The mark between cells; by default, the one that occurs most in the header.
        encoding: The encoding of characters; by default, what the first bytes say, else UTF-8.
        batch_size: The number of samples at a time.
        device: The device to compute on, such as cpu or cuda.
        reliability: A file for the reliability diagram (SVG), which shows how well probabilities agree with shares.
        json: Prints JSON.
    """
    import numpy as np

    from tg_mlc._files import replace_when_done
    from tg_mlc.cli._inputs import Predictions, calibration_of, inputs_of, one_file
    from tg_mlc.inference import Query, load

    csv, loaded = one_file(csv, arff), load(model, device=device)
    if reliability is not None:
        check_output(reliability, csv, model)
    inputs = inputs_of(loaded, model, delimiter, encoding)
    blocks = Predictions(loaded, inputs, csv, Query(batch_size=batch_size))
    probabilities, targets = [], []
    others: dict[str, set[str]] = {}
    for table, prediction in blocks:
        probabilities.append(prediction.probabilities)
        targets.append(inputs.targets(table, loaded, others))
    y, p = np.concatenate(targets), np.concatenate(probabilities)
    kept = ~np.isnan(p).any(axis=1)
    if not kept.any():
        blocks.status("left out")
        raise ValueError(f"Expected at least one row that can be evaluated in '{csv}' (got none)")
    if np.isnan(y[kept]).all():
        raise ValueError(f"Expected a label that is known in '{csv}' (got none)")
    if others:
        unknown = reprlib.repr(sorted(set().union(*others.values())))  # the first few
        where = f"{len(others)} of the rows of '{csv}', first in {next(iter(others))}"
        message = f"labels that the model does not know count in no metric: {unknown} (in {where})"
        print(f"tg-mlc: {message}", file=sys.stderr)  # noqa: T201
    report = loaded.evaluation(y[kept], p[kept])
    if reliability is not None and report.reliability is not None:
        with replace_when_done(reliability) as unfinished:
            unfinished.write_text(report.reliability.to_svg(), encoding="utf-8")
    values = {**report.to_dict()["values"], "calibrated": loaded.is_calibrated}
    show(values, f"{report}\nProbabilities are {calibration_of(loaded)}.", json)
    return blocks.status("left out")
