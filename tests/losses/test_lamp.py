from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from tg_mlc.losses import asymmetric_loss, focal_loss, lamp_loss, masked_bce, soft_f1_loss

NAN = float("nan")


def test_lamp_loss_adds_weighted_intermediate_terms(logits, y):
    others = [logits * 2, logits - 1]
    expected = masked_bce(logits, y) + 0.3 * (masked_bce(others[0], y) + masked_bce(others[1], y))
    torch.testing.assert_close(lamp_loss(logits, y, others, 0.3), expected)
    torch.testing.assert_close(lamp_loss(logits, y, others), masked_bce(logits, y))
    torch.testing.assert_close(lamp_loss(logits, y, (), 0.3), masked_bce(logits, y))


def test_lamp_loss_passes_its_options_to_every_term(logits, y):
    options = {"pos_weight": 2.0, "label_smoothing": 0.1}
    expected = masked_bce(logits, y, **options) + 0.2 * masked_bce(logits * 2, y, **options)
    torch.testing.assert_close(lamp_loss(logits, y, [logits * 2], 0.2, **options), expected)


@pytest.mark.parametrize("loss", [focal_loss, asymmetric_loss, partial(soft_f1_loss, average="micro")])
def test_terms_may_be_any_loss(logits, y, loss):
    expected = loss(logits, y, label_smoothing=0.1) + 0.2 * loss(logits * 2, y, label_smoothing=0.1)
    torch.testing.assert_close(lamp_loss(logits, y, [logits * 2], 0.2, loss=loss, label_smoothing=0.1), expected)


def test_nothing_known_is_zero_with_zero_gradient(logits):
    loss = lamp_loss(logits, torch.full((3, 3), NAN), [logits * 2], 0.5, pos_weight=2.0, label_smoothing=0.1)
    loss.backward()
    assert loss.item() == 0.0
    assert (logits.grad == 0).all()


def test_compiles_without_graph_breaks(logits, y):
    compiled = torch.compile(lamp_loss, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(logits, y, [logits], 0.2), lamp_loss(logits, y, [logits], 0.2))


def test_errors(logits, y):
    with pytest.raises(ValueError, match="one shape"):
        lamp_loss(logits, y, [logits[:1]], 0.1)
    for weight in (-0.1, NAN, math.inf):
        with pytest.raises(ValueError, match="intermediate_weight"):
            lamp_loss(logits, y, [logits], weight)
