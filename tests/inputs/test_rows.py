"""Tests rows that are dicts by column name, and other inputs that are read one by one."""

import warnings
from datetime import date, datetime, timezone

import numpy as np
import pandas as pd
import pytest
import torch

from tests.inputs.test_kinds import fitted
from tg_mlc.data import from_arrays
from tg_mlc.data.bags import with_attribute
from tg_mlc.data.dataset import joined
from tg_mlc.inputs import DNA, Embeddings, Vectors, Words

FRAME = pd.DataFrame({"age": [30, 41, 52, 63], "price": ["1.200,5", "3,25", "12,75", "0,5"]})
FRAME["day"] = pd.to_datetime(["2024-01-05", "2024-02-01", "2024-03-31", "2023-12-24"])
FRAME["member"], FRAME["colour"] = ["yes", "no"] * 2, ["red", "blue", "green", "red"]
FRAME["code"] = pd.Categorical(["1", "2", "3", "1"])
FRAME = pd.concat([FRAME] * 3, ignore_index=True)
Y = np.eye(12, 2)
ROWS = FRAME.to_dict("records")
TABLE = fitted(Vectors(), from_arrays(FRAME, Y, ["a", "b"], kind="vector"))
X = np.arange(24.0).reshape(12, 2)
NAMED = fitted(Vectors(), from_arrays(X, Y, ["a", "b"], ["u", "v"], kind="vector"))
PLAIN = fitted(Vectors(), from_arrays(X, Y, ["a", "b"], kind="vector"))
DOCUMENTS = [["old", "doll"], ["red", "apple"], ["old", "old", "red"]] * 4
FORMS = ("bag", "sequence")
WORDS = {form: fitted(Words(), from_arrays(DOCUMENTS, Y, ["a", "b"], kind=form)) for form in FORMS}


def without(*names):
    return {name: cell for name, cell in ROWS[0].items() if name not in names}


def test_rows_of_a_frame_are_read_like_the_frame():
    expected = TABLE.transform(FRAME).rows("x")
    np.testing.assert_array_equal(TABLE.transform(ROWS).rows("x"), expected)
    reordered = [dict(reversed(row.items())) if i % 2 else row for i, row in enumerate(ROWS)]
    np.testing.assert_array_equal(TABLE.transform(reordered).rows("x"), expected)
    np.testing.assert_array_equal(TABLE.transform(pd.Series(ROWS)).rows("x"), expected)
    for row in range(4):
        np.testing.assert_array_equal(TABLE.transform([ROWS[row]]).rows("x")[0], expected[row])
    assert TABLE.unreadable(ROWS) == {}


