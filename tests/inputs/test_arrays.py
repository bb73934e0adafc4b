import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch_geometric.loader import DataLoader

from tg_mlc.data import DNADataset, from_csv
from tg_mlc.inputs.arrays import from_arrays

Y = [[1, 0], [0, 1], [1, 1]]
MATRIX = np.array([[0.0, 2.5, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
WORDS = [["red", "apple", "red"], [], ["green", "apple"]]
TENSOR, TOO_WIDE = torch.tensor(MATRIX), sp.csr_array((3, 10**9))
SETS, WEIGHTS = [[1, 2], [], [0]], [[2.5, 1.0], [], [1.0]]
WORD_PAIRS, WORD_INDICES = [["a", "b"], ["b", "c"], ["c", "a"]], [[3, 1, 3], [], [0]]
DENSE, ZERO_ONE = "they make a dense matrix of numbers", "they are a matrix of the whole numbers 0"
WORD_LISTS, NUMBER_LISTS = "they are lists of words", "they are lists of whole numbers, not all of"


@pytest.mark.parametrize(
    ("inputs", "kind", "reason", "x", "weights"),
    [
        (MATRIX, "vector", DENSE, [[row] for row in MATRIX.tolist()], None),
        (sp.csr_array(MATRIX), "bag", "they are a sparse matrix", SETS, WEIGHTS),
        (sp.coo_matrix(MATRIX), "bag", "they are a sparse matrix", SETS, WEIGHTS),
        (TENSOR.to_sparse(), "bag", "they are a sparse matrix", SETS, WEIGHTS),
        (TENSOR.to_sparse_csr(), "bag", "they are a sparse matrix", SETS, WEIGHTS),
        ((MATRIX > 0).astype(int), "bag", ZERO_ONE, SETS, None),
        (WORDS, "sequence", WORD_LISTS, [[2, 1, 2], [], [3, 1]], None),
        (WORD_PAIRS, "sequence", WORD_LISTS, [[1, 2], [2, 3], [3, 1]], None),
        (WORD_INDICES, "sequence", NUMBER_LISTS, WORD_INDICES, None),
    ],
)
def test_kinds_are_inferred_and_announced(inputs, kind, reason, x, weights, capsys):
    dataset = from_arrays(inputs, Y)
    assert f"Taking the inputs as kind='{kind}' because {reason}" in capsys.readouterr().out
    expected = kind, ["label_0", "label_1"], Y
    assert (dataset.kind, dataset.label_names, dataset.y.tolist()) == expected
    assert [data.x.tolist() for data in dataset] == x
    assert ("weight" in dataset[0]) == (weights is not None)
    assert weights is None or [data.weight.tolist() for data in dataset] == weights
    from_arrays(inputs, Y, kind=kind)
    assert capsys.readouterr().out == ""  # Nothing was inferred.


def test_kinds_can_be_chosen():
    assert from_arrays((MATRIX > 0).astype(int), Y, kind="vector")[0].x.tolist() == [[0, 1, 1]]
    assert from_arrays(MATRIX, Y, kind="bag")[0].weight.tolist() == [2.5, 1.0]
    assert from_arrays(sp.csr_array(MATRIX), Y, kind="vector")[0].x.tolist() == [[0, 2.5, 1]]
    bags = from_arrays(WORDS, Y, kind="bag")
    assert bags.feature_names == ["<unk>", "apple", "red", "green"]
    assert [data.x.tolist() for data in bags] == [[1, 2], [], [1, 3]]
    assert "weight" not in bags[0]
    # Explicit zeros are absent words.
    values, words, ptr = map(np.array, ([1.0, 0.0, 2.0, 3.0], [0, 1, 2, 2], [0, 2, 4]))
    bags = from_arrays(sp.csr_array((values, words, ptr), shape=(2, 3)), Y[:2])
    assert [(bag.x.tolist(), bag.weight.tolist()) for bag in bags] == [([0], [1]), ([2], [5])]


def test_the_vocabulary_is_taken_from_training_rows_alone():
    dataset = from_arrays(WORDS, Y, train=[0, 1], test=[2])
    assert dataset.feature_names == ["<unk>", "red", "apple"]
    assert dataset[2].x.tolist() == [0, 2]  # "green" is unknown.
    assert from_arrays(WORDS, Y, kind="bag", train=[0, 1])[2].x.tolist() == [2]


def test_a_given_vocabulary_keeps_its_order():
    for words in (["green", "blue"], ["<unk>", "green", "blue"]):
        dataset = from_arrays(WORDS, Y, feature_names=words)
        assert dataset.feature_names == ["<unk>", "green", "blue"]
        assert [data.x.tolist() for data in dataset] == [[0, 0, 0], [], [1, 0]]


def test_word_indices_are_kept_unchanged():
    dataset = from_arrays([[3, 1, 3], [], np.array([0])], Y)
    assert (dataset.kind, dataset.num_inputs, dataset.feature_names) == ("sequence", 4, None)
    assert [data.x.tolist() for data in dataset] == [[3, 1, 3], [], [0]]
    named = from_arrays([[1], [0], [1]], Y, feature_names=["u", "v", "w"], kind="sequence")
    assert named.num_inputs == 3


@pytest.mark.parametrize("rows", [[[0, 1, 0], [1, 0, 0]], [np.array([0, 1, 0]), (1, 0, 0)]])
def test_integer_lists_of_equal_length_need_a_kind(rows):
    with pytest.raises(ValueError, match=r"rows .*kind='vector'; if .*words, pass kind='sequence'"):
        from_arrays(rows, Y[:2])
    assert from_arrays(rows, Y[:2], kind="vector")[1].x.tolist() == [[1, 0, 0]]
    assert from_arrays(np.array(rows), Y[:2], kind="bag")[1].x.tolist() == [0]
    assert from_arrays(rows, Y[:2], kind="sequence")[1].x.tolist() == [1, 0, 0]
    # In a bag, lists hold the indices of words.
    assert from_arrays(rows, Y[:2], kind="bag")[1].x.tolist() == [0, 1]


@pytest.mark.parametrize("inputs", [WORDS[:2], [[1], [0, 1]], MATRIX[:2], sp.csr_array(MATRIX[:2])])
@pytest.mark.parametrize("train", [None, [0, 2]])
def test_rows_are_counted_before_inputs_are_read(inputs, train):
    with pytest.raises(ValueError, match=r"'Y' to have as many rows as each other \(got 2 and 3\)"):
        from_arrays(inputs, Y, train=train)


def test_data_frames_name_inputs_and_labels():
    x = pd.DataFrame({"age": [1.5, None, 3.0], "size": [1, 2, 3]})
    y = pd.DataFrame({"calm": [1, 0, None], "sad": pd.array([1, None, 0], dtype="Int64")})
    dataset = from_arrays(x, y)
    assert (dataset.feature_names, dataset.label_names) == (["age", "size"], ["calm", "sad"])
    assert dataset[1].x.isnan().tolist() == [[True, False]]
    assert dataset.y.isnan().tolist() == [[False, False], [False, True], [True, False]]
    assert from_arrays(x, y, ["a", "b"], ["c", "d"]).label_names == ["a", "b"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_nominal_columns_become_indicator_columns(library):
    make_frame = pytest.importorskip(library).DataFrame
    frame = make_frame({"size": [1.5, None, 3.0], "colour": ["red", None, " blue"]})
    dataset = from_arrays(frame, [[1], [0], [1]])
    expected = "vector", ["size", "colour=blue", "colour=red"]
    assert (dataset.kind, dataset.feature_names) == expected
    assert dataset.rows("x").nan_to_num(-1).tolist() == [[1.5, 0, 1], [-1, 0, 0], [3, 1, 0]]
    with pytest.warns(UserWarning, match="values that did not occur in training.*'green'"):
        new = from_arrays(make_frame({"colour": ["blue", "green"], "size": [2, 4]}), like=dataset)
    assert new.rows("x").tolist() == [[2, 1, 0], [4, 0, 0]]
    renamed = from_arrays(frame, [[1], [0], [1]], feature_names=["a", "b"])
    assert renamed.feature_names == ["a", "b=blue", "b=red"]
    chosen = from_arrays(frame, [[1], [0], [1]], feature_names=["colour", "size"])
    assert chosen.feature_names == ["colour=blue", "colour=red", "size"]
    with pytest.raises(ValueError, match=r"Expected the columns \['size'\]"):
        from_arrays(make_frame({"colour": ["blue"], "age": [2]}), like=dataset)
    with pytest.raises(ValueError, match="at most 100 different values, in column 'id'"):
        from_arrays(make_frame({"id": [f"no. {i % 101}" for i in range(202)]}), np.eye(202))


def test_categories_are_nominal_and_other_objects_are_not():
    columns = {"kind": ["a", "b", "a"], "year": [1999, 2000, 1999]}
    frame = pd.DataFrame({name: pd.Categorical(cells) for name, cells in columns.items()})
    dataset = from_arrays(frame, [[1], [0], [1]])
    assert dataset.feature_names == ["kind=a", "kind=b", "year"]
    assert dataset.rows("x").tolist() == [[1, 0, 1999], [0, 1, 2000], [1, 0, 1999]]
    with pytest.raises(ValueError, match=r"numbers.* in row 1, column 'kind'.*\(got 'b', text\)"):
        from_arrays(pd.DataFrame({"kind": [1, "b"]}), [[1], [0]])


def test_messages_say_what_to_do_with_the_frame():
    frame = pd.DataFrame({"size": ["1", "2", "5+", "2"]})
    message = r"'5\+'.*\.astype\('category'\) if .* X\.drop\(columns=\['size'\]\)"
    with pytest.raises(ValueError, match=message) as error:
        from_arrays(frame, [[1], [0], [1], [0]])
    assert "categorical=" not in str(error.value)
    X = frame.copy()
    X["size"] = X["size"].astype(str).astype("category")
    assert from_arrays(X, [[1], [0], [1], [0]]).feature_names == ["size=1", "size=2", "size=5+"]


def test_sparse_data_frames_are_bags():
    frame = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(MATRIX), columns=["u", "v", "w"])
    dataset = from_arrays(frame, Y)
    expected = "bag", ["u", "v", "w"], [1, 2]
    assert (dataset.kind, dataset.feature_names, dataset[0].x.tolist()) == expected


def test_labels_are_read_in_any_format():
    y = torch.tensor(Y)
    formats = [np.array(Y), y, y.to_sparse(), y.to_sparse_csr(), y.bool().numpy()]
    for labels in (*formats, sp.csr_array(np.array(Y)), list(map(tuple, Y))):
        assert from_arrays(MATRIX, labels).y.tolist() == Y


MISSING = ["", "NA", "None", "null", r"\N", "?", "-", "N/A", None, float("nan")]


@pytest.mark.parametrize(
    ("no", "yes"), [("no", "yes"), ("False", "True"), ("0", "1"), ("0.0", "1.0"), (0, 1)]
)
def test_labels_are_spelled_as_in_files(no, yes):
    for missing in MISSING:
        frame = pd.DataFrame({"a": [yes, no, yes], "b": [no, missing, yes]}, dtype=object)
        for labels in (frame, frame.to_numpy()):
            y = from_arrays(MATRIX, labels).y.nan_to_num(-1)
            assert y.tolist() == [[1, 0], [0, -1], [1, 1]], missing


def test_labels_may_be_sets_of_names():
    dataset = from_arrays(MATRIX, [{"b"}, None, ["a", "b"]])
    assert dataset.label_names == ["a", "b"]
    assert dataset.y[[0, 2]].tolist() == [[0, 1], [1, 1]]
    assert dataset.y[1].isnan().all()
    expected = [[1, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert from_arrays(MATRIX, [{"b"}, set(), {"a"}], ["b", "c", "a"]).y.tolist() == expected
    assert from_arrays(MATRIX, [{3}, {10}, set()]).label_names == ["10", "3"]


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, "NA", "?", "-", " ", "None"])
def test_missing_names_are_no_labels(missing):
    dataset = from_arrays(WORDS, [{"a", missing}, ["b", missing], ["a"]])
    assert (dataset.label_names, dataset.y.tolist()) == (["a", "b"], [[1, 0], [0, 1], [1, 0]])


def test_a_column_of_lists_is_read_as_a_list():
    df = pd.DataFrame({"tokens": WORDS, "tags": [{"b"}, {"a", "b"}, set()]}, index=[7, 3, 5])
    dataset = from_arrays(df["tokens"], df["tags"])
    assert [[dataset.feature_names[i] for i in data.x.tolist()] for data in dataset] == WORDS
    assert (dataset.label_names, dataset.y.tolist()) == (["a", "b"], [[0, 1], [1, 1], [0, 0]])
    tuples, arrays = df["tokens"].map(tuple).to_numpy(), df["tokens"].map(np.array)
    assert from_arrays(tuples, df["tags"].to_numpy(), kind="bag").kind == "bag"
    assert from_arrays(arrays, df["tags"].map(np.array), ["a", "b"]).kind == "sequence"


def test_frames_and_series_of_polars_are_read():
    polars = pytest.importorskip("polars")
    x = polars.DataFrame({"age": [1.5, None], "size": [1, 2]})
    y = polars.DataFrame({"calm": [1, None], "sad": [0, 1]})
    dataset = from_arrays(x, y, ["sad", "calm"])
    assert (dataset.feature_names, dataset.label_names) == (["age", "size"], ["sad", "calm"])
    assert dataset.y.isnan().tolist() == [[False, False], [False, True]]
    assert from_arrays(x[["size", "age"]], like=dataset)[0].x.tolist() == [[1.5, 1]]
    words = from_arrays(polars.Series([["red", "apple"], []]), polars.Series([["b", "a"], None]))
    assert (words.feature_names, words.label_names) == (["<unk>", "apple", "red"], ["a", "b"])
    assert words.y.isnan().tolist() == [[False, False], [True, True]]


@pytest.mark.parametrize("convert", [list, sorted, np.array])
def test_a_column_of_label_lists_may_have_missing_cells(convert):
    tags = pd.Series([{"b"}, {"a", "b"}, {"a"}]).map(lambda names: convert(list(names)))
    assert from_arrays(MATRIX, tags).y.tolist() == [[0, 1], [1, 1], [1, 0]]
    tags[1] = None
    assert from_arrays(MATRIX, tags).y.isnan().tolist() == [[False] * 2, [True] * 2, [False] * 2]
    assert from_arrays(MATRIX, tags.where(tags.notna(), float("nan"))).y[1].isnan().all()


def test_bfloat16_tensors_are_read():
    rows = torch.tensor(MATRIX).bfloat16()
    for X in (rows, list(rows), rows.requires_grad_()):
        dataset = from_arrays(X, torch.tensor(Y).bfloat16(), kind="vector")
        assert torch.cat([data.x for data in dataset]).tolist() == MATRIX.tolist()
        assert dataset.y.tolist() == Y
    assert from_arrays(rows.to_sparse(), Y)[0].weight.tolist() == [2.5, 1.0]


@pytest.mark.parametrize(
    "convert",
    [np.asarray, torch.tensor, sp.csr_array, pd.DataFrame, lambda z: torch.tensor(z).to_sparse()],
    ids=["numpy", "torch", "sparse", "pandas", "torch sparse"],
)
def test_complex_numbers_are_refused(convert):
    z = np.array(Y) * (1 + 1j)
    with pytest.raises(ValueError, match=r"be real numbers \(got complex128\); pass the real and"):
        from_arrays(convert(z), Y)
    with pytest.raises(ValueError, match=r"Expected labels to be real numbers \(got complex128\)"):
        from_arrays(MATRIX, convert(z))


def test_new_samples_have_the_words_and_labels_of_old_samples():
    dataset = from_arrays([["red", "apple"], ["green", "pear"]], [{"fruit", "red"}, {"fruit"}])
    new = from_arrays([["red", "plum"]], like=dataset)
    expected = "sequence", dataset.label_names, dataset.feature_names
    assert (new.kind, new.label_names, new.feature_names) == expected
    assert [dataset.feature_names[i] for i in new[0].x] == ["red", "<unk>"]
    assert new.y.isnan().all()
    labelled = from_arrays([["pear"]], [{"red"}], like=dataset)
    assert labelled.y.tolist() == [[0, 1]]
    bags = from_arrays(np.eye(3), np.eye(3, 2), kind="bag")
    assert from_arrays(np.ones((1, 3)), like=bags).kind == "bag"


def test_given_column_names_choose_the_order_of_columns():
    x = pd.DataFrame({"age": [1.0, 2.0], "size": [3.0, 4.0]})
    y = pd.DataFrame({"a": [1, 0], "b": [0, 0]})
    dataset = from_arrays(x, y, ["b", "a"], ["size", "age"])
    assert (dataset.label_names, dataset.y.tolist()) == (["b", "a"], [[0, 1], [0, 0]])
    expected = ["size", "age"], [[3, 1], [4, 2]]
    assert (dataset.feature_names, dataset.rows("x").tolist()) == expected
    renamed = from_arrays(x, y, ["c", "b"], ["years", "metres"])
    assert (renamed.label_names, renamed.y.tolist()) == (["c", "b"], [[1, 0], [0, 0]])
    assert renamed.rows("x").tolist() == x.to_numpy().tolist()
    with pytest.raises(ValueError, match=r"columns of the data frame.*\['b'\] are names of other"):
        from_arrays(x, y, ["b", "c"])
    with pytest.raises(ValueError, match="'feature_names' to be the columns of the data frame"):
        from_arrays(x, y, feature_names=["metres", "age"])


def test_rows_in_different_orders_are_refused():
    x = pd.DataFrame({"age": [1.0, 2.0]}, index=[5, 6])
    y = pd.DataFrame({"a": [1, 0]}, index=[6, 5])
    message = r"in one order \(got row 0 with index 5 in 'X' and 6 in 'Y'\); pass 'Y.loc"
    with pytest.raises(ValueError, match=message):
        from_arrays(x, y)
    with pytest.raises(ValueError, match="in one order"):
        from_arrays(x, pd.Series([{"a"}, {"b"}], index=[6, 5]))
    overlapping = pd.DataFrame({"a": [1, 0]}, index=[5, 8])
    message = r"the same rows .*row 1 with index 6 in 'X' and 8 in 'Y'\); pass 'Y.loc"
    with pytest.raises(ValueError, match=message):
        from_arrays(x, overlapping)
    assert from_arrays(x, overlapping.to_numpy()).y.tolist() == [[1], [0]]
    assert from_arrays(x, y.loc[x.index]).y.tolist() == [[0], [1]]
    # Indices without a common entry are paired by position.
    assert from_arrays(x, y.reset_index(drop=True)).y.tolist() == [[1], [0]]


def test_columns_of_new_frames_are_matched_by_name():
    x = pd.DataFrame({"age": [1.5, 2.0, 3.0], "size": [10, 20, 30]})
    y = pd.DataFrame({"calm": [1, 0, None], "sad": [1, 1, 0]})
    old = from_arrays(x, y)
    new = from_arrays(x[["size", "age"]], y[["sad", "calm"]], like=old)
    assert (new.feature_names, new.label_names) == (["age", "size"], ["calm", "sad"])
    assert torch.equal(new.rows("x"), old.rows("x"))
    assert torch.equal(new.y.nan_to_num(9), old.y.nan_to_num(9))
    # Columns may also be numbered, sparse, or without old names.
    numbered = x.set_axis([0, 1], axis=1)
    new = from_arrays(numbered[[1, 0]], like=from_arrays(numbered, y))
    assert torch.equal(new.rows("x"), old.rows("x"))
    sparse = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(MATRIX), columns=["u", "v", "w"])
    bags = from_arrays(sparse[["w", "u", "v"]], like=from_arrays(sparse, Y))
    assert (bags[0].x.tolist(), bags[0].weight.tolist()) == ([1, 2], [2.5, 1.0])
    assert torch.equal(from_arrays(x, like=from_arrays(x.to_numpy(), y)).rows("x"), old.rows("x"))


def test_frames_and_files_are_read_alike(tmp_path):
    sizes = [i * i % 7 for i in range(24)]
    frame = pd.DataFrame({"id": range(100, 124), "size": sizes, "a": [0, 1] * 12})
    frame.to_csv(tmp_path / "a.csv", index=False)
    csv_set = from_csv(tmp_path / "a.csv", ["a"])
    frame_set = from_arrays(frame[["id", "size"]], frame[["a"]])
    assert csv_set.feature_names == frame_set.feature_names == ["size"]
    roles = [[(col.name, col.role) for col in data.schema.columns] for data in (csv_set, frame_set)]
    assert roles[0] == [*roles[1], ("a", "label")]
    new = from_arrays(frame[["size", "id"]], like=frame_set)
    assert torch.equal(new.rows("x"), csv_set.rows("x"))
    # In a bag every column is a word, so that 'id' is not skipped.
    expected = ["id", "size"]
    assert from_arrays(frame[["id", "size"]], frame[["a"]], kind="bag").feature_names == expected


def test_masked_entries_are_unknown():
    x = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 0]])
    y = np.ma.masked_array([[1, 0], [0, 1]], mask=[[0, 0], [1, 0]])
    dataset = from_arrays(x, y, kind="vector")
    np.testing.assert_array_equal(dataset.rows("x"), [[1, np.nan], [3, 4]])
    np.testing.assert_array_equal(dataset.y, [[1, 0], [np.nan, 1]])


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (["size", "height"], ["a"], r"columns \['age'\] .*got the columns \['size', 'height'\]"),
        (["age", "size", "age"], ["a"], r"every column to be used once \(got \['age'\]"),
        (["age", "size"], ["b"], r"'Y' to .* 1 missing: \['a'\], 1 too many: \['b'\]"),
    ],
)
def test_new_frames_with_other_columns_are_refused(x, y, message):
    old = from_arrays(pd.DataFrame(np.ones((2, 2)), columns=["age", "size"]), Y[:2], ["a", "c"])
    frames = [pd.DataFrame(np.ones((2, len(names))), columns=names) for names in (x, [*y, "c"])]
    with pytest.raises(ValueError, match=message):
        from_arrays(*frames, like=old)


