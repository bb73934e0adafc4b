from __future__ import annotations

import pytest
import torch

from tg_mlc.data import predefined_split


def test_lists_and_tensors():
    split = predefined_split([3, 0], torch.tensor([1]), [], num_samples=5)
    assert [part.tolist() for part in split.parts] == [[0, 3], [1], []]
    assert split.name == "predefined"
    assert split.report == "2 of 5 samples are in no part"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([0, 1], [1], [2]), "sample 1 more than once"),
        (([0], [1], [5]), "'test' to be below num_samples=5 .got 5"),
        (([-1], [1], [2]), "'train'.*at least 0"),
    ],
)
def test_wrong_indices(parts, message):
    with pytest.raises(ValueError, match=message):
        predefined_split(*parts, num_samples=5)
