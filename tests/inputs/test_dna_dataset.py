import bz2
import gzip
import logging
import lzma
import os
import pickle
import sys
import tempfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.loader import DataLoader

from tests.fresh import run_alone
from tg_mlc._files import read_names
from tg_mlc.data import stratified_split
from tg_mlc.datasets.card import DatasetCard
from tg_mlc.inputs import dna_dataset as module
from tg_mlc.inputs import tables
from tg_mlc.inputs.dna_dataset import LETTERS, DNADataset, labels_of_header, read_fasta

FACTORS = ["CTCF", "EP300", "JUND", "RAD21", "SIN3A"]
FASTA = b">a chr1\nACGT\n>b\nNNN\n>c\nAC\n"
TABLE = b"id,CTCF,YY1\nc,1,\na,0,1\nb,1,1\nd,0,0\n"
SEQUENCES = b">first one\nACGT\nacgt\n>second\r\nNRYK\r\n\r\nUx\n"
COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture
def write(tmp_path):
    def write(content, name="x.fa"):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write


def as_text(record):
    return "".join(LETTERS[code] for code in record.letters)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_letters_names_and_lines_are_read(write, suffix):
    path = write(COMPRESS[suffix](SEQUENCES), f"x.fa{suffix}")
    first, second = read_fasta(path)
    assert (first.header, first.line, as_text(first)) == ("first one", 1, "ACGTACGT")
    assert (second.header, second.line, as_text(second)) == ("second", 4, "NNNNTN")
    assert first.letters.dtype == "uint8"
    assert [as_text(record) for record in read_fasta(os.fsencode(path))] == ["ACGTACGT", "NNNNTN"]
    if suffix:
        for content in (COMPRESS[suffix](SEQUENCES * 99)[:-9], b"no archive"):
            with pytest.raises(ValueError, match=r"Expected '.*' to be whole"):
                list(read_fasta(write(content, f"x.fa{suffix}")))


def test_sequences_are_streamed(write):
    records = read_fasta(write(b">a\nACGT\n>b\n?\n"))
    assert next(records).header == "a"
    with pytest.raises(ValueError, match="line 4"):
        next(records)


def test_blank_lines_spaces_and_a_byte_order_mark_are_ignored(write):
    records = list(read_fasta(write(b"\xef\xbb\xbf\n>a\n\nAC GT\t\n\n")))
    assert [(record.header, as_text(record)) for record in records] == [("a", "ACGT")]
    assert read_names(write(b"\xef\xbb\xbfa b\r\n c \nd\n\n\n")) == ["a b", "c", "d"]
    assert read_names(write(gzip.compress(b"a\nb"), "x.gz")) == ["a", "b"]


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (read_fasta, b"", r"at least one sequence in '.*x\.fa' \(got none\)"),
        (read_fasta, b"\n\n", "at least one sequence"),
        (read_fasta, b"\nACGT\n", r"begins with '>' in line 2 of '.*' \(got b'ACGT"),
        (read_fasta, b">a\n>b\nA\n", r"letters after .* line 1 of '.*' \(got none for 'a'\)"),
        (read_fasta, b">a\nA\n>b", r"letters after .* line 3 of '.*' \(got none for 'b'\)"),
        (read_fasta, b">a\nACG\nA-GT\n", r"A, C, G, T, N or .* line 3 of '.*' \(got b'-'\)"),
        (read_fasta, b">a\nAC\xffT\n", r"line 2 of '.*' \(got b'\\xff'\)"),
        (read_fasta, b">\xe9\nACGT\n", r"UTF-8 in line 1 of '.*'"),
        (read_names, b"\n\n", "at least one name"),
        (read_names, b"a\n\nb\n", r"a name in every line of '.*' \(got none in line 2\)"),
        (read_names, b"a\n\xff\n", "UTF-8 in line 2"),
        (read_names, b"a" * 70_000, "at most 65,536 bytes in line 1"),
    ],
)
def test_malformed_files_are_named_with_the_line(write, read, content, message):
    with pytest.raises(ValueError, match=message):
        list(read(write(content)))


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(read_fasta(tmp_path / "none.fa"))


def test_each_label_may_have_a_file(real_file, caplog):
    folder = real_file("tfbs_binary_dna/raw")
    parts = "train", "test"
    train, test = ({name: folder / f"{name}.{part}.fasta.xz" for name in FACTORS} for part in parts)
    dataset = DNADataset.from_files(train, test=test)
    assert (len(dataset), dataset.num_labels, dataset.label_names) == (20_000, 5, FACTORS)
    assert dataset.y.isfinite().sum(dim=0).tolist() == [4_000] * 5
    assert dataset.y.nansum(dim=0).tolist() == [2_000.0] * 5
    assert dataset.y.isnan().float().mean().item() == pytest.approx(0.8)
    assert set(dataset.slices["x"].diff().tolist()) == {100}
    assert (dataset.kind, dataset.num_inputs, dataset.x.dtype) == ("sequence", 5, torch.uint8)
    assert dataset.x.max() == 3
    split = dataset.official_split()
    assert split.sizes == (9_000, 1_000, 10_000)
    assert split.test.tolist() == list(range(10_000, 20_000))
    assert "22 of 10000 test sequences occur among the training sequences too" in caplog.text


