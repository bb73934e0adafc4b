"""Compares a server with its model alone: throughput, latency, malformed requests, memory.

    python -m benchmarks.speed.serving --model model --replace
    python -m benchmarks.speed.serving --model model --quick

The server and its clients are separate processes; each client sends one input and waits for the
answer. The model alone scores the same inputs in this process, as many at a time as there are
clients. The server and the model alone take turns.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch

import tg_mlc
from benchmarks.command_line import run
from benchmarks.files import check_replacement, name_of, write_results
from benchmarks.speed.measure import memory_of
from tg_mlc.inference import Model
from tg_mlc.inference.features import Classifiers
from tg_mlc.inference.networks import Networks

SEED = 0


def main(
    model: str,
    clients: int = 32,
    rounds: int = 5,
    seconds: float = 8.0,
    malformed: int = 1000,
    requests: int = 100_000,
    threads: int = 1,
    replace: bool = False,
    quick: bool = False,
) -> int:
    """Prints the results, and returns 1 if an answer or status is wrong, or memory grows.

    Args:
        model: The folder of a model whose kind of input makes up examples.
        clients: Number of clients at the same time.
        rounds: Number of rounds in which the server and the model alone take turns.
        seconds: Seconds that each of the two runs in a round.
        malformed: Number of malformed requests.
        requests: Number of requests while memory is observed.
        threads: Number of threads of PyTorch, of the server and of the model alone.
        replace: Whether to write the tracked file in benchmarks/results/ instead of a new one.
        quick: Whether to take few requests.
    """
    check_replacement(replace, quick=quick)
    torch.set_num_threads(threads)
    if quick:
        rounds, seconds, malformed, requests = 1, 0.5, 60, 200
    loaded = tg_mlc.load(model)
    if loaded.kind is None:
        expected = "a model with a kind of input that makes up examples"
        raise ValueError(f"Expected {expected} (got {loaded!r})")
    examples = loaded.kind.examples(20)
    examples = examples.tolist() if hasattr(examples, "tolist") else examples
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tg_mlc", "serve", model, "--port", str(port)]
    server = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    url = f"http://127.0.0.1:{port}/models/{Path(model).resolve().name}/predict"
    try:
        _wait(f"http://127.0.0.1:{port}/ready")
        with ProcessPoolExecutor(1) as pool:
            answers = pool.submit(ask, url, examples, len(examples), 60.0, len(examples))
            agree = _agrees(loaded, examples, answers.result()["answers"])
            alone, served = [], []
            for _ in range(rounds):
                alone.append(_alone(loaded, examples, clients, seconds))
                cpu_start = _processor_seconds(server.pid)
                served.append(pool.submit(ask, url, examples, clients, seconds).result())
                served[-1]["processor_seconds"] = _processor_seconds(server.pid) - cpu_start
            statuses = pool.submit(send_malformed, url, malformed).result()
            memory = [memory_of(server.pid, "VmRSS")]
            for _ in range(10):
                pool.submit(ask, url, examples, clients, 3600.0, requests // 10).result()
                memory.append(memory_of(server.pid, "VmRSS"))
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    latencies = np.concatenate([turn["milliseconds"] for turn in served])
    serving = {
        "agrees": agree,
        "alone_per_second": [rate for rate, _ in alone],
        "served_per_second": [turn["requests"] / turn["seconds"] for turn in served],
        "alone_processor_ms": [cost for _, cost in alone],
        "served_processor_ms": [
            1e3 * turn["processor_seconds"] / turn["requests"] for turn in served
        ],
        "milliseconds": {f"p{q}": float(np.percentile(latencies, q)) for q in (50, 99)},
        "malformed": statuses,
        "requests": requests,
        "resident_bytes": memory,
    }
    settings = {"clients": clients, "rounds": rounds, "seconds": seconds}
    settings |= {"threads": threads, "seed": SEED}
    facts = loaded.facts
    data = loaded.report.get("data", facts.get("data"))
    description: dict[str, Any] = {"kind": _describe(loaded), "labels": len(loaded.label_names)}
    description["facts"] = {"data": data, "versions": facts.get("versions")}
    result = {"settings": settings, "model": description, "serving": serving}
    name = name_of("serving", "cpu", Path(model).resolve().name)
    path = write_results(name, result, replace=replace)
    print(json.dumps(serving, indent=1), f"\nWrote {path}")
    grows = memory[-1] > 1.1 * memory[1] + 2**24
    return int(not agree or any(not key.startswith("4") for key in statuses) or grows)


def ask(
    url: str, examples: list[Any], clients: int, seconds: float, limit: int | None = None
) -> dict[str, Any]:
    """Lets clients send one input each, repeatedly, until the time or the requests are used up."""

    async def talk() -> dict[str, Any]:
        inputs, latencies, answers = cycle(examples), list[float](), list[Any]()
        end, start = time.monotonic() + seconds, time.monotonic()
        remaining = iter(range(limit if limit is not None else 10**9))
        limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)

        async def client(session: httpx.AsyncClient) -> None:
            while time.monotonic() < end and next(remaining, None) is not None:
                example, sent = next(inputs), time.monotonic()
                answer = await session.post(url, json={"inputs": [example]})
                latencies.append(1e3 * (time.monotonic() - sent))
                answer.raise_for_status()
                if limit == len(examples):
                    answers.append([example, answer.json()["results"][0]])

        async with httpx.AsyncClient(limits=limits, timeout=120) as session:
            await asyncio.gather(*(client(session) for _ in range(clients)))
        content = {"requests": len(latencies), "seconds": time.monotonic() - start}
        return {**content, "milliseconds": latencies, "answers": answers}

    return asyncio.run(talk())


def send_malformed(url: str, number: int) -> dict[str, int]:
    """Counts of statuses of malformed requests: truncated and altered valid ones, random bytes."""
    rng, statuses = random.Random(SEED), dict[str, int]()
    valid = b'{"inputs": ["CCO", [1, 2.5], {"a": 1}], "given": [{"x": 1}, null, {}], '
    valid += b'"metric": "f1_micro"}'
    with httpx.Client(timeout=120) as session:
        for _ in range(number):
            is_cut = rng.random() < 0.5
            body = bytearray(valid[: rng.randrange(len(valid))] if is_cut else rng.randbytes(200))
            for _ in range(rng.randrange(1, 5)):
                if body:
                    body[rng.randrange(len(body))] = rng.randrange(256)
            headers = {"content-type": rng.choice(["application/json", "text/plain", ""])}
            status = str(session.post(url, content=bytes(body), headers=headers).status_code)
            statuses[status] = statuses.get(status, 0) + 1
    return statuses


def _describe(model: Model) -> str:
    """The names of the stages that compute logits."""
    stages = (stage for stage in model.stages if isinstance(stage, (Classifiers, Networks)))
    return " and ".join(type(stage).__name__ for stage in stages).lower()


def _alone(model: Model, examples: list[Any], size: int, seconds: float) -> tuple[float, float]:
    """Inputs per second of the model in this process, and processor milliseconds per input."""
    inputs, count, start, cpu_start = cycle(examples), 0, time.monotonic(), time.process_time()
    while time.monotonic() < start + seconds:
        model.answer(list(islice(inputs, size)))
        count += size
    return count / (time.monotonic() - start), 1e3 * (time.process_time() - cpu_start) / count


def _agrees(model: Model, examples: list[Any], answers: list[Any]) -> bool:
    expected = model.probabilities([example for example, _ in answers])
    scores = np.array([list(result["probability"].values()) for _, result in answers])
    return len(answers) == len(examples) and bool(np.abs(scores - expected).max() < 1e-4)


def _wait(url: str) -> None:
    for _ in range(1200):
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"Expected a server at {url} (got none in two minutes)")


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(run(main))