@pytest.mark.parametrize(
    ("cells", "column", "expected"),
    [
        ({"age": "41"}, "age", 41),
        ({"age": np.int64(41)}, "age", 41),
        ({"age": True}, "age", 1),
        ({"age": None}, "age", np.nan),
        ({"age": pd.NA}, "age", np.nan),
        ({"price": 3.25}, "price", 3.25),  # Numbers are not parsed as texts.
        ({"price": "3,25"}, "price", 3.25),
        ({"day": date(2024, 2, 1)}, "day", 19754),
        ({"day": datetime(2024, 2, 1, 12, tzinfo=timezone.utc)}, "day", 19754.5),
        ({"day": "2024-02-01"}, "day", 19754),
        ({"day": None}, "day", np.nan),
        ({"member": True}, "member", 1),
        ({"member": "no"}, "member", 0),
        ({"colour": "BLUE"}, "colour=blue", 1),
        ({"code": 2}, "code=2", 1),
        ({"code": 2.0}, "code=2", 1),
    ],
)
def test_cells_are_read_by_their_own_types(cells, column, expected):
    rows = [{**ROWS[0], **cells}, {**ROWS[1], "age": "33", "price": 7, "day": "2024-01-01"}]
    index = TABLE.feature_names.index(column)
    for order in (slice(None), slice(None, None, -1)):
        x = TABLE.transform(rows[order]).rows("x")[order.step or 0]
        np.testing.assert_allclose(x[index], expected)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, r"Expected the columns \['age', 'price', .*\(got the columns \[\]\)"),
        ({"agee": 50}, r"Expected the columns \['age', .*; is 'agee' meant\?"),
        (without("colour") | {"color": "red"}, r"\['colour'\] .* is 'color' meant"),
        (without("age", "colour") | {"colur": "red"}, "is 'colur' meant"),
        ({**ROWS[0], "Age": 3}, r"Expected one column 'age' \(got \['age', 'Age'\]"),
        ({**ROWS[0], " age": 3}, r"Expected every column to be used once \(got \['age'\]"),
        ({**ROWS[0], "age": "fast"}, r"Expected numbers, .* in column 'age' \(got 'fast', text\)"),
        ({**ROWS[0], "age": [3]}, r"Expected one value in column 'age' \(got a list\)"),
        ({**ROWS[0], "colour": {"a": 1}}, r"Expected one value in column 'colour' \(got a dict\)"),
        ({**ROWS[0], "age": 1e39}, "Expected numbers that 32 bits can hold in column 'age'"),
        ({**ROWS[0], "age": 10**400}, "Expected numbers that 32 bits can hold in column 'age'"),
        ({**ROWS[0], "day": 20240105}, "Expected dates .* in column 'day'"),
        (None, "Expected a row of .* columns \\(got nothing\\)"),
        ("red", "Expected a row of .* columns \\(got str\\)"),
        ([1, 2], "Expected a row of .* columns \\(got 2\\)"),
    ],
)
def test_each_unreadable_row_has_a_reason(row, reason):
    with pytest.raises(ValueError, match=f"{reason}.* in row 1"):
        TABLE.transform([ROWS[0], row, ROWS[1]])
    alone_reasons, reasons = TABLE.unreadable([row]), TABLE.unreadable([ROWS[0], row, ROWS[1]])
    assert [*reasons] == [1]
    assert reasons[1] == alone_reasons[0]


def test_columns_that_training_did_not_have_are_ignored():
    expected = TABLE.transform(FRAME.assign(id=7)).rows("x")
    wider_rows = [{"id": 7, **row, "note": "x"} for row in ROWS]
    np.testing.assert_array_equal(TABLE.transform(wider_rows).rows("x"), expected)
    assert NAMED.transform([{"w": 3, "v": 2, "u": 1}])[0].x.tolist() == [[1, 2]]
    with pytest.raises(ValueError, match="Expected one column 'age'"):
        TABLE.transform(FRAME.assign(AGE=1))


def test_models_without_names_of_columns_take_rows_in_order():
    rows = [{"b": 2, "a": "1.5"}, {"a": 3, "b": 4}]
    assert PLAIN.transform(rows).rows("x").tolist() == [[2, 1.5], [3, 4]]
    assert "Expected a row of 2 columns" in PLAIN.unreadable([{"a": 1}])[0]
    assert [*PLAIN.unreadable([{}, [1, 2], {"a": 1, "b": 2, "c": 3}])] == [0, 2]


def test_rows_of_numbers_are_read_one_by_one():
    good_rows = [[1, 2], ["3", 4], [None, 2.5], ["NA", 2.5], [True, 2], {"u": 5, "v": 6}]
    bad_rows = [[1], ["x", 1], ["1_000", 1], [1e39, 1], None, 3]
    rows = [row for pair in zip(good_rows, bad_rows, strict=True) for row in pair]
    assert [*NAMED.unreadable(rows)] == [1, 3, 5, 7, 9, 11]
    x = NAMED.transform(good_rows).rows("x")
    nan = np.nan
    np.testing.assert_array_equal(x, [[1, 2], [3, 4], [nan, 2.5], [nan, 2.5], [1, 2], [5, 6]])


