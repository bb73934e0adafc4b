from __future__ import annotations

import gzip
import lzma

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tg_mlc.inputs.tables import read_molecules


@pytest.fixture
def write(tmp_path):
    def write_csv(text, name="table.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_csv


def test_all_other_columns_are_labels_by_default(write):
    table = read_molecules(write('a,smiles,"b, quoted"\n1,CC,0\n0, CO ,1.0\n'), "smiles")
    assert table.smiles == ["CC", "CO"]
    assert table.label_names == ["a", "b, quoted"]
    assert table.y.tolist() == [[1, 0], [0, 1]]


def test_labels_come_in_the_order_asked_for(write):
    table = read_molecules(write("a,b,smiles,id\n1,0,CC,x1\n"), "smiles", ["b", "a"])
    assert table.label_names == ["b", "a"]
    assert table.y.tolist() == [[0, 1]]


@pytest.mark.parametrize("blank", ["", " ", "nan", "NaN"])
def test_blank_labels_are_unknown(write, blank):
    table = read_molecules(write(f"smiles,a,b\nCC,1,{blank}\n"), "smiles")
    assert table.y.isnan().tolist() == [[False, True]]


@pytest.mark.parametrize("wrong", ["2", "-1", "0.5", "yes", "inf"])
def test_other_labels_are_refused_with_their_place(write, wrong):
    path = write(f"smiles,a,b\nCC,1,0\n\nCO,1,{wrong}\n")
    with pytest.raises(ValueError, match=rf"row 1 \(line 4\), column 'b' of .*got '{wrong}'"):
        read_molecules(path, "smiles")


def test_missing_columns_are_named_beside_those_there(write):
    path = write("smiles,a\nCC,1\n")
    with pytest.raises(ValueError, match=r"\['b'\].*got the columns \['smiles', 'a'\]"):
        read_molecules(path, "smiles", ["a", "b"])
    with pytest.raises(ValueError, match=r"\['SMILES'\]"):
        read_molecules(path, "SMILES")


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        ("smiles,a\nCC,1,0\n", None, r"2 cells.*row 0 \(line 2\).*got 3"),
        ("smiles,a\nCC\n", None, "got 1"),
        ("smiles,a,a\nCC,1,0\n", None, r"\['a'\] more than once"),
        ("smiles,a\nCC,1\n", ["a", "a"], r"\['a'\] more than once"),
        ("smiles,a\nCC,1\n", ["smiles"], r"\['smiles'\] more than once"),
        ("smiles,a\nCC,1\n", "a", "list of names"),
        ("smiles\nCC\n", None, "at least one column of labels"),
        ("", None, r"got the columns \[\]"),
    ],
)
def test_malformed_tables_are_refused(write, text, labels, message):
    with pytest.raises(ValueError, match=message):
        read_molecules(write(text), "smiles", labels)


def test_byte_order_mark_and_windows_lines(tmp_path):
    path = tmp_path / "windows.csv"
    path.write_bytes("\ufeffsmiles,a\r\nCC,1\r\n".encode())
    assert read_molecules(path, "smiles").y.tolist() == [[1]]


@pytest.mark.parametrize(("suffix", "opener"), [(".gz", gzip.open), (".GZ", gzip.open), (".xz", lzma.open)])
def test_compressed_files(tmp_path, suffix, opener):
    path = tmp_path / f"table.csv{suffix}"
    with opener(path, "wt") as file:
        file.write("smiles,a\nCC,1\n")
    assert read_molecules(path, "smiles").smiles == ["CC"]


def test_a_header_alone_gives_no_rows(write):
    table = read_molecules(write("smiles,a,b\n"), "smiles")
    assert table.smiles == []
    assert table.y.shape == (0, 2)


def test_truncated_and_mislabelled_files(tmp_path):
    whole = b"smiles,a\n" + b"CC,1\n" * 1000
    for name, content, message in [
        ("cut.csv.gz", gzip.compress(whole)[:-9], "to be whole .*ended before"),
        ("cut.csv.xz", lzma.compress(whole)[:-9], "to be whole"),
        ("none.csv.gz", whole, "to be whole .*Not a gzip"),
        ("packed.csv", gzip.compress(whole), "CSV file in utf-8-sig .*UnicodeDecodeError after line 0"),
        ("latin.csv", "smiles,a\nCC,é\n".encode("latin-1"), "CSV file in utf-8-sig"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=message) as error:
            read_molecules(tmp_path / name, "smiles")
        assert name in str(error.value)


@settings(max_examples=150)
@given(data=st.data(), suffix=st.sampled_from(["", ".gz", ".xz"]))
def test_mutated_files_give_molecules_or_our_error(tmp_path_factory, data, suffix):
    content = bytearray({"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[suffix](b"smiles,a,b\nCC,1,\nCO,0,1\n"))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / f"mutated.csv{suffix}"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        table = read_molecules(path, "smiles")
    except ValueError as error:
        assert str(error).startswith("Expected")  # noqa: PT017
        assert str(path) in str(error)  # noqa: PT017
    else:
        assert table.y.shape == (len(table.smiles), len(table.label_names))
