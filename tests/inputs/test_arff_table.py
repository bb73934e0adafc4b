import bz2
import gzip
import lzma
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tg_mlc.inputs import _arff_table
from tg_mlc.inputs._arff_table import read_arff
from tg_mlc.inputs.notations import PLAIN, Date, Truth

HEADER = "@relation r\n@attribute a numeric\n@attribute b {0,1}\n@attribute 'c d' numeric\n@data\n"
DENSE = f"{HEADER}1.5,0,-2e3\n0,1,.25\n"
SPARSE = f"{HEADER}{{0 1.5,2 -2e3}}\n{{}}\n{{1 1,2 0.25}}\n"


def read(text, **options):
    return read_arff(text.encode(), **options)


def to_dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


def test_dense_and_sparse_rows_are_read():
    table = read(DENSE)
    assert (table.names, table.relation, table.labels) == (["a", "b", "c d"], "r", [])
    assert isinstance(table.matrix, np.ndarray)
    assert table.matrix.tolist() == [[1.5, 0, -2000], [0, 1, 0.25]]
    sparse = read(SPARSE).matrix
    assert isinstance(sparse, sp.csr_array)
    assert sparse.toarray().tolist() == [[1.5, 0, -2000], [0, 0, 0], [0, 1, 0.25]]
    assert (sparse.has_canonical_format, sparse.nnz) == (True, 4)
    assert read(f"{HEADER}{{0 0,1 1}}\n").matrix.nnz == 1  # Zeros are not stored.


SPARSE_ROWS = ["{0 1, 2 3}", "{ 0 1 ,2 3 }", "{2 3,0 1}", "{0\t1,2\t3}", "{0 '1',2 \"3\"}"]
SPARSE_ROWS += ["{0 1.0,2 3e0}", "{0 1,2 3}\r", "{0 1,2 3} % why"]
DENSE_ROWS = ["1,0,3", " 1 , 0 , 3 ", "1,\t0,3", "'1',\"0\",3", "1.,0,3e0", "1,0,3\r", "+1,0.0,3"]
DENSE_ROWS += ["1\t0\t3", "1 0  3", "'1'\t\"0\"\t3", "1,\t0,\t3"]
DENSE_ROWS += ["1,0,3 % why", "1\t0\t3\t% {x}, 'y"]


@pytest.mark.parametrize("row", [*SPARSE_ROWS, *DENSE_ROWS])
def test_rows_can_be_written_in_several_ways(row):
    matrix = read(HEADER + row).matrix
    assert sp.issparse(matrix) == row.startswith("{")
    assert to_dense(matrix).tolist() == [[1, 0, 3]]


def test_comments_case_and_line_ends_do_not_matter():
    text = (
        "\ufeff% about\r\n\r\n@RELATION 'the name'\r\n  @Attribute\ta\tREAL\r\n% more\r\n"
        "@attribute b Integer % why\r\n@ATTRIBUTE c{0,1}\r\n@DATA\r\n% rows\r\n\r\n1,2,0\r\n"
        "  % in between\r\n\r\n3,4,1\r\n\r\n"
    )
    table = read(text)
    assert (table.names, table.relation) == (["a", "b", "c"], "the name")
    assert table.matrix.tolist() == [[1, 2, 0], [3, 4, 1]]


def test_quoted_names_are_unquoted():
    text = (
        '@attribute \'it\\\'s\' numeric\n@attribute "say \\"x, {y}\\"" numeric\n'
        "@attribute größe numeric\n@attribute don't numeric\n"
        "@attribute 'two\\nlines' numeric\n@data\n1,2,3,4,5"
    )
    assert read(text).names == ["it's", 'say "x, {y}"', "größe", "don't", "two lines"]


