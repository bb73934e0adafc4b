import warnings

import numpy as np
import pandas as pd
import pytest

from tg_mlc.inputs import cells as reading
from tg_mlc.inputs.cells import one_hot
from tg_mlc.inputs.schema import Hints, Schema, cells_of, match_names


def infer(hints=None, **columns):
    arrays = {name: np.array(cells, dtype=object) for name, cells in columns.items()}
    return Schema.infer(arrays, {}, hints)


def infer_column(cells, hints=None):
    [column] = infer(hints, a=cells).columns
    return column


SQUARES = [str(i * i) for i in range(12)]


@pytest.mark.parametrize(
    ("cells", "role", "names"),
    [
        (["1", "", "3"], "number", ["a"]),
        (["1", "-", "3"], "number", ["a"]),
        (["45%", "3%"], "number", ["a"]),
        (["yes", "no", "no"], "number", ["a"]),
        (["2024-01-31", "2024-02-01"], "number", ["a"]),
        (["red", " blue", "red", "NA"], "category", ["a=blue", "a=red"]),
        (["x", "-", "x"], "category", ["a=-", "a=x"]),
        (["01067", "80331"], "category", ["a=01067", "a=80331"]),
        (["S", "M", "38", "S"], "category", ["a=38", "a=M", "a=S"]),
        (["", "NA"], "ignored", []),
        (["yes", "-", "no"], "number", ["a"]),
        (["cafe\u0301", "caf\u00e9", "x"], "category", ["a=caf\u00e9", "a=x"]),
        (["1", "2", "2", "3+", "1", "3+"], "category", ["a=1", "a=2", "a=3+"]),
        (["10-20", "20-30", "10-20", "20-30"], "category", ["a=10-20", "a=20-30"]),
        ([f"{i:08x}-1111-4aaa" for i in range(2)], "id", []),
        ([f"CHEMBL{i}" for i in range(10)], "id", []),
        ([f"CHEMBL{i}" for i in range(9)], "category", [f"a=CHEMBL{i}" for i in range(9)]),
    ],
)
def test_columns_of_texts_get_roles(cells, role, names):
    column = infer_column(cells)
    assert (column.role, column.features) == (role, names)


MEASURES = [f"{i + 90}/{i + 60}" for i in range(12)]
CODES = [f"{i}-{i % 7}b" for i in range(11)] + ["0-0b"]
SONGS = [f"song{i % 101}" for i in range(202)]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["12", "15", "9,5", "11"], r"'9,5' in row 2, column 'a', perhaps .*pass decimal=','"),
        (["1", "2", "2", "5+"], r"row 3, column 'a'.*'5\+'"),
        (["12", "15", "x", "1"], r"row 2, .*'x', text\).*categorical=\['a'\].*ignore=\['a'\]"),
        (["5 mg", "7 mg", "3 g"], r"numbers in 'mg'.*row 2, column 'a'.*'3 g'"),
        (["mg", "5", "7", "3"], r"row 0, .*'mg'.*delete that row if it holds units"),
        (["5", "7", "3", "Total"], r"row 3, .*'Total'.*delete that row if it sums up the others"),
        (["2010-11", "2011-12"], "months, or spans from a year to the next"),
        (["2024Q1", "2024Q2", "2024Q5"], "dates .*row 2.*'2024Q5', text"),
        (["$45k", "$1.2m", "$70k", "$38k"], r"in '\$ k'.*row 1.*'\$1.2m', a number in '\$ m'"),
        (["3:45", "1:02:45"], r"minutes and seconds; .*as 00:03:45.*categorical=\['a'\]"),
        (["2024-01-31", "2024-02-01", "soon"], r"dates .*row 2, column 'a'.*'soon'"),
        (MEASURES, r"numbers, or texts that repeat \(got 12 texts in 12 rows"),
        (["1\u00b12", "3\u00b11", "5\u00b12", "7\u00b13", "9\u00b12"], "texts that repeat"),
        (["1.100.000", "2", "x"], r"'x', text"),
        (["01/02/2024", "03/04/2024"], "may be written as '%d/%m/%Y' or '%m/%d/%Y'"),
        (["1,100", "2,150"], "before decimals or between thousands"),
        (["1_000", "2_000"], "'1_000'"),
        (CODES, r"numbers, or texts that repeat \(got 11 texts in 12 rows"),
        (SONGS, r"at most 100 different values, in column 'a' \(got 101"),
        ([["x"], ["y"]], r"one value in every cell .*row 0, column 'a'.*ignore=\['a'\]"),
    ],
)
def test_unclear_columns_are_refused(cells, message):
    with pytest.raises(ValueError, match=message):
        infer_column(cells)


