from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import re
import sys
import tracemalloc
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mutations import mutated
from tg_mlc.inputs import tables
from tg_mlc.inputs.limits import MAX_CHARACTERS, TableLimits, TooLargeError
from tg_mlc.inputs.schema import Hints
from tg_mlc.inputs.tables import parse_names, read_blocks, read_molecules, read_table, read_text

COMPRESS = {"": bytes, ".gz": gzip.compress, ".GZ": gzip.compress, ".xz": lzma.compress}


def rows(table):
    columns = (table.frame[index].tolist() for index in range(len(table.header)))
    return list(map(list, zip(*columns, strict=True)))


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
def test_cells_are_split_as_by_the_csv_module(save, monkeypatch, text, size):
    monkeypatch.setattr(tables, "_BLOCK", size)
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    header, *records = [(cells, reader.line_num) for cells in reader]
    records = [
        (cells or [""], line)
        for cells, line in records
        if cells or (len(header[0]) == 1 and line < 5)
    ]
    whole = read_table(save(text), min_rows=0)
    blocks = list(read_blocks(save(text), min_rows=0))
    assert whole.header == [name.strip() for name in header[0]]
    assert rows(whole) == [cells for cells, _ in records]
    assert rows(whole) == [row for block in blocks for row in rows(block)]
    assert list(whole.lines) == [line for _, line in records]
    assert list(whole.lines) == [line for block in blocks for line in block.lines]
    sizes = list(map(len, blocks))
    assert [block.first for block in blocks] == [sum(sizes[:i]) for i in range(len(blocks))]


@pytest.mark.parametrize("delimiter", [";", "\t", "|", " ", "§"])
def test_other_delimiters_can_be_given(save, delimiter):
    path = save("a,b\n1,2\n\n3,4\n".replace(",", delimiter))
    assert rows(read_table(path, delimiter)) == [["1", "2"], ["3", "4"]]
    with pytest.raises(ValueError, match=r"Expected 2 cells.* row 2 \(line 5\)"):
        read_table(save("a,b\n1,2\n\n3,4\n5".replace(",", delimiter)), delimiter)
    for wrong_delimiter in ("", delimiter * 2, "\n", '"'):
        with pytest.raises(ValueError, match=r"Expected 'delimiter' .*\(got "):
            read_table(path, wrong_delimiter)


def test_a_header_can_be_given(save):
    assert rows(read_table(save("1,2\n3,4\n"), header=[" a", "b"])) == [["1", "2"], ["3", "4"]]
    with pytest.raises(ValueError, match=r"Expected 1 cells.*row 2 \(line 4\).*\(got 2\)"):
        read_table(save("a\n1\n\n2,3\n"))
    for names in (["a"], ["a", "b", "c"]):
        message = rf"Expected {len(names)} cells.*row 0 \(line 1\).*\(got 2\)"
        with pytest.raises(ValueError, match=message):
            read_table(save("1,2\n3,4\n"), header=names)


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1", r"Expected 2 cells.*row 3 \(line 6\) of .*\(got 1\)"),
        ("1,", None),
        ("1,2,3", r"2 cells.*row 3 \(line 6\) of .*\(got 3\); quote cells that contain ','"),
        (" ", r"Expected 2 cells.*row 3 \(line 6\) of .*\(got 1\)"),
        ('1,"2', "a quote not closed"),
        ("1,\xe9", r"the byte 0xe9 in line 6\); .*encoding='cp1252'"),
    ],
)
def test_malformed_rows_are_named_and_blank_cells_are_read(save, monkeypatch, row, message, size):
    monkeypatch.setattr(tables, "_BLOCK", size)
    path = save(b"a,b\n1,2\n\n3,\n5,6\n" + row.encode("latin-1"))
    if message is None:
        assert len(read_table(path)) == sum(map(len, read_blocks(path))) == 4
        return
    for read in (read_table, lambda path: list(read_blocks(path))):
        with pytest.raises(ValueError, match=message):
            read(path)


