"""Tests suggestions and audits of the server by HTTP requests."""

from __future__ import annotations

import numpy as np
import pytest

from tests.serving.conftest import LABELS, joint, post, post_csv
from tg_mlc.serving import Limits

X, Y = joint(60, seed=1)
ROWS = X[:3].tolist()
RECORDED = [dict(zip(LABELS, row, strict=True)) for row in Y.tolist()]


def test_suggestions_are_those_of_the_model(ask, models):
    options = {"given": [{"calm": 1}, None, {}], "k": 2, "cost": {"loud": 3}}
    [answer] = ask(post("joint", "suggest", inputs=ROWS, **options))
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["model"], body["warnings"]) == ("joint", [])
    given = [{"calm": 1}, {}, {}]
    frame = models["joint"].suggest(ROWS, given=given, k=2, cost={"loud": 3})
    for row, result in enumerate(body["results"]):
        expected = frame[frame["row"] == row].drop(columns="row").to_dict("records")
        assert [entry.pop("bits") for entry in result["suggestions"]] == pytest.approx(
            [entry.pop("bits") for entry in expected]
        )
        assert result["suggestions"] == expected
    assert "tells of" in body["results"][1]["suggestions"][0]["reason"]


def test_inputs_that_cannot_be_read_get_no_suggestions(ask):
    inputs = [ROWS[0], [1.0, "fast"], ROWS[1]]
    given = [None, {"calm": 1, "sad": 1, "loud": 0}, dict.fromkeys(LABELS, 1)]
    answer, unreadable = ask(
        post("joint", "suggest", inputs=inputs, given=given, candidates=["loud"]),
        post("joint", "suggest", inputs=inputs[1:2]),
    )
    first, error, complete = answer.json()["results"]
    assert [entry["label"] for entry in first["suggestions"]] == ["loud"]
    assert error.keys() == {"error"}
    assert complete == {"suggestions": []}  # All its labels are given.
    assert unreadable.status_code == 422
    assert unreadable.json()["results"] == [error]


def test_suggestions_for_rows_of_a_csv_file_share_a_budget(ask, models):
    text = "a,b\n" + "\n".join(",".join(map(str, row)) for row in ROWS)
    query = "?k=2&budget=2&candidates=calm&candidates=loud"
    [answer] = ask(post_csv("joint", text, query, endpoint="suggest"))
    assert answer.status_code == 200, answer.text
    results = answer.json()["results"]
    assert sum(len(result["suggestions"]) for result in results) == 2


@pytest.mark.parametrize(
    ("text", "query", "message"),
    [
        ("a,b,calm\n1,2,1\n", "?k=1", "known labels in 'given' (got columns of labels"),
        ("a,b\n1,2\n", "?given=calm", "a body in JSON with 'given'"),
        ("a,b\n1,2\n", "?cost=calm%3D3", "a body in JSON with 'cost'"),
    ],
)
def test_known_labels_and_costs_beside_csv_are_refused(ask, text, query, message):
    [answer] = ask(post_csv("joint", text, query, endpoint="suggest"))
    assert answer.status_code == 422
    assert message in answer.json()["detail"]


def test_an_audit_finds_the_wrong_label(ask, models):
    wrong = {**RECORDED[5], "sad": 1 - RECORDED[5]["sad"]}
    recorded = [*RECORDED[:5], wrong, {**RECORDED[6], "loud": None}, None, *RECORDED[8:]]
    [answer] = ask(post("joint", "audit", inputs=X.tolist(), recorded=recorded, top=2))
    assert answer.status_code == 200, answer.text
    body = answer.json()
    matrix = Y.astype(float)
    matrix[5, 1], matrix[6, 2], matrix[7] = wrong["sad"], np.nan, np.nan
    expected = models["joint"].audit(X, matrix)
    assert len(body["cells"]) == 2
    assert {cell["row"] for cell in body["cells"]} == {5}
    for cell, record in zip(body["cells"], expected.cells.to_dict("records"), strict=False):
        assert cell == pytest.approx(record)
    scores = expected.rows.set_index("row").loc[range(60), ["suspicion", "swapped"]]
    assert [[*result.values()] for result in body["results"]] == pytest.approx(scores.to_numpy())
    assert body["blanks"] == expected.blanks.head(2).to_dict("records")
    for entry, record in zip(body["noise"], expected.noise.to_dict("records"), strict=True):
        assert entry == pytest.approx(record)


