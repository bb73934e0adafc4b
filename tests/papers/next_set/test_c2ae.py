from __future__ import annotations

import pytest
import torch

from tests.sequences.batches import NUM_ENTITIES, NUM_LABELS, WINDOW_SIZE, batch
from tg_mlc.papers.next_set.c2ae import C2AE, C2AEObjective, pairwise_loss
from tg_mlc.papers.next_set.rivals import LSTMBaseline

NAN = float("nan")


def test_pairs_one_by_one():
    logits = torch.randn(5, 6, generator=torch.Generator().manual_seed(0)).double()
    rows = [[1, 0, 0, 1, 0, NAN], [1] * 6, [0] * 6, [NAN, 1, NAN, 0, NAN, NAN], [1, 0] * 3]
    y = torch.tensor(rows).double()
    means = []
    for row, target in zip(logits, y, strict=True):
        positive, negative = (row[target == value] for value in (1, 0))
        pairs = (negative[:, None] - positive).exp()
        means += [pairs.mean()] if pairs.numel() else []
    torch.testing.assert_close(pairwise_loss(logits, y), torch.stack(means).mean())


def test_without_any_pair_there_is_nothing_to_learn():
    logits = torch.randn(2, 3, requires_grad=True)
    loss = pairwise_loss(logits, torch.tensor([[1.0, 1.0, NAN], [0.0, 0.0, 0.0]]))
    loss.backward()
    assert loss == 0
    assert not logits.grad.any()


def test_both_encoders_and_the_decoder_learn():
    model = C2AE(NUM_LABELS, NUM_ENTITIES, 8, events={"window_size": WINDOW_SIZE})
    data, objective = batch(32), C2AEObjective()
    objective.check_model(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        losses.append(objective.loss(model, data))
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.7 * losses[0]
    assert all(parameter.grad.any() for parameter in model.parameters())
    assert torch.equal(objective.scores(model, data), model(data).sigmoid())


def test_other_models_have_no_codes():
    with pytest.raises(ValueError, match=r"'model' to be a C2AE \(got LSTMBaseline\)"):
        C2AEObjective().check_model(LSTMBaseline(3, 2))
