from __future__ import annotations

import numpy as np
import pytest
import torch

from tg_mlc.inference.checkpoint import check_plain
from tg_mlc.inputs import Chain, Preprocessor, Scale, TfIdf
from tg_mlc.inputs.preprocessor import from_state, to_state


class Shift(Preprocessor):
    """Adds a number to an array, to make the steps of a chain visible."""

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = np.array([offset])

    def fit(self, dataset, split):
        self.offset = self.offset + dataset.max()
        return self

    def transform(self, raw):
        return raw + self.offset

    def fit_transform(self, dataset, split):
        return self.fit(dataset, split).transform(dataset) * 10

    def state_dict(self):
        return {"offset": self.offset, "nested": {"rows": [(1, 2.5)]}}

    def load_state_dict(self, state):
        self.offset = np.asarray(state["offset"])
        return self


def test_each_step_is_fitted_to_the_output_of_previous_steps():
    chain = Chain(Shift(), Shift(1.0))
    out = chain.fit_transform(np.array([1.0, 2.0]), None)
    assert out.tolist() == [(30 + 41) * 10, (40 + 41) * 10]
    assert chain.transform(np.array([0.0])).tolist() == [2 + 41]
    chain = Chain(Shift(), Shift(1.0)).fit(np.array([1.0, 2.0]), None)
    assert chain.transform(np.array([0.0])).tolist() == [43]


def test_states_are_plain_and_restored_by_name():
    chain = Chain(Shift(3.0), Chain(Shift(4.0)))
    state = to_state(chain)
    check_plain(state, "state")
    first = state["state"]["steps"][0]["state"]["offset"]
    assert torch.equal(first, torch.tensor([3.0], dtype=torch.float64))
    assert from_state(state).transform(np.array([0.0])).tolist() == [7.0]
    assert repr(Chain(TfIdf(), Scale("quantile"))) == "Chain(TfIdf(), Scale('quantile'))"


def test_unknown_classes_are_named():
    with pytest.raises(ValueError, match=r"\[.*'TfIdf'.*\] \(got 'Stem'\); import the module"):
        from_state({"name": "Stem", "state": {}})


def test_repeated_names_of_classes_are_refused():
    with pytest.raises(ValueError, match=r"a name of its own.*'tg_mlc\.inputs\.scalers\.TfIdf'"):
        type("TfIdf", (Shift,), {})
    entry = {"name": "TfIdf", "state": {"idf": np.ones(2), "counts": True}}
    assert isinstance(from_state(entry), TfIdf)
