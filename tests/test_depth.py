"""One prediction reads top to bottom: it enters few functions of the package, in few files."""

import sys
from pathlib import Path

import numpy as np
import pytest

import tg_mlc
from tests.quick import train_little
from tg_mlc.inputs.molecules import EXAMPLES, Molecules

ROOT = str(Path(tg_mlc.__file__).parent)
#: The most functions (with comprehensions, which Python 3.11 counts), files, and frames at a time.
#: Attention and its operator, for any pattern of edges, take about half of the functions.
LIMITS = (200, 50, 17)


def count_entered(call):
    """Returns the number of functions and files of the package that a call enters, and the largest
    number of their frames at a time.
    """
    functions, stack, deepest = set(), [], 0

    def watch(frame, event, _):
        nonlocal deepest
        code = frame.f_code
        if not code.co_filename.startswith(ROOT):
            return
        if event == "call":
            functions.add((code.co_filename, code.co_name, code.co_firstlineno))
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


def test_a_prediction_of_molecules_enters_few_functions(monkeypatch):
    pytest.importorskip("rdkit")
    train_little(monkeypatch, max_epochs=1)
    y = np.array([[row % 2, row % 3 == 0] for row in range(40)], np.float32)
    samples = Molecules.samples([*EXAMPLES, *EXAMPLES], y, ["a", "b"])
    model = tg_mlc.auto(samples, seconds=60)
    assert model.networks
    model.predict(["CCO"])
    numbers = count_entered(lambda: model.predict(["CCO"]))
    assert all(number <= limit for number, limit in zip(numbers, LIMITS, strict=True)), numbers
