from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.sequences.histories import histories
from tg_mlc.data import from_events
from tg_mlc.sequences import time_split


def days(*lengths):
    rows = [(who, day, "x") for who, length in enumerate(lengths) for day in range(length)]
    return from_events(pd.DataFrame(rows, columns=["who", "day", "item"]), entity="who", time="day", label="item")


@pytest.mark.parametrize(
    ("length", "sizes"), [(1, (1, 0, 0)), (7, (5, 2, 0)), (8, (6, 1, 1)), (10, (7, 2, 1)), (100, (70, 17, 13))]
)
def test_shares_of_an_entity(length, sizes):
    assert time_split(days(length)).sizes == sizes


def test_parts_follow_one_another_in_every_entity():
    events = histories()
    split = time_split(events)
    part = np.full(events.num_events, -1)
    for number, targets in enumerate(split.parts):
        part[targets] = number
    assert split.num_samples == events.num_events
    for start, stop in zip(events.ptr[:-1], events.ptr[1:], strict=True):
        assert (np.diff(part[start:stop]) >= 0).all()
        assert part[start] == 0


def test_targets_need_a_history():
    events = days(20, 3)
    assert time_split(events, min_history=2).train.tolist() == [*range(2, 14), 22]
    inside = time_split(events, min_history=2, cross_borders=False)
    assert [part.tolist() for part in inside.parts] == [[*range(2, 14), 22], [16, 17], []]


@pytest.mark.parametrize("fractions", [(0.5, 0.5), (0.5, 0.2, 0.2), (1.2, -0.1, -0.1)])
def test_other_fractions_are_refused(fractions):
    with pytest.raises(ValueError, match=r"three numbers that sum to 1: train, val, test \(got "):
        time_split(days(3), fractions)
