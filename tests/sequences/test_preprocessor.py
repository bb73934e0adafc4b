from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from tests.sequences.histories import COLUMNS, histories, table
from tg_mlc.data import Split, from_events
from tg_mlc.inputs.preprocessor import from_state, to_state
from tg_mlc.sequences import (
    TIFUKNN,
    EventPreprocessor,
    GlobalFrequency,
    LastSet,
    LogisticHistory,
    PersonalFrequency,
    personal_memory,
    time_split,
)


def test_no_artefact_of_training_moves_with_the_test_events():
    rows = table()
    events = from_events(rows, **COLUMNS)
    split = time_split(events)
    entity = np.repeat(np.arange(events.num_entities), events.ptr.diff())
    later = (*split.val, *split.test)
    tested = {(int(events.entities[entity[i]]), float(events.time[i])) for i in later}
    is_later = np.array([key in tested for key in zip(rows["who"], rows["day"], strict=True)])
    changed = rows.copy()
    changed.loc[is_later, "cost"] = 1e6
    changed.loc[is_later, "item"] = "of no training event"
    changed.loc[is_later, "day"] = 1_000 + 3 * changed.loc[is_later, "day"]
    other = from_events(changed, **COLUMNS)
    assert time_split(other) == split
    fitted = [EventPreprocessor(num_bins=4).fit(data, split) for data in (events, other)]
    states = [to_state(preprocessor) for preprocessor in fitted]
    assert str(states[0]) == str(states[1])
    datasets = [p.transform(data) for p, data in zip(fitted, (events, other), strict=True)]
    batches = [dataset.batch(split.train) for dataset in datasets]
    for name in batches[0].keys():  # noqa: SIM118
        assert torch.equal(batches[0][name], batches[1][name]), name
    torch.manual_seed(0)
    memory = personal_memory(datasets[0], split.train, 4)
    torch.manual_seed(0)
    for name, value in personal_memory(datasets[1], split.train, 4).state_dict().items():
        assert torch.equal(value, memory.state_dict()[name]), name
    for baseline in (GlobalFrequency, LastSet, PersonalFrequency, TIFUKNN, LogisticHistory):
        learned = [vars(baseline().fit(dataset, split.train)) for dataset in datasets]
        assert learned[0].keys() == learned[1].keys() >= {"frequency"}
        for name, value in learned[0].items():
            np.testing.assert_array_equal(value, learned[1][name])
    later = fitted[1].transform(other).batch(split.test)
    assert later.y.sum() == 0
    assert fitted[1].left_out(other) == {"of no training event": len(split.val) + len(split.test)}


def test_bins_hold_equal_shares_and_missing_amounts_have_their_own():
    rows = pd.DataFrame({"who": "a", "day": range(12), "item": "x", "cost": np.arange(12.0) - 3})
    events = from_events(rows, **COLUMNS)
    events.amount.data[[2, 11]] = np.nan
    split = Split(torch.arange(10), torch.tensor([10]), torch.tensor([11]), "by hand")
    dataset = EventPreprocessor(window_size=None, num_bins=3).fit_transform(events, split)
    batch = dataset.batch([11])
    assert batch.bin.tolist() == [1, 1, 0, 1, 2, 2, 2, 3, 3, 3, 3]
    assert dataset.num_bins == 4
    assert batch.amount[2] == 0
    mean = np.abs([-3, -2, 0, 1, 2, 3, 4, 5, 6]).mean()
    expected = np.arcsinh(np.array([-3, 0, 7]) / mean)
    assert batch.amount[[0, 3, 10]].tolist() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "amounts", [[1.0, 1.0, 1.0, 5.0], [0.0, 10.0], [3.0] * 4, [-2.0, 0.0, 0.5, 0.75, 100.0]]
)
def test_training_has_amounts_in_every_bin(amounts):
    size, costs = len(amounts), [*amounts, -999.0, 999.0]
    rows = pd.DataFrame({"who": "a", "day": range(size + 2), "item": "x", "cost": costs})
    split = Split(torch.arange(size), torch.tensor([size]), torch.tensor([size + 1]), "by hand")
    dataset = EventPreprocessor(window_size=None).fit_transform(from_events(rows, **COLUMNS), split)
    trained = set(dataset.batch([size]).bin.tolist())
    assert trained == set(range(1, dataset.num_bins))
    assert set(dataset.batch([size + 1]).bin.tolist()) <= trained


