import bz2
import gzip
import io
import lzma
import os
import stat
import time
import tracemalloc
import zipfile
from contextlib import suppress

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tg_mlc import _files
from tg_mlc._files import (
    byte_lines,
    most_unpacked,
    open_unpacked,
    read_bounded,
    read_lines,
    read_names,
    read_tensors,
    read_unpacked,
    replace_when_done,
)
from tg_mlc.inputs.dna_dataset import read_fasta
from tg_mlc.inputs.tables import read_molecules, read_table

TEXT = b"\xef\xbb\xbfa b\r\n\n \xc3\xa9\nlast"
LINES = [(1, "a b"), (3, " é"), (4, "last")]
COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
PACKED = sorted(set(COMPRESS) - {""})


def write(folder, content, name):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("suffix", [*COMPRESS, ".GZ", ".Bz2", ".XZ", ".txt"])
def test_files_are_unpacked_by_their_suffix_in_any_case(tmp_path, suffix):
    content = COMPRESS.get(suffix.lower(), bytes)(TEXT)
    path = write(tmp_path, content, f"x{suffix}")
    for name in (path, os.fsencode(path), str(path)):
        assert read_unpacked(name) == TEXT
    assert read_unpacked(f"http://example.org/x{suffix}", content=content) == TEXT
    assert list(read_lines(path)) == LINES
    assert [line for _, line in byte_lines(path)] == [b"a b\r\n", b"\n", b" \xc3\xa9\n", b"last"]


@pytest.mark.parametrize("suffix", PACKED)
def test_damaged_files_are_named(tmp_path, suffix):
    packed = COMPRESS[suffix](os.urandom(2**20))
    for content, start in ((packed[:-9], "[1-9]"), (b"text", "0 ")):
        path = write(tmp_path, content, f"x{suffix}")
        message = rf"'{path}' to be whole \(.* after {start}.*\); get it once more"
        for read in (read_unpacked, lambda path: list(byte_lines(path))):
            with pytest.raises(ValueError, match=message):
                read(path)


def test_missing_files_and_folders_are_refused(tmp_path):
    for read in (read_unpacked, open_unpacked, lambda path: list(read_lines(path))):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "none.gz")
        with pytest.raises(IsADirectoryError):
            read(tmp_path)


def test_errors_of_the_disk_are_raised():
    class Disk(io.BytesIO):
        def read1(self, size=-1):
            raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        read_bounded(Disk(), "x", 10)


def test_both_files_are_closed(tmp_path):
    with open_unpacked(write(tmp_path, gzip.compress(TEXT), "x.gz")) as file:
        inner = file.raw._below
        assert not inner.closed
    assert inner.closed


@pytest.mark.parametrize("suffix", COMPRESS)
def test_more_bytes_than_the_limit_are_refused(tmp_path, suffix):
    path = write(tmp_path, COMPRESS[suffix](bytes(1000)), f"x{suffix}")
    assert read_unpacked(path, 1000) == bytes(1000)
    for size in (999, 0):
        message = (
            rf"'{path}' to have at most {size} bytes unpacked \(got more\); unpack or divide it"
        )
        with pytest.raises(ValueError, match=message):
            read_unpacked(path, size)


READERS = {
    "bytes": read_unpacked,
    "lines": lambda path: sum(1 for _ in read_lines(path)),
    "names": read_names,
    "fasta": lambda path: list(read_fasta(path)),
    "csv": read_table,
    "molecules": lambda path: read_molecules(path, "smiles"),
}
UNITS = {"fasta": b">a\nACGT\n", "csv": b"1,0\n", "molecules": b"CC,1\n"}


