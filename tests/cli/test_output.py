from __future__ import annotations

import json
import math

import pytest

from tg_mlc.cli._output import show


def test_what_json_lacks_is_null(capsys):
    show(
        {"threshold": math.inf, "values": [-math.inf, math.nan, 0.5], "name": "ü"}, "", as_json=True
    )
    printed = capsys.readouterr().out
    assert json.loads(printed, parse_constant=pytest.fail) == {
        "threshold": None,
        "values": [None, None, 0.5],
        "name": "ü",
    }
    assert "ü" in printed
