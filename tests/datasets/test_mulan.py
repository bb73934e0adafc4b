from __future__ import annotations

import io
import logging
import lzma
import pickle
import shutil
from collections import Counter

import numpy as np
import pytest
import torch

from tests.arff_texts import SPARSE, SPARSE_TEST, XML
from tg_mlc.data import read_label_xml
from tg_mlc.datasets import ChecksumError, DatasetUnavailableError
from tg_mlc.datasets.mulan import MulanDataset, _Arrays, find_published
from tg_mlc.datasets.registry import card


@pytest.fixture(scope="session")
def mulan_root(tmp_path_factory):
    return tmp_path_factory.getbasetemp()


@pytest.fixture
def load(real_file, mulan_root):
    def load_real(name):
        real_file(find_published(name).files[0][0].local)
        return MulanDataset(mulan_root, name)

    return load_real


@pytest.mark.parametrize(
    ("name", "train", "test", "labels", "features", "kind", "cardinality"),
    [
        ("Bibtex", 4880, 2515, 159, 1836, "bag", 2.402),
        ("delicious", 12920, 3185, 983, 500, "bag", 19.020),
        ("YEAST", 1500, 917, 14, 103, "vector", 4.237),
        ("Scene", 1211, 1196, 6, 294, "vector", 1.074),
        ("Emotions", 391, 202, 6, 72, "vector", 1.868),
        ("Genbase", 463, 199, 27, 1185, "bag", 1.252),
        ("Corel5k", 4500, 500, 374, 499, "bag", 3.522),
    ],
)
def test_the_numbers_of_the_data_sets(load, name, train, test, labels, features, kind, cardinality):
    dataset = load(name)
    assert len(dataset) == train + test
    assert all(
        url.startswith("https://raw.githubusercontent.com/")
        for file in dataset.files
        for url in file.urls
    )
    assert (dataset.num_labels, dataset.num_inputs, dataset.kind) == (labels, features, kind)
    assert len(set(dataset.label_names)) == labels
    assert len(set(dataset.feature_names)) == features
    assert not dataset.y.isnan().any()
    assert dataset.y.sum(1).mean().item() == pytest.approx(cardinality, abs=5e-4)
    split = dataset.official_split()
    assert split.test.tolist() == list(range(train, train + test))
    assert sorted([*split.train.tolist(), *split.val.tolist()]) == list(range(train))
    assert len(split.val) == pytest.approx(train / 10, abs=train / 100)


@pytest.mark.parametrize(
    ("number", "used", "cardinality"),
    [(1, 101, 2.880), (2, 101, 2.634), (3, 101, 2.614), (4, 94, 2.266), (5, 100, 2.625)],
)
def test_the_subsets_of_rcv1(load, number, used, cardinality):
    dataset = load(f"rcv1subset{number}")
    assert (len(dataset), dataset.num_labels, dataset.num_inputs, dataset.kind) == (
        6000,
        101,
        944,
        "bag",
    )
    assert (dataset.y.sum(0) > 0).sum() == used
    assert dataset.y.sum(1).mean().item() == pytest.approx(cardinality, abs=5e-4)
    with pytest.raises(ValueError, match="published with a split"):
        dataset.official_split()


def test_peculiarities_of_the_files(load):
    delicious = load("Delicious")
    assert (delicious.y.sum(1) == 0).sum() == 14
    assert (delicious.y[12_920:].sum(0) > 0).sum() == 982
    assert "TAG_??" in delicious.label_names
    assert "protein" not in load("Genbase").feature_names
    assert (load("Corel5k").y[4500:].sum(0) > 0).sum() == 263


def test_pages_of_delicious_repeat(load):
    pages = [tuple(sorted(data.x.tolist())) for data in load("Delicious")]
    times = Counter(pages)
    assert sum(times[page] > 1 for page in pages) == 4945
    known = set(pages[:12_920])
    assert sum(page in known for page in pages[12_920:]) == 871
    assert "871 of the 3,185 test samples" in " ".join(card("delicious").notes)


