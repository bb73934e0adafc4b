from __future__ import annotations

import pytest
import torch

NAN = float("nan")


@pytest.fixture
def y():
    return torch.tensor([[1.0, 0.0, NAN], [NAN, 1.0, 1.0], [NAN, NAN, NAN]])


@pytest.fixture
def logits():
    return torch.randn(3, 3, generator=torch.Generator().manual_seed(0)).double().requires_grad_()