def test_words_of_an_old_vocabulary_keep_their_indices():
    old = from_arrays([[0, 1, 2], [1], []], Y, feature_names=["u", "v", "w"])
    new = from_arrays([["u", "v"]], like=old)
    assert (new[0].x.tolist(), new.feature_names, new.num_inputs) == ([0, 1], ["u", "v", "w"], 3)
    with pytest.raises(ValueError, match=r"no '<unk>' for others \(got 'z' as word 1 of row 1\)"):
        from_arrays([["u"], ["v", "z"]], like=old)
    padded = from_arrays([[0, 1, 2], [1], []], Y, feature_names=["<pad>", "<unk>", "u"])
    assert from_arrays([["u", "z"]], like=padded)[0].x.tolist() == [2, 1]


def test_new_dna_is_encoded_as_old_dna(tmp_path):
    (tmp_path / "a.fa").write_text(">1\nACGT\n")
    (tmp_path / "b.fa").write_text(">0\nGGN\n")
    dna = DNADataset.from_files({"a": tmp_path / "a.fa", "b": tmp_path / "b.fa"})
    assert from_arrays([list("ACGTN")], like=dna)[0].x.tolist() == [0, 1, 2, 3, 4]


def test_bags_skip_unknown_words():
    old = from_arrays(sp.csr_array(MATRIX), Y, feature_names=["u", "v", "w"])
    new = from_arrays([["w", "z", "u"], ["z"]], like=old)
    expected = [[0, 2], []], 3, ["u", "v", "w"]
    assert ([data.x.tolist() for data in new], new.num_inputs, new.feature_names) == expected
    words = from_arrays(WORDS, Y, kind="bag")
    assert from_arrays([["red", "z", "<unk>"]], like=words)[0].x.tolist() == [2]


