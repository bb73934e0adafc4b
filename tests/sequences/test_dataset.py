from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils.data import Subset

from tests.sequences.histories import COLUMNS, histories, table
from tests.sequences.test_baselines import BASELINES
from tg_mlc.data import Split, from_events
from tg_mlc.graphs import fully_connected
from tg_mlc.inference import Model
from tg_mlc.inputs.preprocessor import to_state
from tg_mlc.sequences import LANET, EventPreprocessor, personal_memory, time_split
from tg_mlc.sequences.windows import WindowViews
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, fit


def make(events, **options):
    return EventPreprocessor(**options).fit_transform(events, time_split(events, (1.0, 0.0, 0.0)))


def read(rows):
    """Reads events from tuples (who, day, item) or (who, day, item, cost)."""
    columns = ["who", "day", "item", "cost"][: len(rows[0])]
    amount = "cost" if len(columns) == 4 else None
    return from_events(pd.DataFrame(rows, columns=columns), **{**COLUMNS, "amount": amount})


def test_memory_features_of_a_small_history():
    rows = [("a", 1, "x", 2.0), ("a", 4, "y", -1.0), ("a", 4, "x", 0.5)]
    rows += [("a", 9, "y", 3.0), ("b", 2, "x", 1.0)]
    dataset = make(read(rows), window_size=2)
    batch = dataset.batch([2, 3, 1])
    assert batch.num_graphs == 3
    assert batch.entity.tolist() == [0, 1, 0]
    assert (batch.memory_sample.tolist(), batch.memory_label.tolist()) == ([0, 0, 2], [0, 1, 0])
    names = dataset.memory_features
    x, y = (dict(zip(names, values.tolist(), strict=True)) for values in batch.memory[:2])
    assert x["log_count"] == pytest.approx(math.log(3))
    assert x["log_share_decay_0.5"] == pytest.approx(math.log1p(100.0))
    assert y["log_share_decay_0.5"] == pytest.approx(math.log1p(100.0 * 1.0 / 1.5))
    assert x["log_last_gap"] == x["log_mean_gap"] == pytest.approx(math.log(2))
    assert (x["log_days_since"], x["log_events_since"], x["share_of_events"]) == (0, 0, 1)
    assert (y["log_last_gap"], y["share_of_events"]) == (0, 0.5)
    assert repr(dataset) == "NextSetDataset(4, num_entities=2, num_labels=2, window_size=2)"


@pytest.mark.parametrize("window_size", [1, 3, None])
def test_windows_equal_a_loop(window_size):
    events = histories()
    dataset = make(events, window_size=window_size)
    y, ptr = events.y.toarray(), events.ptr.tolist()
    batch = dataset.batch(range(len(dataset)))
    columns = (batch[name].tolist() for name in ("sample", "position", "label", "dt"))
    expected = []
    for target in range(len(dataset)):
        first = max(start for start in ptr[:-1] if start <= target)
        start = first if window_size is None else max(first, target - window_size)
        for event in range(start, target):
            gap = 0.0 if event == first else float(events.time[event] - events.time[event - 1])
            labels = np.flatnonzero(y[event]).tolist()
            expected += [(target, target - event, label, gap) for label in labels]
    assert list(zip(*columns, strict=True)) == expected
    assert torch.equal(batch.y, torch.from_numpy(y))


