from __future__ import annotations

import pytest
import torch

from tg_mlc.data import random_split


def test_every_sample_is_in_one_part():
    split = random_split(1427)
    assert split.sizes == (1141, 143, 143)
    assert torch.cat(split.parts).sort().values.equal(torch.arange(1427))


def test_the_seed_determines_the_split():
    assert random_split(100, seed=3) == random_split(100, seed=3)
    assert len({random_split(100, seed=seed).hash for seed in range(20)}) == 20


def test_it_is_the_same_in_every_version():
    assert random_split(1427, seed=0).hash == "92f834a220d08cb5260f48b94f4bd359a8c65e0f13ce7ea83cc81061c2f73eaf"


def test_the_parts_are_fair():
    means = torch.stack([random_split(1000, seed=seed).test.float().mean() for seed in range(50)])
    assert abs(means.mean() - 499.5) < 15


def test_a_data_set_is_not_what_it_takes():
    with pytest.raises(ValueError, match=r"'num_samples' to be a whole number \(got object\).*of a data set take"):
        random_split(object())
