from __future__ import annotations

import gzip
import hashlib
import logging
import lzma
import multiprocessing
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tg_mlc.datasets._download import ChecksumError, DatasetUnavailableError, Network, SourceError
from tg_mlc.datasets._sources import RawFile, fetch_all, read_checked, set_aside

CONTENT = bytes(range(256)) * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
FILE = RawFile("file.arff", (DIGEST,), ("a", "b"), "set/raw", "the archive")


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch):
    monkeypatch.delenv("TG_MLC_DATA", raising=False)


@pytest.fixture
def answers(monkeypatch):
    """What addresses answer, and those that were asked."""
    contents, asked = {}, []

    def read(network, address):
        asked.append(address)
        if address not in contents:
            raise SourceError("no network")
        return contents[address]

    monkeypatch.setattr(Network, "read", read)
    return contents, asked


def test_sources_are_asked_in_order(answers, tmp_path, caplog):
    contents, asked = answers
    contents.update(changed=b"<html>", good=CONTENT, never=CONTENT)
    with caplog.at_level(logging.WARNING):
        fetch_all([FILE._replace(urls=("dead", "changed", "good", "never"))], tmp_path / "raw")
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["file.arff"]
    assert (tmp_path / "raw" / "file.arff").read_bytes() == CONTENT
    assert asked == ["dead", "changed", "good"]
    assert "Could not get file.arff from dead: no network" in caplog.text
    assert f"from changed: Expected SHA-256 {DIGEST} (got" in caplog.text
    assert "TG_MLC_DATA" not in caplog.text  # which is nothing to warn of


def test_each_accepted_form_will_do(answers, tmp_path):
    answers[0]["a"] = CONTENT
    fetch_all([FILE._replace(sha256=("0" * 64, DIGEST))], tmp_path)
    with pytest.raises(DatasetUnavailableError, match=rf"SHA-256 {'0' * 64} or {'1' * 64} \(got {DIGEST}, 256000 by"):
        fetch_all([FILE._replace(name="other", sha256=("0" * 64, "1" * 64))], tmp_path)


def test_mistakes_are_not_swallowed(monkeypatch, tmp_path):
    monkeypatch.setattr(Network, "read", lambda network, address: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        fetch_all([FILE], tmp_path)


def test_files_in_place_are_left_alone(answers, tmp_path):
    (tmp_path / "file.arff").write_bytes(b"placed by hand")
    fetch_all([FILE], tmp_path)
    assert answers[1] == []
    assert (tmp_path / "file.arff").read_bytes() == b"placed by hand"


def test_offline_all_missing_files_are_named_with_their_places(answers, tmp_path, monkeypatch):
    files = [
        FILE,
        FILE._replace(name="there.arff"),
        FILE._replace(name="sub/last.xml", sha256=(), urls=("c",), hint=""),
    ]
    (tmp_path / "there.arff").touch()
    with pytest.raises(DatasetUnavailableError) as error:
        fetch_all(files, tmp_path)
    message = str(error.value)
    assert "  1. the folder in TG_MLC_DATA: the environment variable is not set\n  2. a: no network\n" in message
    first, last = message.splitlines()[-2:]
    assert first == (
        f"  '{tmp_path / 'file.arff'}' or '$TG_MLC_DATA/set/raw/file.arff', SHA-256 {DIGEST}, "
        f"from a or b or the archive"
    )
    assert last == f"  '{tmp_path / 'sub/last.xml'}' or '$TG_MLC_DATA/set/raw/last.xml', from c"
    assert "there.arff" not in message
    assert answers[1] == ["a", "b"]  # nobody waits for each of many files in turn
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path / "shared"))
    with pytest.raises(DatasetUnavailableError, match=f"or '{tmp_path}/shared/set/raw/file.arff'"):
        fetch_all(files, tmp_path)


def test_what_this_machine_has_is_taken_even_if_another_file_is_missing(answers, tmp_path, monkeypatch):
    (tmp_path / "set" / "raw").mkdir(parents=True)
    (tmp_path / "set" / "raw" / "here.arff").write_bytes(CONTENT)
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path))
    with pytest.raises(DatasetUnavailableError, match="Place 1 file by hand"):
        fetch_all([FILE, FILE._replace(name="here.arff")], tmp_path / "raw")
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["here.arff"]


@pytest.mark.parametrize(("suffix", "compress"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_the_data_folder_comes_first(answers, tmp_path, monkeypatch, suffix, compress):
    (tmp_path / "shared" / "set" / "raw").mkdir(parents=True)
    (tmp_path / "shared" / "set" / "raw" / f"file.arff{suffix}").write_bytes(compress(CONTENT))
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path / "shared"))
    fetch_all([FILE], tmp_path / "raw")
    assert (tmp_path / "raw" / "file.arff").read_bytes() == CONTENT
    assert answers[1] == []


def test_bombs_in_the_data_folder_are_no_source(answers, tmp_path, monkeypatch):
    (tmp_path / "set" / "raw").mkdir(parents=True)
    (tmp_path / "set" / "raw" / "file.arff.gz").write_bytes(gzip.compress(bytes(10**8)))
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path))
    with pytest.raises(DatasetUnavailableError, match=r"bytes unpacked \(got more\)"):
        fetch_all([FILE], tmp_path / "raw")
    assert not (tmp_path / "raw" / "file.arff").exists()


def test_a_wrong_file_is_set_aside(tmp_path):
    (tmp_path / "file.arff").write_bytes(b"<html>")
    with pytest.raises(ChecksumError, match=r"set aside as .*file\.arff\.bad'; run again"):
        read_checked(FILE, tmp_path)
    assert (tmp_path / "file.arff.bad").exists()
    (tmp_path / "file.arff").write_bytes(CONTENT)
    assert read_checked(FILE, tmp_path) == CONTENT


def test_set_aside_overwrites_nothing(tmp_path):
    names = []
    for content in (b"1", b"2", b"3"):
        path = tmp_path / "file.csv"
        path.write_bytes(content)
        names.append(set_aside(path).name)
    assert names == ["file.csv.bad", "file.csv.bad1", "file.csv.bad2"]
    assert (tmp_path / "file.csv.bad").read_bytes() == b"1"


class Slow(BaseHTTPRequestHandler):
    """Sends the first half, and the rest only when every process has the first half, too."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[:1000])
        self.wfile.flush()
        self.server.barrier.wait()
        self.wfile.write(CONTENT[1000:])

    def log_message(self, *args):
        pass


def test_two_processes_may_download_into_one_folder(tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.barrier = threading.Barrier(2, timeout=60)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    file = FILE._replace(urls=(f"http://127.0.0.1:{server.server_port}/file",))
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=fetch_all, args=([file], tmp_path / "raw")) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    server.shutdown()
    server.server_close()
    assert [process.exitcode for process in processes] == [0, 0]
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["file.arff"]
    assert (tmp_path / "raw" / "file.arff").read_bytes() == CONTENT
