from __future__ import annotations

import bz2
import gzip
import hashlib
import logging
import lzma
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tg_mlc.datasets import _resume
from tg_mlc.datasets._download import ChecksumError, DatasetUnavailableError, SourceError, unpack
from tg_mlc.datasets._resume import fetch_resumable
from tg_mlc.datasets._sources import RawFile, fetch_all, read_checked, set_aside

CONTENT = bytes(range(256)) * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
FILES = {
    "/plain": CONTENT,
    "/whole.gz": gzip.compress(CONTENT),
    "/other": b"<html>",
    "/no_ranges": CONTENT,
    "/other_range": CONTENT,
}


class Handler(BaseHTTPRequestHandler):
    """A server that knows ranges, and drops as many connections in the middle as it is told."""

    def do_GET(self):
        start = int(self.headers["Range"][6:-1]) if "Range" in self.headers else 0
        self.server.asked.append((self.path, start))
        content = FILES.get(self.path)
        if content is None:
            self.send_error(404)
            return
        if start and self.path == "/no_ranges":
            start = 0
        if start >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            said = 1 if self.path == "/other_range" else start
            self.send_header("Content-Range", f"bytes {said}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if self.server.drops:
            self.server.drops -= 1
            self.wfile.write(content[start : start + 60_000])
            self.wfile.flush()
            self.connection.close()
            return
        self.wfile.write(content[start:])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.drops, server.asked = 0, []
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch):
    monkeypatch.delenv("TG_MLC_DATA", raising=False)


def test_a_dropped_connection_is_gone_on_with(server, tmp_path):
    server.drops = 2
    part = tmp_path / "file.part"
    assert fetch_resumable(f"{server.url}/plain", part) == CONTENT
    starts = [start for _, start in server.asked]
    assert starts[0] == 0 < starts[1] < starts[2] <= 120_000
    assert not part.exists()


def test_what_has_come_stays_for_the_next_run(server, tmp_path):
    server.drops = 3
    part = tmp_path / "file.part"
    with pytest.raises(SourceError, match=r"run again to go on from byte \d+"):
        fetch_resumable(f"{server.url}/plain", part)
    kept = part.read_bytes()
    assert 0 < len(kept) < len(CONTENT)
    assert CONTENT.startswith(kept)
    assert fetch_resumable(f"{server.url}/plain", part) == CONTENT
    assert server.asked[-1] == ("/plain", len(kept))


def test_a_server_without_ranges_starts_again(server, tmp_path):
    part = tmp_path / "file.part"
    part.write_bytes(CONTENT[:5000])
    assert fetch_resumable(f"{server.url}/no_ranges", part) == CONTENT
    assert server.asked == [("/no_ranges", 5000)]


def test_a_complete_part_is_not_downloaded_again(server, tmp_path):
    part = tmp_path / "file.part"
    part.write_bytes(CONTENT)
    assert fetch_resumable(f"{server.url}/plain", part) == CONTENT
    assert server.asked == [("/plain", len(CONTENT))]


def test_a_part_longer_than_the_file_starts_again(server, tmp_path):
    part = tmp_path / "file.part"
    part.write_bytes(CONTENT + b"more")
    assert fetch_resumable(f"{server.url}/plain", part) == CONTENT
    assert [start for _, start in server.asked] == [len(CONTENT) + 4, 0]


def test_an_error_page_neither_fills_nor_empties_a_part(server, tmp_path):
    part = tmp_path / "file.part"
    part.write_bytes(b"begin")
    with pytest.raises(SourceError, match=r"404.*from byte 5"):
        fetch_resumable(f"{server.url}/missing", part)
    assert part.read_bytes() == b"begin"
    assert len(server.asked) == 1


def test_no_server(tmp_path):
    with pytest.raises(SourceError, match="ConnectionError") as error:
        fetch_resumable("http://127.0.0.1:9/file", tmp_path / "file.part")
    assert "run again" not in str(error.value)


def test_a_drip_is_not_waited_for(tmp_path, monkeypatch):
    stopping = threading.Event()

    class Drip(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            while not stopping.wait(0.02):
                self.wfile.write(b".")

        def log_message(self, *args):
            pass

    monkeypatch.setattr(_resume, "SLOW_SECONDS", 0.2)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Drip)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    with pytest.raises(SourceError, match=r"fewer than 10000 bytes within 0\.2 seconds"):
        fetch_resumable(f"http://127.0.0.1:{server.server_port}/", tmp_path / "file.part")
    stopping.set()
    server.shutdown()
    server.server_close()


def test_without_pooch(tmp_path, monkeypatch):
    def missing(module, extra):
        raise ImportError(f"install tg_mlc[{extra}]")

    monkeypatch.setattr(_resume, "require", missing)
    with pytest.raises(SourceError, match=r"tg_mlc\[data\]"):
        fetch_resumable("http://127.0.0.1:9/file", tmp_path / "file.part")