@pytest.mark.parametrize(
    ("values", "row", "numbers"),
    [
        ("{False,True}", "True,False", [1, 0]),
        ("{YES,NO}", "YES,NO", [1, 0]),
        ("{NO,YES}", "YES,NO", [1, 0]),
        ("{-1,1}", "-1,1", [0, 1]),
        ("{+1,-1}", "+1,-1", [1, 0]),
        ("{pos,neg}", "neg,pos", [0, 1]),
        ("{Positive,Negative}", "Positive,Negative", [1, 0]),
        ("{relevant,irrelevant}", "relevant,irrelevant", [1, 0]),
        ("{1,0}", "0,1", [0, 1]),
        ("{red,green}", "red,green", [0, 1]),
        ("{'a, b',\"c'\"}", "'a, b',\"c'\"", [0, 1]),
        ("{0}", "0,0", [0, 0]),
        ("{ 0 , 1 }", "1,0", [1, 0]),
    ],
)
def test_nominal_attributes_of_two_values_are_binary(values, row, numbers):
    text = f"@attribute a {values}\n@attribute b {values}\n@data\n{row}\n"
    assert read(text).matrix.tolist() == [numbers]


@pytest.mark.parametrize("rows", ["1,b,0\n2,?,1\n0,a,1", "{0 1,1 b}\n{0 2,1 ?,2 1}\n{2 1}"])
def test_nominal_attributes_of_more_values_are_spread(rows):
    attributes = "@attribute x numeric\n@attribute city {a,b,?,'c d'}\n@attribute y {0,1}\n"
    table = read(f"{attributes}@data\n{rows}\n")
    names, matrix = table.spread(["x", "city", "y"])
    assert names == ["x", "city=a", "city=b", "city=c d", "y"]
    unknown = [2, np.nan, np.nan, np.nan, 1]
    np.testing.assert_array_equal(to_dense(matrix), [[1, 0, 1, 0, 0], unknown, [0, 1, 0, 0, 1]])
    assert table.cells()[1].tolist() == ["b", None, "a"]


@pytest.mark.parametrize(
    "row", ["1,0,3,{2}", "1,0,3, {0.5}", "1\t0\t3\t{2}", "{0 1,2 3}, {2}", "{0 1,2 3} {2}"]
)
def test_weights_of_rows_are_ignored_with_a_warning(row):
    with pytest.warns(UserWarning, match=r"weights of rows.*1 rows have one, the first on line 6"):
        matrix = read(HEADER + row).matrix
    assert to_dense(matrix).tolist() == [[1, 0, 3]]


@pytest.mark.parametrize(
    ("date_format", "text", "days"),
    [
        ("'yyyy-MM-dd'", "1970-01-03", 2),
        ("yyyy-MM-dd", "'2024-01-03'", 19725),
        ("", "1970-01-02T12:00:00", 1.5),
        ('"dd.MM.yy HH:mm"', "'02.01.70 06:00'", 1.25),
        ("'yyyyMMdd'", "19691231", -1),
        ("'MMM dd, yyyy'", "'Jan 11, 1970'", 10),
    ],
)
def test_dates_are_days_since_1970(date_format, text, days):
    header = f"@attribute a date {date_format}\n@attribute b real\n@data\n"
    assert read(f"{header}{text},1\n?,1\n").matrix[0].tolist() == [days, 1]
    with pytest.raises(ValueError, match=r"Expected a date as .* for attribute 'a' \(got 'soon'\)"):
        read(f"{header}soon,1\n")
    message = r"attribute 'a' \(got one of type 'date' in the format 'w/yyyy'\); leave it"
    with pytest.raises(ValueError, match=message):
        read("@attribute a date 'w/yyyy'\n@data\n1/2024\n")


def test_attributes_have_notations():
    values = ["pos,neg", "red,green", "2,1", "0", "YES,no", "0,1"]
    header = "".join(f"@attribute a{i} {{{text}}}\n" for i, text in enumerate(values))
    table = read(f"{header}@attribute d date yyyy\n@data\npos,red,1,0,no,1,2001")
    ordered = [attribute.name for attribute in table.attributes if attribute.is_ordered]
    assert ordered == ["a1", "a2"]
    notations = [attribute.notation for attribute in table.attributes]
    pairs = [Truth("neg", "pos"), Truth("red", "green"), Truth("2", "1"), PLAIN, Truth("no", "yes")]
    assert notations == [*pairs, PLAIN, Date("%Y")]
    assert [cells[0] for cells in table.cells()][:6] == ["pos", "red", 1, 0, "no", 1]


