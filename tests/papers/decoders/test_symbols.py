from __future__ import annotations

import pytest
import torch

from tg_mlc.papers.decoders.symbols import label_ranks, label_sequences, next_log_probs, shifted

NAN = torch.nan
Y = torch.tensor([[1, 0, 1, 1], [NAN, 0, 1, 1], [1, 0, 0, 1.0]])


@pytest.mark.parametrize(
    ("order", "ranks"), [("frequency", [1, 3, 2, 0]), ("reverse", [1, 0, 2, 3]), ("given", [0, 1, 2, 3])]
)
def test_ranks(order, ranks):
    assert label_ranks(Y, order).tolist() == ranks


def test_a_random_order_follows_the_seed():
    torch.manual_seed(0)
    first, second = label_ranks(torch.zeros(1, 100), "random"), label_ranks(torch.zeros(1, 100), "random")
    torch.manual_seed(0)
    assert torch.equal(label_ranks(torch.zeros(1, 100), "random"), first)
    assert not torch.equal(first, second)
    assert first.sort().values.tolist() == list(range(100))


def test_an_unknown_order_is_refused():
    with pytest.raises(ValueError, match=r"'label_order' to be one of .*got 'alphabetical'"):
        label_ranks(Y, "alphabetical")


def test_sequences_hold_known_positives_in_order_and_then_stops():
    ranks = torch.tensor([2, 0, 1, 3])
    assert label_sequences(Y, ranks).tolist() == [[2, 0, 3, 4], [2, 3, 4, 4], [0, 3, 4, 4]]
    assert label_sequences(torch.zeros(2, 3), torch.arange(3)).tolist() == [[3], [3]]
    assert label_sequences(torch.ones(1, 3), torch.tensor([1, 2, 0])).tolist() == [[2, 0, 1, 3]]


def test_symbols_are_shifted_behind_the_stop_that_begins_them():
    assert shifted(torch.tensor([[2, 0, 4], [1, 4, 4]]), 4).tolist() == [[4, 2, 0], [4, 1, 4]]


def test_probabilities_leave_out_labels_that_came_before_and_unknown_ones():
    logits = torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(0))
    symbols = torch.tensor([[1, 0, 3]])
    probs = next_log_probs(logits, symbols, torch.tensor([[False, False, True]])).exp()
    assert (probs > 0).tolist() == [
        [[True, True, False, True], [True, False, False, True], [False, False, False, True]]
    ]
    torch.testing.assert_close(probs.sum(dim=-1), torch.ones(1, 3))
    torch.testing.assert_close(probs[0, 0, [0, 1, 3]], logits[0, 0, [0, 1, 3]].softmax(dim=0))
