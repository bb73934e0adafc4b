from __future__ import annotations

import pytest
import torch

from tg_mlc.nn._batch import to_ptr

X = torch.zeros(5, 2)


def test_batch_and_ptr_say_the_same() -> None:
    ptr = torch.tensor([0, 2, 2, 5])
    assert to_ptr(X, None, ptr, None) is ptr
    assert torch.equal(to_ptr(X, torch.tensor([0, 0, 2, 2, 2]), None, None), ptr)
    assert to_ptr(X, torch.tensor([0, 0, 2, 2, 2]), None, 5).tolist() == [0, 2, 2, 5, 5, 5]
    assert to_ptr(X, None, None, None).tolist() == [0, 5]
    assert to_ptr(X[:0], torch.zeros(0, dtype=torch.long), None, 2).tolist() == [0, 0, 0]


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"either 'batch' or 'ptr' \(got both\)"):
        to_ptr(X, torch.zeros(5, dtype=torch.long), torch.tensor([0, 5]), None)
    with pytest.raises(ValueError, match=r"'batch' in ascending order from 0, as a PyG Batch has it"):
        to_ptr(X, torch.tensor([0, 1, 0, 1, 1]), None, None)
    with pytest.raises(ValueError, match=r"'batch' in ascending order from 0"):
        to_ptr(X, torch.tensor([-1, 0, 0, 1, 1]), None, None)
    with pytest.raises(ValueError, match=r"'batch' of shape \[5\] in torch.long \(got \[4\] in torch.int64\)"):
        to_ptr(X, torch.zeros(4, dtype=torch.long), None, None)
    with pytest.raises(ValueError, match=r"'batch' of shape \[5\] in torch.long \(got \[5\] in torch.int32\)"):
        to_ptr(X, torch.zeros(5, dtype=torch.int), None, None)
    with pytest.raises(ValueError, match=r"'batch' to be less than 'batch_size' \(got 2 and 2\)"):
        to_ptr(X, torch.tensor([0, 0, 1, 1, 2]), None, 2)
    with pytest.raises(ValueError, match=r"'batch_size' beside an empty 'batch'"):
        to_ptr(X[:0], torch.zeros(0, dtype=torch.long), None, None)
    with pytest.raises(ValueError, match=r"'ptr' to end at the number of rows, 5 \(got 4\)"):
        to_ptr(X, None, torch.tensor([0, 4]), None)
    with pytest.raises(TypeError, match=r"'ptr' to hold torch.long"):
        to_ptr(X, None, torch.tensor([0, 5]).int(), None)
