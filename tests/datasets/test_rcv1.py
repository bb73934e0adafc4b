import gzip
import hashlib
import json
import lzma
import os
import shutil
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.datasets
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tg_mlc.datasets import DatasetUnavailableError, rcv1
from tg_mlc.datasets.rcv1 import RCV1
from tg_mlc.graphs import read_parents, tree
from tg_mlc.inputs.words import UNKNOWN

TRAIN = ".I 10\n.W\nrecov recov\nmarket\n\n.I 11\n.W\nmarket bond\n\n"
TEST = [".I 21\n.W\nbond new\n\n", ".I 20\n.W\nnew new market\n\n", ".I 22\n.W\n\n"]
TEST += [".I 23\n.W\nbond\n"]
QRELS = "GCAT 20 1\nE11 10 1\nECAT 10 1\nECAT 11 1\nGCAT 21 1\nM11 22 1\nE11 23 1\nECAT 23 1\n"


def json_line(labels, tokens):
    record = {"doc_label": labels, "doc_token": tokens, "doc_keyword": [], "doc_topic": []}
    return json.dumps(record) + "\n"


@pytest.fixture(scope="session")
def sample(real_file, tmp_path_factory):
    real_file("rcv1v2/raw/rcv1_dev.json.xz")
    return RCV1(tmp_path_factory.getbasetemp() / "rcv1", form="json")


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.delenv("TG_MLC_DATA", raising=False)


@pytest.fixture
def lyrl(tmp_path, offline):
    """Returns a folder with small token files."""
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "lyrl2004_tokens_train.dat").write_text(TRAIN)
    for part, text in enumerate(TEST):
        (raw / f"lyrl2004_tokens_test_pt{part}.dat").write_text(text)
    (raw / "rcv1-v2.topics.qrels").write_text(QRELS)
    return tmp_path


@pytest.fixture
def jsonl(real_file, tmp_path):
    """Returns a folder with small JSON files of all parts."""
    real_file("rcv1v2/raw/rcv1.taxonomy")
    raw = tmp_path / "raw"
    raw.mkdir()
    train = json_line(["C15", "CCAT"], ["The", "profit", "The"]) + json_line(["GCAT"], ["rain"])
    (raw / "rcv1_train.json").write_text(train)
    (raw / "rcv1_dev.json").write_text(json_line(["MCAT"], ["bonds", "profit"]))
    (raw / "rcv1_test.json").write_text(json_line(["CCAT"], ["profit", "warning"]))
    return tmp_path


@pytest.fixture
def fetched(monkeypatch):
    """Replaces scikit-learn's download by random data with four training documents."""
    rng = np.random.default_rng(0)
    data = sp.random(10, 6, 0.5, format="csr", random_state=rng)
    target = sp.csr_matrix((rng.random((10, 3)) < 0.5).astype(np.uint8))
    names = np.array(["C11", "C12", "CCAT"], dtype=object)
    bunch, requests = SimpleNamespace(data=data, target=target, target_names=names), []

    def fetch(**options):
        requests.append(options)
        return bunch

    monkeypatch.setattr(sklearn.datasets, "fetch_rcv1", fetch)
    monkeypatch.setattr(rcv1, "NUM_TRAIN", 4)
    return bunch, requests


def words_of(dataset):
    return [[dataset.feature_names[i] for i in data.x] for data in dataset]


def labels_of(dataset):
    return [[dataset.label_names[i] for i in row.nonzero().flatten()] for row in dataset.y]


def test_label_parents_equal_the_taxonomy(sample, real_file):
    assert len(sample.label_parents) == 103
    assert set(sample.label_parents) == set(read_parents(real_file("rcv1v2/raw/rcv1.taxonomy")))
    graph = tree(sample.label_parents, sample.label_names, self_loops=False)
    assert (graph.num_labels, graph.num_edges) == (103, 2 * 99)
    codes = ["C1511", "C151", "C15", "CCAT", "GVIO", "E121", "E1"]
    parents = ["C151", "C15", "CCAT", "Root", "GCAT", "E1", "ECAT"]
    assert [rcv1.topic_parent(code, codes) for code in codes] == parents
    assert sample.label_descriptions.keys() == set(sample.label_names)
    assert sample.label_descriptions["C1511"] == "ANNUAL RESULTS"