def test_labels_are_read_from_sequence_names(real_file, caplog):
    folder = real_file("chiphub_rice_dna/raw")
    train, test = (folder / f"sample_{part}_data.fa" for part in ("train_valid", "test"))
    dataset = DNADataset.from_headers(train, folder / "sample_tag.txt", test=test)
    y = dataset.y
    assert (len(dataset), dataset.num_labels) == (105 + 76, 58)
    assert set(dataset.slices["x"].diff().tolist()) == {1_024}
    assert int(y.any(dim=0).sum()) == 50
    assert y[:105].sum(dim=1).mean().item() == pytest.approx(19.9, abs=0.05)
    assert y[105:].sum(dim=1).mean().item() == pytest.approx(21.3, abs=0.05)
    assert dataset.official_split().test.tolist() == list(range(105, 181))
    assert dataset.headers[0].endswith("::9:1024-2048")
    assert "1 of 76 test sequences" in caplog.text


def test_a_table_of_labels_is_joined_by_name(write):
    dataset = DNADataset.from_fasta(write(FASTA), write(TABLE, "x.csv"))
    assert (dataset.label_names, dataset.headers) == (["CTCF", "YY1"], ["a chr1", "b", "c"])
    assert dataset.y.nan_to_num(-1).tolist() == [[0, 1], [1, 1], [1, -1]]
    assert [data.x.tolist() for data in dataset] == [[0, 1, 2, 3], [4, 4, 4], [0, 1]]
    assert dataset[1:].y.tolist()[0] == [1, 1]
    with pytest.raises(ValueError, match="published with a split"):
        dataset.official_split()
    batch = next(iter(DataLoader(dataset, 3)))
    assert (batch.ptr.tolist(), batch.x.dtype, batch.y.shape) == ([0, 4, 7, 9], torch.uint8, (3, 2))


def test_tables_may_have_tabs_and_other_columns(write, caplog):
    test = write(b">d\nGGG\n", "test.fa")
    with caplog.at_level(logging.INFO):
        DNADataset.from_fasta(write(FASTA), write(TABLE, "x.csv"), test=test)
    assert caplog.text == ""
    table = write(TABLE.replace(b",", b"\t").replace(b"id", b"name"), "x.tsv")
    test = write(b">d\nACGT\n", "test.fa")
    options = {"id_column": "name", "label_columns": ["YY1"]}
    dataset = DNADataset.from_fasta(write(FASTA), table, test=test, **options)
    assert dataset.y.nan_to_num(-1).tolist() == [[1], [1], [-1], [0]]
    assert dataset.official_split(val_fraction=0.34).test.tolist() == [3]
    assert "1 of 1 test sequences" in caplog.text


@pytest.mark.parametrize(
    ("fasta", "table", "message"),
    [
        (b">a\nA\n>e f\nA\n", TABLE, r"a row in .*\(got none for 'e', line 3 of '.*'\)"),
        (b">a\nA\n>a\nC\n", TABLE, r"'a' in line 1 of '.*' and in line 3 of '.*'\)"),
        (FASTA, TABLE + b"a,1,1\n", r"one row for every .*\(got 'a' in lines 3 and 6\)"),
        (FASTA, TABLE.replace(b"0", b"2"), r"0, 1 or blank"),
        (FASTA, b"name,CTCF\na,1\n", r"\['id'\]"),
        (FASTA, b"id\na\nb\nc\n", "at least one column of labels"),
        (FASTA, b"id,\xff\na,1\n", "x.csv"),
    ],
)
def test_wrong_tables_are_refused(write, fasta, table, message):
    with pytest.raises(ValueError, match=message):
        DNADataset.from_fasta(write(fasta), write(table, "x.csv"))


def test_the_size_of_blocks_changes_nothing(write, monkeypatch):
    whole = DNADataset.from_fasta(write(FASTA), write(TABLE, "x.csv"))
    monkeypatch.setattr(tables, "_BLOCK", 1)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 2)
    dataset = DNADataset.from_fasta(write(FASTA), write(TABLE, "x.csv"))
    assert torch.equal(dataset.y.nan_to_num(-1), whole.y.nan_to_num(-1))
    for table, message in (
        (TABLE + b"a,1,1\n", r"'a' in lines 3 and 6"),
        (TABLE.replace(b"d,0", b"d,7"), r"row 3 \(line 5\), column 'CTCF' of '.*' \(got '7'\)"),
        (TABLE + b"e,1\n", r"3 cells, as in the header, in row 4 \(line 6\)"),
    ):
        with pytest.raises(ValueError, match=message):
            DNADataset.from_fasta(write(FASTA), write(table, "x.csv"))


