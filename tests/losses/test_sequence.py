from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tg_mlc.losses import sequence_loss

SYMBOLS = torch.tensor([[1, 0, 3, 3], [3, 3, 3, 3]])  # of two and of no labels
COUNTED = torch.tensor([[True, True, True, False], [True, False, False, False]])


@pytest.fixture
def logits():
    return torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()


@pytest.mark.parametrize("label_smoothing", [0.0, 0.3])
def test_equals_torch_where_all_symbols_may_come(logits, label_smoothing):
    expected = F.cross_entropy(logits[COUNTED], SYMBOLS[COUNTED], label_smoothing=label_smoothing)
    loss = sequence_loss(logits.log_softmax(dim=-1), SYMBOLS, label_smoothing=label_smoothing)
    torch.testing.assert_close(loss, expected)


def test_smoothing_leaves_out_symbols_that_may_not_come(logits):
    excluded = torch.zeros(2, 4, 4, dtype=torch.bool)
    excluded[0, 1, 1] = True
    log_probs = logits.masked_fill(excluded, -torch.inf).log_softmax(dim=-1)
    loss = sequence_loss(log_probs, SYMBOLS, label_smoothing=0.2)
    places = [(0, 0, [0, 1, 2, 3]), (0, 1, [0, 2, 3]), (0, 2, [0, 1, 2, 3]), (1, 0, [0, 1, 2, 3])]
    parts = [
        F.cross_entropy(logits[b, i, kept], torch.tensor(kept.index(SYMBOLS[b, i])), label_smoothing=0.2)
        for b, i, kept in places
    ]
    torch.testing.assert_close(loss, torch.stack(parts).mean())
    loss.backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[0, 1, 1] == 0.0
    assert not logits.grad[~COUNTED].any()


def test_a_smoothing_out_of_range_is_refused(logits):
    with pytest.raises(ValueError, match="'label_smoothing'"):
        sequence_loss(logits, SYMBOLS, label_smoothing=1.0)