def test_options_of_json_files_choose_words_and_split(jsonl):
    dataset = RCV1(jsonl, form="json")
    assert (len(dataset), dataset.num_labels) == (4, 103)
    assert labels_of(dataset) == [["C15", "CCAT"], ["GCAT"], ["MCAT"], ["CCAT"]]
    assert dataset.feature_names == [UNKNOWN, "The", "profit", "bonds", "rain"]
    assert words_of(dataset)[3] == ["profit", UNKNOWN]
    split = dataset.official_split(val_fraction=0.34)
    assert split.sizes == (2, 1, 1)
    assert split.test.tolist() == [3]
    frequent = RCV1(jsonl, form="json", min_count=2)
    assert frequent.feature_names == [UNKNOWN, "The", "profit"]
    truncated = words_of(RCV1(jsonl, form="json", max_tokens=1))
    assert truncated == [["The"], ["rain"], ["bonds"], [UNKNOWN]]
    assert RCV1(jsonl, form="json").num_inputs == 5


def test_json_files_may_be_compressed(jsonl):
    plain = RCV1(jsonl, form="json")
    for path in [*(jsonl / "raw").glob("rcv1_*.json")]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert words_of(RCV1(jsonl, form="json", force_reload=True)) == words_of(plain)


def test_parts_added_later_replace_the_sample(jsonl, tmp_path, monkeypatch):
    documents = json_line(["MCAT"], ["profit"]) * 2
    sample = rcv1.SAMPLE._replace(sha256=(hashlib.sha256(documents.encode()).hexdigest(),))
    shared = tmp_path / "shared" / "rcv1v2" / "raw"
    shared.mkdir(parents=True)
    (shared / "rcv1_dev.json").write_text(documents)
    shutil.copy(Path(os.environ["TG_MLC_DATA"]) / "rcv1v2" / "raw" / "rcv1.taxonomy", shared)
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path / "shared"))
    monkeypatch.setattr(rcv1, "SAMPLE", sample)
    root = tmp_path / "root"
    assert len(RCV1(root, form="json")) == 2
    assert len(RCV1(root, form="json", min_count=2)) == 2
    for part in ("train", "test"):
        shutil.copy(jsonl / "raw" / f"rcv1_{part}.json", root / "raw")
    for options in ({}, {"min_count": 2}, {"force_reload": True}):
        dataset = RCV1(root, form="json", **options)
        assert labels_of(dataset) == [["C15", "CCAT"], ["GCAT"], ["CCAT"]]
        assert dataset.official_split(0.5).test.tolist() == [2]
    shutil.copy(jsonl / "raw" / "rcv1_dev.json", root / "raw")
    assert labels_of(RCV1(root, form="json"))[2:] == [["MCAT"], ["CCAT"]]


