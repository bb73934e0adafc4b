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
    import torch

    from tg_mlc._files import replace_when_done
    from tg_mlc.cli._inputs import Scores, calibration_of, inputs_of, one_file
    from tg_mlc.graphs.hierarchy import coherent
    from tg_mlc.inference import load
    from tg_mlc.metrics import evaluate as report_of

    csv, predictor = one_file(csv, arff), load(model, device=device)
    if reliability is not None:
        check_output(reliability, csv, model)
    names, inputs = predictor.label_names, inputs_of(predictor, model, delimiter, encoding)
    blocks, scores, targets = Scores(predictor, inputs, csv, batch_size), [], []
    others: dict[str, set[str]] = {}
    for table, found, *_ in blocks:
        scores.append(found)
        targets.append(inputs.targets(table, names, others))
    y, p = torch.from_numpy(np.concatenate(targets)), torch.from_numpy(np.concatenate(scores))
    if inputs.separator is not None and (pairs := predictor.scorer.coherence(None)) is not None:
        y = coherent(y, pairs)  # of names that are listed, those above follow
    kept = ~p.isnan().any(dim=1)
    if not kept.any():
        blocks.status("left out")
        raise ValueError(f"Expected at least one row that can be evaluated in '{csv}' (got none)")
    if y[kept].isnan().all():
        raise ValueError(f"Expected a label that is known in '{csv}' (got none)")
    if others:
        unknown = reprlib.repr(sorted(set().union(*others.values())))  # the first few
        where = f"{len(others)} of the rows of '{csv}', first in {next(iter(others))}"
        message = f"labels that the model does not know count in no metric: {unknown} (in {where})"
        print(f"tg-mlc: {message}", file=sys.stderr)  # noqa: T201
    report = report_of(y[kept], p[kept], predictor.scorer.tuners or 0.5, names)
    if reliability is not None and report.reliability is not None:
        with replace_when_done(reliability) as unfinished:
            unfinished.write_text(report.reliability.to_svg(), encoding="utf-8")
    values = {**report.to_dict()["values"], "calibrated": predictor.scorer.calibration is not None}
    show(values, f"{report}\nProbabilities are {calibration_of(predictor)}.", json)
    return blocks.status("left out")
