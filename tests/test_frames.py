from collections import UserList, deque

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from tests.inputs.test_kinds import fitted
from tg_mlc._frames import as_frame, in_order
from tg_mlc.data.given import given_labels
from tg_mlc.graphs import co_occurrence
from tg_mlc.inputs.arrays import from_arrays
from tg_mlc.inputs.vectors import Vectors
from tg_mlc.inputs.words import Words
from tg_mlc.sklearn.label_form import LabelForm

X = {"age": [1.5, 2.0, 3.0], "style": ["rock", "folk", "rock"]}
Y = {"calm": [1, 0, 1], "sad": [0, 1, 1]}
NAMES = [["calm"], ["sad"], ["calm", "sad"]]


class Exported:
    """A table of a library that this package does not know."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class HuggingFace:
    """A table as of Hugging Face's datasets, which is no sequence."""

    def __init__(self, columns):
        self._columns, self.column_names = columns, [*columns]

    def to_pandas(self):
        return pd.DataFrame(self._columns)

    def to_list(self):
        return self.to_pandas().to_dict("records")


def of_polars(columns):
    return pytest.importorskip("polars").DataFrame(columns).lazy()


def of_pyarrow(columns):
    return pytest.importorskip("pyarrow").table(columns)


def of_batches(columns):
    return of_pyarrow(columns).to_batches()[0]


def of_arrow(columns):
    return Exported(of_pyarrow(columns))


def of_datasets(columns):
    return pytest.importorskip("datasets").Dataset.from_dict(columns)


@pytest.mark.parametrize(
    "table", [dict, HuggingFace, of_polars, of_pyarrow, of_batches, of_arrow, of_datasets]
)
def test_tables_of_other_libraries_are_data_frames(table):
    dataset = from_arrays(table(X), table(Y))
    assert dataset.feature_names == ["age", "style=folk", "style=rock"]
    assert dataset.label_names == ["calm", "sad"]
    assert dataset.y.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert from_arrays(table(X), table({"topics": NAMES})).y.tolist() == dataset.y.tolist()
    kind = fitted(Vectors(), dataset)
    assert kind.transform(kind.inputs_of(table(X))).rows("x").equal(dataset.rows("x"))
    form, matrix = LabelForm.read(table(Y))
    assert (form.names, matrix.tolist()) == (["calm", "sad"], dataset.y.tolist())
    if table is not dict:  # which is a mapping from names to one value for all samples
        assert given_labels(["calm", "sad"], table(Y)).equal(dataset.y)
        assert co_occurrence(table(Y)).label_names == ["calm", "sad"]


def test_frames_are_unchanged():
    # The names of columns are attributes.
    frame = pd.DataFrame({"lazy": [1], "collect": [2], "to_pandas": [3]})
    assert as_frame(frame) is frame
    series = frame["lazy"]
    assert as_frame(series) is series


def of_arrow_array(rows):
    return pytest.importorskip("pyarrow").array(rows)


def of_chunks(rows):
    return pytest.importorskip("pyarrow").chunked_array([rows[:1], rows[1:]])


def of_column(rows):
    return of_datasets({"rows": rows})["rows"]


SEQUENCES = [
    lambda rows: dict(enumerate(rows)).values(),
    lambda rows: dict.fromkeys(map(tuple, rows)).keys(),
    deque,
    UserList,
    of_arrow_array,
    of_chunks,
    of_column,
    lambda rows: list(map(np.array, rows)),
    lambda rows: list(map(deque, rows)),
    lambda rows: [dict.fromkeys(row).keys() for row in rows],
    lambda rows: list(map(of_arrow_array, rows)),
]


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_sequences_are_lists(sequence):
    expected = from_arrays(NAMES, NAMES)
    dataset = from_arrays(sequence(NAMES), sequence(NAMES))
    assert dataset.y.equal(expected.y)
    assert dataset.feature_names == expected.feature_names
    assert [sample.x.tolist() for sample in dataset] == [sample.x.tolist() for sample in expected]
    kind = fitted(Words(), dataset)
    samples = kind.transform(kind.inputs_of(sequence(NAMES)))
    assert [sample.x.tolist() for sample in samples] == [sample.x.tolist() for sample in expected]
    assert LabelForm.read(sequence(NAMES))[1].tolist() == expected.y.tolist()


@pytest.mark.parametrize("blank", ["", None, np.nan])
def test_matrices_may_hold_names(blank):
    rows = [["calm", blank], ["sad", blank], ["calm", "sad"]]
    matrix = np.array(rows, dtype=str if blank == "" else object)
    assert from_arrays(np.eye(3), matrix).label_names == ["calm", "sad"]
    assert from_arrays(np.eye(3), matrix).y.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert LabelForm.read(matrix)[0].form == "sets"


@pytest.mark.parametrize("cells", ["0 1 x", "yes no maybe"])
def test_a_misspelt_label_is_no_name(cells):
    with pytest.raises(ValueError, match="Expected labels to be"):
        from_arrays(np.eye(3), np.array([[cell, "1"] for cell in cells.split()]))


@pytest.mark.parametrize("array", [np.array, lambda row: np.array(row, dtype=np.int8)])
def test_rows_of_label_indices_may_be_arrays(array):
    assert from_arrays(np.eye(3), [array([1, 3]), array([0]), array([3])]).label_names == [*"013"]


@pytest.mark.parametrize("value", [{"calm", "sad"}, "calm", b"calm", 3, object(), iter(NAMES)])
def test_other_values_are_refused_by_type(value):
    name = type(value).__name__
    with pytest.raises(ValueError, match=rf"Expected labels .*\(got a {name}"):
        from_arrays(np.eye(3), value)
    with pytest.raises(ValueError, match=rf"Expected inputs .*\(got a {name}"):
        from_arrays(value, np.eye(3))


def test_a_sparse_matrix_that_is_a_dictionary_is_a_matrix():
    matrix = sp.dok_matrix(np.eye(3))
    assert as_frame(matrix) is matrix
    frame = from_arrays(matrix, matrix, label_names=["a", "b", "c"])
    assert frame.y.tolist() == np.eye(3).tolist()


def test_targets_in_a_table_of_another_library_are_read_by_name():
    frame = in_order(HuggingFace({"b": [0, 1], "a": [1, 1]}), ["a", "b"], "y")
    assert frame.to_numpy().tolist() == [[1, 0], [1, 1]]