def test_memory_equals_a_loop():
    events = histories()
    dataset = make(events)
    batch = dataset.batch(range(len(dataset)))
    keys = zip(batch.memory_sample.tolist(), batch.memory_label.tolist(), strict=True)
    row = {key: i for i, key in enumerate(keys)}
    assert list(row) == sorted(row)
    y, ptr, time = events.y.toarray(), events.ptr.tolist(), events.time.tolist()
    num_pairs = 0
    for target in range(len(dataset)):
        first = max(start for start in ptr[:-1] if start <= target)
        for label in np.flatnonzero(y[first:target].any(axis=0)):
            past = first + np.flatnonzero(y[first:target, label])
            ages = target - 1 - past
            all_ages = np.arange(target - first)
            decays = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
            shares = [(decay**ages).sum() / (decay**all_ages).sum() / 0.01 for decay in decays]
            gaps = np.diff(past) if len(past) > 1 else np.zeros(1)
            days = time[target - 1] - time[past[-1]]
            logs = np.log1p([len(past), *shares, days, ages[-1], gaps[-1], gaps.mean()])
            expected = torch.tensor([*logs, len(past) / (target - first)], dtype=torch.float32)
            assert_close(batch.memory[row[target, label]], expected)
            num_pairs += 1
    assert num_pairs == len(row)


def test_trends_equal_a_loop():
    events = histories()
    split = time_split(events)
    dataset = EventPreprocessor().fit_transform(events, split)
    batch = dataset.batch(range(len(dataset)))
    y, time, ptr = events.y.toarray(), events.time.numpy(), events.ptr.tolist()
    in_training = np.isin(np.arange(len(y)), split.train.numpy())
    for target in set(range(len(dataset))) - set(ptr):
        known = (time <= time[target - 1]) & (in_training if in_training[target] else True)
        recent = known & (time > time[target - 1] - 7)
        expected = (y[recent].sum(axis=0) + 20 * y[known].mean(axis=0)) / (recent.sum() + 20)
        assert_close(batch.trend[target, :, 0], torch.from_numpy(expected.astype(np.float32)))
    assert not batch.trend[ptr[:-1]].any()


def test_events_within_a_day_are_known_from_the_next_day_on():
    rows = [("a", 1.0, "x"), ("a", 3.5, "x"), ("a", 4.5, "x")]
    dataset = make(read([*rows, ("b", 3.25, "y"), ("b", 4.0, "x"), ("b", 9.0, "y")]))
    assert dataset.batch([2]).trend[0, 1].tolist() == [0.0, 0.0, 0.0]
    assert dataset.batch([5]).trend[0, 1].tolist() == pytest.approx([0.25] * 3)


def test_batches_hold_the_same_values_as_single_samples():
    dataset = make(histories())
    combined = dataset.batch([7, 3, 20])
    for i, target in enumerate((7, 3, 20)):
        single = dataset[target]
        assert torch.equal(combined.y[i : i + 1], single.y)
        for name in ("label", "position", "dt", "bin", "amount"):
            assert torch.equal(combined[name][combined.sample == i], single[name])
        assert torch.equal(combined.memory[combined.memory_sample == i], single.memory)
    batch = dataset.batch(dataset.ptr[:-1])
    assert batch.num_graphs == 6
    assert batch.label.numel() == batch.memory_label.numel() == 0
    assert batch.memory.shape == (0, len(dataset.memory_features))
    for target in (-1, len(dataset)):
        message = rf"events from 0 to {len(dataset) - 1} \(got {target}\)"
        with pytest.raises(IndexError, match=message):
            dataset.batch([3, target])
    assert sum(batch.num_graphs for batch in dataset) == len(dataset)


def test_samples_do_not_depend_on_their_own_or_later_events():
    events = histories()
    dataset = make(events)
    target = int(events.ptr[2]) - 4
    changed = histories()
    changed.time[target:] += 1000.0
    changed_dataset = make(changed)
    for name in ("label", "position", "dt", "memory_label", "memory"):
        assert torch.equal(dataset[target][name], changed_dataset[target][name])


def test_adding_the_next_events_changes_no_other_sample():
    events = histories()
    split = time_split(events)
    preprocessor = EventPreprocessor().fit(events, split)
    dataset, extended = preprocessor.transform(events), preprocessor.transform(events.with_next())
    is_next = extended.time == np.inf
    batch = dataset.batch(range(len(dataset)))
    extended_batch = extended.batch(np.flatnonzero(~is_next))
    for name, value in batch.to_dict().items():
        assert torch.equal(value, extended_batch[name]), name
    first, last = int(events.ptr[1]), int(events.ptr[2]) - 1
    following = extended.batch(np.flatnonzero(is_next))
    assert not following.y.any()
    assert following.position[following.sample == 1].max() == 3
    labels = following.label[(following.sample == 1) & (following.position == 1)]
    assert labels.tolist() == np.flatnonzero(events.y[[last]].toarray()[0]).tolist()
    fraction = torch.from_numpy(events.y[first : last + 1].mean(axis=0)).float()
    assert_close(following.memory[following.memory_sample == 1, -1], fraction[fraction > 0])