@pytest.mark.parametrize("read", [read_table, lambda path: next(iter(read_blocks(path)))])
def test_long_cells_are_read(save, read):
    limit = csv.field_size_limit()
    table = read(save(f'body,calm\n"{"long words " * 20_000}",1\nshort,\n'))
    assert [len(text) for text in table.texts("body")] == [220_000, 5]
    assert list(table.lines) == [2, 3]
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_cells_beyond_the_limit_are_refused(tmp_path, suffix):
    frame = pd.DataFrame({"body": ["short", "x" * (MAX_CHARACTERS + 1)], "calm": [0, 1]})
    path = tmp_path / f"long.{suffix}"
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    elif suffix == "json":
        frame.to_json(path, orient="records")
    else:
        frame.to_csv(path, index=False)
    message = rf"at most 10,000,000 characters in a cell of '{path}' \(got .*shorten the text"
    with pytest.raises(TooLargeError, match=message):
        read_table(path)


def test_threads_have_limits_of_their_own():
    content = b'body,calm\n"' + b"long\n" * 400 + b'",1\n'

    def read(max_characters):
        for _ in range(100):
            is_refused = pytest.raises(TooLargeError) if max_characters < 2000 else nullcontext()
            with is_refused:
                read_text(content, "it", limits=TableLimits("it", max_characters=max_characters))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(read, [10**6, 10**3] * 2))
    finally:
        sys.setswitchinterval(interval)


def test_many_rows_in_a_small_file_take_little_memory(save):
    path = save(gzip.compress(b"a,b\n" + b"1,0\n" * 50_000), "rows.csv.gz")
    read_table(path)  # The first call imports pandas.
    tracemalloc.start()
    table = read_table(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(table), table.texts("b")[-1]) == (50_000, "0")
    assert peak < 40 * 50_000 + 2**21


# The tests below read tables of molecules.


QUOTED = 'a,smiles,"b, quoted"\n1,CC,0\n0, CO ,1.0\n'
MOLECULES = [
    (QUOTED, None, ["CC", "CO"], [[1, 0], [0, 1]], ["a", "b, quoted"]),
    ("a,b,smiles,id\n1,0,CC,x1\n", ["b", "a"], ["CC"], [[0, 1]], ["b", "a"]),
    ("\ufeffsmiles,a\r\nCC,1\r\n", None, ["CC"], [[1]], ["a"]),
    ("smiles,a,b\n", None, [], [], ["a", "b"]),
]
for blank in ("", " ", "nan", "NaN", "NULL"):
    MOLECULES.append((f"smiles,a\nCC,{blank}\nC,0", None, ["CC", "C"], [[-1], [0]], ["a"]))


@pytest.mark.parametrize(("text", "columns", "smiles", "y", "names"), MOLECULES)
@pytest.mark.parametrize("suffix", COMPRESS)
def test_molecules_and_labels_are_read(save, text, columns, smiles, y, names, suffix):
    path = save(COMPRESS[suffix](text.encode()), f"table.csv{suffix}")
    loaded_smiles, labels, label_names = read_molecules(path, "smiles", columns)
    assert (loaded_smiles, labels.nan_to_num(-1).tolist(), label_names) == (smiles, y, names)
    assert labels.shape == (len(smiles), len(names))


WRONG_CELL = r"row 1 \(line 4\), column 'b' of .*got '{}'"


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        *(
            (f"smiles,a,b\nCC,1,0\n\nCO,1,{cell}\n", None, WRONG_CELL.format(cell))
            for cell in ("2", "-1", "0.5", "maybe", "inf")
        ),
        ("smiles,a\nCC,1,0\n", None, r"2 cells.*row 0 \(line 2\).*got 3"),
        ("smiles,a\nCC\n", None, "got 1"),
        ("smiles,a,a\nCC,1,0\n", None, r"\['a'\] more than once"),
        ("smiles,a\nCC,1\n", ["a", "a"], r"\['a'\] more than once"),
        ("smiles,a\nCC,1\n", ["smiles"], r"\['smiles'\] more than once"),
        ("smiles,a\nCC,1\n", ["a", "b"], r"\['b'\].*got the columns \['smiles', 'a'\]"),
        ("SMILES,a\nCC,1\n", None, "'smiles' .*got 'SMILES', which differs in case"),
        ("smiles,a\nCC,1\n", "a", "list of names"),
        ("smiles\nCC\n", None, "at least one column of labels"),
        ("", None, r"got the columns \[\]"),
    ],
)
def test_wrong_tables_of_molecules_are_refused(save, text, labels, message):
    with pytest.raises(ValueError, match=message):
        read_molecules(save(text), "smiles", labels)


