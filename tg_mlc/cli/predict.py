"""The command ``tg-mlc predict``: names, probabilities and thresholds of new inputs."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any, cast

from tg_mlc._optional import require
from tg_mlc._options import check_choice
from tg_mlc.cli._options import RowsFile, SingleInput
from tg_mlc.cli._output import RowWriter, aligned, check_output, identity, resumable, show


def predict(
    model: str,
    single: SingleInput,
    file: RowsFile,
    *,
    keep: str = "all",
    out: str | None = None,
    given: str | None = None,
    metric: str = "f1_micro",
    on_error: str = "blank",
    batch_size: int = 256,
    device: str = "cpu",
    coherent: bool | None = None,
    coverage: float | None = None,
    coverage_per: str = "label",
    top: int | None = None,
    json: bool = False,
) -> int:
    """Predicts the labels of one input, or of all rows of a file.

    The file has the columns of inputs that the model was trained on. Rows that cannot be read are
    reported, and get no probabilities; the exit status is then 1. Files are read and written some
    rows at a time: if a command with --out is stopped, run it again to go on.

    Args:
        model (MODEL): The folder of the model.
        keep (NAMES): The columns of the file to repeat beside the predictions, separated by commas;
            or all; or none, which gives the numbers of lines instead.
        out (FILE): The file for the predictions of rows; by default, they are printed.
        given (LABELS): Known labels, such as nausea=1,rash=0 for one input; with a file, the
            columns of labels that are known, separated by commas, or all; blank cells stay unknown.
        metric (NAME): The metric that decisions are tuned for: subset_accuracy, hamming_accuracy,
            f1_samples, f1_micro or f1_macro.
        on_error (NAME): How to treat rows that cannot be read: blank gives them no predictions,
            raise stops.
        batch_size (NUMBER): The number of samples at a time.
        device (NAME): The device to compute on, such as cpu or cuda.
        coherent (BOOL): Whether labels agree with their hierarchy, true or false; by default, true
            if the hierarchy came with the data.
        coverage (FRACTION): The fraction of true labels that label sets hold, such as 0.9; needs a
            model of "train --coverage_share".
        coverage_per (NAME): The unit of --coverage: label, for each label, or sample, for the
            labels of a sample together.
        top (NUMBER): The number of most probable labels; a file then gets one line for each row and
            label, in descending order of probability.
        json: Prints JSON, a line for each row of a file.

    Examples:
        tg-mlc predict model --smiles CCO --given liver=1
        tg-mlc predict model --csv new.csv --out predictions.csv
    """
    from tg_mlc.cli._inputs import Predictions, calibration_of, given_values, inputs_of, one_input
    from tg_mlc.inference import Query, load
    from tg_mlc.metrics.coverage import Per

    path = file.path if file.is_given else None
    if out is not None:
        if path is None:
            hint = "one input is printed"
            raise ValueError(f"Expected --csv with --out (got --out {out} alone); {hint}")
        check_output(out, path, model)
    loaded = load(model, device=device)
    values = None if given is None or path is not None else given_values(given)
    query = Query(values, metric, coverage, cast("Per", coverage_per), coherent, batch_size, top)
    inputs = inputs_of(loaded, model, file)
    value = one_input(inputs, file, single)
    if path is None:
        _show_one(loaded, value, query, json)
        return 0
    check_choice("--on_error", on_error, ("blank", "raise"))
    blocks = Predictions(loaded, inputs, path, query, given=given, stops=on_error == "raise")
    command: dict[str, Any] = {
        "keep": keep,
        "given": given,
        "metric": str(query.decides),
        "on_error": on_error,
        "json": json,
        "delimiter": file.delimiter,
        "encoding": file.encoding,
        "coherent": coherent,
        "device": device,
        "batch_size": batch_size,
        "top": top,
    }
    if out is not None:
        command |= identity(model, path)
    with nullcontext(RowWriter(sys.stdout)) if out is None else resumable(out, command) as writer:
        blocks.num_done, blocks.num_refused = writer.num_blocks, writer.num_refused
        for table, prediction in blocks:
            lines = _lines(table, prediction, keep, inputs.separator or ";")
            if json:
                writer.file.write(lines.to_json(orient="records", lines=True, force_ascii=False))
            else:
                lines.to_csv(writer.file, index=False, header=writer.num_blocks == 0)
            writer.note(blocks.num_refused)
    print(f"tg-mlc: probabilities are {calibration_of(loaded)}", file=sys.stderr)  # noqa: T201
    return blocks.status("left blank")


def _lines(table: Any, prediction: Any, keep: str, separator: str) -> Any:
    """Returns a data frame of columns of the file, predicted labels, probabilities and reasons."""
    pandas = require("pandas", extra="train")
    if prediction.top is not None:
        lines = prediction.frame().round({"probability": 6, "threshold": 6})
    else:
        probabilities = prediction.probabilities.round(6)
        lines = pandas.DataFrame(probabilities, columns=prediction.label_names)
        names = [separator.join(lines.columns[row]) for row in prediction.decisions]
        lines.insert(0, "predicted", names)
    lines["reason"] = [prediction.reasons.get(row, "") for row in lines.index]
    repeated = pandas.DataFrame(_file_columns(table, keep, set(lines.columns)))
    for index, name in enumerate(repeated):
        lines.insert(index, name, repeated[name].loc[lines.index])
    return lines


def _file_columns(table: Any, keep: str, taken: set[str]) -> dict[str, Any]:
    """Returns the repeated columns of a file; label columns become ``name (in the file)``."""
    from tg_mlc.inputs.tables import check_columns

    if keep == "none":
        return {"line": table.lines or [table.first + row for row in range(len(table))]}
    names = list(dict.fromkeys(table.header))
    if keep != "all":
        names = [name.strip() for name in keep.split(",")]
        check_columns(names, table.header, f"'{table.path}'")
    return {f"{name} (in the file)" if name in taken else name: table.texts(name) for name in names}


def _show_one(model: Any, value: Any, query: Any, as_json: bool) -> None:
    """Prints the labels of one input, in descending order of probability."""
    from tg_mlc.cli._inputs import show_warnings
    from tg_mlc.metrics.report import THRESHOLD_WORDS

    prediction = model.answer([value], query, on_error="raise")
    show_warnings(prediction)
    given = query.given or {}
    result, rows = prediction.records(0), []
    for entry in result:
        name, threshold = entry["label"], entry["threshold"]
        shown_threshold = "label sets" if threshold is None else f"{threshold:.3f}"
        if name in given:
            entry["given"], shown_threshold = True, "given"
        applies = "yes" if entry["decision"] else "no"
        rows.append((name, f"{entry['probability']:.3f}", shown_threshold, applies))
    title = "calibrated probability" if prediction.calibrated else "probability"
    shown, meanings = {row[2] for row in rows}, {**THRESHOLD_WORDS, "given": "your value decides"}
    notes = [f"{word}: {meaning}" for word, meaning in meanings.items() if word in shown]
    lines = [aligned(("label", title, "threshold", "predicted"), rows), *notes]
    show(result, "\n".join(lines), as_json)
