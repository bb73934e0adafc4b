"""Looks for failures: random shapes of the operator, files with wrong bytes, files and requests
that unpack to much, requests that trickle or break off, killed commands.

    python tools/endurance.py --minutes 60
    python tools/endurance.py --counts files=10000,bombs=300,requests=2000,kills=30

Every round has a seed of its own, printed if the round fails: ``--seed N --rounds 1 --only files``
repeats it. The counts of a whole run, its largest memory and its longest wait for ``/health`` go to
``benchmarks/runs/endurance.json``, or among the tracked results with ``--replace``.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import lzma
import multiprocessing
import os
import random
import resource
import shutil
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
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch
from torch import Tensor

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import tg_mlc  # noqa: E402
from benchmarks.files import write_results  # noqa: E402
from tg_mlc._files import sha256  # noqa: E402
from tg_mlc.data import from_arff, from_csv  # noqa: E402
from tg_mlc.graphs import LabelGraph  # noqa: E402
from tg_mlc.inference import folder as folders  # noqa: E402
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
#: Values of wrong types or sizes in place of an entry of a model's folder.
WRONG: tuple[Any, ...] = (None, True, -1, 1e300, "", "\0", "x" * 5000, [], [[1]], {}, {"a": 1})
SHEET = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
#: Errors by which a reader may refuse a file.
ALLOWED = (ValueError, OSError)
MAX_MEMORY = 2**30  #: Bytes that a process may take beyond those of its imports.
MAX_WAIT = 1.0  #: Seconds in which a server has to say that it is alive.
MAX_SECONDS = 10  #: Seconds in which a server has to answer a request.


def main() -> None:
    """Runs rounds until the time is over."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--minutes", type=float, help="60 unless there are counts")
    counts_help = "numbers of rounds by kind, in this order, such as files=10000,kills=30"
    parser.add_argument("--counts", type=planned, default=[], help=counts_help)
    parser.add_argument("--rounds", type=int, default=sys.maxsize, help="at most so many rounds")
    seed_help = "seed of the first round; the next ones count up"
    parser.add_argument("--seed", type=int, default=0, help=seed_help)
    parser.add_argument("--only", choices=ROUNDS, help="one kind of round")
    parser.add_argument("--replace", action="store_true", help="write among the tracked results")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    start, first_seed, counts, failed = time.monotonic(), options.seed, Counter[str](), list[str]()
    default = float("inf") if options.counts else 60.0
    minutes = default if options.minutes is None else options.minutes
    seed, end = first_seed, start + 60 * minutes
    num_rounds = min(options.rounds, len(options.counts) or sys.maxsize)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        workspace = Place(Path(name))
        stack.callback(workspace.close)
        while time.monotonic() < end and seed - first_seed < num_rounds:
            drawn = random.Random(seed).choices(list(ROUNDS), weights=WEIGHTS)[0]
            index = seed - first_seed
            kind = options.only or (options.counts[index] if options.counts else drawn)
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
    content: dict[str, Any] = {"rounds": dict(counts), "failed": failed}
    content |= {"minutes": minutes, "first_seed": first_seed, "largest": workspace.largest}
    print(json.dumps(workspace.largest))
    write_results("endurance", content, replace=options.replace)
    sys.exit(bool(failed))


def planned(text: str) -> list[str]:
    """Returns the kind of each round, given counts by kind."""
    counts = (item.split("=") for item in text.split(","))
    kinds = [kind for kind, count in counts for _ in range(int(count))]
    if unknown := {*kinds} - {*ROUNDS}:
        raise argparse.ArgumentTypeError(f"Expected kinds among {[*ROUNDS]} (got {unknown})")
    return kinds