def test_replaced_parts_are_read_again(jsonl):
    assert len(RCV1(jsonl, form="json")) == 4
    (jsonl / "raw" / "rcv1_train.json").write_text(json_line(["GCAT"], ["rain"]))
    assert labels_of(RCV1(jsonl, form="json")) == [["GCAT"], ["MCAT"], ["CCAT"]]
    assert labels_of(RCV1(jsonl, form="json", min_count=2)) == [["GCAT"], ["MCAT"], ["CCAT"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not JSON\n", r"line 2 of '.*rcv1_dev\.json' to be a JSON object with .*\(got 'not JSON'"),
        (json_line(["C15"], ["a"])[:-20], "line 2 .* to be a JSON object .* is the file truncated"),
        ("[" * 100_000 + "\n", "line 2 .* to be a JSON object"),
        ("[1]\n", r"line 2 .* to be a JSON object .*\(got '\[1\]'"),
        ("{}\n", r"line 2 .* with 'doc_label' and 'doc_token' \(got '{}': KeyError\('doc_label'\)"),
        (json_line("C15", ["a"]), r"lists of words in line 2 .*\(got C15\)"),
        (json_line(["C15"], ["a", 1]), r"lists of words in line 2 .*\(got \['a', 1\]\)"),
        (json_line(["C15"], ["a\nb"]), r"lists of words in line 2"),
        (json_line(["C15", "C999"], ["a"]), r"line 2 .* to have topics of RCV1 \(got \['C999'\]\)"),
    ],
)
def test_errors_name_the_wrong_line(jsonl, text, message):
    with (jsonl / "raw" / "rcv1_dev.json").open("a") as file:
        file.write(text)
    with pytest.raises(ValueError, match=message):
        RCV1(jsonl, form="json")
    assert list((jsonl / "processed").iterdir()) == []


def test_strange_words_survive_the_processed_file(jsonl):
    words = ["\ud800", "\r", "\x85\u2028", "", " ", "\0"]
    (jsonl / "raw" / "rcv1_train.json").write_text(json_line(["C15"], words))
    assert words_of(RCV1(jsonl, form="json"))[0] == words
    assert words_of(RCV1(jsonl, form="json"))[0] == words


def test_json_files_without_documents_are_refused(jsonl):
    for path in (jsonl / "raw").glob("rcv1_*.json"):
        path.write_text("\n")
    with pytest.raises(ValueError, match=r"documents in .*rcv1_train\.json.* \(got none\)"):
        RCV1(jsonl, form="json")


def test_token_files_give_words_topics_and_splits(lyrl):
    dataset = RCV1(lyrl, form="tokens")
    assert dataset.feature_names == [UNKNOWN, "market", "recov", "bond"]
    words = ["recov recov market", "market bond", "bond ?", "? ? market", "", "bond"]
    assert [" ".join(text).replace(UNKNOWN, "?") for text in words_of(dataset)] == words
    assert dataset.label_names == ["E11", "ECAT", "GCAT", "M11"]
    labels = ["E11 ECAT", "ECAT", "GCAT", "GCAT", "M11", "E11 ECAT"]
    assert [" ".join(names) for names in labels_of(dataset)] == labels
    parents = {"E11": "ECAT", "ECAT": "Root", "GCAT": "Root", "M11": "MCAT"}
    assert dataset.label_parents == list(parents.items())
    split = dataset.official_split(val_fraction=0.5)
    assert split.test.tolist() == [2, 3, 4, 5]
    dataset = RCV1(lyrl, form="tokens", reverse_split=True)
    assert dataset.feature_names == [UNKNOWN, "new", "bond", "market"]
    split = dataset.official_split(val_fraction=0.25)
    assert split.sizes == (3, 1, 2)
    assert split.test.tolist() == [0, 1]
    assert RCV1(lyrl, form="tokens").feature_names[1] == "market"


def test_token_files_may_be_compressed_and_in_the_shared_folder(lyrl, tmp_path, monkeypatch):
    plain = words_of(RCV1(lyrl, form="tokens"))
    shared = tmp_path / "shared" / "rcv1v2" / "raw"
    shutil.copytree(lyrl / "raw", shared)
    for path in [*shared.iterdir()]:
        path.with_name(f"{path.name}.xz").write_bytes(lzma.compress(path.read_bytes()))
        path.unlink()
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path / "shared"))
    assert words_of(RCV1(tmp_path / "other", form="tokens")) == plain


def test_missing_token_files_are_named(lyrl):
    (lyrl / "raw" / "lyrl2004_tokens_test_pt2.dat").unlink()
    message = r"Expected lyrl2004_tokens_test_pt2\.dat in '.*raw'.*LYRL2004"
    with pytest.raises(DatasetUnavailableError, match=message):
        RCV1(lyrl, form="tokens")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("train.dat", ".I 10\n.W\na\n.I 11\n", r"'\.W' after the last '\.I' of '.*train\.dat'"),
        ("train.dat", ".I 10\n.I 11\n.W\na\n", r"line 2 of '.*train\.dat' .*'\.I 11'\)"),
        ("train.dat", ".I 10\na\n", r"line 2 of .* to be '\.I' with a number.*\(got 'a'\)"),
        ("train.dat", ".I ten\n.W\n", r"line 1 of .* \(got '\.I ten'\)"),
        ("train.dat", ".I 10\n.W\na\n.W\n", r"line 4 of .* \(got '\.W'\)"),
        ("train.dat", "words first\n", r"line 1 of .* \(got 'words first'\)"),
        ("train.dat", TRAIN + ".I 10\n.W\na\n", r"of '.*qrels' once .*, and 1 twice, \[10\]\)"),
        ("train.dat", TRAIN + ".I 99\n.W\na\n", r"got 1 in only one .*, \[99\], and 0 twice"),
        ("train.dat", ".I 10\n.W\na\n", r"got 1 in only one .*, \[11\].*; is a file truncated"),
        ("train.dat", "", r"got 2 in only one .*, \[10, 11\]"),
        ("qrels", "", r"every document of '.*qrels' once \(got 6 in only one of the two"),
        ("qrels", QRELS + "E11 20\n", r"line 9 of '.*qrels' to be a topic, .*\(got 'E11 20'\)"),
        ("qrels", QRELS + "E11 20 0\n", r"line 9 of '.*qrels'"),
        ("qrels", QRELS + f"E11 {10**30} 1\n", r"line 9 of '.*qrels'"),
    ],
)
def test_wrong_token_files_are_named(lyrl, name, text, message):
    [path] = (lyrl / "raw").glob(f"*{name}")
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        RCV1(lyrl, form="tokens")
    assert list((lyrl / "processed").iterdir()) == []