def test_unknown_values_are_nan():
    matrix = read(f"{HEADER}?,?,1\n1,1,?\n").matrix
    assert np.isnan(matrix).tolist() == [[True, True, False], [False, False, True]]
    sparse = read(f"{HEADER}{{1 ?}}\n").matrix.toarray()
    assert np.isnan(sparse).tolist() == [[False, True, False]]


TEXT_HEADER = "@attribute id string\n@attribute x numeric\n@attribute city {a,b,c}\n"
TEXT_HEADER += "@attribute when date 'yyyy'\n@data\n"


def test_attributes_can_be_dropped():
    content = TEXT_HEADER + "'p, q',1,c,2001\nr s,2,?,2002\n"
    table = read(content, drop="text")
    assert table.names == ["x", "city", "when"]
    np.testing.assert_array_equal(table.matrix, [[1, 2, 11323], [2, np.nan, 11688]])
    with_text = read(content, keep_text=True)
    assert [with_text.names[0], *with_text.cells()[0]] == ["id", "p, q", "r s"]
    assert read(SPARSE, drop=["a"]).matrix.toarray().tolist() == [[0, -2000], [0, 0], [1, 0.25]]
    header = "@attribute id string\n@attribute x numeric\n@data\n"
    assert read(header + "a.jpg,1\nb.jpg,2\n", drop=["id"]).matrix.tolist() == [[1], [2]]
    assert read(header + "'a,b',1\n", drop=["id"]).matrix.tolist() == [[1]]
    assert read(header + "{0 'a b',1 3}\n", drop=["id"]).matrix.toarray().tolist() == [[3]]


MANY_VALUES = f"@attribute a {{{','.join(map(str, range(101)))}}}\n@data\n1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: .*'@data'"),
        ("@relation r\n@attribute a numeric\n", "line 2: .*'@data' before the end"),
        ("@data\n1", "line 1: .*at least one '@attribute'"),
        ("@atribute a numeric\n@data\n1", "line 1: .*'@attribute' or '@data' .got '@atribute"),
        ("1,2\n", "line 1: Expected '@relation'"),
        ("@attribute a\n@data\n1", "line 1: .*type of attribute 'a', .* or .0,1. .got ''"),
        ("@attribute a number\n@data\n1", "line 1: .*got 'number'"),
        ("@attribute a {0,1\n@data\n1", "line 1: .*got '{0,1'"),
        ("@attribute a {0,,1}\n@data\n1", "line 1: .*values of attribute 'a'.*empty"),
        ("@attribute 'a numeric\n@data\n1", "line 1: Expected '@attribute name type'"),
        ("@attribute '' numeric\n@data\n1", "line 1: .*attribute to have a name"),
        ("@attribute a string\n@data\nx", r"line 1: .*'a' .*type 'string'\); .* drop=\['a'\]"),
        (MANY_VALUES, r"line 1: .*at most 100 values, .*'a' \(got one nominal with 101 values\)"),
        ("@attribute a {x,y,z}\n@data\nw", r"line 3: .*x, y, z for attribute 'a' \(got 'w'\)"),
        (HEADER, "line 6: Expected at least one row"),
    ],
)
def test_malformed_headers_are_refused_with_their_line(text, message):
    with pytest.raises(ValueError, match=f"^ARFF content, {message}"):
        read(text)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,0\n", "line 6: Expected 3 values.*got 2; is it cut off"),
        ("1,0,2\n0,1,1\n% c\n\n1,0,1,1\n", "line 10: Expected 3 values.*got 4"),
        ("1,0,x\n", "line 6: Expected a number for attribute 'c d' .got 'x'"),
        ("1,0,\n", "line 6: Expected a number for attribute 'c d' .got ''"),
        *((f"1,0,{text}\n", f"got '{text}'") for text in ("nan", "inf", "1e999", "1e39", "1_0")),
        ("1,2,3\n", "line 6: Expected one of 0, 1 for attribute 'b' .got '2'"),
        ("1,0 0,3\n", "got '0 0'"),
        ("'1,0,3\n", "line 6: .*closed quotes"),
        ("1,0,2\n{0 1}\n", "line 7: Expected 3 values"),
        ("1,0\x00,1\n", "line 6: .*zero byte"),
        ("{}\n1,0,1\n", "line 7: Expected a row in braces.*got '1,0,1'"),
        ("{0 1,1\n", "line 6: Expected a row in braces.*is it cut off"),
        ("{0 1,1}\n", "line 6: Expected 'index value' between commas .got '1'"),
        ("{0 1,}\n", "line 6: Expected 'index value' between commas .got ''"),
        ("{,0 1}\n", "line 6: Expected 'index value'"),
        ("{0 1 2}\n", "line 6: Expected a number for attribute 'a' .got '1 2'"),
        ("{3 1}\n", "line 6: Expected an index below 3 .got 3"),
        ("{-1 1}\n", "line 6: Expected 'index value' between commas .got '-1 1'"),
        ("{999999999999999 1}\n", "line 6: Expected an index below 3 .got 999999999999999"),
        ("{0 1,0 2}\n", "line 6: Expected distinct indices .got 0 twice"),
        ("{2 1,0 1,2 2}\n", "line 6: Expected distinct indices .got 2 twice"),
        ("{1 2}\n", "line 6: Expected one of 0, 1 for attribute 'b' .got '2'"),
        ("{0 x}\n", "line 6: Expected a number for attribute 'a' .got 'x'"),
        ("{0 1},{2 1}\n", "line 6: "),
    ],
)
def test_malformed_rows_are_refused_with_their_line(rows, message):
    with pytest.raises(ValueError, match=message):
        read(HEADER + rows)