def test_hints_override_inferred_roles():
    assert infer_column(["12", "9,5"], Hints(decimal=",")).notation["decimal"] == ","
    assert infer_column(["1", "2", "1"], Hints(categorical=["a"])).features == ["a=1", "a=2"]
    assert infer_column(["x", "1"] * 3, Hints(ignore=["a"])).role == "ignored"
    assert infer_column(["x", "1"] * 3, Hints(ids=["a"])).role == "id"
    with pytest.raises(ValueError, match=r"Expected a column 'aa' .*is 'a' meant\?"):
        infer_column(["x"], Hints(ignore=["aa"]))
    with pytest.raises(ValueError, match="'ignore' to be a list"):
        Hints(ignore="a")
    typed = Schema.infer({"zone": np.array([1.0, np.nan, 2.0])}, {}, Hints(categorical=["zone"]))
    assert typed.feature_names == ["zone=1", "zone=2"]
    assert typed.matrix({"zone": np.array([2.0, np.nan])}).tolist() == [[0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("cells", "role", "names"),
    [
        (list("0123"), "id", ["", "Unnamed: 0.1"]),
        (["7", "3", "5"], "id", ["Unnamed: 0", "id"]),
        (["x", "y", "z"], "id", ["guid"]),
        (["5"] * 12, "id", ["id"]),
        (["5"] * 12, "number", ["No"]),
        (SQUARES, "id", ["household_id", "basketId", "No"]),
        (SQUARES, "number", ["size", "paid", "grid"]),
    ],
)
def test_columns_that_number_the_rows_are_ids(cells, role, names):
    assert [infer(**{name: cells}).columns[0].role for name in names] == [role] * len(names)


def test_a_column_without_a_name_is_no_input():
    with pytest.raises(ValueError, match=r"a name for column 1 .*ignore=\[''\]"):
        infer(**{"": ["1", "1", "2"]})


@pytest.mark.parametrize(
    ("name", "cells", "message"),
    [
        ("loud", list(map(str, range(12))), "goes up by one"),
        ("fold", ["1", "2"] * 6, "to split or weight"),
        ("split", ["train", "test"] * 6, "to split or weight"),
        ("well", ["1E5", "2E5"] * 6, "'1E5', which are taken as numbers"),
        (
            "via",
            ["Web", "web", "App"] * 4,
            r"case and are treated as different: \[\['Web', 'web'\]\]",
        ),
        ("age", ["37", "-99", "52"] * 4, "-99 and no other number below 0"),
        ("day", ["20240131", "20240201"] * 6, "'20240131', taken as numbers"),
    ],
)
def test_suspicious_columns_are_warned_of(name, cells, message):
    with pytest.warns(UserWarning, match=f"Column '{name}'.*{message}"):
        assert [column.name for column in infer(**{name: cells}).inputs] == [name]


def test_usual_columns_raise_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cells in (["App", "web"] * 6, ["-99", "-5", "52"] * 4, ["-98", "1", "2"] * 4):
            assert infer_column(cells).features


def test_values_too_close_for_single_precision_are_shifted_or_warned_of():
    seconds = [f"2024-01-31 12:00:{second:02d}" for second in range(3)]
    for cells in (np.array(seconds, dtype=object), np.array(seconds, dtype="datetime64[s]")):
        schema = Schema.infer({"seen": cells}, {})
        [column] = Schema.from_dict(schema.to_dict()).columns
        assert column.notation["since"] == 19753
        assert column.notes.endswith("days since 2024-01-31")
        x = schema.matrix({"seen": cells}).astype(np.float32)[:, 0]
        np.testing.assert_allclose(np.diff(x) * 86_400, 1, atol=0.01)
    assert infer_column(["2024-01-31", "2024-02-01"]).notation.get("since", 0) == 0
    with pytest.warns(UserWarning, match="'a' has whole numbers .* 16777216 and 16777217"):
        infer_column(["16777217", "16777216", "3"])


def test_dots_that_may_separate_thousands_are_warned_of():
    with pytest.warns(UserWarning, match="'a' has three digits behind each dot, such as '1.100'"):
        infer(Hints(delimiter=";"), a=["1.100", "2.200", "3.300"])
    assert infer_column(["1.100.000", "2.000.000"]).notation["thousands"] == "."


def test_few_whole_numbers_may_be_codes():
    assert "'a'; if they are codes" in infer(a=["10", "20", "99"] * 7).summary()[-1]
    for cells in (["1", "2", "3"] * 7, ["1.5", "20", "99"] * 7, ["10", "20", "99"]):
        assert len(infer(a=cells).summary()) == 1


@pytest.mark.filterwarnings("ignore:Column 'size' has values")
def test_columns_of_new_tables_are_matched():
    schema = infer(size=["1", "2"], colour=["red", "blue"])
    texts = {" Colour": ["RED", "green"], "other": ["x", "y"], "SIZE": ["7", ""]}
    new = {name: np.array(cells, dtype=object) for name, cells in texts.items()}
    with pytest.warns(UserWarning, match="values that did not occur in training.*'green'"):
        matrix = schema.matrix(new)
    np.testing.assert_array_equal(matrix, [[7, 0, 1], [np.nan, 0, 0]])
    restored = Schema.from_dict(schema.to_dict())
    assert restored == schema
    with pytest.raises(ValueError, match=r"Expected the columns \['size'\] .*is 'sizes' meant\?"):
        schema.matrix({"sizes": np.array(["1"]), "colour": np.array(["red"])})
    with pytest.raises(ValueError, match="differ only in case or spaces"):
        match_names(["size"], ["Size", "SIZE"])


def test_cells_in_another_notation_are_refused_by_row():
    schema = infer(price=["1,5 €", "2,5 €"])
    cells = {"price": np.array(["3,5 €", "$4", "", "NA"], dtype=object)}
    with pytest.raises(ValueError, match=r"row 1, column 'price'.*'\$4'"):
        schema.matrix(cells)
    refused = {}
    x = schema.matrix(cells, refused=refused)[:, 0]
    assert np.isnan(x).tolist() == [False, True, True, True]
    assert list(refused) == [1]


def test_the_reason_of_equal_cells_is_found_once(monkeypatch):
    described, refused = [], {}
    monkeypatch.setattr(reading, "looks_like", lambda cell: described.append(cell) or "text")
    cells = {name: np.array(["ten", "ten", "1", "two"], dtype=object) for name in ("a", "b")}
    infer(a=["1", "2"], b=["1", "2"]).matrix(cells, refused=refused)
    assert described == ["ten", "two"]
    assert list(refused) == [0, 1, 3]


@pytest.mark.parametrize("cells", [[1.0, 1e39], ["1", "-1e39"]])
def test_numbers_of_more_than_32_bits_are_refused_by_row(cells):
    schema = infer(price=["1", "2"])
    message = r"32 bits can hold in row 1, column 'price' \(got -?1e\+39\)"
    with pytest.raises(ValueError, match=message):
        schema.matrix({"price": np.array(cells)})


def test_types_of_data_frames_are_used():
    frame = pd.DataFrame({"size": [1.5, None], "loud": [True, False], "texts": ["3", "4"]})
    frame["count"] = pd.array([1, None], dtype="Int64")
    frame["seen"] = pd.to_datetime(["1970-01-02", None])
    frame["zoned"] = pd.to_datetime(["1970-01-02T12:00", None], utc=True)
    frame["kind"] = pd.Categorical(["a", "b"])
    schema = Schema.infer(cells_of(frame), {})
    columns = ["size", "loud", "texts", "count", "seen", "zoned", "kind=a", "kind=b"]
    assert schema.feature_names == columns
    nan = np.nan
    expected = [[1.5, 1, 3, 1, 1, 1.5, 1, 0], [nan, 0, 4, nan, nan, nan, 0, 1]]
    np.testing.assert_array_equal(schema.matrix(cells_of(frame)), expected)
    with pytest.raises(ValueError, match=r"\['a'\] more than once"):
        cells_of(pd.DataFrame([[1, 2]], columns=["a", "a "]))


def test_a_printed_schema_describes_columns():
    schema = infer(name=[f"n{i}" for i in range(10)], price=["$5"] * 10, colour=["red"] * 10)
    lines = str(schema).splitlines()
    assert lines[0].split() == ["column", "role", "read", "as", "example", "missing"]
    assert "another text in each row" in lines[1]
    assert "numbers in '$'" in lines[2]
    assert schema.summary()[-1] == "Left out: 'name' (another text in each row)."


def test_schemas_of_files_are_checked():
    wrong_columns = [{"name": "a"}, {"role": "id"}, {"name": "a", "role": "x"}]
    for column in (*wrong_columns, {"name": "a", "role": "id", "b": 1}):
        with pytest.raises(ValueError, match="a column with a 'name' and one of the roles"):
            Schema.from_dict({"columns": [column]})


@pytest.mark.parametrize("value", [2906, 567, None])
def test_values_of_an_edited_schema_are_texts(value):
    column = {"name": "zip", "role": "category", "values": ["01067", value]}
    with pytest.raises(ValueError, match=f"column 'zip' .got {value}.; write them in quotes"):
        Schema.from_dict({"columns": [column]})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("values", value) for value in (0, True, "abc", {"a": 1}, [["a"]])],
        *[("reason", 3), ("example", None), ("missing", "2")],
        *[("notation", value) for value in (0, "number", [], {}, {"form": 3})],
        *[("notation", {"form": "number", name: 1}) for name in ("decimal", "unit", "other")],
        ("notation", {"form": "date", "since": "1"}),
    ],
)
def test_entries_of_an_edited_schema_have_their_types(key, value):
    entry = {"name": "a", "role": "number", key: value}
    with pytest.raises(ValueError, match=r"Expected .* column 'a' .*\(got"):
        Schema.from_dict({"columns": [entry]})


def test_numbers_stand_for_the_only_category_with_leading_zeros():
    schema = Schema.infer({"zip": np.array(["02906", "01067", "007", "7"] * 3, dtype=object)}, {})
    with pytest.warns(UserWarning, match="taken as 2906 for '02906'"):
        rows = schema.matrix({"zip": np.array(["2906", 2906, "02906"], dtype=object)})
    assert [np.flatnonzero(row).tolist() for row in rows] == [[2]] * 3
    assert schema.feature_names[2] == "zip=02906"
    assert schema.matrix({"zip": np.array(["7"], dtype=object)})[0].tolist() == [0, 0, 0, 1]


def test_other_texts_of_equal_numbers_are_other_categories():
    cells = np.array(["1.1", "1e3", "02"], dtype=object)
    with pytest.warns(UserWarning, match="did not occur in training"):
        rows = one_hot("version", ["1.10", "1000", "2"], cells)
    assert rows.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]
