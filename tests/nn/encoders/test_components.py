from __future__ import annotations

import torch
from torch_geometric.data import Batch, Data

from tg_mlc.nn.encoders.components import ptr_of


def test_ptr_of() -> None:
    data = [Data(x=torch.zeros(n, 2)) for n in (3, 0, 2, 0)]
    assert ptr_of(data[0]).tolist() == [0, 3]
    batch = Batch.from_data_list(data)
    assert ptr_of(batch).tolist() == [0, 3, 3, 5, 5]
    del batch.ptr
    assert ptr_of(batch).tolist() == [0, 3, 3, 5, 5]
    assert ptr_of(Data(x=torch.zeros(3, 2), batch=torch.tensor([0, 0, 1]))).tolist() == [0, 2, 3]
