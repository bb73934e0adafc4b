"""The part of a model for given labels, which this room reads."""

from __future__ import annotations

from typing import Any

from tg_mlc.inference import Model
from tg_mlc.inference.decisions import GivenLabels
from tg_mlc.nn import ResidualMessages


def given_labels_of(model: Model) -> Any:
    """Returns the :class:`~tg_mlc.stacking.given.GivenLabelStacking` of a model of
    :func:`tg_mlc.auto` or of an estimator.
    """
    stage = model.stage(GivenLabels)
    if stage is None or "closed form" not in stage.engine.parts:
        expected = "Expected a model that learned how given labels change others"
        hint = "fit tg_mlc.auto to at least two labels, or a LaMPClassifier with 20 to validate on"
        raise ValueError(f"{expected} (got one without residual messages); {hint}")
    return stage.engine


def messages_of(model: Model) -> ResidualMessages:
    """Returns the residual messages of a model."""
    messages: ResidualMessages = given_labels_of(model).parts["closed form"]
    return messages