WHOLE = b"smiles,a\n" + b"CC,1\n" * 1000


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cut.csv.gz", gzip.compress(WHOLE, mtime=0)[:-9], "to be whole .*ended before"),
        ("cut.csv.xz", lzma.compress(WHOLE)[:-9], "to be whole"),
        ("none.csv.gz", WHOLE, "to be whole .*Not a gzip"),
    ],
)
def test_truncated_and_mislabelled_files_are_refused(save, name, content, message):
    with pytest.raises(ValueError, match=rf"{name}.*{message}"):
        read_molecules(save(content, name), "smiles")


@settings(max_examples=150)
@given(data=st.data(), suffix=st.sampled_from(["", ".gz", ".xz"]))
def test_mutated_files_give_molecules_or_a_value_error(tmp_path_factory, data, suffix):
    path = tmp_path_factory.getbasetemp() / f"mutated.csv{suffix}"
    path.write_bytes(mutated(data, COMPRESS[suffix](b"smiles,a,b\nCC,1,\nCO,0,1\n"), 4))
    try:
        smiles, y, names = read_molecules(path, "smiles")
    except ValueError as error:
        assert str(error).startswith("Expected")  # noqa: PT017
        assert str(path) in str(error)  # noqa: PT017
    else:
        assert y.shape == (len(smiles), len(names))


# The tests below read formats, encodings and label cells.

ROWS = [{"size": 1.5, "calm": 0}, {"size": None, "calm": 1}]


def write_format(path):
    frame, text = pd.DataFrame(ROWS), pd.DataFrame(ROWS).to_csv(index=False)
    records, lines = json.dumps(ROWS), "\n".join(map(json.dumps, ROWS))
    commented = f"# Songs, by me, 2024\n\n#\n{text}"
    contents = {
        ".csv": text.encode(),
        ".json": records.encode(),
        ".jsonl": lines.encode(),
        ".gz": gzip.compress(lines.encode()),
        ".txt": (commented if path.stem == "a" else records).encode("utf-16"),
        ".bin": gzip.compress(text.encode()),
        ".dat": lzma.compress(text.encode()),
    }
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".xlsx":
        frame.to_excel(path, index=False)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("table.csv", text if path.stem == "a" else records)
    else:
        path.write_bytes(contents[path.suffix])
    return path


FORMATS = "a.csv a.parquet a.json a.jsonl a.zip json.zip a.jsonl.gz a.bin a.dat a.txt json.txt"


@pytest.mark.parametrize("name", [*FORMATS.split(), "a.xlsx"])
def test_every_format_gives_the_same_table(tmp_path, name):
    if name == "a.xlsx":
        pytest.importorskip("openpyxl")
    table = read_table(write_format(tmp_path / name))
    schema = table.schema([], ["calm"], Hints())
    assert schema.feature_names == ["size"]
    np.testing.assert_array_equal(schema.matrix(table.cells()), [[1.5], [np.nan]])
    assert table.labels(["calm"]).tolist() == [[0], [1]]
    assert [len(block) for block in read_blocks(tmp_path / name)] == [2]


