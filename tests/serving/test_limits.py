"""Requests that would take long, or never end, leave the server free for others."""

from __future__ import annotations

import asyncio
import json
import re
import time

import httpx
import pytest

from tests.serving.conftest import post, post_csv
from tg_mlc._warnings import check_abandoned
from tg_mlc.inference.networks import Networks
from tg_mlc.inputs.vectors import Vectors
from tg_mlc.serving import Limits, make_app

RED = {"age": 30, "height": 65.5, "colour": "red"}
BODY = json.dumps({"inputs": [[1, 2, 3, 4, 5]]}).encode()


@pytest.mark.parametrize(
    ("limits", "content", "message"),
    [
        ({}, "," * 100_000, "at most 20,000 columns in the body (got 100,001)"),
        ({"max_cells": 9}, "a,b\n" + "1,2\n" * 5, "at most 9 cells in the body (got 10)"),
        (
            {"max_characters": 9},
            "a,b\n1,0123456789\n",
            "shorten it, or start the server with a larger max_characters",
        ),
        ({"max_items": 2}, "a,b\n" + "1,2\n" * 3, "at most 2 rows in the body (got 3)"),
    ],
)
def test_large_tables_are_refused_before_they_are_read(ask, limits, content, message):
    [answer] = ask(post_csv("columns", content), limits=Limits(**limits))
    assert answer.status_code == 413
    assert message in answer.json()["detail"]


def test_many_unknown_names_take_no_time(ask):
    rows = [{f"a{row}{key}": 1 for key in range(100)} for row in range(100)]
    start = time.process_time()
    [answer] = ask(post("table", inputs=rows))
    assert answer.status_code == 422
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("owner", "method", "body"),
    [
        (Vectors, "_schema_for", {"inputs": [{f"a{row}": 1} for row in range(100)]}),
        (Networks, "of_batch", {"inputs": [RED] * 100, "explain": ["calm"]}),
    ],
)
def test_abandoned_work_ends(models, monkeypatch, owner, method, body):
    calls, original = [], getattr(owner, method)

    def slow(self, *arguments):
        calls.append(method)
        time.sleep(0.05)
        return original(self, *arguments)

    async def ask():
        app = make_app(models, Limits(max_seconds=0.6, max_explained=1000))
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(base_url="http://test", transport=transport) as client:
                late = await client.post("/models/table/predict", json=body)
                other = await client.post("/models/table/predict", json={"inputs": [RED]})
                return late.status_code, other.status_code

    monkeypatch.setattr(owner, method, slow)
    assert asyncio.run(ask()) == (503, 200)
    assert 1 < len(calls) < 30


async def exchange(app, body, *, is_whole, leaves):
    """Sends a body, or the beginning of one, and perhaps disconnects. Returns the messages of the
    response, and the statuses that the server counted.
    """
    headers = [(b"content-type", b"application/json")]
    path = "/models/rows/predict"
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
    scope |= {"query_string": b"", "raw_path": path.encode(), "http_version": "1.1"}
    messages = [{"type": "http.request", "body": body, "more_body": not is_whole}]
    answers = []

    async def receive():
        if not messages:
            await asyncio.sleep(0 if leaves else 60)
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message):
        answers.append(message)

    async with app.router.lifespan_context(app):
        await app(scope, receive, send)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(base_url="http://test", transport=transport) as client:
            metrics = (await client.get("/metrics")).text
    return answers, re.findall(r'requests_total\{model="rows",status="(\d+)"\} 1.0', metrics)


def test_a_body_that_does_not_end_is_answered_and_closed(models):
    app = make_app(models, Limits(max_seconds=0.1))
    answers, statuses = asyncio.run(exchange(app, BODY[:3], is_whole=False, leaves=False))
    assert answers[0]["status"] == 503
    assert (b"connection", b"close") in answers[0]["headers"]
    assert statuses == ["503"]


def test_a_large_body_is_closed(models):
    app = make_app(models, Limits(max_bytes=5))
    answers, statuses = asyncio.run(exchange(app, BODY, is_whole=False, leaves=False))
    assert answers[0]["status"] == 413
    assert (b"connection", b"close") in answers[0]["headers"]
    assert statuses == ["413"]


def test_clients_that_disconnect_are_no_errors_of_the_server(models):
    _, statuses = asyncio.run(exchange(make_app(models), BODY[:3], is_whole=False, leaves=True))
    assert statuses == ["499"]


def test_work_ends_if_the_client_disconnects(models, monkeypatch):
    reads = []

    def read(self, raw):
        for _ in range(100):
            check_abandoned()
            reads.append(raw)
            time.sleep(0.02)

    monkeypatch.setattr(Vectors, "_of_list", read)
    _, statuses = asyncio.run(exchange(make_app(models), BODY, is_whole=True, leaves=True))
    assert statuses == ["499"]
    assert len(reads) < 20