def test_many_rows_with_blank_cells_are_read_at_once():
    rng = np.random.default_rng(0)
    names = [f"c{number}" for number in range(40)]
    frame = pd.DataFrame(rng.normal(size=(12, 40)), columns=names)
    kind = fitted(Vectors(), from_arrays(frame, Y, kind="vector"))
    x = np.where(rng.random((300, 40)) < 0.5, np.nan, rng.normal(size=(300, 40)))
    cells = [[None if np.isnan(cell) else cell for cell in row] for row in x.tolist()]
    rows = [dict(zip(names, row, strict=True)) for row in cells]
    np.testing.assert_array_equal(kind.transform(rows).rows("x"), x.astype(np.float32))


@pytest.mark.parametrize("name", ["bag", "sequence"])
def test_texts_words_and_numbers_can_be_mixed(name):
    words = WORDS[name]
    inputs = ["old doll", ["red", "apple"], [1, 2], "red", {"text": "old old"}, []]
    if name == "bag":
        inputs += [[0, 1, 0, 2, 0][: words.num_inputs], dict.fromkeys(words.feature_names, 1)]
    samples = words.transform(inputs)
    for sample, raw in zip(samples, inputs, strict=True):
        alone = words.transform([raw])[0]
        assert sample.x.tolist() == alone.x.tolist()
        ones = torch.ones(len(sample.x))
        assert sample.get("weight", ones).tolist() == alone.get("weight", ones).tolist()
    faulty = [None, 3, {}, {"text": "a", "title": "b"}, ["a", 1], [10**6], [None]]
    mixed = [raw for pair in zip(faulty, (inputs * 2)[: len(faulty)], strict=True) for raw in pair]
    refused = words.unreadable(mixed)
    assert [*refused] == [*range(0, len(mixed), 2)]
    assert [*refused.values()] == [words.unreadable([raw])[0] for raw in faulty]


def test_other_kinds_take_rows_of_one_column():
    dna = fitted(DNA(), DNA.samples(["ACGT", "CCGT", "ACG"] * 4, Y, ["a", "b"]))
    [named], [alone] = dna.transform([{"sequence": "ACG"}]), dna.transform(["ACG"])
    assert named.x.tolist() == alone.x.tolist()
    rows = ["ACG", {"s": "ACG"}, {}, {"a": "A", "b": "C"}, {"s": 3}, None]
    assert [*dna.unreadable(rows)] == [2, 3, 4, 5]
    with pytest.raises(ValueError, match=r"a row with one column .* in row 1"):
        dna.transform(["ACG", {}])
    vectors = [np.ones((2, 3)), np.zeros((1, 3))] * 6
    embeddings = fitted(Embeddings(), from_arrays(vectors, Y, ["a", "b"], kind="embeddings"))
    assert [*embeddings.unreadable([[[1, 2, 3]], {"v": [[1, 2, 3]]}, {}, [[1]]])] == [2, 3]


def test_data_sets_are_joined():
    parts = [WORDS["bag"].transform(texts) for texts in ([["old", "doll"]], [["red"], ["apple"]])]
    whole = joined(parts)
    separate = [sample.x.tolist() for part in parts for sample in part]
    assert [sample.x.tolist() for sample in whole] == separate
    for name in ("kind", "num_inputs", "feature_names", "label_names"):
        assert getattr(whole, name) == getattr(parts[0], name)
    assert joined(parts[:1]) is parts[0]
    with pytest.raises(ValueError, match="Expected samples with the same attributes"):
        joined([parts[0], with_attribute(parts[1], "note", torch.zeros(2, 1))])


def test_new_values_are_warned_of():
    with pytest.warns(UserWarning, match="values that did not occur in training.*'purple'"):
        TABLE.transform([{**ROWS[0], "colour": "purple"}])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TABLE.transform(ROWS)
