from __future__ import annotations

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


def test_samples_of_two_functions_of_one_name_are_kept_apart(tmp_path):
    filters = [lambda data: data.x.sum() > 6, lambda data: data.x.sum() <= 6]
    assert [len(Numbers(tmp_path, pre_filter=keep)) for keep in filters] == [3, 7]
    doubled, halved = (Numbers(tmp_path, pre_transform=scaled(factor)) for factor in (2.0, 0.5))
    assert (doubled.rows("x").sum(), halved.rows("x").sum()) == (90, 22.5)


def scaled(factor):
    return lambda data: Data(x=data.x * factor, y=data.y)


def test_functions_that_keep_count_find_their_samples_again(tmp_path, monkeypatch):
    def load():
        seen = []
        dataset = Numbers(tmp_path, pre_filter=lambda data: seen.append(data.x.item()) or len(seen) > 2)
        return len(dataset), dataset.processed_dir

    first = load()
    monkeypatch.setattr(Samples, "save", lambda samples, path: pytest.fail("processed again"))
    assert load() == first == (8, first[1])