@pytest.mark.parametrize(("window_size", "expected"), [(2, 2), (None, 3)])
def test_data_sets_give_the_window_options_of_models(window_size, expected):
    rows = [("a", day, "x", 1.0) for day in (1, 2, 5, 9)] + [("b", 3, "x", 2.0)]
    dataset = make(read(rows), window_size=window_size)
    sizes = {"window_size": expected, "num_bins": dataset.num_bins}
    assert dataset.window == {**sizes, "gaps": [0, 1, 3]}
    batch = dataset.batch(range(len(dataset)))
    assert batch.position.max() == expected
    assert WindowViews(1, 4, **dataset.window).by_label(batch).shape == (5, 1, 12)


def test_rows_may_be_unsorted_repeated_far_apart_and_of_several_time_zones():
    rows = [
        ("a", "2024-03-31T03:30+02:00", "x", 1.0),
        ("a", "1990-01-01T00:00+00:00", "y", 2.0),
        ("a", "2024-03-31T01:30+00:00", "x", -4.0),
        ("a", "2024-03-31T05:30+02:00", "y", 1.0),
    ]
    events = read(rows)
    assert events.amount.toarray().tolist() == [[0, 2], [-3, 0], [0, 1]]
    batch = make(events).batch([2])
    assert batch.label.tolist() == [1, 0]
    assert_close(batch.dt, torch.tensor([0.0, 12508.0625]))
    assert batch.memory.isfinite().all()


def days(*lengths):
    return read([(who, day, "x") for who, length in enumerate(lengths) for day in range(length)])


@pytest.mark.parametrize(
    ("length", "sizes"),
    [(1, (1, 0, 0)), (7, (5, 2, 0)), (8, (6, 1, 1)), (10, (7, 2, 1)), (100, (70, 17, 13))],
)
def test_the_events_of_an_entity_are_split_by_fractions(length, sizes):
    assert time_split(days(length)).sizes == sizes


def test_parts_are_consecutive_in_every_entity():
    events = histories()
    split = time_split(events)
    part = np.full(events.num_events, -1)
    for number, targets in enumerate(split.parts):
        part[targets] = number
    assert split.num_samples == events.num_events
    for start, stop in zip(events.ptr[:-1], events.ptr[1:], strict=True):
        assert (np.diff(part[start:stop]) >= 0).all()
        assert part[start] == 0
    events = days(20, 3)
    assert time_split(events, min_history=2).train.tolist() == [*range(2, 14), 22]
    inside = time_split(events, min_history=2, cross_borders=False)
    assert [part.tolist() for part in inside.parts] == [[*range(2, 14), 22], [16, 17], []]


@pytest.mark.parametrize("fractions", [(0.5, 0.5), (0.5, 0.2, 0.2), (1.2, -0.1, -0.1)])
def test_invalid_fractions_are_refused(fractions):
    with pytest.raises(ValueError, match=r"'fractions' .* sum to 1 \(got "):
        time_split(days(3), fractions)


class LastCounts(nn.Module):
    """A linear map of how often each label is in the window."""

    def __init__(self, num_labels):
        super().__init__()
        self.linear = nn.Linear(num_labels, num_labels)

    def forward(self, batch):
        counts, ones = torch.zeros_like(batch.y), torch.ones(len(batch.label))
        counts.index_put_((batch.sample, batch.label), ones, accumulate=True)
        return self.linear(counts)


