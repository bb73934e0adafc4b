"""Samples that tests of the papers share."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tg_mlc.data import ArrayDataset
from tg_mlc.data.records import Records


@pytest.fixture
def train():
    """Returns bags of 30 words, none empty, with four labels; the last has two positives."""
    rng = np.random.default_rng(0)
    words = (rng.random((60, 30)) < 0.2).astype(np.float32)
    words[:, 0] = 1.0
    y = (words @ rng.standard_normal((30, 4)) > 0.3).astype(np.float32)
    y[:, 3] = np.arange(60) < 2
    return ArrayDataset(Records(sp.csr_array(words), y, list("abcd")).to_samples())
