"""The command ``tg-mlc explain``: a report of why labels were predicted, in one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tg_mlc.cli._options import RowsFile, SingleInput
from tg_mlc.cli._output import check_output

if TYPE_CHECKING:
    import numpy as np

MEASURED_ROWS = 5  #: minimum number of rows of a file on which faithfulness is measured


def explain_(
    model: str,
    single: SingleInput,
    file: RowsFile,
    *,
    out: str,
    rows: int = 5,
    names: str | None = None,
    labels: str | list[str] | None = None,
    given: str | None = None,
    method: str = "auto",
    metric: str = "f1_micro",
    title: str | None = None,
    device: str = "cpu",
) -> int:
    """Writes a report of why labels are predicted, or not, for one input or rows of a file.

    It is one HTML file that works without a network. If the file has the columns of labels, the
    report shows which labels apply, and metrics per label of the first 4,096 rows.

    Args:
        model (MODEL): The folder of the model.
        out (FILE): The HTML file.
        rows (NUMBER): The number of rows of the file to explain.
        names (COLUMN): The column of the file that names the rows.
        labels (NAMES): The labels to explain, separated by commas; by default, all.
        given (LABELS): Known labels, such as nausea=1,rash=0 for one input; with a file, the
            columns of labels that are known, separated by commas, or all; blank cells stay unknown.
        method (NAME): The method that scores parts of the input: attention, integrated gradients,
            alone, occlusion or group occlusion; auto tries all and chooses the most faithful.
        metric (NAME): The metric that decisions are tuned for: subset_accuracy, hamming_accuracy,
            f1_samples, f1_micro or f1_macro.
        title (TEXT): The headline of the report.
        device (NAME): The device to compute on, such as cpu or cuda.

    Examples:
        tg-mlc explain model --smiles CCO --out report.html
        tg-mlc explain model --csv new.csv --rows 3 --out report.html
    """
    from tg_mlc.cli._inputs import given_values, inputs_of, one_input, split_names
    from tg_mlc.inference import load

    check_output(out, file.path if file.is_given else "", model)
    loaded = load(model, device=device)
    inputs = inputs_of(loaded, model, file)
    value = one_input(inputs, file, single)
    if value is not None:
        raw: Any = [value]
        options: dict[str, Any] = {"given": None if given is None else given_values(given)}
        facts: dict[str, Any] = {}
    else:
        if rows < 1:
            raise ValueError(f"Expected --rows to be at least 1 (got {rows})")
        raw, options, facts = _first_rows(loaded, inputs, file.path, rows, names, given, metric)
    names_to_explain = None if labels is None else split_names(labels)
    explanation = loaded.explain(raw, names_to_explain, method, metric=metric, **options)
    if per_label := facts.pop("per_label", None):
        columns = [loaded.label_names.index(name) for name in explanation.labels]
        explanation.facts["per_label"] = {
            name: values[columns].tolist() for name, values in per_label.items()
        }
    explanation.facts.update(facts)
    explanation.to_html(out, title)
    areas = explanation.faithfulness.get(explanation.method)
    gain = "" if areas is None else f", whose faithfulness is {areas.gain:.2f}"
    samples = "1 sample" if len(explanation) == 1 else f"{len(explanation)} samples"
    print(f"The report is in '{out}': {samples}, by {explanation.method}{gain}.")  # noqa: T201
    return 0


def _first_rows(
    model: Any,
    inputs: Any,
    path: str,
    rows: int,
    names: str | None,
    columns: str | None,
    metric: str,
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Returns the inputs of the first rows with labels to predict, options of the explanation, and,
    if the file has labels, metrics per label over all rows of the first block.
    """
    import numpy as np

    from tg_mlc.cli._inputs import show_warnings
    from tg_mlc.inference import Query
    from tg_mlc.inputs.schema import match_names

    table = next(inputs.blocks(path))
    raw = inputs.raw(table)
    given = None if columns is None else inputs.given(table, model.label_names, columns)
    prediction = model.answer(raw, Query(given, metric))
    show_warnings(prediction)
    has_unknown = np.ones(len(table), bool) if given is None else np.isnan(given).any(axis=1)
    usable = [row for row in np.flatnonzero(has_unknown).tolist() if row not in prediction.reasons]
    if not usable:
        raise ValueError(f"Expected at least one row that can be read in '{path}' (got none)")
    selected, facts = usable[:rows], dict[str, Any]()
    options: dict[str, Any] = {"given": None if given is None else given[selected]}
    if inputs.input_kind.reads_columns:
        options["names"] = [table.where(row) for row in selected]
    if names is not None:
        cells = table.texts(match_names([names], table.header, f"'{path}'")[0])
        options["names"] = [cells[row] for row in selected]
    if {*inputs.labels} <= {*table.header}:
        y = inputs.targets(table, model, {})
        options["y"] = y[selected]
        # A given list holds all true labels, so metrics of the other labels are meaningless.
        if given is None or inputs.separator is None:
            facts = _metrics(y, prediction, usable)
    if rows < MEASURED_ROWS and given is None:
        options["validation"] = _take(raw, usable[rows : rows + MEASURED_ROWS] or usable)
    return _take(raw, selected), options, facts


def _metrics(y: np.ndarray, prediction: Any, rows: list[int]) -> dict[str, Any]:
    """Returns metrics per label over rows in which given labels do not determine the label."""
    import numpy as np

    from tg_mlc.metrics.report import metrics_per_label

    if prediction.given is not None:
        y = np.where(np.isnan(prediction.given), y, np.nan)
    if np.isnan(y[rows]).all():
        return {}
    metrics, reliability = metrics_per_label(
        y[rows], prediction.probabilities[rows], prediction.decisions[rows]
    )
    return {
        "per_label": metrics,
        "per_label_of": f"{len(rows)} rows of the file; calibrated if shares and means agree.",
        "reliability": reliability.bins,
    }


def _take(raw: Any, rows: list[int]) -> Any:
    return raw.iloc[rows] if hasattr(raw, "iloc") else [raw[row] for row in rows]
