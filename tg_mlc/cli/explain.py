"""The command ``tg-mlc explain``: a report of why labels were predicted, in one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tg_mlc.cli._output import check_output

if TYPE_CHECKING:
    import numpy as np

MEASURED_ROWS = 5  #: of a file, by which faithfulness is measured at least


def explain_(
    model: str,
    *,
    out: str,
    smiles: str | None = None,
    text: str | None = None,
    dna: str | None = None,
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
        smiles: A molecule, as SMILES.
        text: A text.
        dna: A DNA sequence.
        csv: A file with the columns of inputs that the model was trained on, of any format that training takes.
        delimiter: The mark between cells of --csv; by default, the one that occurs most in the header.
        encoding: The encoding of characters of --csv; by default, what the first bytes say, else UTF-8.
        rows: The number of rows of --csv to explain.
        names: The column of --csv that names the rows.
        labels: The labels to explain, separated by commas; by default, all.
        given: Known labels, such as nausea=1,rash=0 for one input; with --csv, the columns of labels that are known,
            separated by commas, or all; blank cells stay unknown.
        method: The method that scores parts of the input: attention, rollout, gradient, integrated gradients, alone,
            shapley, occlusion or group occlusion; auto tries all and chooses the most faithful.
        metric: The metric decisions are tuned for: subset_accuracy, hamming_accuracy, f1_samples, f1_micro or f1_macro.
        title: The headline of the report.
        device: The device to compute on, such as cpu or cuda.
    """
    import numpy as np

    from tg_mlc.cli._inputs import given_values, inputs_of, one_input, split_names
    from tg_mlc.explanations import explain
    from tg_mlc.inference import load
    from tg_mlc.inputs.schema import match_names
    from tg_mlc.inputs.tables import read_blocks

    check_output(out, csv or "", model)
    predictor = load(model, device=device)
    inputs = inputs_of(predictor, model, delimiter, encoding)
    value = one_input(inputs, csv, smiles=smiles, text=text, dna=dna)
    options: dict[str, Any] = {"labels": None if labels is None else split_names(labels), "metric": metric}
    raw, per_label, bins = cast(Any, [value]), dict[str, Any](), list[Any]()
    if csv is None:
        options["given"] = None if given is None else given_values(given)
    else:
        if rows < 1:
            raise ValueError(f"Expected --rows to be at least 1 (got {rows})")
        table = next(iter(read_blocks(csv, inputs.delimiter, inputs.encoding)))
        raw = inputs.raw(table)
        known = None if given is None else inputs.given(table, predictor.label_names, given)
        scores, refused = predictor.readable_scores(raw, known)
        asked = range(len(table)) if known is None else np.flatnonzero(np.isnan(known).any(axis=1)).tolist()
        kept = [row for row in asked if row not in refused]
        if not kept:
            raise ValueError(f"Expected at least one row that can be read in '{csv}' (got none)")
        options["given"] = None if known is None else known[kept[:rows]]
        if inputs.input_kind.reads_columns:
            options["names"] = [table.where(row) for row in kept[:rows]]
        if names is not None:
            found = table.texts(match_names([names], table.header, f"'{csv}'")[0])
            options["names"] = [found[row] for row in kept[:rows]]
        if {*inputs.labels} <= {*table.header}:
            y = inputs.targets(table, predictor.label_names, {})
            options["y"] = y[kept[:rows]]
            if known is None or inputs.separator is None:  # of lists, no label that is left applies
                per_label, bins = _per_label(predictor, kept, y, scores, known, metric)
        if rows < MEASURED_ROWS and known is None:
            options["validation"] = _taken(raw, kept[rows : rows + MEASURED_ROWS] or kept)
        raw = _taken(raw, kept[:rows])
    explanation = explain(predictor, raw, method=method, **options)
    places = [predictor.label_names.index(name) for name in explanation.labels]
    if per_label:
        explanation.facts["per_label"] = {name: values[places].tolist() for name, values in per_label.items()}
        explanation.facts["per_label_of"] = f"{len(kept)} rows of the file; calibrated if shares and means agree."
        explanation.facts["reliability"] = bins
    explanation.to_html(out, title)
    areas = explanation.faithfulness.get(explanation.method)
    how = "" if areas is None else f", whose faithfulness is {areas.gain:.2f}"
    print(f"The report is in '{out}': {_counted(len(explanation))}, by {explanation.method}{how}.")  # noqa: T201
    return 0


def _counted(number: int) -> str:
    return "1 sample" if number == 1 else f"{number} samples"


def _taken(raw: Any, rows: list[int]) -> Any:
    return raw.iloc[rows] if hasattr(raw, "iloc") else [raw[row] for row in rows]


def _per_label(
    predictor: Any, rows: list[int], y: np.ndarray, scores: np.ndarray, known: np.ndarray | None, metric: str
) -> tuple[dict[str, np.ndarray], list[Any]]:
    """Metrics of every label over rows where it is neither given nor follows from given labels; it is calibrated if its
    share is its mean probability; and the bins of all labels.
    """
    import numpy as np
    import torch

    from tg_mlc.graphs.hierarchy import propagate
    from tg_mlc.metrics._inputs import read_targets
    from tg_mlc.metrics.calibration import Reliability
    from tg_mlc.metrics.decisions import LABELS, count, f1_per_item
    from tg_mlc.metrics.ranking import average_precision_per_label, roc_auc_per_label

    y, scores, known = y[rows], scores[rows], None if known is None else known[rows]
    decided = predictor.decide(scores, metric, known)
    if known is not None:
        told, pairs = torch.from_numpy(known), predictor.scorer.coherence(None)
        told = told if pairs is None else propagate(told, pairs, predictor.label_names, "given")
        y = np.where(told.isnan(), y, np.nan)
    if np.isnan(y).all():
        return {}, []
    targets = read_targets(y)
    number = targets.observed.sum(axis=0)

    number = np.where(number > 0, number, np.nan)
    counts, reliability = count(targets, decided, LABELS), Reliability.of(targets, scores)
    found = {
        "share": counts.positive / number,
        "mean probability": np.where(targets.observed, scores, 0.0).sum(axis=0) / number,
        "ROC-AUC": roc_auc_per_label(y, scores),
        "average precision": average_precision_per_label(y, scores),
        "F1": f1_per_item(counts, 0),
        "ECE": np.array(reliability.ece),
        "Brier score": np.array(reliability.brier),
    }
    return found, reliability.bins
