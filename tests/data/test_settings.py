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

from tg_mlc.data._settings import describe

LIMIT, KEPT = 3, {"a", "b", "c"}
logger = logging.getLogger(__name__)


def is_long(words, limit=2):
    return len(words) > limit


def above(limit):
    return lambda data: data.y.sum() > limit


def counting_down():
    def count(number):
        return 0 if number == 0 else count(number - 1)

    return count


class Marker:
    def __init__(self, number):
        self.number, self.log = number, logger

    def __call__(self, data):
        return self.number

    def mark(self, data):
        return self.number


class Other:
    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number


# No two of these do the same.
DIFFERENT = {
    "a label": lambda data: data.y.sum() > 2,
    "the other way": lambda data: data.y.sum() <= 2,
    "another number": lambda data: data.y.sum() > 3,
    "another attribute": lambda data: data.x.sum() > 2,
    "what is inside": lambda data: [word for word in data.x if word > 2],
    "what is inside it": lambda data: [word for word in data.x if word > 3],
    "a set": lambda data: data.name in {"a", "b"},
    "another set": lambda data: data.name in {"a", "c"},
    "around it": above(2),
    "around it, other": above(3),
    "a default": lambda data, limit=2: data.y.sum() > limit,
    "another default": lambda data, limit=3: data.y.sum() > limit,
    "a part": partial(is_long, limit=3),
    "another part": partial(is_long, limit=4),
    "an object": Marker(1),
    "another object": Marker(2),
    "a method": Marker(1).mark,
    "another method": Marker(2).mark,
    "slots": Other(1),
    "other slots": Other(2),
    "a transform": T.AddLaplacianEigenvectorPE(4),
    "another transform": T.AddLaplacianEigenvectorPE(8),
    "transforms": T.Compose([T.ToUndirected(), T.AddLaplacianEigenvectorPE(4)]),
    "a tensor": torch.arange(2_000),
    "another tensor": torch.arange(2_000).index_fill(0, torch.tensor([1_000]), 0),
    "an array": np.arange(2_000),
    "another array": np.arange(2_000) * 2,
    "a sparse tensor": torch.eye(2).to_sparse(),
    "another sparse tensor": torch.zeros(2, 2).to_sparse(),
    "a pattern": re.compile("a").search,
    "another pattern": re.compile("b").search,
    "a function of C": len,
    "another function of C": abs,
    "a module": np,
    "one that calls itself": counting_down(),
    "a class": Marker,
    "bytes": b"a",
    "a generator": (number for number in range(3)),
}


def test_what_does_something_else_is_described_otherwise():
    descriptions = {name: describe(setting) for name, setting in DIFFERENT.items()}
    assert len(set(descriptions.values())) == len(DIFFERENT)


@pytest.mark.parametrize(
    ("name", "value", "uses"),
    [
        ("LIMIT", 4, lambda data: data.y.sum() > LIMIT),
        ("KEPT", {"a"}, lambda data: [word for word in data.words if word in KEPT]),
        ("is_long", lambda words: len(words) > 5, lambda data: is_long(data.words)),
    ],
)
def test_what_a_function_takes_from_its_module_counts(monkeypatch, name, value, uses):
    before = describe(uses)
    assert describe(uses) == before
    if callable(value):
        value.__module__ = __name__
    monkeypatch.setitem(globals(), name, value)
    assert describe(uses) != before


def test_settings_alone_are_described_as_they_are_printed():
    assert describe((False, [1, "a"], None)) == "(False, [1, 'a'], None)"


def test_descriptions_are_the_same_in_every_run():
    """In whatever order sets are, and wherever values lie."""
    print_all = "from tests.data.test_settings import *; print({k: describe(v) for k, v in DIFFERENT.items()})"
    done = subprocess.run([sys.executable, "-c", print_all], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == f"{ {name: describe(setting) for name, setting in DIFFERENT.items()} }\n"