def test_gaps_and_amounts_that_are_missing():
    days = [0, 7, 14, 35.5, 99, 5000, 5003]
    rows = pd.DataFrame({"who": "a", "day": days, "item": "x", "cost": 1.0})
    split = Split(torch.arange(5), torch.tensor([5]), torch.tensor([6]), "by hand")
    dataset = EventPreprocessor().fit_transform(from_events(rows, **COLUMNS), split)
    assert dataset.gaps == [0, 7, 21]
    assert dataset.is_training.tolist() == [True] * 5 + [False] * 2
    events = histories()
    for value in (0.0, np.nan):
        events.amount.data[:] = value
        dataset = EventPreprocessor().fit_transform(events, time_split(events))
        batch = dataset.batch(range(events.num_events))
        assert batch.amount.tolist() == [0.0] * len(batch.label)
        assert batch.bin.unique().numel() == 1


def test_labels_of_training_are_found_by_name_in_other_events():
    events = histories()
    split = time_split(events)
    preprocessor = EventPreprocessor().fit(events, split)
    few = from_events(table(num_entities=1, num_labels=9, num_rows=30, seed=3), **COLUMNS)
    new = preprocessor.transform(few)
    assert new.label_names == preprocessor.label_names
    names = [{few.label_names[i] for i in row.nonzero()[0]} for row in few.y.toarray()]
    found = [{new.label_names[i] for i in row.nonzero()[0]} for row in new.y.toarray()]
    assert found == [row & set(new.label_names) for row in names]


def test_entities_of_training_have_places_and_others_share_one():
    events = histories()
    held_out = events.num_entities - 1
    first = int(events.ptr[held_out])
    rest = torch.arange(first, events.num_events)
    split = Split(torch.arange(first), rest[:-1], rest[-1:], "by entity")
    dataset = EventPreprocessor().fit_transform(events, split)
    assert dataset.num_entities == held_out
    batch = dataset.batch([0, first - 1, first, events.num_events - 1])
    assert batch.entity.tolist() == [0, 4, 5, 5]


def test_state_makes_the_same_samples():
    events = histories()
    split = time_split(events)
    preprocessor = EventPreprocessor(window_size=2, num_bins=4).fit(events, split)
    again = from_state(to_state(preprocessor))
    expected, batch = (p.transform(events).batch(split.test) for p in (preprocessor, again))
    assert all(torch.equal(expected[name], batch[name]) for name in expected.keys())  # noqa: SIM118


@pytest.mark.parametrize("options", [{"window_size": 0}, {"window_size": 1.5}, {"num_bins": 0}])
def test_other_numbers_are_refused(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"'{name}' to be a whole number of at least 1"):
        EventPreprocessor(**options)


@pytest.mark.filterwarnings("ignore:3 of 6 entities have fewer")
def test_events_that_do_not_fit_are_refused():
    events = histories()
    split, later = time_split(events), events.with_next()
    with pytest.raises(RuntimeError, match="'fit' to be called before 'transform'"):
        EventPreprocessor().transform(events)
    untrained = Split(split.train[:0], torch.arange(events.num_events), split.test[:0], "x")
    fewer = events.with_at_least(int(events.ptr.diff().max()))
    for data, parts, message in (
        (events, untrained, "a split with training"),
        (later, time_split(later), r"have a date \(got those of 'with_next'\)"),
        (fewer, split, "'dataset' to hold all samples that 'split' div"),
    ):
        with pytest.raises(ValueError, match=message):
            EventPreprocessor().fit(data, parts)
