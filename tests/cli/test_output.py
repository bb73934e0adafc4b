from __future__ import annotations

import json
import math
import shlex

import pytest

from tg_mlc._options import SPELLING, argument
from tg_mlc.cli._output import option, show


def test_numbers_that_json_lacks_become_null(capsys):
    values = {"threshold": math.inf, "values": [-math.inf, math.nan, 0.5], "name": "ü"}
    show(values, "", as_json=True)
    printed = capsys.readouterr().out
    expected = {"threshold": None, "values": [None, None, 0.5], "name": "ü"}
    assert json.loads(printed, parse_constant=pytest.fail) == expected
    assert "ü" in printed


@pytest.mark.parametrize(
    ("name", "value", "in_python", "words"),
    [
        ("label_columns", [], "'label_columns'", ["--labels"]),
        ("smiles_column", ["it's"], 'smiles_column="it\'s"', ["--smiles", "it's"]),
        ("ignore", [["a"]], "ignore=['a']", ["--ignore", "a"]),
        ("ignore", [["a, b"]], "ignore=['a, b']", ["--ignore", '["a, b"]']),
        ("max_lost", [0.25], "max_lost=0.25", ["--max_lost", "0.25"]),
    ],
)
def test_options_are_spelled_as_in_python_or_on_the_command_line(name, value, in_python, words):
    assert argument(name, *value) == in_python
    token = SPELLING.set(option)
    assert shlex.split(argument(name, *value)) == words
    SPELLING.reset(token)
