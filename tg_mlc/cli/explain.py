"""The command ``tg-mlc explain``: a report of why labels were predicted, in one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tg_mlc.cli._options import SingleInput
from tg_mlc.cli._output import check_output

if TYPE_CHECKING:
    import numpy as np

MEASURED_ROWS = 5  #: of a file, by which faithfulness is measured at least


def explain_(
    model: str,
    single: SingleInput,
    *,
    out: str,
    csv: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    rows: int = 5,
    names: str | None = None,
    labels: str | list[str] | None = None,
    given: str | None = None,
    method: str = "auto",
    metric: str = "f1_micro",
    title: str | None = None,
    device: str = "cpu",
) -> int:
    """Writes a report of why labels were predicted, or not, for one input or the first rows of a CSV file.

    It is one HTML file that works without a network. Where --csv has the columns of labels, it shows which apply, and
    metrics per label of the first 4,096 rows.

    Args:
        model: The folder of the model.
        out: The HTML file.
        csv: A file with the columns of inputs that the model was trained on, of any format that training takes.
        delimiter: The mark between cells of --csv; by default, the one that occurs most in the header.
        encoding: The encoding of characters of --csv; by default, what the first bytes say, else UTF-8.
        rows: The number of rows of --csv to explain.
        names: The column of --csv that names the rows.
        labels: The labels to explain, separated by commas; by default, all.
        given: Known labels, such as nausea=1,rash=0 for one input; with --csv, the columns of labels that are known,
            separated by commas, or all; blank cells stay unknown.
        method: The method that scores parts of the input: attention, integrated gradients, alone, occlusion or
            group occlusion; auto tries all and chooses the most faithful.
        metric: The metric decisions are tuned for: subset_accuracy, hamming_accuracy, f1_samples, f1_micro or f1_macro.
        title: The headline of the report.
        device: The device to compute on, such as cpu or cuda.
    """
    from tg_mlc.cli._inputs import given_values, inputs_of, one_input, split_names
    from tg_mlc.inference import load

    check_output(out, csv or "", model)
    loaded = load(model, device=device)
    inputs = inputs_of(loaded, model, delimiter, encoding)
    value = one_input(inputs, csv, single)
    if csv is None:
        raw: Any = [value]
        options: dict[str, Any] = {"given": None if given is None else given_values(given)}
        facts: dict[str, Any] = {}
    else:
        if rows < 1:
            raise ValueError(f"Expected --rows to be at least 1 (got {rows})")
        raw, options, facts = _first_rows(loaded, inputs, csv, rows, names, given, metric)
    wanted = None if labels is None else split_names(labels)
    explanation = loaded.explain(raw, wanted, method, metric=metric, **options)
    if per_label := facts.pop("per_label", None):
        columns = [loaded.label_names.index(name) for name in explanation.labels]
        explanation.facts["per_label"] = {
            name: values[columns].tolist() for name, values in per_label.items()
        }
    explanation.facts.update(facts)
    explanation.to_html(out, title)
    areas = explanation.faithfulness.get(explanation.method)
    how = "" if areas is None else f", whose faithfulness is {areas.gain:.2f}"
    print(f"The report is in '{out}': {_counted(len(explanation))}, by {explanation.method}{how}.")  # noqa: T201
    return 0


def _first_rows(
    model: Any,
    inputs: Any,
    csv: str,
    rows: int,
    names: str | None,
    columns: str | None,
    metric: str,
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Returns the inputs of the first rows of which something is left to predict, options of their explanation, and
    facts about all rows of the first block: metrics per label, if the file has labels.
    """
    import numpy as np

    from tg_mlc.cli._inputs import show_warnings
    from tg_mlc.inference import Query
    from tg_mlc.inputs.schema import match_names
    from tg_mlc.inputs.tables import read_blocks

    table = next(iter(read_blocks(csv, inputs.delimiter, inputs.encoding)))
    raw = inputs.raw(table)
    given = None if columns is None else inputs.given(table, model.label_names, columns)
    prediction = model.answer(raw, Query(given, metric))
    show_warnings(prediction)
    is_open = np.ones(len(table), bool) if given is None else np.isnan(given).any(axis=1)
    kept = [row for row in np.flatnonzero(is_open).tolist() if row not in prediction.reasons]
    if not kept:
        raise ValueError(f"Expected at least one row that can be read in '{csv}' (got none)")
    chosen, facts = kept[:rows], dict[str, Any]()
    options: dict[str, Any] = {"given": None if given is None else given[chosen]}
    if inputs.input_kind.reads_columns:
        options["names"] = [table.where(row) for row in chosen]
    if names is not None:
        cells = table.texts(match_names([names], table.header, f"'{csv}'")[0])
        options["names"] = [cells[row] for row in chosen]
    if {*inputs.labels} <= {*table.header}:
        y = inputs.targets(table, model, {})
        options["y"] = y[chosen]
        # A given list has all labels that apply, so that metrics of the others would tell nothing.
        if given is None or inputs.separator is None:
            facts = _metrics(y, prediction, kept)
    if rows < MEASURED_ROWS and given is None:
        options["validation"] = _taken(raw, kept[rows : rows + MEASURED_ROWS] or kept)
    return _taken(raw, chosen), options, facts


def _metrics(y: np.ndarray, prediction: Any, rows: list[int]) -> dict[str, Any]:
    """Metrics of every label over rows where it is neither given nor follows from given labels."""
    import numpy as np

    from tg_mlc.metrics.per_label import metrics_per_label

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


def _counted(number: int) -> str:
    return "1 sample" if number == 1 else f"{number} samples"


def _taken(raw: Any, rows: list[int]) -> Any:
    return raw.iloc[rows] if hasattr(raw, "iloc") else [raw[row] for row in rows]
