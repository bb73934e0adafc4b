"""The residual messages of a model, which suggestions and audits read."""

from __future__ import annotations

from tg_mlc.inference import Model
from tg_mlc.inference.decisions import GivenLabels
from tg_mlc.nn import ResidualMessages


def messages_of(model: Model) -> ResidualMessages:
    """Returns the residual messages of a model of :func:`tg_mlc.auto` or of an estimator."""
    stage = model.stage(GivenLabels)
    messages = None if stage is None else stage.engine.parts.get("closed form")
    if not isinstance(messages, ResidualMessages):
        expected = "Expected a model that learned how given labels change others"
        hint = "fit tg_mlc.auto or an estimator to at least two labels"
        raise ValueError(f"{expected} (got one without residual messages); {hint}")
    return messages
