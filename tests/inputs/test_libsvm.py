import gzip

import pytest
from sklearn.datasets import load_svmlight_file

from tg_mlc.data import from_libsvm
from tg_mlc.inputs.text_files import looks_like_libsvm

ROWS = "2,7 1:0.5 3:1\n7 2:-4\n 1:0.25 # no label\n2\n"
SIZES = "3 4 3\n2 1:5\n\n0,1 3:1\n"


@pytest.mark.parametrize(
    ("text", "zero_based", "labels", "inputs", "x", "y"),
    [
        (ROWS, None, "27", "123", [[0.5, 0, 1], [0, -4, 0], [0.25, 0, 0], [0] * 3], "11 01 00 10"),
        (ROWS, True, "27", "0123", [[0, 0.5, 0, 1], [0, 0, -4, 0]], "11 01"),
        ("1 0:2 1:3\n0.0 1:1\n\n", None, "01", "01", [[2, 3], [0, 1]], "01 10"),
        (SIZES, None, "012", "0123", [[0, 5, 0, 0], [0] * 4, [0, 0, 0, 1]], "001 000 110"),
        ("2 2 2\n2 1:5\n\n", False, "12", "12", [[5, 0], [0, 0]], "01 00"),
    ],
)
def test_labels_and_inputs_have_their_numbers_as_names(
    write, text, zero_based, labels, inputs, x, y
):
    dataset = from_libsvm(write("a.txt", text), kind="vector", zero_based=zero_based)
    assert (dataset.label_names, dataset.feature_names) == (list(labels), list(inputs))
    assert dataset.schema.feature_names == list(inputs)
    assert dataset.x[: len(x)].tolist() == x
    assert dataset.y[: len(x)].tolist() == [list(map(int, row)) for row in y.split()]
    bag = from_libsvm(write("a.txt", text), zero_based=zero_based)[0]
    expected = bag.weight.tolist() if "weight" in bag else [1] * len(bag.x)
    assert [x[0][i] for i in bag.x.tolist()] == expected


def test_training_and_test_files_share_labels_and_inputs(write, tmp_path):
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"5 4:1\n"))
    dataset = from_libsvm(write("a.txt", ROWS), tmp_path / "b.gz", kind="vector")
    assert (dataset.label_names, dataset.x.shape) == (["2", "5", "7"], (5, 4))
    assert dataset.official_split(val_fraction=0.25).test.tolist() == [4]
    with pytest.raises(ValueError, match="the same sizes"):
        from_libsvm(write("a.txt", "1 2 3\n1 0:1\n"), tmp_path / "b.gz")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"0 2 3\n"))
    dataset = from_libsvm(write("a.txt", "1 2 3\n1 0:1\n"), tmp_path / "b.gz", kind="vector")
    assert (dataset.num_labels, dataset.x.shape) == (3, (1, 2))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("1 1:2\nx 1:2\n", {}, r"line 2 of '.*a\.txt' \(got 'x 1:2'\)"),
        ("1 1:2\n1 1:two\n", {}, "line 2"),
        ("-1 1:2\n", {}, "line 1"),
        ("1 1:2\n\n2 1:3\n", {}, r"line 2 .*a sample without both is written as '0:0'"),
        ("1 3:1 2:1\n", {}, r"increasing numbers of inputs in line 1 .*\[3, 2\]"),
        ("1 3:1 3:1\n", {}, "increasing numbers"),
        ("1 99999999:1\n", {}, r"inputs from 0 to 16777216 .*got 99999999 in line 1.*renumber"),
        ("1 0:1\n", {"zero_based": False}, r"inputs from 1 .*got 0 in .*\); pass 'zero_based'"),
        ("1 4 3\n0 4:1\n", {}, r"inputs from 0 to 3 \(got 4 in line 2 .*; pass 'zero_based'"),
        ("1 4 3\n3 1:1\n", {}, r"labels from 0 to 2 \(got 3 in line 2 "),
        ("3 4 3\n1 1:1\n", {}, r"3 samples in .*got 1; is the file cut off"),
        ("+1 1:1\n-1 1:2\n", {}, r"write the number of the label in place of \+1"),
        ("1 qid:1 1:1\n", {}, "take out 'qid:'"),
        ("", {}, "at least one sample and one label"),
        ("1 1:1\n", {"kind": "sequence"}, "Expected 'kind' to be one of bag, vector"),
    ],
)
def test_malformed_lines_are_refused_by_number(write, text, options, message):
    with pytest.raises(ValueError, match=message):
        from_libsvm(write("a.txt", text), **options)


@pytest.mark.parametrize(
    "text", ["1 1:1\n\n2 1:1\n", "1 qid:1 1:1\n", "1.5 1:1\n", "-1 1:1\n", "1 1:nan\n"]
)
def test_lines_that_scikit_learn_reads_silently_are_refused(write, text):
    path = write("a.txt", text)
    assert load_svmlight_file(str(path), multilabel=True)[1]
    with pytest.raises(ValueError, match=r"in line [12] of"):
        from_libsvm(path)


def test_the_format_is_inferred_from_first_lines():
    assert all(map(looks_like_libsvm, (ROWS.splitlines(), ["4 5 4", "1,3 0:0.5"], ["0:1"])))
    other_formats = ["a,b", "1,2"], ["1,2", "3,4"], ["time", "10:30"], []
    assert not any(map(looks_like_libsvm, other_formats))
