"""The command ``tg-mlc predict``: names, probabilities and thresholds of new inputs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tg_mlc.cli._output import show, table

if TYPE_CHECKING:
    from tg_mlc.predict import Predictor


def predict(
    model: str,
    *,
    smiles: str | None = None,
    text: str | None = None,
    dna: str | None = None,
    csv: str | None = None,
    out: str | None = None,
    known: str | None = None,
    metric: str = "miF1",
    batch_size: int = 256,
    device: str = "cpu",
    json: bool = False,
) -> int:
    """Predicts the labels of one input, or of all rows of a CSV file.

    Args:
        model: The folder of the model.
        smiles: A molecule.
        text: A text.
        dna: A piece of DNA.
        csv: A file with the columns of inputs that the model was trained on.
        out: The file for the predictions of --csv; by default, they are printed.
        known: Labels that are known already, as in "liver=1,skin=0", by models that were trained for it.
        metric: What thresholds are best for: ACC, HA, ebF1, miF1 or maF1.
        batch_size: The number of samples at a time.
        device: Where to compute.
        json: Prints JSON, a line for each row of a file.
    """
    from tg_mlc.cli._inputs import inputs_of
    from tg_mlc.predict import load

    predictor = load(model, device)
    inputs = inputs_of(predictor, model)
    given = {kind: value for kind, value in {"smiles": smiles, "text": text, "dna": dna}.items() if value is not None}
    wanted = "csv" if inputs.kind == "rows" else f"{inputs.kind} or --csv"
    if len(given) + (csv is not None) != 1 or not given.keys() <= {inputs.kind}:
        got = ", ".join(f"--{name}" for name in [*given, *(["csv"] if csv is not None else [])]) or "none"
        raise ValueError(f"Expected --{wanted} for a model of {inputs.kind} (got {got})")
    options: dict[str, Any] = {"known": _known(known), "metric": metric, "batch_size": batch_size}
    if csv is None:
        [value] = given.values()
        _show_one(predictor.predict([value], **options), json)
        return 0
    frames = (predictor.predict(raw, **options) for _, raw in inputs.blocks(Path(csv)))
    _write_all(predictor, frames, out, json)
    return 0


def _known(text: str | None) -> dict[str, float] | None:
    if text is None:
        return None
    pairs = [entry.rpartition("=") for entry in text.split(",")]
    if not all(name and value in ("0", "1") for name, _, value in pairs):
        raise ValueError(f'Expected --known in the form "liver=1,skin=0" (got "{text}")')
    return {name.strip(): float(value) for name, _, value in pairs}


def _show_one(frame: Any, as_json: bool) -> None:
    row = frame.iloc[0]
    labels = sorted(frame["probability"].columns, key=lambda name: -row["probability", name])
    result = [{"label": name, **{what: _plain(row[what, name]) for what in frame.columns.levels[0]}} for name in labels]
    rows = [
        (
            name,
            f"{row['probability', name]:.3f}",
            f"{row['threshold', name]:.3f}",
            "yes" if row["decision", name] else "no",
        )
        for name in labels
    ]
    show(result, table(("label", "probability", "threshold", "predicted"), rows), as_json)


def _plain(value: Any) -> Any:
    return bool(value) if isinstance(value, bool) or type(value).__name__ == "bool" else float(value)


def _write_all(predictor: Predictor, frames: Any, out: str | None, as_json: bool) -> None:
    """Writes a line for each row: the names that are predicted, and the probability of every label."""
    from tg_mlc._files import replace_when_done

    if out is None:
        _write(frames, sys.stdout, as_json)
        return
    with replace_when_done(out) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        _write(frames, file, as_json)


def _write(frames: Any, file: Any, as_json: bool) -> None:
    for index, frame in enumerate(frames):
        decisions = frame["decision"]
        lines = frame["probability"].astype(float).round(6)
        names = [";".join(decisions.columns[row]) for row in decisions.to_numpy()]
        lines.insert(0, "predicted", names, allow_duplicates=True)
        if as_json:
            file.write(lines.to_json(orient="records", lines=True, force_ascii=False))
        else:
            lines.to_csv(file, index=False, header=index == 0)
