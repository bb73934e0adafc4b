from __future__ import annotations

import logging
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T

from tg_mlc.data.samples import settings_key


class Marker:
    def __init__(self, number):
        self.number = number

    def __call__(self, data):
        return self.number


class Slots:
    __slots__ = ("number",)


# No two of these do the same.
DIFFERENT = {
    "nothing": None,
    "a number": 1,
    "another kind of number": 1.0,
    "a word": "1",
    "a list": [1, "a"],
    "another list": [1, "b"],
    "a set": {"a", "b", "c"},
    "another set": {"a", "b", "d"},
    "an object": Marker(1),
    "another object": Marker(2),
    "an object in an object": Marker(Marker(1)),
    "another object in one": Marker(Marker(2)),
    "a transform": T.AddLaplacianEigenvectorPE(4),  # which prints itself without its number
    "another transform": T.AddLaplacianEigenvectorPE(8),
    "transforms": T.Compose([T.ToUndirected(), T.AddLaplacianEigenvectorPE(4)]),
    "other transforms": T.Compose([T.ToUndirected(), T.AddLaplacianEigenvectorPE(8)]),
    "a tensor": torch.arange(2_000),
    "another tensor": torch.arange(2_000).index_fill(0, torch.tensor([1_000]), 0),
    "an array": np.arange(2_000) * 2,
    "another array": np.arange(2_000) * 3,
    "a pattern": re.compile("a"),
    "another pattern": re.compile("b"),
    "a class": Marker,
    "a function of C": len,
    "bytes": b"a",
}


def test_settings_that_differ_have_keys_that_differ():
    keys = {name: settings_key(setting) for name, setting in DIFFERENT.items()}
    assert None not in keys.values()
    assert len(set(keys.values())) == len(DIFFERENT)


@pytest.mark.parametrize(
    "setting",
    [
        lambda data: data.y.sum() > 2,
        partial(max, key=lambda data: data.y.sum()),
        Marker(lambda data: True),
        Marker(1).__call__,
        T.Compose([lambda data: data]),
        Slots(),
        logging.getLogger(__name__),  # which leads to itself
    ],
)
def test_what_functions_do_is_not_known(setting):
    assert settings_key(1, setting) is None


def test_keys_are_the_same_in_every_run():
    """In whatever order sets are, and wherever values lie."""
    print_all = "from tests.data.test_settings import *; print({k: settings_key(v) for k, v in DIFFERENT.items()})"
    done = subprocess.run([sys.executable, "-c", print_all], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == f"{ {name: settings_key(setting) for name, setting in DIFFERENT.items()} }\n"
