from __future__ import annotations

import csv
import gzip
import io
import lzma
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tg_mlc.inputs import tables
from tg_mlc.inputs.tables import nominal_values, read_csv_blocks, read_csv_table, read_molecules

COMPRESS = {"": bytes, ".gz": gzip.compress, ".GZ": gzip.compress, ".xz": lzma.compress}


@pytest.fixture
def write(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def rows(table):
    return [list(row) for row in zip(*(table.frame[i].tolist() for i in range(len(table.header))), strict=True)]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n",
        "a,b\r\n1,2\r\n\r\n3,4",
        "a,b\r1,2\r3,4",
        "a,b\n\n1,2\n\n\n",
        'a, b \n"1 ""q"", z\n2",x"y"z\n',
        "a,b\nnan,NA\n 1_0 , None\n,\n",
        "a,b\n1,\n\n,\n \t ,x\n",
        'a\n""\n  \n\nlast',
        "a,b,a\n1,2,3\n",
        "#a,b\n#1,2\n",
        "\ufeffa,größe\n1,é\n",
        "a,b\n",
    ],
)
@pytest.mark.parametrize("size", [1, 2, 100])
def test_cells_are_those_of_the_module_csv(write, monkeypatch, text, size):
    monkeypatch.setattr(tables, "_BLOCK", size)
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    header, *records = [(cells, reader.line_num) for cells in reader if cells]
    whole = read_csv_table(write(text), min_rows=0)
    blocks = list(read_csv_blocks(write(text), min_rows=0))
    assert whole.header == [name.strip() for name in header[0]]
    assert rows(whole) == [cells for cells, _ in records] == [row for block in blocks for row in rows(block)]
    assert whole.lines == [line for _, line in records] == [line for block in blocks for line in block.lines]
    assert [block.first for block in blocks] == [sum(map(len, blocks[:i])) for i in range(len(blocks))]


@pytest.mark.parametrize("delimiter", [";", "\t", "|", " ", "§"])
def test_other_delimiters(write, delimiter):
    path = write("a,b\n1,2\n\n3,4\n".replace(",", delimiter))
    assert rows(read_csv_table(path, delimiter)) == [["1", "2"], ["3", "4"]]
    with pytest.raises(ValueError, match=r"Expected 2 cells.* row 2 \(line 5\)"):
        read_csv_table(write("a,b\n1,2\n\n3,4\n5".replace(",", delimiter)), delimiter)


@pytest.mark.parametrize("delimiter", ["", "::", "\n", '"'])
def test_delimiters_that_are_refused(write, delimiter):
    with pytest.raises(ValueError, match=r"Expected 'delimiter' .*\(got "):
        read_csv_table(write("a,b\n1,2\n"), delimiter)


def test_a_file_without_a_header(write):
    assert rows(read_csv_table(write("1,2\n3,4\n"), header=[" a", "b"])) == [["1", "2"], ["3", "4"]]
    for names in (["a"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match=rf"Expected {len(names)} cells.*row 0 \(line 1\).*\(got 2\)"):
            read_csv_table(write("1,2\n3,4\n"), header=names)


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1", r"Expected 2 cells.*row 3 \(line 6\) of .*\(got 1\)"),
        ("1,", None),
        ("1,2,3", r"Expected 2 cells.*row 3 \(line 6\) of .*\(got 3\); quote cells that contain ','"),
        (" ", r"Expected 2 cells.*row 3 \(line 6\) of .*\(got 1\)"),
        ('1,"2', "a quote not closed"),
        ("1,\xe9", r"UnicodeDecodeError in line 6: .*of another encoding"),
    ],
)
def test_rows_that_do_not_fit_are_named(write, monkeypatch, row, message, size):
    monkeypatch.setattr(tables, "_BLOCK", size)
    path = write(b"a,b\n1,2\n\n3,\n5,6\n" + row.encode("latin-1"))
    if message is None:
        assert len(read_csv_table(path)) == sum(map(len, read_csv_blocks(path))) == 4
        return
    for read in (read_csv_table, lambda path: list(read_csv_blocks(path))):
        with pytest.raises(ValueError, match=message):
            read(path)


def test_long_cells(write):
    before = csv.field_size_limit()
    table = read_csv_table(write(f'body,calm\n"{"long words " * 20_000}",1\nshort,\n'))
    assert ([len(text) for text in table.texts("body")], table.lines) == ([220_000, 5], [2, 3])
    assert csv.field_size_limit() == before


def test_many_rows_in_a_small_file_take_little_memory(write):
    path = write(gzip.compress(b"a,b\n" + b"1,0\n" * 50_000), "rows.csv.gz")
    read_csv_table(path)  # imports pandas
    tracemalloc.start()
    table = read_csv_table(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(table), table.texts("b")[-1]) == (50_000, "0")
    assert peak < 40 * 50_000 + 2**21


