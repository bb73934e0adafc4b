import numpy as np
import pytest
from torch_geometric.data import Data

from tg_mlc.data.records import Records
from tg_mlc.data.samples import Samples
from tg_mlc.datasets.base import PublishedTable


class Numbers(PublishedTable):
    def download(self):
        pass

    def read(self):
        x = np.arange(10, dtype=np.float32)[:, None]
        return Records(x, x % 2, ["odd"])


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, data):
        return Data(x=data.x * self.factor, y=data.y)


def test_filters_of_the_same_name_are_not_confused(tmp_path):
    filters = [lambda data: data.x.sum() > 6, lambda data: data.x.sum() <= 6]
    for _ in range(2):
        assert [len(Numbers(tmp_path, pre_filter=function)) for function in filters] == [3, 7]
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]
    assert len(Numbers(tmp_path)) == 10


def test_samples_of_transform_objects_are_cached(tmp_path, monkeypatch):
    doubled, halved = (Numbers(tmp_path, pre_transform=Scale(factor)) for factor in (2.0, 0.5))
    assert (doubled.rows("x").sum(), halved.rows("x").sum()) == (90, 22.5)
    assert doubled.processed_dir != halved.processed_dir
    monkeypatch.setattr(Samples, "save", lambda samples, path: pytest.fail("processed again"))
    assert Numbers(tmp_path, pre_transform=Scale(2.0)).rows("x").sum() == 90