@pytest.mark.parametrize("kind", ["bag", "sequence"])
def test_word_indices_must_be_in_the_old_vocabulary(kind):
    old = from_arrays([[0, 5], [1], []], Y, kind=kind)
    new = from_arrays([[0, 2]], like=old)
    assert (new[0].x.tolist(), new.num_inputs) == ([0, 2], 6)
    with pytest.raises(ValueError, match=r"5, as many as 'like' has \(got 99 as word 1 of row 0\)"):
        from_arrays([[0, 99]], like=old)
    with pytest.raises(ValueError, match=r"those of 'like' have no names \(got strings\)"):
        from_arrays([["u", "v"]], like=old)


@pytest.mark.parametrize(
    ("width", "arguments", "message"),
    [
        (2, {}, r"'X' of 3 columns, as 'like' has \(got 2\)"),
        (3, {"label_names": ["a", "b"]}, "'like' or names"),
        (3, {"Y": [{"z"}]}, r"among the labels of 'like' \(got 'z' in row 0\)"),
        (3, {"Y": np.ones((1, 3))}, r"'Y' of 2 columns.*'like' \(got 3\)"),
    ],
)
def test_arrays_unlike_the_old_samples_are_refused(width, arguments, message):
    old = from_arrays(np.eye(3), np.eye(3, 2), kind="bag")
    with pytest.raises(ValueError, match=message):
        from_arrays(np.ones((1, width)), **arguments, like=old)
    old.kind = old.num_inputs = None  # Molecules have no kind and no num_inputs.
    with pytest.raises(ValueError, match="'like' to be a data set of bags, vectors or sequences"):
        from_arrays(np.ones((1, 3)), like=old)


