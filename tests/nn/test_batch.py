from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from tg_mlc.nn._batch import check_components, to_ptr

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
    with pytest.raises(ValueError, match=r"'batch' of shape \[5\], as 'x' has rows \(got \[4\]\)"):
        to_ptr(X, torch.zeros(4, dtype=torch.long), None, None)
    with pytest.raises(TypeError, match=r"'batch' to be a tensor of torch.long \(got torch.int32\)"):
        to_ptr(X, torch.zeros(5, dtype=torch.int), None, None)
    with pytest.raises(TypeError, match=r"'batch' to be a tensor of torch.long \(got list\)"):
        to_ptr(X, [0] * 5, None, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'batch' to be less than 'batch_size' \(got 2 and 2\)"):
        to_ptr(X, torch.tensor([0, 0, 1, 1, 2]), None, 2)
    with pytest.raises(ValueError, match=r"'batch_size' beside an empty 'batch'"):
        to_ptr(X[:0], torch.zeros(0, dtype=torch.long), None, None)
    with pytest.raises(ValueError, match=r"'ptr' to end at the number of rows, 5 \(got 4\)"):
        to_ptr(X, None, torch.tensor([0, 4]), None)
    with pytest.raises(TypeError, match=r"'ptr' to hold torch.long"):
        to_ptr(X, None, torch.tensor([0, 5]).int(), None)


def test_states_of_components() -> None:
    check_components(X)
    with pytest.raises(ValueError, match=r"'x' of shape \[N, channels\], a row for each component \(got \[2, 5, 3\]\)"):
        check_components(torch.zeros(2, 5, 3))
    with pytest.raises(TypeError, match=r"\(got DataBatch\); pass a batch as its 'x' and its 'batch'"):
        check_components(Batch.from_data_list([Data(x=X)]))
    with pytest.raises(TypeError, match=r"'x' to be a tensor \(got ndarray\)$"):
        check_components(X.numpy())


def test_the_largest_sample_is_checked() -> None:
    ptr = torch.tensor([0, 2, 5])
    assert to_ptr(X, None, ptr, None, 3) is ptr
    with pytest.raises(ValueError, match=r"'max_num_nodes' to be at least 3, the components of the largest sample"):
        to_ptr(X, None, ptr, None, 2)
