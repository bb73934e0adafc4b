"""A toy stage, in one file: every face of a model has it at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logit

import tg_mlc
from tests.requirements import needs_export
from tg_mlc.exporting.program import Program, featurize
from tg_mlc.inference import Model, Stage
from tg_mlc.inference.networks import Networks
from tg_mlc.inference.stage import TensorStage

RAW = np.random.default_rng(1).normal(size=(6, 5))


class Shift(Stage):
    """Adds a number to all logits."""

    def __init__(self, by):
        self.by = by

    def apply(self, flow):
        flow.logits = flow.logits + self.by

    def module(self):
        return ShiftModule(self.by)

    def state_dict(self):
        return {"by": self.by}

    @classmethod
    def from_state(cls, state, label_names, network):
        return cls(state["by"])

    def __str__(self):
        return f"+{self.by:g}"


class ShiftModule(TensorStage):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, values):
        return {**values, "logits": values["logits"] + self.by}


@pytest.fixture(scope="module")
def plain(saved):
    return tg_mlc.load(saved("vectors"))


@pytest.fixture
def shifted(plain):
    model = Model(plain.stages, plain.label_names)
    place = next(
        place for place, stage in enumerate(model.stages) if type(stage).__name__ == "Combination"
    )
    model.stages.insert(place + 1, Shift(0.5))
    return model


def test_predictions_pass_through_it(plain, shifted, tmp_path):
    before, after = plain.probabilities(RAW), shifted.probabilities(RAW)
    np.testing.assert_allclose(logit(after), logit(before) + 0.5, atol=1e-9)
    loaded = tg_mlc.load(shifted.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.probabilities(RAW), after)
    assert "Shift        +0.5" in str(loaded)


def test_explanations_ask_it(plain, shifted):
    found = [model.logits(model.prepare(RAW)) for model in (plain, shifted)]
    np.testing.assert_allclose(found[1], found[0] + 0.5, atol=1e-9)


@needs_export
def test_programs_have_it(shifted):
    tensors = featurize(shifted, RAW)
    found = Program(shifted, list(tensors)).eval()(*tensors.values()).detach().numpy()
    np.testing.assert_allclose(found, shifted.probabilities(RAW), atol=1e-4)


def test_a_stage_says_nothing_unless_it_has_something_to_say(plain):
    lines = str(plain).splitlines()
    assert len(lines) == 1 + len(plain.stages)
    assert plain.stage(Networks) in plain.stages
    assert plain.stage(Shift) is None
