"""Each row of a request is answered as if it were alone, whatever stands beside it."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.serving.conftest import COLOURS, post

ages = st.one_of(st.integers(0, 99), st.floats(0, 99), st.integers(0, 99).map(str), st.booleans())
heights = st.floats(40, 99).map(lambda height: round(height, 2))
colours = st.sampled_from([*COLOURS, "RED", " blue ", "purple", "", None, 3])
complete = st.fixed_dictionaries(
    {"age": ages, "height": heights, "colour": colours}, optional={"id": st.text()}
)


WRONG = ["empty", "misspelt", "lacking", "twice", "word", "blank", "list", "no row"]


@st.composite
def broken_rows(draw):
    """A row that cannot be read."""
    row = draw(complete)
    wrong = draw(st.sampled_from(WRONG))
    if wrong == "empty":
        return {}
    if wrong == "no row":
        return draw(st.sampled_from([None, "red", 3, [], [1.0], [[1.0]]]))
    if wrong == "misspelt":
        return {**row, "heigth": row.pop("height")}
    if wrong == "lacking":
        return {"colour": row["colour"]}
    if wrong == "twice":
        return {**row, "Age ": 3}
    cells = {"word": "fast", "blank": None, "list": [1]}
    return {**row, draw(st.sampled_from(["age", "height"])): cells[wrong]}


def results(answer):
    """The results of a request, the same ones where it is refused as a whole."""
    return answer.json()["results"]


def check_equal(found, expected):
    assert found.keys() == expected.keys()
    if "error" in expected:
        assert found == expected
        return
    pairs = [[*each["probability"].values()] for each in (found, expected)]
    np.testing.assert_allclose(*pairs, atol=1e-6)
    assert found["decision"] == expected["decision"]


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_rows_are_answered_as_if_they_were_alone(data, ask, models):
    rows = data.draw(st.lists(st.one_of(complete, complete, broken_rows()), min_size=1, max_size=6))
    alone = [results(ask(post("table", inputs=[row]))[0])[0] for row in rows]
    [together] = ask(post("table", inputs=rows))
    for found, expected in zip(results(together), alone, strict=True):
        check_equal(found, expected)
    clients = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    parts = [[row for row in range(len(rows)) if clients[row] == client] for client in {*clients}]
    inputs = [[rows[row] for row in part] for part in parts]
    answers = ask(*(post("table", inputs=each) for each in inputs))
    for part, each, answer in zip(parts, inputs, answers, strict=True):
        for row, found in zip(part, results(answer), strict=True):
            check_equal(found, alone[row])
        assert answer.json()["warnings"] == [*models["table"].answer(each).warnings]
