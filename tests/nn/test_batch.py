import re

import pytest
import torch
from torch_geometric.data import Batch, Data

from tg_mlc.nn._batch import check_components, to_ptr

X = torch.zeros(5, 2)


def test_batch_and_ptr_give_the_same_pointers():
    ptr = torch.tensor([0, 2, 2, 5])
    assert to_ptr(X, None, ptr, None) is to_ptr(X, None, ptr, None, 3) is ptr
    assert torch.equal(to_ptr(X, torch.tensor([0, 0, 2, 2, 2]), None, None), ptr)
    assert to_ptr(X, torch.tensor([0, 0, 2, 2, 2]), None, 5).tolist() == [0, 2, 2, 5, 5, 5]
    assert to_ptr(X, None, None, None).tolist() == [0, 5]
    assert to_ptr(X[:0], torch.zeros(0, dtype=torch.long), None, 2).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batch": torch.zeros(5).long(), "ptr": torch.tensor([0, 5])}, ValueError, "got both"),
        ({"batch": torch.tensor([0, 1, 0, 1, 1])}, ValueError, "'batch' in ascending order from 0"),
        ({"batch": torch.tensor([-1, 0, 0, 1, 1])}, ValueError, "'batch' in ascending order from"),
        ({"batch": torch.zeros(4).long()}, ValueError, "'batch' of shape [5], as 'x' has rows"),
        ({"batch": torch.zeros(5).int()}, TypeError, "'batch' to be a tensor of torch.long"),
        ({"batch": [0] * 5}, TypeError, "'batch' to be a tensor of torch.long (got list)"),
        ({"batch": torch.tensor([0, 0, 1, 1, 2]), "batch_size": 2}, ValueError, "got 2 and 2"),
        ({"x": X[:0], "batch": torch.zeros(0).long()}, ValueError, "'batch_size' beside an empty"),
        ({"ptr": torch.tensor([0, 4])}, ValueError, "'ptr' to end at the number of rows, 5"),
        ({"ptr": torch.tensor([0, 5]).int()}, TypeError, "'ptr' to hold torch.long"),
        ({"ptr": torch.tensor([0, 2, 5]), "max_num_nodes": 2}, ValueError, "'max_num_nodes' to be"),
    ],
)
def test_invalid_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        to_ptr(**{"x": X, "batch": None, "ptr": None, "batch_size": None, **arguments})


def test_invalid_states_of_components_are_refused():
    check_components(X)
    for x, error, message in (
        (torch.zeros(2, 5, 3), ValueError, r"'x' of shape \[N, channels\].*\(got \[2, 5, 3\]\)"),
        (Batch.from_data_list([Data(x=X)]), TypeError, r"\(got DataBatch\); pass a batch as its"),
        (X.numpy(), TypeError, r"'x' to be a tensor \(got ndarray\)$"),
    ):
        with pytest.raises(error, match=message):
            check_components(x)
