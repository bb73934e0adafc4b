"""Tests the server by HTTP requests, as clients send them."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from fastapi.testclient import TestClient

import tg_mlc
from tests.serving.conftest import post, post_csv, table
from tg_mlc._warnings import warn
from tg_mlc.inference.flow import Query
from tg_mlc.inference.folder import CONTENT
from tg_mlc.serving import Limits, make_app

ROWS = np.random.default_rng(3).normal(size=(3, 5)).round(3).tolist()
NAMED = table().to_dict("records")
RED = {"age": 30, "height": 65.5, "colour": "red"}
BLUE = {"age": 41, "height": 70, "colour": "blue"}
FAST = [1, 2, 3, 4, "fast"]
WRONG_AGES = [{**NAMED[2], "age": "fast"}, {**NAMED[2], "age": [1]}]


def values(answer, key="probability"):
    """Returns the values of all results; a result with an error gives NaN."""
    rows = [result.get(key, {}) for result in answer.json()["results"]]
    width = max(map(len, rows))
    return np.array([[*row.values()] or [np.nan] * width for row in rows])


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("table", NAMED[:3]),
        ("rows", ROWS),
        ("texts", ["a red apple", ["old", "doll"]]),
        ("bags", ["a red apple", ["old", "doll"], [0, 1, 2, 0, 0, 1, 0], [3, 5]]),
        ("molecules", ["CCO", "c1ccccc1"]),
    ],
)
def test_responses_equal_predictions_of_the_model(ask, models, name, inputs):
    [answer] = ask(post(name, inputs=inputs))
    assert answer.status_code == 200
    body, prediction = answer.json(), models[name].answer(inputs)
    for row, result in enumerate(body["results"]):
        assert list(result["probability"]) == list(result["decision"]) == models[name].label_names
        pair = list(result["probability"].values()), prediction.probabilities[row]
        np.testing.assert_allclose(*pair, atol=1e-6)
        assert list(result["decision"].values()) == prediction.decisions[row].tolist()
    np.testing.assert_allclose(list(body["thresholds"].values()), models[name].thresholds())
    assert body["calibrated"] is False
    assert body["warnings"] == []


@pytest.mark.parametrize(
    ("name", "inputs", "wrong_rows"),
    [
        ("molecules", ["CCO", "not a molecule", "c1ccccc1"], [1]),
        ("molecules", ["CCO", 3 * ["C"], {"a": 1}, [1, None], ""], [1, 2, 3, 4]),
        ("rows", [ROWS[0], ROWS[0][:-1], [*ROWS[1][:-1], None], ROWS[1], None, FAST], [1, 2, 4, 5]),
        ("table", [NAMED[0], {}, {"agee": 50}, NAMED[1], *WRONG_AGES], [1, 2, 4, 5]),
        ("texts", ["a red apple", 3, ["a", 1], {"text": "an old doll"}, [1, 2]], [1, 2]),
    ],
)
def test_an_unreadable_input_gives_an_error_in_its_row(ask, models, name, inputs, wrong_rows):
    [answer] = ask(post(name, inputs=inputs))
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert [row for row, result in enumerate(results) if "error" in result] == wrong_rows
    for row, result in enumerate(results):
        if row in wrong_rows:
            assert result.keys() == {"error"}
            assert result["error"]
        else:
            expected = models[name].probabilities([inputs[row]])[0]
            np.testing.assert_allclose(list(result["probability"].values()), expected, atol=1e-6)


def test_simultaneous_requests_are_scored_together(ask, models):
    inputs = [[list(map(float, np.array(row) + k)) for row in ROWS] for k in range(20)]
    *answers, metrics = ask(*(post("rows", inputs=rows) for rows in inputs), after=["/metrics"])
    assert 'tg_mlc_batch_inputs_sum{model="rows"} 60.0' in metrics.text
    assert float(re.search(r'tg_mlc_batch_inputs_count{model="rows"} (.*)', metrics.text)[1]) < 10
    for rows, answer in zip(inputs, answers, strict=True):
        np.testing.assert_allclose(values(answer), models["rows"].probabilities(rows), atol=1e-6)


@pytest.mark.parametrize("broken", [{}, {"agee": 50}])
def test_a_row_without_columns_is_refused_in_any_batch(ask, models, broken):
    alone, *together = ask(
        post("table", inputs=[broken]), *[post("table", inputs=[NAMED[0], broken])] * 49
    )
    assert alone.status_code == 422
    error = alone.json()["results"][0]["error"]
    assert error.startswith("Expected the columns ['age', 'height', 'colour'] (got")
    assert ("is 'agee' meant?" in error) == bool(broken)
    assert {answer.status_code for answer in together} == {200}
    assert {answer.json()["results"][1].get("error") for answer in together} == {error}
    answers = ask(*[post("table", inputs=[NAMED[0]]), post("table", inputs=[broken])] * 50)
    assert [answer.status_code for answer in answers] == [200, 422] * 50
    assert {answer.json()["results"][0]["error"] for answer in answers[1::2]} == {error}


def test_responses_have_only_warnings_of_their_own_request(ask, models):
    new = {**NAMED[0], "colour": "purple"}
    answers = ask(*[post("table", inputs=[NAMED[0]]), post("table", inputs=[NAMED[1], new])] * 10)
    assert [answer.json()["warnings"] for answer in answers[::2]] == [[]] * 10
    [warning] = {message for answer in answers[1::2] for message in answer.json()["warnings"]}
    assert warning.startswith("Column 'colour' has values that did not occur in training")
    assert "'purple'" in warning
    with pytest.warns(UserWarning, match="purple") as records:
        models["table"].predict([NAMED[1], new])
    assert [str(record.message) for record in records] == [warning]


def test_warnings_of_given_labels_stay_with_their_request(ask, models, monkeypatch):
    def begin(flow):
        if flow.given is not None and (flow.given == 0).any():
            warn(f"{int((flow.given == 0).sum())} labels are absent")

    monkeypatch.setattr(models["rows"].network_stage, "begin", begin)
    absent = [None, [{"sad": 0}], [{"sad": 1}], [{"sad": 0, "calm": 0}]]
    answers = ask(*(post("rows", inputs=ROWS[:1], given=labels) for labels in absent * 5))
    expected = [[], ["1 labels are absent"], [], ["2 labels are absent"]]
    assert [answer.json()["warnings"] for answer in answers] == expected * 5


def test_given_labels_that_tell_nothing_are_named_to_their_request(ask, monkeypatch):
    monkeypatch.setattr("tg_mlc.inference.flow.LEAST_TOLD", math.inf)
    given = [None, [{"sad": 0}], [{"calm": 1}]]
    answers = ask(*(post("joint", inputs=[[0.1, 0.2]], given=labels) for labels in given * 5))
    warnings = [answer.json()["warnings"] for answer in answers]
    assert [len(messages) for messages in warnings] == [0, 1, 1] * 5
    assert ["labels sad tell" in messages[0] for messages in warnings if messages] == [
        True,
        False,
    ] * 5


def test_requests_answered_together_have_their_own_numbers_of_labels(ask, models):
    tops = [None, 1, 2, 99]
    answers = ask(*(post("rows", inputs=ROWS, top=top) for top in tops * 5))
    num_labels = len(models["rows"].label_names)
    for answer, top in zip(answers, tops * 5, strict=True):
        lists = [result.get("labels") for result in answer.json()["results"]]
        if top is None:
            assert lists == [None] * 3
            continue
        assert [len(labels) for labels in lists] == [min(top, num_labels)] * 3
        expected = models["rows"].predict(ROWS, top=top)["label"].tolist()
        assert [entry["label"] for labels in lists for entry in labels] == expected
    [answer] = ask(post_csv("table", table().to_csv(index=False), "?top=1"))
    assert len(answer.json()["results"][0]["labels"]) == 1


def test_requests_with_different_options_are_answered_together(ask, models):
    given = [{models["table"].label_names[0]: 1}]
    unknown = {"given": [{"no label": 1}]}
    option_sets = [{}, {"given": given}, {"metric": "f1_macro"}, {"metric": "best"}, unknown]
    requests = [post("table", inputs=NAMED[:1], **options) for options in option_sets * 4]
    answers = ask(*requests, *[post("table", inputs=[{}])] * 4)
    statuses = [answer.status_code for answer in answers]
    assert statuses == [200, 200, 200, 422, 422] * 4 + [422] * 4
    assert answers[3].json()["detail"].startswith("Expected 'metric' to be one of")
    assert answers[4].json()["detail"].startswith("Expected 'given' to name labels of the model")
    for metric, answer in (("f1_micro", answers[0]), ("f1_macro", answers[2])):
        expected = models["table"].answer(NAMED[:1], Query(metric=metric))
        assert values(answer, "decision").tolist() == expected.decisions.tolist()
        np.testing.assert_allclose(list(answer.json()["thresholds"].values()), expected.thresholds)
    for start, labels in ((0, None), (1, given)):
        expected = models["table"].probabilities(NAMED[:1], given=labels)
        for answer in answers[start:20:5]:
            np.testing.assert_allclose(values(answer), expected, atol=1e-6)


def test_requests_that_cannot_be_joined_are_computed_one_by_one(ask, models, monkeypatch):
    def fail(readings):
        raise RuntimeError("no")

    monkeypatch.setattr("tg_mlc.inference.model.Reading.joined", fail)
    answers = ask(*[post("table", inputs=[row]) for row in NAMED[:5]], post("table", inputs=[{}]))
    scores = np.concatenate([values(answer) for answer in answers[:5]])
    np.testing.assert_allclose(scores, models["table"].probabilities(NAMED[:5]), atol=1e-6)
    assert answers[5].status_code == 422


def test_given_labels_change_only_their_own_input(ask, models):
    first = models["rows"].label_names[0]
    answer, plain_answer, unknown = ask(
        post("rows", inputs=ROWS, given=[{first: 1}, None, {}]),
        post("rows", inputs=ROWS),
        post("rows", inputs=ROWS[:1], given=[{"no label": 1}]),
    )
    given, plain = values(answer), values(plain_answer)
    matrix = np.full((3, 3), np.nan)
    matrix[0, 0] = 1
    np.testing.assert_allclose(given, models["rows"].probabilities(ROWS, given=matrix), atol=1e-6)
    assert abs(given[0, 1:] - plain[0, 1:]).max() > 1e-4
    assert given[0, 0] == 1
    np.testing.assert_allclose(given[1:], plain[1:], atol=1e-6)
    assert unknown.status_code == 422


def test_responses_may_be_label_sets_of_a_coverage(ask, models, monkeypatch):
    model = models["rows"]
    y = np.eye(len(model.label_names))[np.arange(60) % len(model.label_names)]
    rows = [list(map(float, np.array(ROWS[k % 3]) + k / 30)) for k in range(60)]
    monkeypatch.setattr(model.decision, "conformal", None)
    [refused] = ask(post("rows", inputs=ROWS, coverage=0.8))
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("Expected a model with scores of samples")
    model.conformalize(rows, y)
    first = model.label_names[0]
    answer, columns, given, too_large = ask(
        post("rows", inputs=ROWS, coverage=0.8, coverage_per="sample"),
        post_csv("rows", "a,b\n1,2\n", "?coverage=0.8&coverage_per=sample"),
        post("rows", inputs=ROWS[:1], given=[{first: 1}], coverage=0.8),
        post("rows", inputs=ROWS, coverage=1.5),
    )
    assert answer.json()["metric"] == "coverage 0.8 per sample"
    expected = model.answer(ROWS, Query(coverage=0.8, coverage_per="sample")).decisions
    assert values(answer, "decision").tolist() == expected.tolist()
    assert "Expected rows of 5 columns" in columns.json()["detail"]
    assert [given.status_code, too_large.status_code] == [422, 422]


@pytest.mark.parametrize(
    ("name", "text", "inputs"),
    [
        ("molecules", "smiles\nCCO\nc1ccccc1\n", ["CCO", "c1ccccc1"]),
        ("texts", 'text\n"a red, old apple"\n', ["a red, old apple"]),
        ("rows", "a,b,c,d,e\n1,2,3,4,5\n0,0,0,0,0.5\n", [[1, 2, 3, 4, 5], [0, 0, 0, 0, 0.5]]),
        ("table", "colour,Age,height,id\nred,30,65.5,7\nblue,41,70,x\n", [RED, BLUE]),
    ],
)
def test_csv_rows_give_the_probabilities_of_the_model(ask, models, name, text, inputs):
    [answer] = ask(post_csv(name, text, "?metric=f1_macro"))
    assert answer.status_code == 200, answer.text
    assert answer.json()["metric"] == "f1_macro"
    np.testing.assert_allclose(values(answer), models[name].probabilities(inputs), atol=1e-6)


def test_an_unreadable_csv_row_leaves_other_rows_readable(ask):
    texts = ["30,65,red\nfast,65,red\n,65,\n", "3,5\n"]
    answer, short = ask(*(post_csv("table", f"age,height,colour\n{text}") for text in texts))
    assert ["error" in result for result in answer.json()["results"]] == [False, True, True]
    assert "Expected 3 cells, as in the header, in row 0 (line 2)" in short.json()["detail"]


def test_explanations_name_words_of_the_input(ask, models):
    label = models["texts"].label_names[0]
    [answer] = ask(post("texts", inputs=["a red apple"], explain=[label]))
    [result] = answer.json()["results"]
    words = {entry["component"] for entry in result["explanation"][label]}
    assert words <= {"a", "red", "apple", "<unk>"}
    assert len(result["explanation"][label]) > 0


MALFORMED = [
    *(b"", b"null", b"[]", b"{}", b"{", b'"CCO"', b"\xff\xfe", b"[" * 100000),
    *(b'{"inputs": null}', b'{"inputs": "CCO"}', b'{"inputs": []}', b'{"inputs": [NaN]}'),
    *(b'{"inputs": [[[[1]]]]}', b'{"inputs": ["CCO"], "surprise": 1}'),
    *(b'{"inputs": ["CCO"], "metric": "best"}', b'{"inputs": ["CCO"], "explain": ["no label"]}'),
    *(b'{"inputs": ["CCO"], "given": []}', b'{"inputs": ["CCO"], "given": [1]}'),
    *(b'{"inputs": ["CCO"], "given": [{"oxygen": 2}]}', b'{"inputs": ["no molecule"]}'),
    *(b'{"inputs": [[1e999]]}', b'{"inputs": [true]}', b'{"inputs": ["CCO"], "inputs": 1}'),
    b'{"inputs": ["' + b"(" * 5000 + b'"]}',
]


@pytest.mark.parametrize("content", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_requests_give_client_errors(ask, content):
    method, path, options = post_csv("molecules", content)
    json = {**options, "headers": {"content-type": "application/json"}}
    answers = ask((method, path, json), (method, path, options))
    texts = [answer.text[:300] for answer in answers]
    assert [400 <= answer.status_code < 500 for answer in answers] == [True, True], texts


@pytest.mark.parametrize(
    ("limits", "body", "status"),
    [
        ({"max_bytes": 50}, {"inputs": ["CCO"] * 20}, 413),
        ({"max_items": 2}, {"inputs": ["old"] * 3}, 413),
        ({"max_explained": 1}, {"inputs": ["old"] * 2, "explain": ["food"]}, 413),
        ({"max_waiting": 1}, {"inputs": ["old"] * 2}, 429),
        ({"max_seconds": 0.0}, {"inputs": ["old"]}, 503),
        ({"max_columns": 5}, {"inputs": [{f"{row}{key}": 1 for key in "ab"} for row in ROWS]}, 413),
        ({"max_cells": 9}, {"inputs": [["old", "red"]] * 5}, 413),
        ({"max_cells": 9}, {"inputs": [[[]] * 10]}, 413),
        ({"max_characters": 9}, {"inputs": ["old", ["0123456789"]]}, 413),
        ({"max_characters": 9}, {"inputs": [{"0123456789": 1}]}, 413),
    ],
)
def test_requests_over_a_limit_are_refused(ask, limits, body, status):
    [answer] = ask(post("texts", **body), limits=Limits(**limits))
    assert answer.status_code == status
    detail, (limit,) = answer.json()["detail"], limits
    assert detail.startswith("Expected ")
    assert detail.endswith(f"or start the server with a larger {limit}") or status == 429


def test_models_are_found_by_name_and_never_by_path(ask):
    names = ["nothing", "..%2Frows", "%2Fetc", "rows%2F..%2Ftexts"]
    answers = ask(*(post(name, inputs=ROWS) for name in names))
    assert {answer.status_code for answer in answers} == {404}


def test_requests_need_a_valid_token(ask):
    invalid, valid = ({"headers": {"authorization": f"Bearer {word}"}} for word in ("guess", "two"))
    others = ("GET", "/models", invalid), ("GET", "/metrics", valid)
    requests = ("GET", "/health", {}), post("rows", inputs=ROWS), *others
    answers = ask(*requests, tokens=["one", "two"])
    assert [answer.status_code for answer in answers] == [200, 401, 401, 200]


def test_answers_hold_the_hash_of_the_folder_and_the_version(models, tmp_path):
    models["table"].save(tmp_path / "saved")
    saved = tg_mlc.load(tmp_path / "saved")
    with TestClient(make_app({"table": saved})) as client:
        answer = client.post("/models/table/predict", json={"inputs": NAMED[:1]}).json()
        listed = client.get("/models").json()["table"]
    description = json.loads((tmp_path / "saved" / CONTENT).read_text())
    for entry in (answer, listed):
        assert entry["sha256"] == description["sha256"] == saved.sha256
        assert entry["version"] == tg_mlc.__version__
    assert models["table"].sha256 is None


def test_information_pages_describe_the_server(ask, models):
    paths = ["/health", "/ready", "/docs", "/openapi.json", "/models"]
    health, ready, docs, api, names = ask(after=paths)
    labels = {name: entry["labels"] for name, entry in names.json().items()}
    assert labels == {name: entry.label_names for name, entry in models.items()}
    assert health.json() == {"status": "alive"}
    assert ready.json() == {"status": "ready", "models": [*models]}
    assert docs.status_code == 200
    content = api.json()["paths"]["/models/{name}/predict"]["post"]["requestBody"]["content"]
    assert "inputs" in content["application/json"]["schema"]["properties"]
    *_, metrics = ask(post("rows", inputs=ROWS), post("rows", inputs=[]), after=["/metrics"])
    for status in (200, 422):
        assert f'tg_mlc_requests_total{{model="rows",status="{status}"}} 1.0' in metrics.text
