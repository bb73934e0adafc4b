from __future__ import annotations

import pytest
import torch

from tg_mlc.nn.encoders import CategoricalEmbedding


def test_sum_of_embeddings() -> None:
    embedding = CategoricalEmbedding([3, 2, 4], 8)
    assert embedding.weight.size() == (9, 8)
    out = embedding(torch.tensor([[2, 0, 3], [0, 1, 0]]))
    torch.testing.assert_close(out[0], embedding.weight[[2, 3, 8]].sum(dim=0))
    torch.testing.assert_close(out[1], embedding.weight[[0, 4, 5]].sum(dim=0))
    assert embedding(torch.zeros(0, 3, dtype=torch.long)).size() == (0, 8)
    assert list(embedding.state_dict()) == ["weight"]


def test_unit_variance() -> None:
    torch.manual_seed(0)
    out = CategoricalEmbedding([50, 50, 50], 200)(torch.randint(0, 50, (100, 3)))
    assert out.std().item() == pytest.approx(1.0, abs=0.05)


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"categorical features of shape \[N, 2\] \(got \[4, 3\]\)"):
        CategoricalEmbedding([3, 2], 8)(torch.zeros(4, 3, dtype=torch.long))
