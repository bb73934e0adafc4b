from __future__ import annotations

import pytest
import torch

from tests.sequences.batches import NUM_BINS, NUM_LABELS, WINDOW_SIZE, batch
from tg_mlc.sequences.windows import WindowViews, events_of, occurrences


def views(**options):
    torch.manual_seed(0)
    window = {"window_size": WINDOW_SIZE, "num_bins": NUM_BINS, "gaps": range(31)}
    return WindowViews(NUM_LABELS, 4, **{**window, **options})


def test_unseen_gaps_have_the_embedding_of_the_next_smaller_gap():
    time = views(gaps=[0, 7, 21]).time
    expected = time.days.weight[[0, 0, 0, 1, 1, 2, 2]] + time.position.weight[0]
    days = torch.tensor([-3.0, 0.0, 6.0, 7.0, 20.9, 21.0, 5000.0])
    assert torch.equal(time(days, torch.zeros(7, dtype=torch.long)), expected)


def test_events_before_the_window_are_skipped():
    layer, data = views(window_size=2), batch()
    expected = layer.by_label(data)
    in_window = data.position <= 2
    assert not in_window.all()
    for name in ("sample", "label", "position", "dt", "bin", "amount"):
        data[name] = data[name][in_window]
    assert torch.equal(layer.by_label(data), expected)


def test_absent_labels_may_be_marked():
    layer, data = views(absence=True), batch()
    marked, plain = layer.by_label(data), views().by_label(data)  # with the same seed
    present = torch.zeros(data.num_graphs, NUM_LABELS, dtype=torch.bool)
    present[data.sample, data.label] = True
    torch.testing.assert_close(marked, plain + ~present.unsqueeze(-1) * layer.absent)


def test_events_are_in_the_order_of_time():
    data = batch()
    event, ptr = events_of(occurrences(data, WINDOW_SIZE), data.num_graphs, WINDOW_SIZE)
    assert ptr.tolist()[:2] == [0, 0]  # The first sample has no history.
    keys = list(zip(data.sample.tolist(), (-data.position).tolist(), strict=True))
    pairs = sorted(set(keys))
    assert [pairs[index] for index in event.tolist()] == keys
    assert ptr[-1] == len(pairs)


@pytest.mark.parametrize(
    "options", [{"window_size": 0}, {"num_bins": 0}, {"time": False, "amount": False}]
)
def test_options_are_checked(options):
    with pytest.raises(ValueError, match="Expected '"):
        views(**options)
