"""Each row of a request gets the answer that the row would get alone."""

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


FAULTS = ["empty", "misspelt", "lacking", "twice", "word", "blank", "list", "no row"]


@st.composite
def broken_rows(draw):
    """Draws a row that cannot be read."""
    row = draw(complete)
    error = draw(st.sampled_from(FAULTS))
    if error == "empty":
        return {}
    if error == "no row":
        return draw(st.sampled_from([None, "red", 3, [], [1.0], [[1.0]]]))
    if error == "misspelt":
        return {**row, "heigth": row.pop("height")}
    if error == "lacking":
        return {"colour": row["colour"]}
    if error == "twice":
        return {**row, "Age ": 3}
    cells = {"word": "fast", "blank": None, "list": [1]}
    return {**row, draw(st.sampled_from(["age", "height"])): cells[error]}


def results(answer):
    """Returns the results of a request, also where the whole request is refused."""
    return answer.json()["results"]


def check_equal(actual, expected):
    assert actual.keys() == expected.keys()
    if "error" in expected:
        assert actual == expected
        return
    pairs = [[*result["probability"].values()] for result in (actual, expected)]
    np.testing.assert_allclose(*pairs, atol=1e-6)
    assert actual["decision"] == expected["decision"]


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_answers_do_not_depend_on_other_rows(data, ask, models):
    rows = data.draw(st.lists(st.one_of(complete, complete, broken_rows()), min_size=1, max_size=6))
    alone = [results(ask(post("table", inputs=[row]))[0])[0] for row in rows]
    [together] = ask(post("table", inputs=rows))
    for result, expected in zip(results(together), alone, strict=True):
        check_equal(result, expected)
    clients = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    groups = [[row for row in range(len(rows)) if clients[row] == client] for client in {*clients}]
    inputs = [[rows[row] for row in group] for group in groups]
    answers = ask(*(post("table", inputs=batch) for batch in inputs))
    for group, batch, answer in zip(groups, inputs, answers, strict=True):
        for row, result in zip(group, results(answer), strict=True):
            check_equal(result, alone[row])
        assert answer.json()["warnings"] == [*models["table"].answer(batch).warnings]