class Place:
    """A folder with a saved model, rows to predict, and the output of an undisturbed command."""

    def __init__(self, folder: Path) -> None:
        self.largest: dict[str, float] = {}
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
            options = ["--port", str(port), "--max_seconds", str(MAX_SECONDS)]
            self._server = self.start("serve", str(self.model), *options)
            self._client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
            while True:
                with suppress(httpx.TransportError):
                    if self._client.get("/ready").status_code == 200:
                        break
                assert self._server.poll() is None, "the server ended"
                time.sleep(0.1)
            self._server_bytes = memory_of(self._server.pid)[0]
        return self._client

    def check_server(self) -> None:
        """Records the memory that the server took beyond that of its start."""
        assert self._server is not None
        assert self._server.poll() is None, "the server ended"
        peak = memory_of(self._server.pid)[1]
        record_memory(self, "server", peak - self._server_bytes)

    def close(self) -> None:
        """Ends the server."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait()

    def predict(self, out: Path) -> subprocess.Popen[bytes]:
        """Starts to predict all rows."""
        return self.start("predict", str(self.model), "--csv", str(self.rows), "--out", str(out))


def memory_of(process: int | str = "self") -> tuple[int, int]:
    """Returns the bytes in memory of a process, now and at most."""
    status = Path(f"/proc/{process}/status").read_text()
    sizes = {line.split(":")[0]: line.split() for line in status.splitlines()}
    now, peak = (int(sizes[name][1]) * 1024 for name in ("VmRSS", "VmHWM"))
    return now, peak


def record(place: Place, what: str, number: float) -> None:
    """Keeps the largest number."""
    place.largest[what] = max(number, place.largest.get(what, 0.0))


def record_memory(place: Place, what: str, size: int) -> None:
    """Keeps the largest number of bytes, which must not be beyond the limit."""
    record(place, f"bytes of a {what}", size)
    assert size < MAX_MEMORY, f"{size:,} bytes of a {what}"


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
    draw, contents = random.Random(seed), samples()
    kind = draw.choice([*contents, "model", "types"])
    Path("/proc/self/clear_refs").write_text("5")  # The largest memory is counted from now on.
    before = memory_of()[0]
    if kind in ("model", "types"):
        files = sorted(path for path in place.model.iterdir() if path.is_file())
        file = place.model / "model.json" if kind == "types" else draw.choice(files)
        original = file.read_bytes()
        try:
            change = mutated if kind == "model" else mistyped
            file.write_bytes(change(original, draw))
            if file.read_bytes() != original:
                refused(predict_row, place.model)
        finally:
            file.write_bytes(original)
    else:
        path = place.folder / f"file.{kind}"
        path.write_bytes(mutated(contents[kind], draw))
        refused(READERS.get(kind, read_table), path)
    record_memory(place, "reader of a file", memory_of()[1] - before)


def predict_row(model: Path) -> object:
    """Loads a model, and predicts a row."""
    return tg_mlc.load(model).predict([[0.5, 1.0, -1.0]])


def read_table(path: Path) -> object:
    """Reads a table whose labels are in one column."""
    return from_csv(path, label_columns=["label"])


READERS: dict[str, Callable[[Path], object]] = {
    "arff": lambda path: from_arff(path, labels=1),
    "tsv": lambda path: LabelGraph.from_edges(path, ["a", "b", "c"]),
}


@cache
def samples() -> dict[str, bytes]:
    """Returns the content of a valid file by suffix."""
    import pandas as pd

    frame, content, archive = pd.read_csv(io.StringIO(CSV)), io.BytesIO(), io.BytesIO()
    files = {"csv": CSV.encode(), "arff": ARFF.encode(), "tsv": GRAPH.encode()}
    files |= {
        "json": frame.to_json(orient="records").encode(),
        "csv.gz": gzip.compress(files["csv"]),
    }
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("table.csv", CSV)
    files["zip"] = archive.getvalue()
    if find_spec("pyarrow"):
        files["parquet"] = frame.to_parquet()
    if find_spec("openpyxl"):
        frame.to_excel(content, index=False)
        files["xlsx"] = content.getvalue()
    return files


def mistyped(content: bytes, draw: random.Random) -> bytes:
    """Returns a description of a model, signed, in which an entry has another type."""
    entries = json.loads(content)
    parent, key = draw.choice([place for place in entries_in(entries) if place[1] != "sha256"])
    parent[key] = draw.choice(WRONG)
    entries = {name: value for name, value in entries.items() if name != "sha256"}
    return folders._dump({"sha256": sha256(folders._dump(entries)), **entries})


def entries_in(value: Any) -> list[tuple[Any, Any]]:
    """Returns each list or object in a value with each of its indices or names."""
    if not isinstance(value, (list, dict)):
        return []
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [(value, key) for key in keys] + [e for key in keys for e in entries_in(value[key])]


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
    kinds = {"text": packed_text, "nested": nested_json, "weights": sparse_weights}
    kinds |= {"parquet": parquet_bomb} if find_spec("pyarrow") else {}
    kinds |= {"workbook": workbook_bomb} if find_spec("openpyxl") else {}
    kind = draw.choice([*kinds, "text"])
    path = kinds[kind](place, draw)
    context = multiprocessing.get_context("fork")
    peak: Any = context.Value("q", 0)
    process = context.Process(target=_in_little_memory, args=(path, peak))
    process.start()
    process.join()
    if kind == "weights":
        shutil.rmtree(path)
    assert process.exitcode == 0, f"exit status {process.exitcode} of {kind} in '{path.name}'"
    record_memory(place, "reader of a bomb", peak.value)


def packed_text(place: Place, draw: random.Random) -> Path:
    """Packs a text that repeats few bytes."""
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
    return path


def nested_json(place: Place, draw: random.Random) -> Path:
    """Writes JSON whose values are nested deep."""
    path, depth = place.folder / "nested.json", 10 ** draw.randint(3, 6)
    start, end = draw.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")))
    value = start * depth + b"1" + end * draw.choice((depth, 0))
    path.write_bytes(draw.choice((b'[{"x":1,"label":%s}]', b"%s")) % value)
    return path


def sparse_weights(place: Place, draw: random.Random) -> Path:
    """Copies a model, and makes the weights a file of gigabytes that takes no disk."""
    path = Path(shutil.copytree(place.model, place.folder / "sparse"))
    weights = draw.choice(sorted(path.glob("weights*")))
    os.truncate(weights, draw.randint(2**30, 2**33))
    return path


def parquet_bomb(place: Place, draw: random.Random) -> Path:
    """Writes a Parquet file that repeats a text of megabytes, or a number."""
    import pyarrow as pa
    from pyarrow import parquet

    path, number = place.folder / "bomb.parquet", 10 ** draw.randint(3, 7)
    column = pa.array(np.zeros(number, np.int8))
    if draw.random() < 0.5:
        text = pa.array(["x" * 10 ** draw.randint(5, 7)])
        indices = pa.array(np.zeros(number, np.int32))
        column = pa.DictionaryArray.from_arrays(indices, text)
    label = pa.array(np.zeros(number, np.int8))
    parquet.write_table(pa.table({"x": column, "label": label}), path, compression="zstd")
    return path


def workbook_bomb(place: Place, draw: random.Random) -> Path:
    """Writes a workbook with a long sheet, or with the last possible row."""
    path = place.folder / "bomb.xlsx"
    last = b'<row r="1048576"><c r="A1048576"><v>1</v></c></row>'
    rows = draw.choice(
        (last, b"<row><c><v>1</v></c></row>" * 10 ** draw.randint(4, 6), b"<row" * 10**6)
    )
    with (
        zipfile.ZipFile(io.BytesIO(samples()["xlsx"])) as old,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            is_sheet = name == "xl/worksheets/sheet1.xml"
            sheet = b"%s%s</sheetData></worksheet>" % (SHEET, rows)
            new.writestr(name, sheet if is_sheet else old.read(name))
    return path


def _in_little_memory(path: Path, peak: Any) -> None:
    """Reads a file in a process of limited memory, which ends with status 1 at a raw error."""
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_of()[0]
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MAX_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    refused(predict_row if path.is_dir() else read_table, path)
    peak.value = memory_of()[1] - before


def requests(seed: int, place: Place) -> None:
    """A server answers any request, and meanwhile says within a second that it is alive."""
    draw, kind = (
        random.Random(seed),
        random.Random(seed).choice(("json", "csv", "json", "csv", "slow")),
    )
    if kind == "slow":
        broken_off(place, trickles=draw.random() < 0.2)
        return
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
    client, answer = place.server(), list[Any]()
    path = f"/models/{place.model.name}/predict"
    post = partial(client.post, path, content=body, headers=headers)
    while_alive(place, lambda: answer.append(post()))
    assert 400 <= answer[0].status_code < 500 or answer[0].status_code in (200, 503), answer


def while_alive(place: Place, work: Callable[[], object]) -> None:
    """Runs a function, and meanwhile asks a server whether it is alive."""
    client, waits, thread = place.server(), list[float](), threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        start = time.monotonic()
        assert client.get("/health").status_code == 200
        waits.append(time.monotonic() - start)
        time.sleep(0.05)
    record(place, "seconds until /health", max(waits, default=0.0))
    place.check_server()
    assert max(waits, default=0) < MAX_WAIT, f"/health after {max(waits):.1f} seconds"


def broken_off(place: Place, *, trickles: bool) -> None:
    """A body that does not end is answered in time, and a client that leaves is no error."""
    address, count = place.server().base_url, partial(errors_of, place)
    errors = count()
    head = f"POST /models/{place.model.name}/predict HTTP/1.1\r\nHost: x\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n"

    def talk() -> None:
        with socket.create_connection((address.host, address.port), timeout=30) as connection:
            connection.sendall(head.encode() + b'{"inputs": [')
            start = time.monotonic()
            connection.settimeout(0.2)
            while trickles:
                with suppress(TimeoutError):
                    if not connection.recv(2**16):
                        return
                    assert time.monotonic() - start < MAX_SECONDS + 2, (
                        "a body that trickles is open"
                    )
                connection.sendall(b" ")

    failures = list[BaseException]()

    def work() -> None:
        try:
            talk()
        except ConnectionError:  # The server may close first.
            pass
        except BaseException as error:
            failures.append(error)

    while_alive(place, work)
    if failures:
        raise failures[0]
    assert count() == errors, "a client that left is counted as an error of the server"


def errors_of(place: Place) -> int:
    """Returns the number of requests that the server failed at."""
    lines = place.server().get("/metrics").text.splitlines()
    counts = (line.split()[-1] for line in lines if "requests_total{" in line and '"500"' in line)
    return int(sum(map(float, counts)))


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
