from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from tg_mlc.nn.encoders import BagEncoder, GivenComponents
from tg_mlc.nn.encoders.components import ptr_of


def test_ptr_of() -> None:
    data = [Data(x=torch.zeros(n, 2)) for n in (3, 0, 2, 0)]
    assert ptr_of(data[0]).tolist() == [0, 3]
    batch = Batch.from_data_list(data)
    assert ptr_of(batch).tolist() == [0, 3, 3, 5, 5]
    del batch.ptr
    assert ptr_of(batch).tolist() == [0, 3, 3, 5, 5]
    assert ptr_of(Data(x=torch.zeros(3, 2), batch=torch.tensor([0, 0, 1]))).tolist() == [0, 2, 3]


NAN = float("nan")


@pytest.fixture
def batch():
    return Batch.from_data_list([Data(x=torch.tensor([0, 2])), Data(x=torch.tensor([], dtype=torch.long))])


def test_each_known_label_is_a_component_of_its_sample(batch):
    encoder = GivenComponents(BagEncoder(3, 4), num_labels=2)
    alone = encoder(batch)
    batch.given = torch.tensor([[NAN, 1.0], [0.0, 1.0]])
    x, ptr, *_ = encoder(batch)
    assert ptr.tolist() == [0, 3, 5]
    assert torch.equal(x[:2], alone.x)
    assert torch.equal(x[2:], encoder.embedding.weight[[3, 0, 3]])


def test_nothing_known_changes_nothing(batch):
    encoder = GivenComponents(BagEncoder(3, 4), num_labels=2)
    alone = encoder(batch)
    batch.given = torch.full((2, 2), NAN)
    assert torch.equal(encoder(batch).x, alone.x)
    assert encoder(batch).ptr.tolist() == alone.ptr.tolist()


def test_rows_of_another_shape_are_refused(batch):
    batch.given = torch.zeros(2, 3)
    with pytest.raises(ValueError, match=r"Expected 'given' of shape \[2, 2\] \(got \[2, 3\]\)"):
        GivenComponents(BagEncoder(3, 4), num_labels=2)(batch)