def test_an_audit_skips_inputs_that_cannot_be_read(ask):
    inputs = [*X[:2].tolist(), [1.0, "fast"], *X[2:50].tolist()]
    recorded = [*RECORDED[:2], RECORDED[0], *RECORDED[2:50]]
    answer, few = ask(
        post("joint", "audit", inputs=inputs, recorded=recorded, top=1000),
        post("joint", "audit", inputs=X[:2].tolist(), recorded=RECORDED[:2]),
    )
    body = answer.json()
    assert body["results"][2].keys() == {"error"}
    assert {cell["row"] for cell in body["cells"]} == {*range(51)} - {2}
    labels = {cell["label"]: cell["recorded"] for cell in body["cells"] if cell["row"] == 50}
    assert labels == RECORDED[49]
    assert body["warnings"] == []
    [warning] = few.json()["warnings"]
    assert "at least 100 recorded labels" in warning


@pytest.mark.parametrize("name", ["rows", "texts"])
def test_models_without_messages_say_why_they_refuse(ask, name):
    inputs = [[1.0] * 5] if name == "rows" else ["a red apple"]
    answers = ask(
        post(name, "suggest", inputs=inputs), post(name, "audit", inputs=inputs, recorded=[{}])
    )
    answers += ask(post(name, "audit", inputs=inputs, recorded=RECORDED[:1]))
    assert [answer.status_code for answer in answers] == [422] * 3
    for answer in (answers[0], answers[2]):
        assert "how given labels change others" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("endpoint", "options", "message"),
    [
        ("suggest", {"targets": ["happy"]}, "'targets' among labels of the model"),
        ("suggest", {"candidates": []}, "'candidates' to be a list"),
        ("suggest", {"cost": {"happy": 1}}, "'cost' among labels of the model"),
        ("suggest", {"cost": {"sad": -1}}, "'cost' to be positive numbers"),
        ("suggest", {"cost": {"sad": "much"}}, "cost.sad"),
        ("suggest", {"budget": 0}, "'budget' to be a number above 0"),
        ("suggest", {"k": 0}, "'k' to be a whole number"),
        ("suggest", {"k": 1.5}, "k: "),
        ("suggest", {"given": [{"happy": 1}] * 3}, "'given' to name labels"),
        ("suggest", {"given": [{"sad": 1}]}, "'given' with an entry for each of 3 inputs"),
        ("suggest", {"given": [dict.fromkeys(LABELS, 1)] * 3}, "labels that are left to predict"),
        ("suggest", {"given": [{"sad": 1}] * 3, "targets": ["sad"]}, "that are not given"),
        ("suggest", {"metric": "f1_micro"}, "metric: "),
        ("audit", {}, "recorded: "),
        ("audit", {"recorded": [{}] * 2}, "'recorded' with an entry for each of 3 inputs"),
        ("audit", {"recorded": [{"happy": 1}] * 3}, "'recorded' to name labels"),
        ("audit", {"recorded": [{"sad": 2}] * 3}, "recorded.0.sad"),
        ("audit", {"recorded": [None] * 3}, "'recorded' with a label"),
        ("audit", {"recorded": RECORDED[:3], "top": 0}, "top: "),
        ("audit", {"recorded": RECORDED[:3], "given": [{}] * 3}, "given: "),
    ],
)
def test_invalid_requests_are_refused_with_the_reason(ask, endpoint, options, message):
    [answer] = ask(post("joint", endpoint, inputs=ROWS, **options))
    assert answer.status_code == 422
    assert message in answer.json()["detail"]


def test_an_audit_takes_labels_in_json_alone(ask):
    [answer] = ask(post_csv("joint", "a,b,calm\n1,2,1\n", endpoint="audit"))
    assert answer.status_code == 422
    assert "Expected JSON" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("limits", "options", "status"),
    [
        ({"max_items": 2}, {}, 413),
        ({"max_suggested": 5}, {"k": 2}, 413),
        ({"max_suggested": 9}, {"k": 10**9}, 200),  # A model of three labels suggests three.
        ({"max_waiting": 2}, {}, 429),
        ({"max_seconds": 0.0}, {}, 503),
    ],
)
def test_suggestions_have_limits(ask, limits, options, status):
    [answer] = ask(post("joint", "suggest", inputs=ROWS, **options), limits=Limits(**limits))
    assert answer.status_code == status


def test_requests_for_suggestions_wait_with_others(ask):
    requests = [post("joint", "suggest", inputs=ROWS), post("joint", inputs=ROWS)] * 4
    requests.append(post("joint", "audit", inputs=X.tolist(), recorded=RECORDED))
    *answers, metrics = ask(*requests, after=["/metrics"])
    assert {answer.status_code for answer in answers} == {200}
    assert 'tg_mlc_inputs_waiting{model="joint"} 0.0' in metrics.text


def test_documentation_shows_the_bodies(ask):
    [answer] = ask(("GET", "/openapi.json", {}))
    for endpoint, option in (("suggest", "cost"), ("audit", "recorded")):
        post_entry = answer.json()["paths"][f"/models/{{name}}/{endpoint}"]["post"]
        assert post_entry["description"]
        schema = post_entry["requestBody"]["content"]["application/json"]["schema"]
        assert option in schema["properties"]
        assert schema["examples"]