def test_one_number_tells_the_role_of_a_column(monkeypatch):
    cells = iter(["", "1.5", "the rest"])
    assert nominal_values(cells) is None
    assert list(cells) == ["the rest"]
    assert nominal_values(["b", " a", "NA", "", "b"]) == ["a", "b"]
    for blank in ([], ["", " NaN", "null"], ["inf"], ["1_000"]):
        assert nominal_values(blank) is None


# Tables of molecules.


@pytest.mark.parametrize(
    ("text", "columns", "smiles", "y", "names"),
    [
        ('a,smiles,"b, quoted"\n1,CC,0\n0, CO ,1.0\n', None, ["CC", "CO"], [[1, 0], [0, 1]], ["a", "b, quoted"]),
        ("a,b,smiles,id\n1,0,CC,x1\n", ["b", "a"], ["CC"], [[0, 1]], ["b", "a"]),
        ("\ufeffsmiles,a\r\nCC,1\r\n", None, ["CC"], [[1]], ["a"]),
        ("smiles,a,b\n", None, [], [], ["a", "b"]),
        *(
            (f"smiles,a\nCC,{blank}\nC,0", None, ["CC", "C"], [[-1], [0]], ["a"])
            for blank in ("", " ", "nan", "NaN", "NULL")
        ),
    ],
)
@pytest.mark.parametrize("suffix", COMPRESS)
def test_molecules_and_labels(write, text, columns, smiles, y, names, suffix):
    read = read_molecules(write(COMPRESS[suffix](text.encode()), f"table.csv{suffix}"), "smiles", columns)
    assert (read[0], read[1].nan_to_num(-1).tolist(), read[2]) == (smiles, y, names)
    assert read[1].shape == (len(smiles), len(names))


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        *(
            (f"smiles,a,b\nCC,1,0\n\nCO,1,{wrong}\n", None, rf"row 1 \(line 4\), column 'b' of .*got '{wrong}'")
            for wrong in ("2", "-1", "0.5", "yes", "inf")
        ),
        ("smiles,a\nCC,1,0\n", None, r"2 cells.*row 0 \(line 2\).*got 3"),
        ("smiles,a\nCC\n", None, "got 1"),
        ("smiles,a,a\nCC,1,0\n", None, r"\['a'\] more than once"),
        ("smiles,a\nCC,1\n", ["a", "a"], r"\['a'\] more than once"),
        ("smiles,a\nCC,1\n", ["smiles"], r"\['smiles'\] more than once"),
        ("smiles,a\nCC,1\n", ["a", "b"], r"\['b'\].*got the columns \['smiles', 'a'\]"),
        ("SMILES,a\nCC,1\n", None, r"\['smiles'\]"),
        ("smiles,a\nCC,1\n", "a", "list of names"),
        ("smiles\nCC\n", None, "at least one column of labels"),
        ("", None, r"got the columns \[\]"),
    ],
)
def test_tables_of_molecules_that_are_refused(write, text, labels, message):
    with pytest.raises(ValueError, match=message):
        read_molecules(write(text), "smiles", labels)


WHOLE = b"smiles,a\n" + b"CC,1\n" * 1000


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cut.csv.gz", gzip.compress(WHOLE, mtime=0)[:-9], "to be whole .*ended before"),
        ("cut.csv.xz", lzma.compress(WHOLE)[:-9], "to be whole"),
        ("none.csv.gz", WHOLE, "to be whole .*Not a gzip"),
        ("packed.csv", gzip.compress(WHOLE, mtime=0), "CSV file in utf-8-sig .*UnicodeDecodeError in line 1"),
    ],
    ids=["cut gzip", "cut xz", "no gzip", "gzip without its suffix"],
)
def test_truncated_and_mislabelled_files(write, name, content, message):
    with pytest.raises(ValueError, match=rf"{name}.*{message}"):
        read_molecules(write(content, name), "smiles")


@settings(max_examples=150)
@given(data=st.data(), suffix=st.sampled_from(["", ".gz", ".xz"]))
def test_mutated_files_give_molecules_or_our_error(tmp_path_factory, data, suffix):
    content = bytearray(COMPRESS[suffix](b"smiles,a,b\nCC,1,\nCO,0,1\n"))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / f"mutated.csv{suffix}"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        smiles, y, names = read_molecules(path, "smiles")
    except ValueError as error:
        assert str(error).startswith("Expected")  # noqa: PT017
        assert str(path) in str(error)  # noqa: PT017
    else:
        assert y.shape == (len(smiles), len(names))
