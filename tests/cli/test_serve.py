"""Tests the command ``tg-mlc serve`` in a separate process."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest

from tests.cli.conftest import run


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_ready(url):
    try:
        return httpx.get(f"{url}/ready").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.slow
def test_requests_in_progress_are_answered_after_sigterm(plain_model, port, tmp_path):
    (tmp_path / "tokens").write_text("secret\n")
    options = ["--port", str(port), "--token_file", str(tmp_path / "tokens")]
    command = [sys.executable, "-m", "tg_mlc", "serve", str(plain_model), *options]
    process = subprocess.Popen(command)
    url, headers = f"http://127.0.0.1:{port}", {"authorization": "Bearer secret"}
    try:
        deadline = time.monotonic() + 120
        while not is_ready(url) and time.monotonic() < deadline:
            time.sleep(0.1)
        body = {"inputs": [[0.1, 0.2, 0.3, 0.4, 0.5]] * 1000}
        # Requests share a client: making four clients takes longer than the server's end.
        client = httpx.Client(base_url=url, headers=headers, timeout=60)
        with client, ThreadPoolExecutor(4) as threads:
            post = partial(client.post, f"/models/{plain_model.name}/predict", json=body)
            requests = [threads.submit(post) for _ in range(4)]
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            assert [request.result().status_code for request in requests] == [200] * 4
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--also {0}", "Expected folders of models with different names"),
        ("--token_file {1}", "Expected a token in each line"),
        ("--also nothing", "Expected 'nothing' to be the folder of a saved model"),
    ],
)
def test_wrong_options_are_refused(options, message, plain_model, write, capsys):
    options = options.format(plain_model, write("tokens", ""))
    assert run(f"serve {plain_model} {options}") == 1
    assert message in capsys.readouterr().err


def test_a_port_in_use_is_named(plain_model, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert run("serve", plain_model, port=taken.getsockname()[1]) == 1
    assert "a port in use" in capsys.readouterr().err