def test_samples_are_the_rows_of_the_file(load, real_file):
    bibtex = load("bibtex")
    lines = (
        lzma.decompress(real_file("bibtex/raw/bibtex-test.arff.xz").read_bytes())
        .decode()
        .splitlines()
    )
    rows = lines[lines.index("@data") + 1 :]
    for row in (0, 1000, 2514):
        numbers = [int(pair.split()[0]) for pair in rows[row].strip("{}").split(",")]
        data = bibtex[4880 + row]
        assert data.x.tolist() == [number for number in numbers if number < 1836]
        assert data.y.nonzero()[:, 1].tolist() == [
            number - 1836 for number in numbers if number >= 1836
        ]
        assert "weight" not in data
    names = [line.split()[1] for line in lines if line.startswith("@attribute")]
    assert bibtex.feature_names + bibtex.label_names == names


def test_vectors_are_the_rows_of_the_file(load, real_file):
    emotions = load("emotions")
    row = real_file("emotions/raw/emotions-train.arff").read_text().splitlines()[82].split(",")
    assert emotions[0].x.tolist() == [pytest.approx([float(cell) for cell in row[:72]])]
    assert emotions[0].y.tolist() == [[float(cell) for cell in row[72:]]]
    assert emotions.label_names[:2] == ["amazed-suprised", "happy-pleased"]


def test_labels_are_in_the_order_of_the_xml(load, real_file):
    names, parents = read_label_xml(real_file("yeast/raw/yeast.xml"))
    yeast = load("yeast")
    assert (
        yeast.label_names
        == names
        == [f"Class{i}" for i in (1, 2, 3, 6, 4, 10, 11, 5, 7, 8, 9, 12, 13, 14)]
    )
    assert parents == []


def test_the_processed_file_is_used(load, mulan_root, monkeypatch):
    first = load("Emotions")
    monkeypatch.setattr(MulanDataset, "read", lambda self: pytest.fail("processed again"))
    again = MulanDataset(mulan_root, "emotions")
    assert torch.equal(first.y, again.y)
    assert (mulan_root / "Emotions" / "processed" / "data.pt").exists()


def test_unknown_names_are_refused_beside_those_there(tmp_path):
    with pytest.raises(
        ValueError, match=r"one of Bibtex, .*NUS-WIDE.* \(got 'bibtexx'\); .*from_arff"
    ):
        MulanDataset(tmp_path, "bibtexx")
    assert list(tmp_path.iterdir()) == []


def test_wrong_raw_files_are_set_aside(tmp_path, write):
    for name in ("emotions-train.arff", "emotions-test.arff", "emotions.xml"):
        write(f"Emotions/raw/{name}", SPARSE)
    with pytest.raises(ChecksumError, match=r"emotions-train\.arff' is not the file it should be"):
        MulanDataset(tmp_path, "Emotions")
    assert (tmp_path / "Emotions" / "raw" / "emotions-train.arff.bad").exists()
    assert not list(tmp_path.glob("**/data.pt"))


@pytest.mark.parametrize(
    ("name", "archive"), [("bookmarks", "bookmarks.rar"), ("NUS wide", "nuswide-cVLADplus.rar")]
)
def test_archives_are_told_of(tmp_path, monkeypatch, name, archive):
    monkeypatch.delenv("TG_MLC_DATA", raising=False)
    with pytest.raises(
        DatasetUnavailableError,
        match=r"(?s)Place [23] files by hand: .*unpacked.*'.*raw/.*' or .*" + archive,
    ):
        MulanDataset(tmp_path, name)


def test_files_without_a_known_hash_are_taken_with_a_warning(tmp_path, write, caplog):
    write("Bookmarks/raw/bookmarks.arff", SPARSE)
    write("Bookmarks/raw/bookmarks.xml", XML.format("B", "A"))
    with caplog.at_level(logging.WARNING):
        dataset = MulanDataset(tmp_path, "Bookmarks")
    assert "bookmarks.arff' is not known here, so it is not checked; it is " in caplog.text
    assert (dataset.label_names, dataset.feature_names, dataset.kind) == (
        ["B", "A"],
        ["u", "v"],
        "bag",
    )
    assert dataset.y.tolist() == [[0, 1], [0, 0], [1, 1]]
    with pytest.raises(ValueError, match="published with a split"):
        dataset.official_split()


