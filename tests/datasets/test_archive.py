from __future__ import annotations

import gzip
import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tg_mlc._files import sha256
from tg_mlc.datasets import _archive
from tg_mlc.datasets._archive import Archive, fetch_members, unpack_members
from tg_mlc.datasets._download import DatasetUnavailableError, SourceError
from tg_mlc.datasets._resume import part_of
from tg_mlc.datasets._sources import RawFile

CONTENT = {"a.txt": b"first", "b.txt": b"second"}
FILES = [RawFile(name, sha256(content)) for name, content in CONTENT.items()]
URL = "http://example.org/all.tar.gz"


def pack(*members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content, kind in members:
            info = tarfile.TarInfo(name)
            info.size, info.type, info.linkname = len(content), kind, "/etc/passwd"
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


WHOLE = pack(*((f"./folder/{name}", content, tarfile.REGTYPE) for name, content in CONTENT.items()))


@pytest.fixture
def network(monkeypatch):
    """Addresses and their contents, and the addresses that were asked."""
    contents, asked = {}, []

    def fetch(url, part):
        asked.append(url)
        if url not in contents:
            raise SourceError("no network")
        return contents[url]

    monkeypatch.setattr(_archive, "fetch_resumable", fetch)
    monkeypatch.delenv("TG_MLC_DATA", raising=False)
    return contents, asked


def test_members_are_found_in_any_folder():
    assert unpack_members(WHOLE, CONTENT) == CONTENT
    assert unpack_members(WHOLE, ["b.txt", "c.txt"]) == {"b.txt": b"second"}


def test_only_plain_files_are_taken():
    links = pack(("a.txt", b"", tarfile.SYMTYPE), ("b.txt", b"", tarfile.LNKTYPE), ("a.txt", b"", tarfile.DIRTYPE))
    assert unpack_members(links, CONTENT) == {}


def test_paths_that_lead_out_are_only_names(tmp_path, network):
    network[0][URL] = pack(("../../a.txt", b"first", tarfile.REGTYPE), ("/b.txt", b"second", tarfile.REGTYPE))
    folder = tmp_path / "one" / "two"
    fetch_members(FILES, folder, [URL])
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.txt")) == [
        "one/two/a.txt",
        "one/two/b.txt",
    ]


def test_what_was_gone_on_with_and_is_damaged_is_fetched_again(tmp_path, monkeypatch):
    part, answers = part_of(tmp_path, _archive.NAME, URL), [WHOLE[:50] + b"of another", WHOLE]

    def fetch(url, path):
        path.unlink(missing_ok=True)
        return answers.pop(0)

    monkeypatch.setattr(_archive, "fetch_resumable", fetch)
    part.write_bytes(b"x")
    assert Archive(URL, CONTENT, tmp_path).read("a.txt") == b"first"
    answers[:] = [b"damaged", WHOLE]
    with pytest.raises(SourceError, match="cannot be unpacked"):
        Archive(URL, CONTENT, tmp_path).read("a.txt")
    assert len(answers) == 1


def test_an_archive_that_unpacks_to_too_much():
    with pytest.raises(SourceError, match="its content to have at most 1,000 bytes"):
        unpack_members(gzip.compress(bytes(10**6)), CONTENT, max_bytes=1000)


def test_a_member_that_claims_any_size():
    info = tarfile.TarInfo("a.txt")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 0
    header = bytearray(info.tobuf(format=tarfile.GNU_FORMAT))
    header[483:495] = b"77777777777\0"  # the size of what the sparse file stands for
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:512]))
    with pytest.raises(SourceError, match="no plain file"):
        unpack_members(gzip.compress(bytes(header) + bytes(1024)), CONTENT)


@given(st.data())
def test_damaged_archives_give_one_error(data):
    plain = bytearray(gzip.decompress(WHOLE))[:4096]
    for _ in range(data.draw(st.integers(1, 4))):
        plain[data.draw(st.integers(0, len(plain) - 1))] = data.draw(st.integers(0, 255))
    for content in (gzip.compress(bytes(plain)), WHOLE[: data.draw(st.integers(0, len(WHOLE)))]):
        try:
            found = unpack_members(content, CONTENT)
        except SourceError as error:
            assert "cannot be unpacked" in str(error)  # noqa: PT017
        else:
            assert found.keys() <= CONTENT.keys()


def test_one_download_gives_all_files(tmp_path, network):
    contents, asked = network
    contents[URL] = WHOLE
    fetch_members(FILES, tmp_path, [URL])
    fetch_members(FILES, tmp_path, [URL])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == CONTENT
    assert asked == [URL]


def test_files_in_place_need_no_archive(tmp_path, network):
    (tmp_path / "a.txt").write_bytes(b"placed by hand")
    network[0][URL] = WHOLE
    fetch_members(FILES[:1], tmp_path, [URL])
    assert network[1] == []
    assert (tmp_path / "a.txt").read_bytes() == b"placed by hand"


def test_other_archives_follow_and_all_is_told(tmp_path, network):
    contents, asked = network
    contents["wrong"] = pack(("a.txt", b"other", tarfile.REGTYPE))
    contents["empty"] = pack()
    contents["broken"] = WHOLE[:-20]
    with pytest.raises(DatasetUnavailableError) as error:
        fetch_members(FILES, tmp_path, ["dead", "wrong", "empty", "broken"])
    message = str(error.value)
    assert "2. dead: no network" in message
    assert "3. wrong: Expected SHA-256" in message
    assert "4. empty: the archive has no file 'a.txt'" in message
    assert "5. broken: the archive cannot be unpacked" in message
    assert f"by hand into '{tmp_path}'" in message
    assert list(tmp_path.iterdir()) == []
    contents[URL] = WHOLE
    fetch_members(FILES, tmp_path, ["dead", "wrong", URL])
    assert asked[4:] == ["dead", "wrong", URL]


def test_parts_of_other_mirrors_are_removed(tmp_path, network, monkeypatch):
    contents, asked = network

    def fetch(url, part):
        asked.append(url)
        part.write_bytes(b"half")
        if url not in contents:
            raise SourceError("broken off")
        part.unlink()
        return contents[url]

    monkeypatch.setattr(_archive, "fetch_resumable", fetch)
    (tmp_path / "a.txt.12345678.part").write_bytes(b"half")
    with pytest.raises(DatasetUnavailableError):
        fetch_members(FILES, tmp_path, ["dead"])
    assert len(list(tmp_path.glob("archive.*.part"))) == 1
    contents[URL] = WHOLE
    fetch_members(FILES, tmp_path, ["dead", URL])
    assert {path.name for path in tmp_path.iterdir()} == CONTENT.keys()