def test_mirrors_are_asked_in_order(server, tmp_path, caplog):
    urls = tuple(f"{server.url}/{name}" for name in ("missing", "other", "whole.gz", "plain"))
    with caplog.at_level(logging.WARNING):
        fetch_all([RawFile("file.arff", DIGEST, urls)], tmp_path / "raw")
    assert (tmp_path / "raw" / "file.arff").read_bytes() == CONTENT
    assert [path for path, _ in server.asked] == ["/missing", "/other", "/whole.gz"]
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["file.arff"]
    assert "404" in caplog.text
    assert "Expected SHA-256" in caplog.text


@pytest.mark.parametrize("name", ["plain", "other_range"])
def test_a_part_of_another_file_is_thrown_away(server, tmp_path, name):
    url = f"{server.url}/{name}"
    part = tmp_path / f"file.arff.{hashlib.sha256(url.encode()).hexdigest()[:8]}.part"
    part.write_bytes(b"another file")
    fetch_all([RawFile("file.arff", DIGEST, (url,))], tmp_path)
    assert (tmp_path / "file.arff").read_bytes() == CONTENT
    assert [start for _, start in server.asked] == [12, 0]
    assert not part.exists()


def test_an_interrupted_data_set_goes_on(server, tmp_path):
    file = RawFile("file.arff", DIGEST, (f"{server.url}/plain",))
    server.drops = 3
    with pytest.raises(DatasetUnavailableError, match=r"run again to go on from byte \d+"):
        fetch_all([file], tmp_path)
    assert not (tmp_path / "file.arff").exists()
    fetch_all([file], tmp_path)
    assert (tmp_path / "file.arff").read_bytes() == CONTENT
    assert server.asked[3][1] > 100_000


def test_offline_says_what_to_do(tmp_path):
    file = RawFile("file.arff", DIGEST, ("http://127.0.0.1:9/a.gz", "http://127.0.0.1:9/b"))
    with pytest.raises(DatasetUnavailableError) as error:
        fetch_all([file], tmp_path)
    message = str(error.value)
    assert "TG_MLC_DATA: the environment variable is not set" in message
    assert "2. http://127.0.0.1:9/a.gz: ConnectionError" in message
    assert f"Place the file by hand as '{tmp_path / 'file.arff'}' (SHA-256 {DIGEST}, unpacked)" in message


@pytest.mark.parametrize(("suffix", "compress"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_the_data_folder_comes_first(server, tmp_path, monkeypatch, suffix, compress):
    (tmp_path / "shared" / "set").mkdir(parents=True)
    (tmp_path / "shared" / "set" / f"file.arff{suffix}").write_bytes(compress(CONTENT))
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path / "shared"))
    fetch_all([RawFile("file.arff", DIGEST, (f"{server.url}/plain",), local="set")], tmp_path / "raw")
    assert (tmp_path / "raw" / "file.arff").read_bytes() == CONTENT
    assert server.asked == []


def test_a_wrong_file_is_set_aside(tmp_path):
    (tmp_path / "file.arff").write_bytes(b"<html>")
    with pytest.raises(ChecksumError, match=r"set aside as .*file\.arff\.bad'; run again"):
        read_checked(RawFile("file.arff", DIGEST), tmp_path)
    assert (tmp_path / "file.arff.bad").exists()
    (tmp_path / "file.arff").write_bytes(CONTENT)
    assert read_checked(RawFile("file.arff", DIGEST), tmp_path) == CONTENT


def test_damaged_archives():
    assert unpack(bz2.compress(b"x"), "a.bz2") == b"x"
    assert unpack(b"x", "a.arff") == b"x"
    for name, content in {"a.gz": gzip.compress(CONTENT)[:-9], "a.xz": b"?", "a.bz2": b"?"}.items():
        with pytest.raises(SourceError, match=f"Expected '{name}' to be whole"):
            unpack(content, name)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_bombs_are_no_source(tmp_path, monkeypatch, suffix):
    compress = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix]
    with pytest.raises(SourceError, match=r"at most 1,000 bytes unpacked"):
        unpack(compress(bytes(10**6)), f"a{suffix}", 1000)
    (tmp_path / f"file.arff{suffix}").write_bytes(compress(bytes(10**6)))
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path))
    with pytest.raises(DatasetUnavailableError, match=r"at most 1,000 bytes unpacked"):
        fetch_all([RawFile("file.arff", DIGEST, max_bytes=1000)], tmp_path / "raw")
    assert not (tmp_path / "raw" / "file.arff").exists()


def test_parts_of_other_mirrors_are_removed(server, tmp_path):
    for name in ("file.arff.12345678.part", "other.arff.12345678.part"):
        (tmp_path / name).write_bytes(b"part")
    fetch_all([RawFile("file.arff", DIGEST, (f"{server.url}/plain",))], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.arff", "other.arff.12345678.part"]


def test_set_aside_overwrites_nothing(tmp_path):
    names = []
    for content in (b"1", b"2", b"3"):
        path = tmp_path / "file.csv"
        path.write_bytes(content)
        names.append(set_aside(path).name)
    assert names == ["file.csv.bad", "file.csv.bad1", "file.csv.bad2"]
    assert (tmp_path / "file.csv.bad").read_bytes() == b"1"
