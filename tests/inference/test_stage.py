"""Tests a custom stage in predictions, saved models, explanations and exported programs."""

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

    def __init__(self, offset):
        self.offset = offset

    def apply(self, flow):
        flow.logits = flow.logits + self.offset

    def module(self):
        return ShiftModule(self.offset)

    def state_dict(self):
        return {"offset": self.offset}

    @classmethod
    def from_state(cls, state, label_names, network):
        return cls(state["offset"])

    def __str__(self):
        return f"+{self.offset:g}"


class ShiftModule(TensorStage):
    def __init__(self, offset):
        super().__init__()
        self.offset = offset

    def forward(self, values):
        return {**values, "logits": values["logits"] + self.offset}


@pytest.fixture(scope="module")
def plain(saved):
    return tg_mlc.load(saved("vectors"))


@pytest.fixture
def shifted(plain):
    model = Model(plain.stages, plain.label_names)
    names = [type(stage).__name__ for stage in model.stages]
    model.stages.insert(names.index("Combination") + 1, Shift(0.5))
    return model


def test_predictions_pass_through_the_stage(plain, shifted, tmp_path):
    base, scores = plain.probabilities(RAW), shifted.probabilities(RAW)
    np.testing.assert_allclose(logit(scores), logit(base) + 0.5, atol=1e-9)
    loaded = tg_mlc.load(shifted.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.probabilities(RAW), scores)
    assert "Shift        +0.5" in str(loaded)


def test_logits_for_explanations_pass_through_the_stage(plain, shifted):
    logits = [model.logits(model.prepare(RAW)) for model in (plain, shifted)]
    np.testing.assert_allclose(logits[1], logits[0] + 0.5, atol=1e-9)


@needs_export
def test_programs_contain_the_stage(shifted):
    tensors = featurize(shifted, RAW)
    probabilities = Program(shifted, list(tensors)).eval()(*tensors.values()).detach().numpy()
    np.testing.assert_allclose(probabilities, shifted.probabilities(RAW), atol=1e-4)


def test_models_print_one_line_per_stage(plain):
    lines = str(plain).splitlines()
    assert len(lines) == 1 + len(plain.stages)
    assert plain.stage(Networks) in plain.stages
    assert plain.stage(Shift) is None