def test_encodings_other_than_utf8_are_refused():
    for content in ("é".encode("latin1"), "@relation".encode("utf-16"), b"\x80\x02}q\x00."):
        with pytest.raises(ValueError, match=r"ARFF content, line 1: Expected text"):
            read_arff(content)
    with pytest.raises(ValueError, match=r"line 6: Expected text in UTF-8 \(got the byte 0xe9\)"):
        read_arff(HEADER.encode() + "1,é,2".encode("latin1"))


@pytest.mark.parametrize(
    ("drop", "message"), [(["z"], "got z"), ("a", "got 'a'"), (["a", "b", "c d"], "be left")]
)
def test_wrong_names_to_drop_are_refused(drop, message):
    with pytest.raises(ValueError, match=message):
        read(DENSE, drop=drop)


def test_lines_are_counted_over_blocks(monkeypatch):
    monkeypatch.setattr(_arff_table, "_BLOCK", 16)
    matrix = read(HEADER + "1,0,2\n\n% c\n" * 50).matrix
    assert matrix.tolist() == [[1, 0, 2]] * 50
    with pytest.raises(ValueError, match="line 156: "):
        read(HEADER + "1,0,2\n\n% c\n" * 50 + "1,0\n")
    sparse = read(HEADER + "{0 3}\n{2 '7'}\n{}\n" * 50).matrix
    assert sparse.toarray().tolist() == [[3, 0, 0], [0, 0, 7], [0, 0, 0]] * 50


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)]
)
def test_compressed_files_are_read(tmp_path, suffix, compress):
    path = tmp_path / f"table.arff{suffix}"
    path.write_bytes(compress(DENSE.encode()))
    assert read_arff(path).matrix.tolist() == read(DENSE).matrix.tolist()
    path.write_bytes(compress(f"{HEADER}1,0\n".encode()))
    with pytest.raises(ValueError, match=rf"^'.*table\.arff\{suffix}', line 6: "):
        read_arff(path)
    path.write_bytes(compress(DENSE.encode())[:-9])
    with pytest.raises(ValueError, match=rf"Expected '.*table\.arff\{suffix}' to be whole"):
        read_arff(path)
    path.write_bytes(compress(bytes(2**25)))
    tracemalloc.start()
    with pytest.raises(ValueError, match="at most 100,000 bytes"):
        read_arff(path, max_bytes=100_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24  # The codec xz keeps a window of 8 MiB.


def test_wide_sparse_tables_take_little_memory():
    width, rows = 5_000, 2_000
    header = "".join(f"@attribute a{i} numeric\n" for i in range(width))
    content = (header + "@data\n" + f"{{5 1,{width - 1} 2}}\n" * rows).encode()
    tracemalloc.start()
    matrix = read_arff(content).matrix
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert matrix.shape == (rows, width)
    assert peak < width * rows  # A dense matrix has eight bytes for each entry.


LONG = 200_000
LONG_LINES = ["{" + " " * LONG + "x", "'" * (LONG + 1), "1" * LONG + "x", "{0 " + "1" * LONG + "x}"]
LONG_LINES += [" " * LONG + "'a", "{0 '" + "\\" * LONG + "\\}", "1," * LONG]


@pytest.mark.parametrize("text", LONG_LINES)
def test_long_lines_take_no_quadratic_time(text):
    for prefix in (f"{HEADER}1,1,'x", HEADER + "{}\n", "@attribute "):
        with pytest.raises(ValueError, match="line "):
            read(prefix + text)


floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
numbers = st.one_of(floats, st.integers(-1000, 1000), st.just(0))
row_lists = st.lists(st.tuples(numbers, st.integers(0, 1), numbers), min_size=1, max_size=8)


@settings(max_examples=60)
@given(row_lists, st.booleans())
def test_written_rows_are_read_back(rows, quoted):
    write_cell = (lambda value: f"'{value}'") if quoted else str
    expected = np.array(rows, dtype=np.float32).tolist()
    dense_rows = "\n".join(",".join(map(write_cell, row)) for row in rows)
    pairs = ([f"{i} {write_cell(v)}" for i, v in enumerate(row) if v != 0] for row in rows)
    sparse_rows = "\n".join(f"{{{','.join(row)}}}" for row in pairs)
    assert read(HEADER + dense_rows).matrix.tolist() == expected
    assert read(HEADER + sparse_rows).matrix.toarray().tolist() == expected


contents = st.sampled_from([DENSE, SPARSE, TEXT_HEADER + "'p, q',1,c,2001\n"]).map(str.encode)
edit = st.tuples(st.integers(0, 200), st.sampled_from([b"", b"x"]), st.binary(max_size=6))


@settings(max_examples=200)
@given(contents, st.lists(edit, max_size=4), st.integers(0, 300))
@example(SPARSE.encode(), [], 120)
def test_mutated_files_are_read_or_refused(content, changes, end):
    for start, removed, inserted in changes:
        content = content[:start] + inserted + content[start + len(removed) :]
    try:
        table = read_arff(content[:end], drop="text")
    except ValueError:
        return
    assert table.matrix.shape[1] == len(table.names) > 0


@pytest.mark.parametrize(
    ("name", "shape", "is_sparse"),
    [
        ("bibtex/raw/bibtex-test.arff.xz", (2515, 159 + 1836), True),
        ("yeast/raw/yeast-test.arff.xz", (917, 14 + 103), False),
        ("genbase/raw/genbase-test.arff.xz", (199, 27 + 1185), False),
        ("corel5k/raw/Corel5k-test-sparse.arff", (500, 374 + 499), True),
    ],
)
def test_real_files_are_read(real_file, name, shape, is_sparse):
    table = read_arff(real_file(name), drop="text")
    assert table.matrix.shape == shape
    assert len(set(table.names)) == shape[1]
    assert sp.issparse(table.matrix) == is_sparse


def test_fast_and_slow_paths_read_alike(real_file, monkeypatch):
    for name in ("emotions/raw/emotions-test.arff", "corel5k/raw/Corel5k-test-sparse.arff"):
        fast = read_arff(real_file(name)).matrix
        with monkeypatch.context() as patch:
            patch.setattr("tg_mlc.inputs._arff_table._fit", lambda values, is_nominal: False)
            slow = read_arff(real_file(name)).matrix
        assert abs(fast - slow).max() == 0


def test_long_rows_of_quoted_values_are_read():
    width = 5_000
    header = "".join(f"@attribute a{i} numeric\n" for i in range(width))
    row = "{" + ",".join(f"{i} '{i}'" for i in range(width)) + "}"
    assert read(f"{header}@data\n{row}").matrix.toarray().tolist() == [list(range(width))]
