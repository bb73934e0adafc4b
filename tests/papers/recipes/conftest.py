"""A small data set of bags of words, for recipes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tg_mlc.data import ArrayDataset, Split
from tg_mlc.data.records import Records

rng = np.random.default_rng(0)
WORDS = (rng.random((40, 12)) < 0.4).astype(np.float32)
Y = (WORDS @ rng.standard_normal((12, 4)) > 0.3).astype(np.float32)
FEW = Split(torch.arange(24), torch.arange(24, 32), torch.arange(32, 40), "by hand")


@pytest.fixture
def dataset():
    return ArrayDataset(Records(sp.csr_array(WORDS), Y, ["TAG_cat", "b", "c", "d"]).to_samples())
