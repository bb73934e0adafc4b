"""Looks for failures: random shapes of the operator, files with wrong bytes, files and requests
that unpack to much, killed commands.

    python tools/endurance.py --minutes 60

Every round has a seed of its own, printed if the round fails: ``--seed N --rounds 1 --only files``
repeats it. The counts of a whole run go to ``benchmarks/runs/endurance.json``, or among the tracked
results with ``--replace``.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import json
import lzma
import multiprocessing
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import torch
from torch import Tensor

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import tg_mlc  # noqa: E402
from benchmarks.files import write_results  # noqa: E402
from tg_mlc.data import from_arff, from_csv  # noqa: E402
from tg_mlc.graphs import LabelGraph  # noqa: E402
from tg_mlc.ops import (  # noqa: E402
    Blocks,
    Edges,
    Pattern,
    Shared,
    available_backends,
    graph_attention,
)

CSV = "id,text,size,label\n" + "".join(f"{i},word {i % 7},{i * 0.5},{i % 2}\n" for i in range(40))
ARFF = "@relation x\n@attribute a numeric\n@attribute b {u,v}\n@attribute l {0,1}\n@data\n"
ARFF += "1,u,0\n2.5,v,1\n" * 20
GRAPH = "source\ttarget\tweight\na\tb\t0.5\nb\tc\t1\n" * 3
#: Bytes that readers of texts and numbers may fail on.
INSERTED = (b"\x00", b'"', b",", b"\n", b"NaN", b"1e999", "ß\u2028".encode(), b"\xff")
#: Errors by which a reader may refuse a file.
ALLOWED = (ValueError, OSError)
MAX_MEMORY = 2**30  #: Bytes that a process may take beyond those of its imports.
MAX_WAIT = 1.0  #: Seconds in which a server has to say that it is alive.


def main() -> None:
    """Runs rounds until the time is over."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=sys.maxsize, help="at most so many rounds")
    seed_help = "seed of the first round; the next ones count up"
    parser.add_argument("--seed", type=int, default=0, help=seed_help)
    parser.add_argument("--only", choices=ROUNDS, help="one kind of round")
    parser.add_argument("--replace", action="store_true", help="write among the tracked results")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    start, first_seed, counts, failed = time.monotonic(), options.seed, Counter[str](), list[str]()
    seed, end = first_seed, start + 60 * options.minutes
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        workspace = Place(Path(name))
        stack.callback(workspace.close)
        while time.monotonic() < end and seed - first_seed < options.rounds:
            kind = options.only or random.Random(seed).choices(list(ROUNDS), weights=WEIGHTS)[0]
            try:
                ROUNDS[kind](seed, workspace)
            except Exception:
                traceback.print_exc()
                failed.append(f"--seed {seed} --rounds 1 --only {kind}")
                print(f"FAILED: {failed[-1]}", flush=True)
            counts[kind] += 1
            seed += 1
    minutes = (time.monotonic() - start) / 60
    print(f"{dict(counts)} in {minutes:.1f} minutes, {len(failed)} failed: {failed}")
    content = {"rounds": dict(counts), "failed": failed}
    content |= {"minutes": minutes, "first_seed": first_seed}
    write_results("endurance", content, replace=options.replace)
    sys.exit(bool(failed))


class Place:
    """A folder with a saved model, rows to predict, and the output of an undisturbed command."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.model, self.rows = folder, folder / "model", folder / "rows.csv"
        samples = folder / "samples.csv"
        table = "".join(f"{i % 7},{i % 5},{i % 3},{i % 2},{i % 3 > 0:d}\n" for i in range(60))
        samples.write_text("x,y,z,a,b\n" + table)
        rows = "".join(f"{i % 7},{i % 5},{i % 3}\n" for i in range(20_000))
        self.rows.write_text("x,y,z\n" + rows)
        options = ["--csv", str(samples), "--labels", "a,b", "--seconds", "3"]
        options += ["--out", str(self.model)]
        if self.start("train", *options).wait():
            command = f"tg-mlc train {' '.join(options)}"
            raise SystemExit(f"Expected '{command}' to train a model (got an error)")
        self.whole: bytes | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._client: httpx.Client | None = None

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts a command."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        quiet = subprocess.DEVNULL
        command = [sys.executable, "-m", "tg_mlc", *arguments]
        return subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet)

    def server(self) -> Any:
        """Returns a client of a server of the model, which starts at the first call."""
        if self._client is None:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            options = ["--port", str(port), "--max_seconds", "10"]
            self._server = self.start("serve", str(self.model), *options)
            self._client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
            while True:
                with suppress(httpx.TransportError):
                    if self._client.get("/ready").status_code == 200:
                        break
                assert self._server.poll() is None, "the server ended"
                time.sleep(0.1)
        return self._client

    def close(self) -> None:
        """Ends the server."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait()

    def predict(self, out: Path) -> subprocess.Popen[bytes]:
        """Starts to predict all rows."""
        return self.start("predict", str(self.model), "--csv", str(self.rows), "--out", str(out))


