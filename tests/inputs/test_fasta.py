from __future__ import annotations

import bz2
import gzip
import lzma
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tg_mlc._files import read_names
from tg_mlc.inputs.dna_dataset import LETTERS, read_fasta

FASTA = b">first one\nACGT\nacgt\n>second\r\nNRYK\r\n\r\nUx\n"
COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def write(folder, content, name="x.fa"):
    path = folder / name
    path.write_bytes(content)
    return path


def as_text(record):
    return "".join(LETTERS[code] for code in record.letters)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_letters_names_and_lines(tmp_path, suffix):
    path = write(tmp_path, COMPRESS[suffix](FASTA), f"x.fa{suffix}")
    first, second = read_fasta(path)
    assert (first.header, first.line, as_text(first)) == ("first one", 1, "ACGTACGT")
    assert (second.header, second.line, as_text(second)) == ("second", 4, "NNNNTN")
    assert first.letters.dtype == "uint8"
    assert [as_text(record) for record in read_fasta(os.fsencode(path))] == ["ACGTACGT", "NNNNTN"]


def test_it_streams(tmp_path):
    path = write(tmp_path, b">a\nACGT\n>b\n?\n")
    records = read_fasta(path)
    assert next(records).header == "a"
    with pytest.raises(ValueError, match="line 4"):
        next(records)


def test_blank_lines_spaces_and_a_byte_order_mark_are_let_through(tmp_path):
    records = list(read_fasta(write(tmp_path, b"\xef\xbb\xbf\n>a\n\nAC GT\t\n\n")))
    assert [(record.header, as_text(record)) for record in records] == [("a", "ACGT")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"at least one sequence in '.*x\.fa' \(got none\)"),
        (b"\n\n", "at least one sequence"),
        (b"\nACGT\n", r"a name that begins with '>' in line 2 of '.*' \(got b'ACGT"),
        (b">a\n>b\nA\n", r"letters after the name in line 1 of '.*' \(got none for 'a'\)"),
        (b">a\nA\n>b", r"letters after the name in line 3 of '.*' \(got none for 'b'\)"),
        (
            b">a\nACG\nA-GT\n",
            r"letters of DNA \(A, C, G, T, N or another of IUPAC\) in line 3 of '.*' \(got b'-'\)",
        ),
        (b">a\nAC\xffT\n", r"line 2 of '.*' \(got b'\\xff'\)"),
        (b">\xe9\nACGT\n", r"UTF-8 in line 1 of '.*'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        list(read_fasta(write(tmp_path, content)))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_truncated_and_wrong_archives(tmp_path, suffix):
    for content in (COMPRESS[suffix](FASTA * 99)[:-9], b"no archive"):
        with pytest.raises(ValueError, match=r"Expected '.*' to be whole"):
            list(read_fasta(write(tmp_path, content, f"x.fa{suffix}")))


def test_a_missing_file_is_called_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(read_fasta(tmp_path / "none.fa"))


def test_names(tmp_path):
    assert read_names(write(tmp_path, b"\xef\xbb\xbfa b\r\n c \nd\n\n\n")) == ["a b", "c", "d"]
    assert read_names(write(tmp_path, gzip.compress(b"a\nb"), "x.gz")) == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n\n", "at least one name"),
        (b"a\n\nb\n", r"a name in every line of '.*' \(got none in line 2\)"),
        (b"a\n\xff\n", "UTF-8 in line 2"),
        (b"a" * 70_000, "at most 65,536 bytes in line 1"),
    ],
)
def test_names_that_are_wrong(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        read_names(write(tmp_path, content))


def outcome(read):
    """The value that is read, or the message of the error."""
    try:
        return read()
    except ValueError as error:
        return str(error)


def mutated(content):
    """The bytes with some replaced, cut out or put in."""
    edit = st.tuples(st.integers(0, len(content)), st.integers(0, 3), st.binary(max_size=3))

    def apply(edits):
        result = content
        for place, dropped, put in edits:
            result = result[:place] + put + result[place + dropped :]
        return result

    return st.lists(edit, min_size=1, max_size=4).map(apply)


@settings(max_examples=200)
@given(data=st.data(), suffix=st.sampled_from(sorted(COMPRESS)), first=st.booleans())
def test_mutated_files_give_sequences_or_a_value_error(tmp_path_factory, data, suffix, first):
    content = (
        COMPRESS[suffix](data.draw(mutated(FASTA)))
        if first
        else data.draw(mutated(COMPRESS[suffix](FASTA)))
    )
    path = write(tmp_path_factory.getbasetemp(), content, f"mutated{suffix}")
    records = outcome(lambda: list(read_fasta(path)))
    if isinstance(records, str):
        assert str(path) in records
    else:
        assert records
        assert all(record.letters.size > 0 and record.letters.max() <= 4 for record in records)


@settings(max_examples=100)
@given(content=mutated(b"osa_AGO\nosa_AP2\nosa_ARF\n"))
def test_mutated_names_give_names_or_a_value_error(tmp_path_factory, content):
    path = write(tmp_path_factory.getbasetemp(), content, "names")
    names = outcome(lambda: read_names(path))
    if isinstance(names, str):
        assert str(path) in names
    else:
        assert all(name.strip() == name != "" for name in names)