def test_train_and_test_make_an_official_split():
    rng = np.random.default_rng(0)
    y, test = rng.integers(0, 2, (40, 3)), np.arange(40) >= 30
    dataset = from_arrays(rng.random((40, 2)), y, train=np.arange(30), test=test)
    split = dataset.official_split()
    assert split.sizes == (27, 3, 10)
    assert split.test.tolist() == list(range(30, 40))


def test_samples_make_batches_and_can_be_transformed():
    dataset = from_arrays(WORDS, Y, transform=lambda data: data.update({"length": data.x.numel()}))
    batch = next(iter(DataLoader(dataset, batch_size=3)))
    expected = [0, 3, 3, 5], [3, 0, 2], [3, 2]
    assert (batch.ptr.tolist(), batch.length.tolist(), list(batch.y.shape)) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Y": None}, "labels 'Y', or 'like' or 'label_names'"),
        ({"Y": [[1, 0], [0, 2], [1, 1]]}, r"got 2 in row 1, column 1: label 'label_1'"),
        ({"Y": [[1, 0], [0, 1.0000001], [1, 1]]}, r"got 1.0000001 in row 1, column 1"),
        ({"Y": [["1", "0"], ["0", "1"], ["1", "0"]]}, r"\['0', '1'\] in all rows, as of vectors"),
        ({"Y": [["1", "0"], ["0", "0"], ["1", "0"]]}, r"1 \(got \['0', '0'\], as of a vector\)"),
        ({"Y": TOO_WIDE}, r"1,000,000,000 labels .*11.2 GiB.*choose another column"),
        ({"Y": [[1, 0], [0, "x"], [1, 1]]}, r"got \[1, 0\] in row 0"),
        ({"Y": np.array([[1, 0], [0, "x"]], dtype=object)}, r"got 'x' in row 1, column 1"),
        ({"Y": [[1, 0], [0], [1, 1]]}, r"or as a list of sets of label names"),
        ({"Y": [1, 0, 1]}, r"one column per label \(got \[3\]\)"),
        ({"Y": np.zeros((3, 0))}, r"one sample and one label \(got labels of shape \[3, 0\]\)"),
        ({"Y": Y[:2]}, r"'X' and 'Y' to have as many rows as each other \(got 3 and 2\)"),
        ({"Y": [{"a"}, "b", {"c"}]}, r"got 'b' in row 1"),
        ({"Y": ["red", "blue", "red"]}, r"such as 'red'\); pass \[\[name\] for name in Y\]"),
        ({"Y": ["a, b", "a", "b"]}, r"pass \[\[name.strip\(\) for name in text.split\(','\)\] for"),
        ({"Y": ["16 0", "3", "1"]}, r"such as '16 0'\); pass \[text.split\(\) for text in Y\]"),
        ({"Y": [[1, -1], [0, 1], [1, 1]]}, r"got -1 in row 0, column 1: label 'label_1'\)$"),
        ({"Y": [[1, 2], [0, 1], [1, 1]]}, r"got 2 in row 0.*numbers of labels, pass"),
        ({"Y": [["a", ["b" * 200]], ["a"], ["b"]]}, r"^.{,200}$"),
        ({"Y": [(3,), (1,), (0,)]}, r"0, 1 or NaN \(got 3 in row 0.*numbers of labels, pass"),
        ({"Y": [[1, 0], [1, 1], [0]]}, r"distinct numbers of labels.*\[1, 1\] in row 1"),
        ({"Y": [[1, -1], [1], [0]]}, r"sets of label names \(got rows of differing lengths"),
        ({"Y": [{"a"}, {"b"}, {"c"}], "label_names": ["a", "b"]}, r"'label_names' .*'c' in row 2"),
        ({"label_names": ["a"]}, r"'label_names' to name each of the 2 columns \(got 1 names\)"),
        ({"label_names": ["a", "a"]}, r"'label_names' to be unique \(got \['a'\]"),
        ({"label_names": "ab"}, r"got the string 'ab'"),
        ({"feature_names": ["a"]}, r"'feature_names' to name each of the 3 columns"),
        ({"feature_names": "abc"}, r"got the string 'abc'"),
        ({"kind": "bags"}, r"one of sequence, vector, bag, embeddings, mixed \(got 'bags'\)"),
        ({"kind": "sequence"}, r"pass one list per sample"),
        ({"X": WORDS, "kind": "vector"}, r"got lists of words"),
        ({"X": [["a", 1], ["b"], ["c"]]}, r"got 1 as word 1 of row 0"),
        ({"X": [[1], [-1], [2]], "kind": "sequence"}, r"from 0 \(got -1 as word 0 of row 1\)"),
        ({"X": [[1], [0, 0], [2]], "feature_names": ["u", "v"]}, r"0 to 1, .*got 2 as word 0"),
        ({"X": ["a b", "c", "d"]}, r"split texts into words first"),
        ({"X": [[1.5, 2.0], [1.0], [0.5, 1.0]]}, r"rows of one length"),
        ({"X": [[1.0, np.inf], [0.5, 1.0], [1.0, 1.0]]}, r"got inf in row 0, column 1"),
        ({"X": sp.csr_array([[0, 1.0], [0.5, np.nan], [1, 1]])}, r"got nan in row 1, column 1"),
        ({"X": pd.DataFrame({"a": ["1", "x", "2"]})}, r"in row 1, column 'a'.*got 'x'"),
        ({"train": [0, 5]}, r"'train' to be below num_samples=3 \(got 5\)"),
        ({"train": [-1, 2]}, r"'train' to hold indices of at least 0 \(got -1\)"),
        ({"train": [0, 0]}, r"got sample 0 more than once, in \['train'\]"),
        ({"test": [0.5]}, r"'test' to be numbers of rows"),
        ({"test": [[0, 1]]}, r"'test' to be .*shape \[1, 2\]"),
        ({"test": [True, False]}, r"to be .* or a mask of 3 entries \(got bool of shape \[2\]\)"),
        ({"train": [0, 1], "test": [1, 2]}, r"got sample 1 more than once, in \['train', 'test'\]"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        from_arrays(**{"X": MATRIX, "Y": Y, **arguments})


@given(st.data())
@settings(max_examples=25)
def test_every_kind_keeps_the_values(data):
    num, width = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5))
    y = data.draw(arrays(float, (num, 2), elements=st.sampled_from([0.0, 1.0]))).tolist()
    weights = st.sampled_from([0.0, 0.5, 1.0, -3.0])
    matrix = data.draw(arrays(float, (num, width), elements=weights))
    vectors = from_arrays(matrix, y, kind="vector")
    assert torch.cat([sample.x for sample in vectors]).tolist() == matrix.tolist()
    restored = np.zeros_like(matrix)
    for row, sample in enumerate(from_arrays(matrix, y, kind="bag")):
        restored[row, sample.x] = sample.weight if "weight" in sample else 1
    assert restored.tolist() == matrix.tolist()
    documents = [data.draw(st.lists(st.sampled_from("abc"), max_size=4)) for _ in range(num)]
    sequences = from_arrays(documents, y, kind="sequence")
    names = sequences.feature_names or []
    assert [[names[i] for i in sample.x] for sample in sequences] == documents
    assert sequences.y.tolist() == y