@pytest.mark.parametrize(
    ("sheets", "message"),
    [
        ({"one": ROWS, "empty": []}, None),
        ({"one": ROWS, "two": ROWS}, r"\['one', 'two'\]"),
        ({"empty": []}, "one sheet"),
    ],
)
def test_workbooks_have_one_sheet_with_a_table(tmp_path, monkeypatch, sheets, message):
    frames = {name: pd.DataFrame(rows) for name, rows in sheets.items()}
    monkeypatch.setitem(sys.modules, "openpyxl", ModuleType("openpyxl"))
    monkeypatch.setattr(pd, "read_excel", lambda *_, **__: frames)
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    if message is None:
        assert read_table(tmp_path / "a.xlsx").labels(["calm"]).tolist() == [[0], [1]]
    else:
        with pytest.raises(ValueError, match=f"an Excel workbook of one table .*{message}"):
            read_table(tmp_path / "a.xlsx")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"\xd0\xcf\x11\xe0", "old Excel workbook"),
        ("a.csv", b"SQLite format 3\0", "SQLite"),
        ("a.csv", b"%PDF-1.4", "PDF"),
        ("a.sav", b"$FL2@(#)\0\0\0\2", r"a binary file\); read it with pandas.read_spss"),
        ("a.dta", b"s\1\1\0\2\0", "pandas.read_stata"),
        ("a.feather", b"ARROW1\0\0", "pandas.read_feather"),
        ("a.tar", b"a.csv\0\0\0" * 9 + b"a", "export the table as CSV"),
        ("a.csv", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        ("a.csv", b"My songs,,\nsize,calm,sad\n1,0,1\n", "the title 'My songs'.*delete"),
        ("a.csv", b"My songs\nsize,calm\n1,0\n", "'My songs' is a title or a comment"),
        ("a.csv", "name,calm\nда,1\n".encode("cp1251"), "line 2.*'cp1251' for 'да"),
        ("a.csv", "name,calm\n\u4eba\u6c11,1\n".encode("gbk"), "'gb18030' for '\u4eba\u6c11,1'"),
        ("a.json", b'{"size": [1], "calm": [0]}', r"one object of .* under \['size', 'calm'\]"),
        ("a.jsonl", b'{"size": 1}\n{"size": 2}\n{"size" 3}\n', "line 3: Expecting ':'"),
        ("a.csv", b"<!DOCTYPE html><p>", "a web page"),
        ("a.csv", b"@relation x\n@attribute a numeric\n", "from_arff"),
        ("a.csv", b"1,3 0:0.5 4:1\n0 1:2\n", "LibSVM.*from_libsvm"),
        ("a.csv", b"2 5 4\n1,3 0:0.5 4:1\n", "LibSVM"),
        ("a.json", b'{"size": [1', "to be JSON"),
        ("a.json", b"[1, 2]", "objects with a name"),
        ("a.parquet", b"size,calm\n1,0\n", "to be a parquet file"),
        ("a.parquet", b"PAR1 nothing", "to be a parquet file"),
    ],
)
def test_files_of_other_formats_are_named(save, name, content, message):
    if content.startswith(b"PAR1"):
        pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=message):
        read_table(save(content, name))


def test_addresses_and_archives_are_refused(tmp_path):
    with pytest.raises(ValueError, match="download it"):
        read_table("https://example.org/a.csv")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", "a,b\n")
        archive.writestr("b.csv", "a,b\n")
    with pytest.raises(ValueError, match=r"one file .* archive .*'a.csv', 'b.csv'.*unpack it"):
        read_table(tmp_path / "a.zip")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_encodings_are_found_by_the_first_bytes(save, encoding):
    table = read_table(save("größe,b\né,1\n".encode(encoding)))
    assert (table.header, rows(table)) == (["größe", "b"], [["é", "1"]])


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("a;b\n1,5;2\n", ["a", "b"]),
        ("a\tb,c\td\n1\t2\t3\n", ["a", "b,c", "d"]),
        ('"a;x",b\n1,2\n', ["a;x", "b"]),
        ("a|b\n1|2\n", ["a", "b"]),
        ("sep=\t\na\tb,c\n1\t2\n", ["a", "b,c"]),
        ("sep=;\na;b,c\n1;2\n", ["a", "b,c"]),
        ('"sep=|"\na,x|b\n1|2\n', ["a,x", "b"]),
    ],
)
def test_the_delimiter_is_found(save, text, header):
    table = read_table(save(text))
    assert table.header == header
    assert list(table.lines) == [len(text.splitlines())]


def test_blank_rows_and_columns_are_left_out(save):
    table = read_table(save("\n\nsize,calm,,\n1,0,,\n2,1,,\n"))
    assert table.schema([], ["calm"], Hints()).feature_names == ["size"]
    assert list(table.lines) == [4, 5]
    table = read_table(save("size,calm,,\n1,0,,\n2,1,x,\n"))
    with pytest.raises(ValueError, match="more than once"):
        table.schema([], ["calm"], Hints())