@pytest.mark.parametrize("suffix", [".bz2", ".xz"])
@pytest.mark.parametrize("reader", READERS)
def test_bombs_are_refused_wherever_files_are_read(tmp_path, monkeypatch, reader, suffix):
    monkeypatch.setattr(_files, "ALWAYS_UNPACKED", 2**16)
    monkeypatch.setattr(_files, "MAX_RATIO", 50)
    header = {"csv": b"a,b\n", "molecules": b"smiles,a\n"}.get(reader, b"")
    content = header + UNITS.get(reader, b"name\n") * 2**18
    path = write(tmp_path, COMPRESS[suffix](content), f"bomb{suffix}")
    assert most_unpacked(path.stat().st_size) < 2**19
    tracemalloc.start()
    with pytest.raises(ValueError, match=rf"'{path}' to have at most [0-9,]+ bytes unpacked"):
        READERS[reader](path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**26


SHORT = {"fasta": b">\nA\n", "csv": b"1,0\n", "molecules": b"C,1\n"}


@pytest.mark.parametrize("reader", READERS)
def test_many_short_lines_in_few_bytes_are_refused(tmp_path, monkeypatch, reader):
    assert _files.ALWAYS_LINES == 2**20
    monkeypatch.setattr(_files, "ALWAYS_LINES", 2**16)
    header = {"csv": b"a,b\n", "molecules": b"smiles,a\n"}.get(reader, b"")
    content = gzip.compress(header + SHORT.get(reader, b"\n") * 2**18)
    path = write(tmp_path, content, "bomb.gz")
    with suppress(ValueError):  # The first call of a reader imports its packages.
        READERS[reader](write(tmp_path, gzip.compress(header), "empty.gz"))
    start = time.process_time()
    with pytest.raises(ValueError, match=rf"'{path}' to have at most 65,536 lines unpacked"):
        READERS[reader](path)
    assert time.process_time() - start < 2


def test_a_gzip_file_of_zeros_alone_is_no_bomb_while_it_is_small(tmp_path):
    path = write(tmp_path, gzip.compress(bytes(2**25)), "zeros.gz")
    assert len(read_unpacked(path)) == 2**25
    assert (most_unpacked(0), most_unpacked(10**6)) == (2**26, 10**9)


def test_lines_that_are_too_long_are_refused(tmp_path):
    path = write(tmp_path, b"a\n" + b"x" * 11, "x")
    assert len(list(byte_lines(path, 11))) == 2
    with pytest.raises(ValueError, match=rf"at most 10 bytes in line 2 of '{path}'"):
        list(byte_lines(path, 10))


def test_text_of_another_encoding_is_refused(tmp_path):
    path = write(tmp_path, "a\ncafé".encode("latin-1"), "x")
    with pytest.raises(ValueError, match=r"line 2 of '.*x' \(got byte 0xe9 in b'caf\\xe9'\)"):
        list(read_lines(path))


def test_a_part_of_an_archive_is_read_up_to_a_limit(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(10**6))
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert read_bounded(archive.open("zeros"), "'zeros'", 10**6) == bytes(10**6)
        with pytest.raises(ValueError, match="'zeros' to have at most 1,000 bytes"):
            read_bounded(archive.open("zeros"), "'zeros'", 1000)


@settings(max_examples=150)
@given(data=st.data(), suffix=st.sampled_from(sorted(COMPRESS)))
def test_mutated_files_give_lines_or_our_error(tmp_path_factory, data, suffix):
    content = bytearray(COMPRESS[suffix](TEXT * 20))
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    path = write(tmp_path_factory.getbasetemp(), content, f"mutated{suffix}")
    try:
        lines = list(read_lines(path))
    except ValueError as error:
        assert str(error).startswith("Expected")  # noqa: PT017
        assert str(path) in str(error)  # noqa: PT017
    else:
        assert all(number > 0 and line.strip() for number, line in lines)


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "folder" / "file.bin"

    def write_half():
        with replace_when_done(path) as unfinished:
            unfinished.write_bytes(b"half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert list(path.parent.iterdir()) == []
    with replace_when_done(path) as unfinished:
        unfinished.write_bytes(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_replaced_files_get_the_usual_permissions(tmp_path):
    with replace_when_done(tmp_path / "ours") as unfinished:
        unfinished.write_bytes(b"")
    (tmp_path / "usual").write_bytes(b"")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "usual")]
    assert modes[0] == modes[1]


def test_tensors_are_read_as_they_were_written(tmp_path):
    path, x = tmp_path / "x.pt", torch.arange(100.0)
    torch.save({"x": x}, path)
    assert torch.equal(read_tensors(path)["x"], x)
    content = bytearray(path.read_bytes())
    content[content.index(x.numpy().tobytes()) + 50] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.pt' to be whole .*wrong checksum"):
        read_tensors(path)
    with pytest.raises(FileNotFoundError):
        read_tensors(tmp_path / "none.pt")