def test_rows_of_attributes_follow_the_selected_samples():
    dataset = from_arrays([["a", "b", "c"], ["a"], ["b"]], [{"p"}, {"q"}, {"p", "q"}])
    assert torch.equal(dataset[1:].rows("y"), torch.tensor([[0.0, 1.0], [1.0, 1.0]]))
    with pytest.raises(ValueError, match="one row for every sample"):
        dataset[1:].rows("x")
    ragged = from_arrays([["a", "b"], [], ["b"]], [{"p"}, {"q"}, {"p", "q"}])
    with pytest.raises(ValueError, match="one row for every sample"):
        ragged.rows("x")


@pytest.mark.parametrize(
    ("rows", "names", "y"),
    [
        ([[1, 3], [0], [], [1, 10]], "0 1 3 10", "0110 1000 0000 0101"),
        ([(2.0, 5.0), (), (5.0,)], "2 5", "11 00 01"),
    ],
)
def test_labels_may_be_lists_of_indices(rows, names, y):
    dataset = from_arrays(np.eye(len(rows), 3) / 2, rows)
    assert dataset.label_names == names.split()
    assert dataset.y.tolist() == [list(map(int, row)) for row in y.split()]
    unknown = from_arrays(np.eye(len(rows) + 1, 3) / 2, [*rows, None])
    assert unknown.y[-1].isnan().all()


def test_tuples_of_equal_length_may_be_label_indices():
    with pytest.warns(UserWarning, match="rows of a matrix; if rows hold the numbers of labels"):
        assert from_arrays(np.eye(2) / 2, [(1, 0), (0, 1)]).y.tolist() == [[1, 0], [0, 1]]


def test_numbers_are_refused_as_dates(write):
    rows = "".join(f"{1 + i:02}.02.2022;{i % 2}\n" for i in range(20))
    old = from_csv(write("late.csv", f"day;late\n{rows}"), ["late"])
    dates = pd.DataFrame({"day": pd.to_datetime(["2022-02-03"])})
    assert from_arrays(dates, like=old).rows("x").tolist() == old.rows("x")[2:3].tolist()
    with pytest.raises(ValueError, match=r"Expected dates .*row 0, column 'day' \(got '5022022'"):
        # A reader of thousands separators turns 05.02.2022 into this number.
        from_arrays(pd.DataFrame({"day": [5022022]}), like=old)
    assert from_arrays(pd.DataFrame({"day": [np.nan]}), like=old).rows("x").isnan().all()
