"""One prediction reads top to bottom: it enters few functions of the package, in few files, not deep."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import tg_mlc
from tests.quick import train_little
from tg_mlc.inputs.molecules import EXAMPLES, Molecules

ROOT = str(Path(tg_mlc.__file__).parent)
#: Functions (comprehensions among them, which Python 3.11 counts), files and frames. Attention and its operator, for
#: any pattern of edges, take about half of them.
MOST = (205, 51, 17)


def entered(call):
    """The numbers of functions and files of the package that a call enters, and of its frames at a time."""
    functions, stack, deepest = set(), [], 0

    def watch(frame, event, _):
        nonlocal deepest
        if not frame.f_code.co_filename.startswith(ROOT):
            return
        if event == "call":
            functions.add(
                (frame.f_code.co_filename, frame.f_code.co_name, frame.f_code.co_firstlineno)
            )
            stack.append(frame)
            deepest = max(deepest, len(stack))
        elif event == "return":
            stack.pop()

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(functions), len({path for path, *_ in functions}), deepest


def test_a_prediction_of_the_default_of_molecules(monkeypatch):
    pytest.importorskip("rdkit")
    train_little(monkeypatch, max_epochs=1)
    y = [[row % 2, row % 3 == 0] for row in range(40)]
    model = tg_mlc.auto(
        Molecules.samples([*EXAMPLES, *EXAMPLES], np.array(y, np.float32), ["a", "b"]), seconds=60
    )
    assert model.networks
    model.predict(["CCO"])
    found = entered(lambda: model.predict(["CCO"]))
    assert all(number <= most for number, most in zip(found, MOST, strict=True)), found