def test_duplicate_topics_count_once(lyrl):
    (lyrl / "raw" / "rcv1-v2.topics.qrels").write_text(QRELS + "E11 10 1\n")
    assert RCV1(lyrl, form="tokens").y.max() == 1


def test_truncated_archives_are_named(lyrl):
    path = lyrl / "raw" / "lyrl2004_tokens_train.dat"
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(TRAIN.encode())[:-12])
    path.unlink()
    with pytest.raises(ValueError, match=r"lyrl2004_tokens_train\.dat\.gz"):
        RCV1(lyrl, form="tokens")


def test_documents_are_read_one_at_a_time(tmp_path):
    path = tmp_path / "tokens.dat"
    # The file has 3 MB.
    path.write_text("".join(f".I {number}\n.W\n{'word ' * 1000}\n" for number in range(600)))
    documents = rcv1.read_token_documents(path)
    assert next(documents)[0] == 0
    tracemalloc.start()
    total = sum(len(tokens) for _, tokens in documents)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 599 * 1000
    assert peak < 8 * 2**20  # All words at once would take 40 MB.


@settings(max_examples=150)
@given(st.data())
def test_mutated_files_give_documents_or_one_error(tmp_path_factory, data):
    def read_json(path):
        return list(rcv1.read_json_documents(path, ["C15"]))

    tokens = (TRAIN + TEST[1], lambda path: list(rcv1.read_token_documents(path)))
    readers = [tokens, (QRELS, rcv1.read_topics), (json_line(["C15"], ["a", "b"]) * 2, read_json)]
    text, read = data.draw(st.sampled_from(readers))
    content = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        content[start : start + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=5))
    path = tmp_path_factory.getbasetemp() / "mutated"
    path.write_bytes(content)
    try:
        read(path)
    except ValueError as error:
        assert "mutated'" in str(error)  # noqa: PT017


def test_vectors_come_from_scikit_learn(tmp_path, fetched):
    bunch, requests = fetched
    dataset = RCV1(tmp_path, data_home=tmp_path / "home")
    assert requests == [{"data_home": str(tmp_path / "home")}]
    assert (len(dataset), dataset.kind, dataset.num_inputs) == (10, "bag", 6)
    assert dataset.label_names == ["C11", "C12", "CCAT"]
    assert torch.equal(dataset.y, torch.from_numpy(bunch.target.toarray()).float())
    for row, data in enumerate(dataset):
        assert data.x.tolist() == np.flatnonzero(bunch.data[[row]].toarray()).tolist()
        assert data.weight.tolist() == pytest.approx(bunch.data[[row]].toarray()[0, data.x])
    assert dataset.official_split(0.25).test.tolist() == [4, 5, 6, 7, 8, 9]
    assert len(RCV1(tmp_path)) == 10
    assert len(requests) == 1


def test_vectors_may_lack_weights_and_the_split_be_reversed(tmp_path, fetched):
    dataset = RCV1(tmp_path, binary=True, reverse_split=True)
    assert "weight" not in dataset[0]
    assert dataset.official_split(0.2).test.tolist() == [0, 1, 2, 3]
    assert fetched[0].data.data.max() < 1  # Scikit-learn's own data are not changed.
    assert "weight" in RCV1(tmp_path)[0]


def test_offline_error_names_the_download_command(tmp_path, monkeypatch):
    def refuse(**options):
        raise OSError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_rcv1", refuse)
    message = r"OSError: no network\); run 'sklearn\.datasets\.fetch_rcv1"
    with pytest.raises(DatasetUnavailableError, match=message):
        RCV1(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "bags"}, r"'form' to be one of vectors, tokens, json \(got 'bags'\)"),
        ({"form": "json", "reverse_split": True}, "'reverse_split' for the LYRL2004 split only"),
        ({"form": "tokens", "binary": True}, r"'binary' for form='vectors' only .*'tokens'\)"),
        ({"max_tokens": 5}, "options of words for texts only"),
        ({"form": "json", "min_count": 0}, "'min_count' to be a whole number of at least 1"),
    ],
)
def test_wrong_options_are_named(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        RCV1(tmp_path, **options)
    assert list(Path(tmp_path).iterdir()) == []
