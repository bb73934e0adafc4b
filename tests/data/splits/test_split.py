from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch

from tg_mlc.data import Split


def make(train=(4, 0), val=(2,), test=(1, 3), name="mine", report=None):
    return Split(torch.tensor(train), torch.tensor(val), torch.tensor(test), name, report)


def test_parts_are_sorted_long_tensors():
    split = make()
    assert split.train.tolist() == [0, 4]
    assert all(part.dtype == torch.long for part in split.parts)
    assert split.sizes == (2, 1, 2)
    assert split.num_samples == 5


def test_from_assignment():
    split = Split.from_assignment(np.array([0, 2, 1, 2, 0]), "mine")
    assert split == make()
    assert split.report is None


def test_the_hash_depends_on_the_contents_only():
    assert make().hash == make(train=(0, 4), name="other", report="text").hash
    others = [make(train=(0,)), make(val=(4,), train=(0, 2)), make(train=(2,), val=(4, 0)), make(test=(1, 5))]
    assert len({make().hash, *(split.hash for split in others)}) == 5


def test_the_hash_never_changes():
    assert make().hash == "9b77b5ae019df19a5cb8f0a72c5a720dbc68e0fe3fe8b7459c96ecde092ff1cf"


def test_equality_and_repr():
    assert make() == make(name="other")
    assert hash(make()) == hash(make())
    assert make() != make(train=(0,))
    assert make() != "split"
    assert repr(make()) == f"Split(name='mine', train=2, val=1, test=2, hash='{make().hash[:12]}')"


def test_it_is_frozen():
    with pytest.raises(FrozenInstanceError):
        make().train = torch.tensor([1])


def test_it_fits_the_samples_that_it_was_made_of(recwarn):
    split = make(train=(0, 3), val=(1,), test=(2, 4))
    split.check_fits(5)
    assert not recwarn
    with pytest.raises(ValueError, match=r"'y' to hold all samples .* \(got 4 samples, and sample 4 in the split\)"):
        split.check_fits(4, "'y'")
    with pytest.warns(UserWarning, match="leaves out 2 of 7 samples of 'dataset'"):
        split.check_fits(7)


def test_parts_may_be_empty():
    assert Split(torch.arange(3), torch.tensor([]), torch.tensor([]), "all").sizes == (3, 0, 0)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"val": (4,)}, r"sample 4 more than once, in \['train', 'val'\]"),
        ({"train": (0, 0)}, r"sample 0 more than once, in \['train'\]"),
        ({"test": (-1,)}, "'test'.*at least 0.*got -1"),
        ({"test": (0.5,)}, "'test'.*integers"),
        ({"test": (True, False)}, "'test'.*integers"),
        ({"test": ((1, 3),)}, r"'test'.*one-dimensional.*\[1, 2\]"),
    ],
)
def test_wrong_parts(parts, message):
    with pytest.raises(ValueError, match=message):
        make(**parts)