def loaded_module(**options):
    events = histories()
    split = time_split(events)
    preprocessor = EventPreprocessor(window_size=2, num_bins=4)
    dataset = preprocessor.fit_transform(events, split)
    return MultiLabelDataModule(dataset, split, batch_size=16, **options), preprocessor


def test_each_loader_holds_its_part_of_the_split():
    data, _ = loaded_module()
    loaders = [data.train_dataloader(), data.val_dataloader(), data.test_dataloader()]
    for loader, part in zip(loaders, data.split.parts, strict=True):
        batches = list(loader)
        assert [batch.num_graphs for batch in batches[:-1]] == [16] * (len(batches) - 1)
        targets = sorted(torch.cat([batch.y for batch in batches]).tolist())
        assert targets == sorted(data.dataset.batch(part).y.tolist())
    assert torch.equal(batches[0].memory, data.dataset.batch(data.split.test[:16]).memory)
    loaders = (loaded_module(num_workers=n)[0].train_dataloader() for n in (0, 1))
    for expected, actual in zip(*loaders, strict=True):
        assert torch.equal(expected.memory, actual.memory)
        assert expected.num_graphs == actual.num_graphs


def test_a_model_is_trained_and_saved_with_its_preprocessor(tmp_path):
    data, preprocessor = loaded_module()
    names = data.dataset.label_names
    module = MultiLabelModule(LastCounts(len(names)), names, lr=0.1, preprocessor=preprocessor)
    options = {"max_epochs": 2, "monitor": "val/micro_roc_auc", "logger": False}
    result = fit(module, data, tmp_path, **options).training
    scores = result.scores(data.test_dataloader())
    assert scores.shape == (len(data.split.test), len(names))
    load_options = {"model": LastCounts(len(names)), "weights_only": True}
    loaded = MultiLabelModule.load_from_checkpoint(result.checkpoint, **load_options)
    batch = loaded.preprocessor.transform(histories()).batch(data.split.test)
    for name, value in data.dataset.batch(data.split.test).to_dict().items():
        assert torch.equal(batch[name], value), name
    assert_close(loaded.predict_step(batch), scores)


def test_a_predictor_scores_past_and_next_events():
    data, preprocessor = loaded_module()
    dataset = data.dataset
    graph = fully_connected(dataset.label_names)
    model = LANET(graph, dataset.num_entities, 4, window=dataset.window)
    predictor = Model.of(MultiLabelModule(model, dataset.label_names, preprocessor=preprocessor))
    events = histories()
    scores = predictor.probabilities(events, batch_size=7)
    expected = model.eval()(dataset.batch(range(len(dataset)))).sigmoid().detach().numpy()
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    following = events.with_next()
    targets = (following.ptr[1:] - 1).tolist()
    frame = predictor.predict(Subset(preprocessor.transform(following), targets))["probability"]
    assert (len(frame), list(frame)) == (events.num_entities, dataset.label_names)
    np.testing.assert_allclose(frame, predictor.probabilities(following)[targets], atol=1e-6)
    assert not np.allclose(frame, scores[(events.ptr[1:] - 1).numpy()])
    with pytest.raises(ValueError, match="no given labels for this model"):
        predictor.probabilities(events, given={"1": 1})