def test_unclosed_quotes_raise_or_warn(save):
    with pytest.raises(ValueError, match="a quote not closed"):
        read_table(save('a,b\n"x,1\ny,2\n"z",3\n'))
    with pytest.warns(UserWarning, match="quoted cell that begins in line 2.*whole rows"):
        assert len(read_table(save('a,b\n"x,1\ny,2\nz",3\n'))) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_table(save('a,b\n"one line\nand another",1\n'))) == 1
        assert read_table(save('a,b\n"x\n",1\n"\n",2\n')).texts("a") == ["x\n", "\n"]


def test_blank_lines_in_a_single_column_are_rows(save, monkeypatch: pytest.MonkeyPatch):
    table = read_table(save("body\nx\n\ny\n\n\n"))
    assert (table.texts("body"), list(table.lines)) == (["x", "", "y"], [2, 3, 4])
    path = save("body\nx\n" + "\n" * 20 + "y\n" + "\n" * 20)
    monkeypatch.setattr(tables, "_BLOCK", 4)
    assert sum(map(len, read_blocks(path))) == 22


FOOD_AND_RED = [
    "food; red",
    '["food", "red"]',
    "['food', 'red']",
    "{'food', 'red'}",
    "('food', 'red')",
    "['food' 'red']",
    "array(['food', 'red'], dtype=object)",
    ["food", "red"],
]
OTHER_NAMES = [
    ("food", {"food"}),
    ("frozenset({'food'})", {"food"}),
    ("(unsorted)", {"(unsorted)"}),
    ("food;NA;cafe\u0301", {"food", "caf\u00e9"}),
    (["food", None, "NA", "-", ""], {"food"}),
    ("['food', 'NA', None]", {"food"}),
    ("[3, 17]", {"3", "17"}),
    ("[ 3 17]", {"3", "17"}),
    ("[3.\n 1.5]", {"3.0", "1.5"}),
]
NO_NAMES = ["", " ; ", "set()", "[]", ";"]
UNKNOWN = ["NA", "nan", "None", "<NA>", "?", "-", "['nan', '']", "NA;?", None]


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        *((cell, {"food", "red"}) for cell in FOOD_AND_RED),
        *OTHER_NAMES,
        *((cell, set()) for cell in NO_NAMES),
        *((cell, None) for cell in UNKNOWN),
    ],
)
def test_cells_of_label_names_are_parsed(cell, names):
    assert parse_names(cell, ";", lambda: "row 0") == names


@pytest.mark.parametrize(
    "cell",
    [
        "[0, 1, 0]",
        "1;0;0",
        "[food, red]",
        "['food'",
        "{food,red}",
        "[['food']]",
        "[{'id': 1}]",
        "[02 3]",
        "[1 2 ... 9]",
        "[0 1 1]",
    ],
)
def test_malformed_lists_of_names_are_refused(cell):
    with pytest.raises(ValueError, match=r"Expected .* row 0"):
        parse_names(cell, ";", lambda: "row 0")


@pytest.mark.parametrize("separator", [",", "|", "\t", "\n", "\u3001"])
def test_other_separators_are_suggested(save, separator):
    table = read_table(save(f'body;topics\nx;"food{separator}red"\ny;food\n'))
    with pytest.raises(ValueError, match=f"label_separator={re.escape(repr(separator))}"):
        table.label_sets("topics", ";")
    with pytest.raises(ValueError, match="'label_separator' between"):
        table.label_sets("topics", None)
    assert table.label_sets("topics", separator) == [{"food", "red"}, {"food"}]


def test_suggested_label_separators_work(save):
    table = read_table(save("body;topics\nx;16 0\ny;3\n"))
    with pytest.raises(ValueError, match=r"\); pass label_separator=' ' if spaces"):
        table.label_sets("topics", None)
    assert table.label_sets("topics", ";") == [{"16 0"}, {"3"}]
    assert table.label_sets("topics", " ") == [{"16", "0"}, {"3"}]
    with pytest.raises(ValueError, match=r"Expected a list of names of labels \(got '\[food'"):
        parse_names("[food", None, lambda: "row 0")


def test_a_separator_that_no_cell_has_is_warned_of(save):
    table = read_table(save("body;topics\nx;food\ny;NA\nz;red\n"), ";")
    with pytest.warns(UserWarning, match=r"No cell of column 'topics' .* '\|', .* such as 'food'"):
        table.targets("topics", "|")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lists = read_table(save("body;topics\nx;['food']\ny;NA\nz;['red']\n"), ";")
        assert lists.targets("topics", "|")[1] == ["food", "red"]


