from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import base_scores, suggest
from benchmarks.accuracy.suggest import AT_ONCE, BITS, RANDOM, UNCERTAIN
from tests.benchmarks.accuracy.twins import twins


@pytest.fixture(scope="module")
def runs():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base_scores, "load", lambda name, root: twins())
        base_scores.base_scores.cache_clear()
        runs = suggest.measure("twins", 0, Path())
    base_scores.base_scores.cache_clear()
    return {(run["rule"], run["looked_up"]): run for run in runs}


def test_two_look_ups_tell_as_much_as_three_at_random(runs):
    """One twin tells the other, so that looking up the first twin counts twice."""
    for rule in (BITS, AT_ONCE):
        assert runs[rule, 1]["bits"] < runs[RANDOM, 1]["bits"] - 0.3
    assert runs[BITS, 1]["errors"] <= runs[UNCERTAIN, 1]["errors"] + 0.1


def test_expected_gains_are_realised(runs):
    run = runs[BITS, 1]
    assert run["predicted"] == pytest.approx(run["realised"], rel=0.3)
    assert runs[RANDOM, 1]["predicted"] is None
    assert {runs[rule, 0]["bits"] for rule in suggest.RULES} == {run["bits"] + run["realised"]}


def test_all_look_ups_leave_nothing_to_score(runs):
    assert (BITS, 5) not in runs
    assert runs[BITS, 3]["errors"] < runs[BITS, 1]["errors"]


def test_with_many_unknown_labels_half_of_the_known_ones_are_scored(monkeypatch):
    inputs, shown = twins(), {}
    y = np.where(np.random.default_rng(0).random(inputs.y.shape) < 0.2, np.nan, inputs.y)
    monkeypatch.setattr(base_scores, "load", lambda name, root: inputs._replace(y=y))
    monkeypatch.setattr(suggest, "looked_up", lambda stage, rows, *_: shown.update(rows=rows) or [])
    base_scores.base_scores.cache_clear()
    suggest.measure("twins", 0, Path())
    base_scores.base_scores.cache_clear()
    rows = shown["rows"]
    assert (rows.is_candidate ^ rows.is_target)[~np.isnan(rows.y)].all()
    assert not (rows.is_candidate | rows.is_target)[np.isnan(rows.y)].any()
    assert 0.3 < rows.is_candidate.sum() / (~np.isnan(rows.y)).sum() < 0.7