def test_nothing_that_is_fitted_depends_on_later_events():
    rows = table()
    events = from_events(rows, **COLUMNS)
    split = time_split(events)
    entity = np.repeat(np.arange(events.num_entities), events.ptr.diff())
    later = (*split.val, *split.test)
    later_keys = {(int(events.entities[entity[i]]), float(events.time[i])) for i in later}
    is_later = np.array([key in later_keys for key in zip(rows["who"], rows["day"], strict=True)])
    changed = rows.copy()
    changed.loc[is_later, "cost"] = 1e6
    changed.loc[is_later, "item"] = "of no training event"
    changed.loc[is_later, "day"] = 1_000 + 3 * changed.loc[is_later, "day"]
    altered = from_events(changed, **COLUMNS)
    assert time_split(altered) == split
    fitted = [EventPreprocessor(num_bins=4).fit(data, split) for data in (events, altered)]
    states = [to_state(preprocessor) for preprocessor in fitted]
    assert str(states[0]) == str(states[1])
    datasets = [p.transform(data) for p, data in zip(fitted, (events, altered), strict=True)]
    batches = [dataset.batch(split.train) for dataset in datasets]
    for name, value in batches[0].to_dict().items():
        assert torch.equal(value, batches[1][name]), name
    torch.manual_seed(0)
    memory = personal_memory(datasets[0], split.train, 4)
    torch.manual_seed(0)
    for name, value in personal_memory(datasets[1], split.train, 4).state_dict().items():
        assert torch.equal(value, memory.state_dict()[name]), name
    for baseline in BASELINES:
        attributes = [vars(baseline().fit(dataset, split.train)) for dataset in datasets]
        assert attributes[0].keys() == attributes[1].keys() >= {"frequency"}
        for name, value in attributes[0].items():
            np.testing.assert_array_equal(value, attributes[1][name])
    later = fitted[1].transform(altered).batch(split.test)
    assert later.y.sum() == 0
    assert fitted[1].left_out(altered) == {"of no training event": len(split.val) + len(split.test)}


def test_bins_hold_equal_fractions_and_missing_amounts_have_their_own_bin():
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
    training_bins = set(dataset.batch([size]).bin.tolist())
    assert training_bins == set(range(1, dataset.num_bins))
    assert set(dataset.batch([size + 1]).bin.tolist()) <= training_bins


def test_gaps_come_from_training_and_missing_amounts_become_zero():
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


def test_labels_of_other_events_are_matched_by_name():
    events = histories()
    split = time_split(events)
    preprocessor = EventPreprocessor().fit(events, split)
    other = from_events(table(num_entities=1, num_labels=9, num_rows=30, seed=3), **COLUMNS)
    dataset = preprocessor.transform(other)
    assert dataset.label_names == preprocessor.label_names
    expected = [{other.label_names[i] for i in row.nonzero()[0]} for row in other.y.toarray()]
    label_sets = [{dataset.label_names[i] for i in row.nonzero()[0]} for row in dataset.y.toarray()]
    assert label_sets == [row & set(dataset.label_names) for row in expected]


def test_training_entities_have_their_own_index_and_all_others_share_one_index():
    events = histories()
    held_out = events.num_entities - 1
    first_unseen = int(events.ptr[held_out])
    unseen = torch.arange(first_unseen, events.num_events)
    split = Split(torch.arange(first_unseen), unseen[:-1], unseen[-1:], "by entity")
    dataset = EventPreprocessor().fit_transform(events, split)
    assert dataset.num_entities == held_out
    batch = dataset.batch([0, first_unseen - 1, first_unseen, events.num_events - 1])
    assert batch.entity.tolist() == [0, 4, 5, 5]


@pytest.mark.filterwarnings("ignore:3 of 6 entities have fewer")
def test_invalid_options_and_events_are_refused():
    events = histories()
    split, later = time_split(events), events.with_next()
    with pytest.raises(RuntimeError, match="'fit' to be called before 'transform'"):
        EventPreprocessor().transform(events)
    untrained = Split(split.train[:0], torch.arange(events.num_events), split.test[:0], "x")
    fewer = events.with_at_least(int(events.ptr.diff().max()))
    for options in ({"window_size": 0}, {"window_size": 1.5}, {"num_bins": 0}):
        (name,) = options
        with pytest.raises(ValueError, match=f"'{name}' to be a whole number of at least 1"):
            EventPreprocessor(**options)
    for data, parts, message in (
        (events, untrained, "a split with training"),
        (later, time_split(later), r"have a date \(got dateless events of 'with_next'\)"),
        (fewer, split, "'dataset' to hold all samples that 'split' div"),
    ):
        with pytest.raises(ValueError, match=message):
            EventPreprocessor().fit(data, parts)