def test_nus_wide_leaves_out_the_names_of_its_photographs(tmp_path, write):
    header = "@attribute 'Image name' string\n@attribute f numeric\n@attribute A {0,1}\n@attribute B {0,1}\n@data\n"
    write(
        "NUS-WIDE/raw/nus-wide-full-cVLADplus-train.arff", f"{header}1.jpg,0.5,0,1\n2.jpg,1,1,0\n"
    )
    write("NUS-WIDE/raw/nus-wide-full-cVLADplus-test.arff", f"{header}3.jpg,0.25,1,1\n")
    write("NUS-WIDE/raw/nus-wide-full-cVLADplus.xml", XML.format("A", "B"))
    dataset = MulanDataset(tmp_path, "NUS-WIDE")
    assert (dataset.kind, dataset.x.tolist()) == ("vector", [[0.5], [1], [0.25]])
    assert dataset.y.tolist() == [[0, 1], [1, 0], [1, 1]]


def test_mediamill_is_also_read_from_arff_files(tmp_path, write):
    write("Mediamill/raw/mediamill-train.arff", SPARSE)
    write("Mediamill/raw/mediamill-test.arff", SPARSE_TEST)
    write("Mediamill/raw/mediamill.xml", XML.format("A", "B"))
    dataset = MulanDataset(tmp_path, "mediamill")
    assert (dataset.kind, dataset.x.tolist()) == ("vector", [[1, 0], [0, 0], [0, 1], [0, 1]])


def python2(x):
    """The bytes that Python 2 wrote for ``pickle.dumps({"X": x})``."""
    shape = b"".join(b"I%d\n" % size for size in x.shape)
    data = repr(x.tobytes()).removeprefix("b").encode()
    order, code = x.dtype.str[:1].encode(), x.dtype.str[1:].encode()
    parts = [
        b"(dp0\nS'X'\np1\ncnumpy.core.multiarray\n_reconstruct\np2\n",
        b"(cnumpy\nndarray\np3\n(I0\ntp4\nS'b'\np5\ntp6\nRp7\n(I1\n(" + shape + b"tp8\n",
        b"cnumpy\ndtype\np9\n(S'" + code + b"'\np10\nI0\nI1\ntp11\nRp12\n",
        b"(I3\nS'" + order + b"'\np13\nNNNI-1\nI-1\nI0\ntp14\nb",
        b"I00\nS" + data + b"\np15\ntp16\nbs.",
    ]
    return b"".join(parts)


class Command:
    def __reduce__(self):
        return exec, ("raise SystemExit('ran')",)


def test_pickles_hold_arrays_alone():
    x = np.array([[0.5, -1e30, 255], [np.pi, 0, 1]])
    np.testing.assert_array_equal(_Arrays(io.BytesIO(python2(x)), encoding="latin1").load()["X"], x)
    for content in (pickle.dumps(Command(), protocol=0), b"cos\nsystem\n(S'true'\ntR."):
        with pytest.raises(
            pickle.UnpicklingError,
            match=r"NumPy's arrays alone \(got '(__builtin__.exec|os.system)'",
        ):
            _Arrays(io.BytesIO(content), encoding="latin1").load()


def test_nothing_is_left_half_written(tmp_path, write, monkeypatch):
    write("Bookmarks/raw/bookmarks.arff", SPARSE + "{9 1}\n")
    write("Bookmarks/raw/bookmarks.xml", XML.format("B", "A"))
    with pytest.raises(ValueError, match=r"^bookmarks\.arff, line 10: Expected an index below 4"):
        MulanDataset(tmp_path, "Bookmarks")
    shutil.rmtree(tmp_path / "Bookmarks" / "raw")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
