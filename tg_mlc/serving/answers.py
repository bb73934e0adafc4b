"""The answers to requests: predictions, suggestions which labels to look up, and audits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tg_mlc._warnings import collected_warnings
from tg_mlc.data import given_labels
from tg_mlc.inference import Model, Prediction
from tg_mlc.inference.flow import Reading
from tg_mlc.serving.batching import Batcher, in_thread
from tg_mlc.serving.requests import AuditBody, PredictBody, Request, SuggestBody


async def predict(request: Request[PredictBody], batcher: Batcher) -> dict[str, Any]:
    """Returns the answer to a request, with a result for each input."""
    prediction = await batcher.submit(request.inputs, request.query)
    labels, explanations = request.body.explain, dict[int, Any]()
    for row in range(len(prediction) if labels else 0):
        if row not in prediction.reasons:
            arguments = _explain, request, labels, batcher.model, row
            explanations[row] = await in_thread(batcher.thread, *arguments)
    return await in_thread(None, _content, request, prediction, explanations)


def _content(
    request: Request[PredictBody], prediction: Prediction, explanations: Mapping[int, Any]
) -> dict[str, Any]:
    results = list[dict[str, Any]]()
    for row in range(len(prediction)):
        if row in prediction.reasons:
            results.append({"error": prediction.reasons[row]})
            continue
        if prediction.top is not None:
            results.append({"labels": prediction.records(row)})
        else:
            probability = prediction.of_labels(prediction.probabilities[row])
            decision = prediction.of_labels(prediction.decisions[row])
            results.append({"probability": probability, "decision": decision})
        if row in explanations:
            results[-1]["explanation"] = explanations[row]
    # Ranked labels hold their own thresholds.
    is_ranked = prediction.top is not None
    thresholds = {} if is_ranked else {"thresholds": prediction.of_labels(prediction.thresholds)}
    return {
        "calibrated": prediction.calibrated,
        "metric": str(request.query.decides),
        **thresholds,
        "warnings": list(dict.fromkeys([*request.warnings, *prediction.warnings])),
        "results": results,
    }


def _explain(
    request: Request[PredictBody], labels: list[str], model: Model, row: int
) -> dict[str, Any]:
    """Returns how far the logit of each requested label falls without each component."""
    given = None if request.query.given is None else request.query.given[row : row + 1]
    raw = request.inputs[row : row + 1]
    try:
        [sample] = model.explain(raw, labels, "occlusion", given=given).samples
    except ValueError as error:
        return {"error": str(error)}
    [scores] = sample.scores.values()
    explanation = dict[str, Any]()
    for label, column in zip(labels, scores.T, strict=True):
        pairs = zip(sample.components, column, strict=True)
        explanation[label] = [{"component": name, "score": float(score)} for name, score in pairs]
    return explanation


async def suggest(request: Request[SuggestBody], batcher: Batcher) -> dict[str, Any]:
    """Returns the answer to a request, with the suggestions for each input."""
    options = request.body.model_dump(exclude={"inputs", "given"})

    def content_of(model: Model, reading: Reading) -> dict[str, Any]:
        frame = model.suggest(reading, given=request.query.given, **options)
        suggestions = [list[dict[str, Any]]() for _ in range(reading.size)]
        for record in frame.to_dict("records"):
            suggestions[record.pop("row")].append(record)
        return {"results": [{"suggestions": suggestion} for suggestion in suggestions]}

    function = partial(_answer, request, batcher.model, content_of)
    return await batcher.call(len(request.inputs), function)


async def audit(request: Request[AuditBody], batcher: Batcher) -> dict[str, Any]:
    """Returns the answer to a request, with suspects among all labels, and scores by input."""
    body = request.body

    def content_of(model: Model, reading: Reading) -> dict[str, Any]:
        recorded = given_labels(model.label_names, [row or {} for row in body.recorded])
        if recorded[reading.rows or slice(None)].isnan().all():
            raise ValueError("Expected 'recorded' with a label of an input that can be read")
        audit = model.audit(reading, recorded)
        rows = audit.rows.set_index("row").to_dict("index")
        return {
            "cells": audit.cells.head(body.top).to_dict("records"),
            "blanks": audit.blanks.head(body.top).to_dict("records"),
            "noise": audit.noise.astype(object).where(audit.noise.notna(), None).to_dict("records"),
            "results": [rows.get(row) for row in range(reading.size)],
        }

    function = partial(_answer, request, batcher.model, content_of)
    return await batcher.call(len(request.inputs), function)


def _answer(
    request: Request[Any], model: Model, content_of: Callable[[Model, Reading], dict[str, Any]]
) -> dict[str, Any]:
    """Returns an answer with an error for each input that cannot be read."""
    reading = model.read(request.inputs)
    content: dict[str, Any] = {"results": [{}] * reading.size}
    with collected_warnings() as messages:
        if reading.samples is not None:
            content = content_of(model, reading)
    for row, reason in reading.reasons.items():
        content["results"][row] = {"error": reason}
    messages = [*request.warnings, *reading.warnings, *messages]
    return {"warnings": list(dict.fromkeys(messages)), **content}