@pytest.mark.parametrize("word", ["none", "N/A", "-"])
def test_words_that_may_mean_no_label_are_warned_of(save, word):
    table = read_table(save(f"body;topics\nx;rock,pop\ny;{word}\nz;\nw;{word}\nv;NaN\n", "utf-8"))
    message = f"2 cells of column 'topics', such as '{word}' in row 1 .*leave them blank"
    with pytest.warns(UserWarning, match=message):
        assert table.label_sets("topics", ",") == [{"rock", "pop"}, None, set(), None, None]


def test_lists_need_no_separator(save):
    table = read_table(save("""body;topics\nx;"['food', 'red']"\ny;[]\nz;NA\n"""))
    assert table.targets("topics", None)[1] == ["food", "red"]
    assert table.targets(["topics"], None)[1] == ["food", "red"]
    with pytest.raises(ValueError, match="make it the only label column"):
        table.targets(["topics", "body"], None)


HINTS = {"a:calm": "delimiter=':'", "a calm": "delimiter=' '"}
HINTS |= {"1,0": "lack a line", "clam,a": "is 'clam' meant"}


@pytest.mark.parametrize(("header", "hint"), HINTS.items())
def test_missing_columns_come_with_a_hint(save, header, hint):
    with pytest.raises(ValueError, match=hint):
        read_table(save(f"{header}\n{header}\n")).schema([], ["calm"], Hints())


def test_paths_add_their_ancestors(save):
    table = read_table(save("body,topics\nx,A/B/C\ny,E\nz,NA\n"))
    assert table.targets(["topics"], ";")[1] == ["A/B/C", "E"]
    y, names = table.targets(["topics"], ";", "/")
    assert names == ["A", "A/B", "A/B/C", "E"]
    np.testing.assert_array_equal(y, [[1, 1, 1, 0], [0, 0, 0, 1], [np.nan] * 4])


def test_names_that_may_be_paths_need_a_choice(save):
    table = read_table(save("body,topics\nx,A/B/C\ny,A/B\n"))
    with pytest.raises(ValueError, match=r"got 'A/B/C', .*'topics'.*label_paths='/' to add all"):
        table.targets(["topics"], ";")
    assert table.targets(["topics"], ";", "")[1] == ["A/B", "A/B/C"]
    table = read_table(save("body,topics\nx,A > B\ny,A\n"))
    with pytest.raises(ValueError, match="label_paths='>'"):
        table.targets(["topics"], ";")
    assert table.targets(["topics"], ";", ">")[1] == ["A", "A > B"]


@pytest.mark.parametrize(
    ("names", "is_path"),
    [("A/B/C A/B/D A/C/E B/E", True), ("A/B C/D", False), ("A/B A/C D", False)],
)
def test_names_that_look_like_paths_are_warned_of(save, names, is_path):
    rows = "".join(f"x;['{name}']\n" for name in names.split())
    table = read_table(save(f"body;topics\n{rows}"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        label_names = table.targets("topics", None)[1]
    assert label_names == sorted(names.split())
    assert ["label_paths='/'" in str(warning.message) for warning in caught] == [True] * is_path


def test_labels_may_be_words(save):
    table = read_table(save("a,b,c\nTRUE,yes,1\nfalse,N,-\nNA,?,0\n"))
    expected = [[1, 1, 1], [0, 0, np.nan], [np.nan, np.nan, 0]]
    np.testing.assert_array_equal(table.labels(["a", "b", "c"]), expected)


def test_form_feeds_in_a_comment_end_no_line(tmp_path):
    path = tmp_path / "songs.csv"
    path.write_text("# made\x0cby \u2028 x\nsize,calm\n1.5,0\n,1\n", encoding="utf-8")
    assert read_table(path).header == ["size", "calm"]


def test_zip_archives_are_closed(tmp_path, monkeypatch):
    left_open = []
    monkeypatch.setattr(zipfile.ZipFile, "__del__", lambda archive: left_open.append(archive.fp))
    read_table(write_format(tmp_path / "a.zip"))
    assert left_open
    assert not any(left_open)