def operator(seed: int, place: Place) -> None:
    """Every backend that supports a random call agrees with the definition, gradients included."""
    generator, draw = torch.Generator().manual_seed(seed), random.Random(seed)
    pattern = random_pattern(draw)
    heads, channels = draw.choice((1, 2, 4)), draw.choice((1, 3, 8, 17))
    sizes = [(pattern.num_queries, heads, channels)] + 2 * [(pattern.num_keys, heads, channels)]
    tensors = [torch.randn(size, generator=generator, dtype=torch.float64) for size in sizes]
    expected = outputs(tensors, pattern, "reference")
    for backend in [name for name in available_backends() if name not in ("reference", "triton")]:
        if backend == "blocks" and not isinstance(pattern, Blocks):
            continue
        for actual, desired in zip(outputs(tensors, pattern, backend), expected, strict=True):
            message = f"{backend}: {{}}".format
            torch.testing.assert_close(actual, desired, atol=1e-9, rtol=1e-9, msg=message)


def random_pattern(draw: random.Random) -> Pattern:
    """Edges, a label graph that samples share, or components of ragged samples; some are empty."""
    queries, keys = draw.randint(1, 40), draw.randint(1, 40)
    if draw.random() < 0.4:
        sizes = [draw.choice((0, 1, 2, 7, 33)) for _ in range(draw.randint(1, 9))]
        ptr = torch.tensor([0, *sizes]).cumsum(0)
        return Blocks(torch.arange(len(sizes) + 1) * draw.randint(1, 9), ptr)
    shared = draw.random() < 0.5
    keys = queries if shared else keys
    pairs = draw.sample(range(queries * keys), draw.randint(0, queries * keys))
    targets, sources = [pair // keys for pair in pairs], [pair % keys for pair in pairs]
    edges = Edges(torch.tensor([sources, targets]).long(), queries, keys)
    return Shared(edges, draw.randint(1, 5)) if shared else edges


def outputs(tensors: list[Tensor], pattern: Pattern, backend: str) -> list[Tensor]:
    """The output of attention, and the gradients of all inputs."""
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    out = graph_attention(*leaves, pattern, backend=backend)
    assert isinstance(out, Tensor)
    out.square().sum().backward()
    gradients = (torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves)
    return [out.detach(), *gradients]


def files(seed: int, place: Place) -> None:
    """A file with wrong bytes is read or refused with a reason, and never changes an answer."""
    draw = random.Random(seed)
    kind = draw.choice(("csv", "arff", "tsv", "model"))
    if kind == "model":
        file = draw.choice(sorted(path for path in place.model.iterdir() if path.is_file()))
        original = file.read_bytes()
        try:
            file.write_bytes(mutated(original, draw))
            if file.read_bytes() != original:
                refused(lambda path: tg_mlc.load(path).predict([[0.5, 1.0, -1.0]]), place.model)
        finally:
            file.write_bytes(original)
        return
    path = place.folder / f"file.{kind}"
    path.write_bytes(mutated({"csv": CSV, "arff": ARFF, "tsv": GRAPH}[kind].encode(), draw))
    readers: dict[str, Callable[[Path], object]] = {
        "csv": lambda path: from_csv(path, label_columns=["label"]),
        "arff": lambda path: from_arff(path, labels=1),
        "tsv": lambda path: LabelGraph.from_edges(path, ["a", "b", "c"]),
    }
    refused(readers[kind], path)


def refused(read: Callable[[Path], object], path: Path) -> None:
    """Reads a file, or raises RuntimeError if it is refused without a reason."""
    try:
        read(path)
    except ALLOWED as error:
        if not str(error):
            raise RuntimeError("an error without a message") from error


def bombs(seed: int, place: Place) -> None:
    """A small file that unpacks to much is read or refused with a reason, in little memory."""
    draw = random.Random(seed)
    unit = draw.choice((b"0", b"0,", b"0,0\n", b"\n", b"{},", b"[", b'{"a":'))
    size = 10 ** draw.randint(4, 8) // len(unit)
    suffix = draw.choice(("csv", "json", "arff"))
    head = {"csv": b"x,label\n", "json": b'[{"x":1},', "arff": ARFF.encode()}[suffix]
    packing = draw.choice(("gz", "bz2", "xz", "zip"))
    path = place.folder / f"bomb.{suffix}.{packing}"
    if packing == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"bomb.{suffix}", head + unit * size)
    else:
        path.write_bytes({"gz": gzip, "bz2": bz2, "xz": lzma}[packing].compress(head + unit * size))
    process = multiprocessing.get_context("fork").Process(target=_in_little_memory, args=(path,))
    process.start()
    process.join()
    assert process.exitcode == 0, f"exit status {process.exitcode} of '{path.name}' of {unit!r}"