def test_temporary_files_are_deleted(write, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    dataset = DNADataset.from_fasta(write(FASTA), write(TABLE, "x.csv"))
    with pytest.raises(ValueError, match="for every sequence"):
        DNADataset.from_fasta(write(FASTA + b">e\nA\n"), write(TABLE, "x.csv"))
    assert dataset[2].y.nan_to_num(-1).tolist() == [[1, -1]]
    del dataset
    assert not list((tmp_path / "temporary").iterdir())


def test_copies_subsets_and_pickles_keep_the_data(write):
    dataset = DNADataset.from_fasta(write(FASTA), write(TABLE, "x.csv"))
    unpickled = pickle.loads(pickle.dumps(dataset))
    for copy in (dataset.copy(), unpickled, dataset[torch.tensor([2, 0, 1])][[1, 2, 0]]):
        assert [data.x.tolist() for data in copy] == [[0, 1, 2, 3], [4, 4, 4], [0, 1]]
        assert [data.y.nan_to_num(-1).tolist() for data in copy] == [[[0, 1]], [[1, 1]], [[1, -1]]]
        assert copy.y.nan_to_num(-1).tolist() == [[0, 1], [1, 1], [1, -1]]
        assert copy.headers == ["a chr1", "b", "c"]
    last = dataset.copy([1, 2])
    for subset in (dataset[1:], dataset[1:].copy(), last, pickle.loads(pickle.dumps(last))):
        assert subset.headers == ["b", "c"]
        assert np.array_equal(subset.sparse_y().toarray(), [[1, 1], [1, np.nan]], equal_nan=True)
    single = dataset.copy([2])
    assert (single[0].x.tolist(), single[0].y.nan_to_num(-1).tolist()) == ([0, 1], [[1, -1]])


def test_labels_can_be_a_sparse_matrix(write):
    rng = np.random.default_rng(0)
    cells = rng.choice(["0", "1", ""], (60, 4))
    rows = [f"{number},{','.join(row)}" for number, row in enumerate(cells)]
    table = write("\n".join(["id,a,b,c,d", *rows]).encode(), "x.csv")
    fasta = write("".join(f">{number}\nA\n" for number in range(50)).encode())
    test = write("".join(f">{number}\nC\n" for number in range(50, 60)).encode(), "test.fa")
    dataset = DNADataset.from_fasta(fasta, table, test=test)
    expected = [[{"0": 0, "1": 1, "": 2}[cell] for cell in row] for row in cells]
    assert dataset.y.nan_to_num(2).tolist() == expected
    assert np.nan_to_num(dataset.sparse_y().toarray(), nan=2).tolist() == expected
    assert np.nan_to_num(dataset[7:9].sparse_y().toarray(), nan=2).tolist() == expected[7:9]
    split = stratified_split(dataset.y[:50], (0.9, 0.1, 0), seed=3)
    assert dataset.official_split(seed=3).val.tolist() == split.val.tolist()
    card = DatasetCard.of(dataset)
    assert card.missing == pytest.approx((cells == "").mean())
    assert card.density == pytest.approx((cells == "1").sum() / (cells != "").sum())


MEASURE = """
import re, sys
from tg_mlc.inputs import tables
from tg_mlc.data import DNADataset
tables._BLOCK = 256  # rows, about 1 MB
def peak():  # The peak from resource.getrusage is at least that of the parent process.
    return 1024 * int(re.search(r"VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1])
def read(size):
    dataset = DNADataset.from_fasta(f"{sys.argv[1]}/{size}.fa", f"{sys.argv[1]}/{size}.csv")
    assert sum(1 for data in dataset if data.y.shape == (1, 179)) == size
    return dataset
small = read(500)
before = peak()
large = read(3_000)
print((peak() - before) / 3_000)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak stands in a file of Linux")
@pytest.mark.slow
def test_a_sequence_takes_little_memory(tmp_path):
    rng = np.random.default_rng(0)
    letters = np.frombuffer(b"ACGT", dtype=np.uint8)[rng.integers(0, 4, (3_000, 200))]
    cells = np.full((3_000, 2 * 179), ord(","), dtype=np.uint8)
    cells[:, ::2] = np.frombuffer(b"01", dtype=np.uint8)[rng.integers(0, 2, (3_000, 179))]
    header = "id," + ",".join(f"label {number}" for number in range(179))
    for size in (500, 3_000):
        fasta = (b">name%d\n%s\n" % (i, letters[i].tobytes()) for i in range(size))
        rows = (b"name%d,%s\n" % (i, cells[i, :-1].tobytes()) for i in reversed(range(size)))
        (tmp_path / f"{size}.fa").write_bytes(b"".join(fasta))
        (tmp_path / f"{size}.csv").write_bytes(b"\n".join([header.encode(), b"".join(rows)]))
    printed = run_alone(MEASURE, [str(tmp_path)])
    # A sequence has 200 letters and 179 labels. Labels of four bytes would take 716 bytes.
    assert float(printed) < 1_000


def test_labels_are_parsed_from_headers():
    assert labels_of_header("A_1,B_0, C::9:1-2") == ["A", "C"]
    assert labels_of_header("") == []
    labels = labels_of_header("A_1,A_0,A,B_0,C_1", labels=["A_1", "B_0", "C"])
    assert labels == ["A_1", "A", "B_0", "C"]


def test_names_of_labels_may_end_like_values(write):
    fasta = write(b">cluster_0\nA\n>cluster_2,X_1::9:1-2\nC\n>cluster_0_1,cluster_2_0\nG\n")
    dataset = DNADataset.from_headers(fasta, ["cluster_0", "cluster_2", "X_1"])
    assert dataset.y.tolist() == [[1, 0, 0], [0, 1, 1], [1, 0, 0]]


def test_headers_can_be_parsed_by_a_function(write):
    fasta = write(b">1|x;y\nA\n>2|\nC\n")
    parse = lambda name: filter(None, name.split("|")[1].split(";"))  # noqa: E731
    assert DNADataset.from_headers(fasta, ["x", "y"], parse=parse).y.tolist() == [[1, 1], [0, 0]]
    with pytest.raises(ValueError, match=r"line 1 .* some of the 2 labels \(got '1\|x;y'\)"):
        DNADataset.from_headers(fasta, ["x", "y"])
    with pytest.raises(ValueError, match=r"'labels' to be unique \(got \['x'\]"):
        DNADataset.from_headers(fasta, ["x", "y", "x"])


def test_wrong_files_of_labels_are_refused(write):
    good = write(b">1\nA\n>0\nC\n")
    assert DNADataset.from_files({"x": good}).y.tolist() == [[1], [0]]
    with pytest.raises(ValueError, match=r"the name '0' or '1', .* line 3 of '.*' \(got '2'\)"):
        DNADataset.from_files({"x": write(b">1\nA\n>2\nC\n", "bad.fa")})
    with pytest.raises(ValueError, match=r"the labels of 'files', x \(got y\)"):
        DNADataset.from_files({"x": good}, test={"y": good})


def outcome(read, *args):
    """Returns what the function returns, or the message of its ValueError."""
    try:
        return read(*args)
    except ValueError as error:
        return str(error)


def mutated(content):
    """Returns a strategy for copies of `content` in which a few bytes are changed."""
    edit = st.tuples(st.integers(0, len(content)), st.integers(0, 3), st.binary(max_size=3))

    def apply(edits):
        result = content
        for start, length, inserted in edits:
            result = result[:start] + inserted + result[start + length :]
        return result

    return st.lists(edit, min_size=1, max_size=4).map(apply)


@settings(max_examples=100)
@given(data=st.data(), suffix=st.sampled_from(sorted(COMPRESS)), is_text=st.booleans())
def test_mutated_files_give_sequences_or_a_value_error(tmp_path_factory, data, suffix, is_text):
    compress, path = COMPRESS[suffix], tmp_path_factory.getbasetemp() / f"mutated{suffix}"
    content = data.draw(mutated(SEQUENCES if is_text else compress(SEQUENCES)))
    path.write_bytes(compress(content) if is_text else content)
    records = outcome(lambda: list(read_fasta(path)))
    if isinstance(records, str):
        assert str(path) in records
    else:
        assert records
        assert all(record.letters.size > 0 and record.letters.max() <= 4 for record in records)


@settings(max_examples=100)
@given(content=mutated(b"osa_AGO\nosa_AP2\nosa_ARF\n"))
def test_mutated_names_give_names_or_a_value_error(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "names"
    path.write_bytes(content)
    names = outcome(read_names, path)
    if isinstance(names, str):
        assert str(path) in names
    else:
        assert all(name.strip() == name != "" for name in names)


@settings(max_examples=60)
@given(content=mutated(TABLE))
def test_mutated_tables_give_a_data_set_or_a_value_error(tmp_path_factory, content):
    folder = tmp_path_factory.getbasetemp()
    (folder / "mutated.csv").write_bytes(content)
    (folder / "whole.fa").write_bytes(FASTA)
    dataset = outcome(DNADataset.from_fasta, folder / "whole.fa", folder / "mutated.csv")
    if isinstance(dataset, str):
        assert "mutated.csv" in dataset or "label" in dataset
    else:
        assert len(dataset) == 3
