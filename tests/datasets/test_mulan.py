import io
import logging
import pickle
import shutil

import numpy as np
import pytest
import torch

from tests.arff_texts import SPARSE, SPARSE_TEST, XML
from tg_mlc.datasets import DatasetUnavailableError
from tg_mlc.datasets.mulan import MulanDataset, _Arrays, find_published


@pytest.fixture(scope="session")
def mulan_root(tmp_path_factory):
    return tmp_path_factory.getbasetemp()


@pytest.fixture
def load(real_file, mulan_root):
    def load_real(name):
        real_file(find_published(name).files[0][0].local)
        return MulanDataset(mulan_root, name)

    return load_real


def test_the_processed_file_is_used(load, mulan_root, monkeypatch):
    first = load("Emotions")
    monkeypatch.setattr(MulanDataset, "read", lambda self: pytest.fail("processed again"))
    reloaded = MulanDataset(mulan_root, "emotions")
    assert torch.equal(first.y, reloaded.y)
    assert (mulan_root / "Emotions" / "processed" / "data.pt").exists()


def test_unknown_names_are_refused_with_a_list_of_names(tmp_path):
    with pytest.raises(ValueError, match=r"one of Bibtex, .*NUS-WIDE.* 'bibtexx'\); .*from_arff"):
        MulanDataset(tmp_path, "bibtexx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "archive"), [("bookmarks", "bookmarks.rar"), ("NUS wide", "nuswide-cVLADplus.rar")]
)
def test_archives_to_unpack_are_named(tmp_path, monkeypatch, name, archive):
    monkeypatch.delenv("TG_MLC_DATA", raising=False)
    message = r"(?s)Place [23] files by hand: .*unpacked.*'.*raw/.*' or .*" + archive
    with pytest.raises(DatasetUnavailableError, match=message):
        MulanDataset(tmp_path, name)


def test_files_without_a_known_hash_are_taken_with_a_warning(tmp_path, write, caplog):
    write("Bookmarks/raw/bookmarks.arff", SPARSE)
    write("Bookmarks/raw/bookmarks.xml", XML.format("B", "A"))
    with caplog.at_level(logging.WARNING):
        dataset = MulanDataset(tmp_path, "Bookmarks")
    assert "bookmarks.arff' is not known here, so it is not checked; it is " in caplog.text
    assert (dataset.label_names, dataset.feature_names) == (["B", "A"], ["u", "v"])
    assert dataset.kind == "bag"
    assert dataset.y.tolist() == [[0, 1], [0, 0], [1, 1]]
    with pytest.raises(ValueError, match="published with a split"):
        dataset.official_split()


def test_nus_wide_skips_image_names(tmp_path, write):
    header = "@attribute 'Image name' string\n@attribute f numeric\n"
    header += "@attribute A {0,1}\n@attribute B {0,1}\n@data\n"
    path = "NUS-WIDE/raw/nus-wide-full-cVLADplus"
    write(f"{path}-train.arff", f"{header}1.jpg,0.5,0,1\n2.jpg,1,1,0\n")
    write(f"{path}-test.arff", f"{header}3.jpg,0.25,1,1\n")
    write(f"{path}.xml", XML.format("A", "B"))
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
    """Returns the bytes of ``pickle.dumps({"X": x})`` in Python 2."""
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


def test_pickles_may_hold_arrays_only():
    x = np.array([[0.5, -1e30, 255], [np.pi, 0, 1]])
    np.testing.assert_array_equal(_Arrays(io.BytesIO(python2(x)), encoding="latin1").load()["X"], x)
    message = r"NumPy's arrays alone \(got '(__builtin__.exec|os.system)'"
    for content in (pickle.dumps(Command(), protocol=0), b"cos\nsystem\n(S'true'\ntR."):
        with pytest.raises(pickle.UnpicklingError, match=message):
            _Arrays(io.BytesIO(content), encoding="latin1").load()


def test_errors_leave_no_unfinished_files(tmp_path, write, monkeypatch):
    write("Bookmarks/raw/bookmarks.arff", SPARSE + "{9 1}\n")
    write("Bookmarks/raw/bookmarks.xml", XML.format("B", "A"))
    with pytest.raises(ValueError, match=r"^bookmarks\.arff, line 10: Expected an index below 4"):
        MulanDataset(tmp_path, "Bookmarks")
    shutil.rmtree(tmp_path / "Bookmarks" / "raw")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