def _in_little_memory(path: Path) -> None:
    """Reads a file in a process of limited memory, which ends with status 1 at a raw error."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MAX_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    refused(lambda path: from_csv(path, label_columns=["label"]), path)


def requests(seed: int, place: Place) -> None:
    """A server answers any request, and meanwhile says within a second that it is alive."""
    draw, kind = random.Random(seed), random.Random(seed).choice(("json", "csv"))
    bodies = [
        b'{"inputs":[' + b"[]," * 10**6 + b"[]]}",
        json.dumps({"inputs": [{f"{i} {j}": 1 for j in range(99)} for i in range(999)]}).encode(),
        b'{"inputs":' + b"[" * 10**5 + b"]" * 10**5 + b"}",
        b'{"inputs":[[' + b"9" * 10**6 + b"]]}",
    ]
    if kind == "csv":
        bodies = [
            b"," * 10**5 + b"\n" + b"," * 10**5,
            b"x,y,z\n" + b"1,2,3\n" * 10**5,
            b"\n" * 10**6,
        ]
    body = draw.choice([*bodies, mutated(draw.choice(bodies)[:2000], draw)])
    headers = {"content-type": {"json": "application/json", "csv": "text/csv"}[kind]}
    client, waits, answer = place.server(), list[float](), list[Any]()
    path = f"/models/{place.model.name}/predict"
    post = partial(client.post, path, content=body, headers=headers)
    thread = threading.Thread(target=lambda: answer.append(post()))
    thread.start()
    while thread.is_alive():
        start = time.monotonic()
        assert client.get("/health").status_code == 200
        waits.append(time.monotonic() - start)
        time.sleep(0.05)
    assert 400 <= answer[0].status_code < 500 or answer[0].status_code in (200, 503), answer
    assert max(waits, default=0) < MAX_WAIT, f"/health after {max(waits):.1f} seconds"


def mutated(content: bytes, draw: random.Random) -> bytes:
    """Content with a few bytes changed, deleted, doubled or inserted."""
    out = bytearray(content)
    for _ in range(draw.randint(1, 6)):
        start, size = draw.randrange(len(out) + 1), draw.choice((1, 1, 2, 9, 200))
        operation = draw.choice(("change", "delete", "double", "insert", "cut"))
        if operation == "change":
            out[start : start + size] = draw.randbytes(len(out[start : start + size]))
        elif operation == "delete":
            del out[start : start + size]
        elif operation == "double":
            out[start:start] = out[start : start + size]
        elif operation == "insert":
            out[start:start] = draw.choice(INSERTED)
        elif draw.random() < 0.3:
            del out[start:]
    return bytes(out)


def kills(seed: int, place: Place) -> None:
    """A killed command leaves nothing under the final name; the next run's result is the same."""
    out, draw = place.folder / "out.csv", random.Random(seed)
    if place.whole is None:
        assert place.predict(out).wait() == 0
        place.whole = out.read_bytes()
        out.unlink()
    for _ in range(draw.randint(1, 3)):
        process = place.predict(out)
        time.sleep(draw.uniform(0.5, 12.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        # The signal may come while Python shuts down, after the file got its final name.
        if out.exists():
            break
    else:
        assert place.predict(out).wait() == 0
    assert out.read_bytes() == place.whole, "other predictions than without interruptions"
    out.unlink()


ROUNDS: dict[str, Callable[[int, Place], None]]
ROUNDS = {"operator": operator, "files": files, "kills": kills}
ROUNDS |= {"bombs": bombs, "requests": requests}
WEIGHTS = (60, 60, 1, 6, 6)  #: How often each kind of round is drawn.

if __name__ == "__main__":
    main()
