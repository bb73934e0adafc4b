import pickle

import numpy as np
import pytest
import torch

from tg_mlc.data.bags import with_attribute
from tg_mlc.inputs.arrays import from_arrays


@pytest.fixture
def whole():
    y = np.random.default_rng(0).integers(0, 2, (20, 3))
    options = {"kind": "vector", "train": range(15), "test": range(15, 20)}
    return from_arrays(np.arange(20.0)[:, None], y, **options)


PARTS = {
    "part": lambda dataset: dataset[:10],
    "copy of a part": lambda dataset: dataset[:10].copy(),
    "copied part": lambda dataset: dataset.copy(range(10)),
    "permuted copy": lambda dataset: dataset.copy(torch.arange(20).flip(0)),
    "shuffled copy": lambda dataset: dataset.shuffle().copy(),
    "copy of a copy": lambda dataset: dataset.copy(range(18)).copy(),
    "part of a copy": lambda dataset: dataset.copy()[3:],
    "unpickled copy": lambda dataset: pickle.loads(pickle.dumps(dataset.copy(range(10)))),
}


@pytest.mark.parametrize("take", PARTS.values(), ids=PARTS)
def test_parts_and_their_copies_have_no_official_split(whole, take):
    with pytest.raises(ValueError, match="a part of a data set"):
        take(whole).official_split()


@pytest.mark.parametrize("take", PARTS.values(), ids=PARTS)
def test_a_part_returns_only_its_samples_and_no_split(whole, take):
    part = take(whole)
    samples = part.samples()
    assert samples.data.x.flatten().tolist() == [data.x.item() for data in part]
    assert (samples.train, samples.test, samples.label_names) == (None, None, whole.label_names)
    if part._indices is None:
        extended = with_attribute(part, "copied_x", part.rows("x"))
        expected = [data.x.item() for data in part]
        assert [data.copied_x.item() for data in extended] == expected
        assert [data.x.item() for data in extended] == expected


def test_a_copy_of_the_whole_keeps_the_split_and_copies_the_samples(whole):
    copied = whole.copy()
    assert copied.official_split() == whole.official_split()
    assert copied.samples().test.tolist() == list(range(15, 20))
    copied.rows("x").zero_()
    assert whole.samples().data.x.sum() > 0
