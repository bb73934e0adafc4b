"""The server, asked over HTTP as clients do."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import httpx
import numpy as np
import pytest

import tg_mlc
from tg_mlc.metrics.coverage import Coverage
from tg_mlc.serving import Limits, make_app

FOLDERS = Path(__file__).parents[1] / "saving" / "folders"
ROWS = json.loads((FOLDERS / "known_labels" / "expected.json").read_text())["raw"]
MODELS = {
    "rows": "known_labels",
    "texts": "estimator_texts",
    "molecules": "recipe_molecules",
}


@pytest.fixture(scope="module")
def models():
    return {name: tg_mlc.load(FOLDERS / folder / "model") for name, folder in MODELS.items()}


@pytest.fixture(scope="module")
def ask(models):
    """Asks a server that runs for as long as the call, by several requests at the same time."""

    def ask(*requests, limits=None, tokens=(), after=(), **options):
        async def talk():
            app = make_app(models, limits, tokens)
            async with app.router.lifespan_context(app):
                transport = httpx.ASGITransport(app, raise_app_exceptions=False)
                async with httpx.AsyncClient(transport=transport, base_url="http://test", **options) as client:
                    answers = await asyncio.gather(*(client.request(*each[:2], **each[2]) for each in requests))
                    return [*answers, *[await client.get(path) for path in after]]

        return asyncio.run(talk())

    return ask


def post(name, **body):
    return ("POST", f"/models/{name}/predict", {"json": body})


@pytest.mark.parametrize(
    ("name", "inputs"),
    [("rows", ROWS), ("texts", ["a red apple", ["old", "doll"]]), ("molecules", ["CCO", "c1ccccc1"])],
)
def test_answers_are_those_of_the_model(ask, models, name, inputs):
    [answer] = ask(post(name, inputs=inputs))
    assert answer.status_code == 200
    body, predictor = answer.json(), models[name]
    scores = predictor.scores(inputs)
    decisions = predictor.decide(scores)
    for row, result in enumerate(body["results"]):
        assert list(result["probability"]) == list(result["decision"]) == predictor.label_names
        np.testing.assert_allclose(list(result["probability"].values()), scores[row], atol=1e-5)
        assert list(result["decision"].values()) == decisions[row].tolist()
    np.testing.assert_allclose(list(body["thresholds"].values()), predictor.thresholds())


@pytest.mark.parametrize(
    ("name", "inputs", "at_fault"),
    [
        ("molecules", ["CCO", "not a molecule", "c1ccccc1"], [1]),
        ("molecules", ["CCO", 3 * ["C"], {"a": 1}, [1, None], ""], [1, 2, 3, 4]),
        ("rows", [ROWS[0], ROWS[0][:-1], [*ROWS[1][:-1], None], ROWS[1]], [1, 2]),
    ],
)
def test_an_input_that_cannot_be_read_has_its_reason_in_its_place(ask, models, name, inputs, at_fault):
    [answer] = ask(post(name, inputs=inputs))
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert [row for row, result in enumerate(results) if "error" in result] == at_fault
    for row, result in enumerate(results):
        if row in at_fault:
            assert result.keys() == {"error"}
            assert result["error"]
        else:
            expected = models[name].scores([inputs[row]])[0]
            np.testing.assert_allclose(list(result["probability"].values()), expected, atol=1e-5)


def test_requests_at_the_same_time_are_scored_together(ask, models):
    inputs = [[list(map(float, np.array(row) + k)) for row in ROWS] for k in range(20)]
    *answers, metrics = ask(*(post("rows", inputs=each) for each in inputs), after=["/metrics"])
    assert 'tg_mlc_batch_inputs_sum{model="rows"} 60.0' in metrics.text
    assert float(re.search(r'tg_mlc_batch_inputs_count{model="rows"} (.*)', metrics.text)[1]) < 10
    for each, answer in zip(inputs, answers, strict=True):
        found = [list(result["probability"].values()) for result in answer.json()["results"]]
        np.testing.assert_allclose(found, models["rows"].scores(each), atol=1e-5)


def test_given_labels_move_the_others_of_their_input_alone(ask, models):
    first = models["rows"].label_names[0]
    answer, mixed, unknown = ask(
        post("rows", inputs=ROWS, given=[{first: 1}, None, {}]),
        post("rows", inputs=ROWS),
        post("rows", inputs=ROWS[:1], given=[{"no label": 1}]),
    )
    given, free = (
        np.array([list(result["probability"].values()) for result in each.json()["results"]])
        for each in (answer, mixed)
    )
    matrix = np.full((3, 3), np.nan)
    matrix[0, 0] = 1
    np.testing.assert_allclose(given, models["rows"].scores(ROWS, matrix), atol=1e-5)
    assert given[0, 0] == 1
    np.testing.assert_allclose(given[1:], free[1:], atol=1e-5)
    assert unknown.status_code == 422


def test_label_sets_of_a_coverage(ask, models, monkeypatch):
    predictor = models["rows"]
    y = np.eye(len(predictor.label_names))[np.arange(60) % len(predictor.label_names)]
    rows = [list(map(float, np.array(ROWS[k % 3]) + k / 30)) for k in range(60)]
    monkeypatch.setattr(predictor.scorer, "conformal", None)
    [refused] = ask(post("rows", inputs=ROWS, coverage=0.8))
    assert refused.status_code == 422
    predictor.conformalize(rows, y)
    first = predictor.label_names[0]
    answer, table, given, much = ask(
        post("rows", inputs=ROWS, coverage=0.8, coverage_per="sample"),
        (
            "POST",
            "/models/rows/predict?coverage=0.8&coverage_per=sample",
            {"content": "a,b\n1,2\n", "headers": {"content-type": "text/csv"}},
        ),
        post("rows", inputs=ROWS[:1], given=[{first: 1}], coverage=0.8),
        post("rows", inputs=ROWS, coverage=1.5),
    )
    assert answer.json()["metric"] == "coverage 0.8 per sample"
    expected = predictor.decide(predictor.scores(ROWS), Coverage(0.8, "sample"))
    assert [list(each["decision"].values()) for each in answer.json()["results"]] == expected.tolist()
    assert "thresholds" in table.json() or "error" in str(table.json())
    assert [given.status_code, much.status_code] == [422, 422]


@pytest.mark.parametrize(
    ("name", "text", "inputs"),
    [
        ("molecules", "smiles\nCCO\nc1ccccc1\n", ["CCO", "c1ccccc1"]),
        ("texts", 'text\n"a red, old apple"\n', ["a red, old apple"]),
        ("rows", "a,b,c,d,e\n1,2,3,4,5\n0,0,0,0,0.5\n", [[1, 2, 3, 4, 5], [0, 0, 0, 0, 0.5]]),
    ],
)
def test_csv(ask, models, name, text, inputs):
    path = f"/models/{name}/predict?metric=f1_macro"
    [answer] = ask(("POST", path, {"content": text, "headers": {"content-type": "text/csv"}}))
    assert answer.status_code == 200, answer.text
    assert answer.json()["metric"] == "f1_macro"
    found = [list(result["probability"].values()) for result in answer.json()["results"]]
    np.testing.assert_allclose(found, models[name].scores(inputs), atol=1e-5)


def test_explanations(ask, models):
    label = models["texts"].label_names[0]
    [answer] = ask(post("texts", inputs=["a red apple"], explain=[label]))
    [result] = answer.json()["results"]
    assert {each["component"] for each in result["explanation"][label]} <= {"a", "red", "apple", "<unk>"}
    assert len(result["explanation"][label]) > 0


BAD = [
    b"", b"null", b"[]", b"{}", b"{", b'"CCO"', b"\xff\xfe", b'{"inputs": null}', b'{"inputs": "CCO"}',
    b'{"inputs": []}',
    b'{"inputs": ["CCO"], "surprise": 1}', b'{"inputs": [NaN]}', b'{"inputs": [[[[1]]]]}', b"[" * 100000,
    b'{"inputs": ["CCO"], "metric": "best"}', b'{"inputs": ["CCO"], "given": []}', b'{"inputs": ["CCO"], "given": [1]}',
    b'{"inputs": ["CCO"], "given": [{"oxygen": 2}]}', b'{"inputs": ["CCO"], "explain": ["no label"]}',
    b'{"inputs": ["no molecule"]}', b'{"inputs": [[1e999]]}', b'{"inputs": [true]}',
    b'{"inputs": ["CCO"], "inputs": 1}', b'{"inputs": ["' + b"(" * 5000 + b'"]}',
]  # fmt: skip


@pytest.mark.parametrize("content", BAD, ids=range(len(BAD)))
def test_malformed_requests_are_the_clients_fault(ask, content):
    path = "/models/molecules/predict"
    types = ("application/json", "text/csv")
    answers = ask(*(("POST", path, {"content": content, "headers": {"content-type": kind}}) for kind in types))
    assert [400 <= answer.status_code < 500 for answer in answers] == [True, True], [a.text[:300] for a in answers]


@pytest.mark.parametrize(
    ("limits", "body", "status"),
    [
        ({"max_bytes": 50}, {"inputs": ["CCO"] * 20}, 413),
        ({"max_items": 2}, {"inputs": ["old"] * 3}, 413),
        ({"max_explained": 1}, {"inputs": ["old"] * 2, "explain": ["food"]}, 413),
        ({"max_waiting": 1}, {"inputs": ["old"] * 2}, 429),
        ({"max_seconds": 0.0}, {"inputs": ["old"]}, 503),
    ],
)
def test_limits(ask, limits, body, status):
    [answer] = ask(post("texts", **body), limits=Limits(**limits))
    assert answer.status_code == status
    assert answer.json()["detail"].startswith("Expected ")


def test_models_are_found_by_name_and_never_by_path(ask):
    names = ["nothing", "..%2Frows", "%2Fetc", "rows%2F..%2Ftexts"]
    assert {answer.status_code for answer in ask(*(post(name, inputs=ROWS) for name in names))} == {404}


def test_tokens(ask):
    open_, closed, wrong, right = ask(
        ("GET", "/health", {}),
        post("rows", inputs=ROWS),
        ("GET", "/models", {"headers": {"authorization": "Bearer guess"}}),
        ("GET", "/metrics", {"headers": {"authorization": "Bearer two"}}),
        tokens=["one", "two"],
    )
    assert [open_.status_code, closed.status_code, wrong.status_code, right.status_code] == [200, 401, 401, 200]


def test_pages_about_the_server(ask, models):
    health, ready, docs, api, names = ask(after=["/health", "/ready", "/docs", "/openapi.json", "/models"])
    assert {name: each["labels"] for name, each in names.json().items()} == {
        name: each.label_names for name, each in models.items()
    }
    assert health.json() == {"status": "alive"}
    assert ready.json() == {"status": "ready", "models": [*MODELS]}
    assert docs.status_code == 200
    content = api.json()["paths"]["/models/{name}/predict"]["post"]["requestBody"]["content"]
    assert "inputs" in content["application/json"]["schema"]["properties"]
    *_, metrics = ask(post("rows", inputs=ROWS), post("rows", inputs=[]), after=["/metrics"])
    for status in (200, 422):
        assert f'tg_mlc_requests_total{{model="rows",status="{status}"}} 1.0' in metrics.text
