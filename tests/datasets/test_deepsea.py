import contextlib
import csv
import io
import pickle
import re
import shutil
import sys

import numpy as np
import pytest
import scipy.io
import torch

from tests.fresh import run_alone
from tg_mlc.datasets import DatasetUnavailableError
from tg_mlc.datasets import deepsea as files
from tg_mlc.datasets.deepsea import DeepSEA, read_outputs, select_outputs, unique_names
from tg_mlc.graphs import co_occurrence

h5py = pytest.importorskip("h5py", reason="DeepSEA's training file is HDF5")

SIZES = {"train": 30, "valid": 10, "test": 17}
LENGTH = 12
TARGETS = ["DNase", "CTCF", "H3K4me3", "YY1", "YY1"]
OUTPUTS = [f"{cell}|{target}|None" for cell in ("K562", "HepG2") for target in TARGETS]
FACTORS = [1, 3, 4, 6, 8, 9]


def one_hot(letters):
    """Returns one-hot rows in the order A, G, C, T for letter codes in the order A, C, G, T."""
    x = np.zeros((len(letters), 4, letters.shape[1]), dtype=np.uint8)
    for row, code in enumerate([0, 2, 1, 3]):
        x[:, row][letters == code] = 1
    return x


class Truth:
    """Random letters and labels, which can be written as published files."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.letters = {part: rng.integers(0, 5, (size, LENGTH)) for part, size in SIZES.items()}
        shapes = {part: (size, len(OUTPUTS)) for part, size in SIZES.items()}
        self.y = {part: rng.integers(0, 2, shape, np.uint8) for part, shape in shapes.items()}
        self.y["train"][3] = self.y["test"][[0, 16]] = 0
        self.all_letters = np.concatenate(list(self.letters.values()))
        self.all_y = np.concatenate(list(self.y.values()))

    def write(self, raw):
        raw.mkdir(parents=True)
        (raw / "predictor.names").write_text("\n".join(OUTPUTS) + "\n")
        with h5py.File(raw / "train.mat", "w") as file:
            file["trainxdata"] = one_hot(self.letters["train"]).transpose(2, 1, 0)
            file["traindata"] = self.y["train"].T
        for part, compressed in (("valid", False), ("test", True)):
            arrays = {f"{part}xdata": one_hot(self.letters[part]), f"{part}data": self.y[part]}
            scipy.io.savemat(raw / f"{part}.mat", arrays, do_compression=compressed)


@pytest.fixture(scope="module")
def truth():
    return Truth()


@pytest.fixture(scope="module")
def root(truth, tmp_path_factory):
    root = tmp_path_factory.mktemp("deepsea")
    truth.write(root / "raw")
    DeepSEA(root)
    return root


@pytest.fixture
def raw(truth, tmp_path):
    truth.write(tmp_path / "raw")
    return tmp_path / "raw"


def test_letters_and_labels_are_read(root, truth):
    dataset = DeepSEA(root)
    assert (len(dataset), dataset.num_inputs) == (57, 5)
    assert dataset.num_labels == dataset.num_classes == 6
    assert (dataset.kind, dataset.feature_names) == ("sequence", list("ACGTN"))
    assert dataset.label_names[:3] == ["K562|CTCF|None", "K562|YY1|None", "K562|YY1|None (2)"]
    assert np.array_equal(torch.stack([data.x for data in dataset]), truth.all_letters)
    assert (dataset[0].x.dtype, dataset[0].y.dtype) == (torch.uint8, torch.float32)
    assert np.array_equal(torch.cat([data.y for data in dataset]), truth.all_y[:, FACTORS])
    assert np.array_equal(dataset.y, truth.all_y[:, FACTORS])
    assert np.array_equal(dataset.sparse_y().toarray(), truth.all_y[:, FACTORS])


def test_the_whole_has_the_official_split_and_parts_their_labels(root, truth):
    split = DeepSEA(root).official_split()
    assert (split.sizes, split.name) == ((30, 10, 17), "official")
    assert split.val.tolist() == list(range(30, 40))
    with pytest.raises(ValueError, match="a part of 5 samples"):
        DeepSEA(root)[:5].official_split()
    rows = torch.tensor([50, 3, 31])
    part = DeepSEA(root)[rows]
    assert np.array_equal(part.y, truth.all_y[rows][:, FACTORS])
    assert np.array_equal(part.sparse_y().toarray(), truth.all_y[rows][:, FACTORS])
    assert part[0].x.tolist() == truth.all_letters[50].tolist()


def test_cells_and_all_outputs_can_be_chosen(root, truth):
    assert np.array_equal(DeepSEA(root, ["HepG2"]).y, truth.all_y[:, [6, 8, 9]])
    dataset = DeepSEA(root, factors_only=False)
    assert np.array_equal(dataset.y, truth.all_y)
    assert dataset.label_names[0] == "K562|DNase|None"
    for cells, message in [
        (["K652"], r"'cells' .*\(got \['K652'\]\); known are K562, HepG2"),
        ("K562", "'cells' to be a list"),
        ([], "at least one label"),
    ]:
        with pytest.raises(ValueError, match=message):
            DeepSEA(root, cells)


def test_targets_can_be_merged_and_unlabelled_samples_skipped(root, truth):
    dataset = DeepSEA(root, ["K562"], per_target=True, labelled_only=True)
    y = np.stack([truth.all_y[:, 1], truth.all_y[:, 3] | truth.all_y[:, 4]], axis=1)
    labelled = y.any(axis=1)
    assert not labelled[[3, 40, 56]].any()
    assert dataset.label_names == ["CTCF", "YY1"]
    assert np.array_equal(dataset.y, y[labelled])
    assert np.array_equal(torch.stack([data.x for data in dataset]), truth.all_letters[labelled])
    sizes = [int(part.sum()) for part in (labelled[:30], labelled[30:40], labelled[40:])]
    assert list(dataset.official_split().sizes) == sizes
    assert np.array_equal(dataset[torch.tensor([5, 2])].y, y[labelled][[5, 2]])


def test_pickles_and_copied_files_keep_the_labels(root, truth, tmp_path):
    dataset = DeepSEA(root)
    pickled = pickle.dumps(dataset)
    assert len(pickled) < 3_000
    assert torch.equal(pickle.loads(pickled).y, dataset.y)
    shutil.copytree(root / "processed", tmp_path / "processed")
    assert np.array_equal(DeepSEA(tmp_path).y, truth.all_y[:, FACTORS])


def test_data_module_and_label_graphs_accept_the_data_set(root):
    training = pytest.importorskip("tg_mlc.training")
    dataset = DeepSEA(root)
    split = dataset.official_split()
    data = training.MultiLabelDataModule(dataset, split, batch_size=4, num_workers=1)
    batches = list(data.train_dataloader())
    assert sum(batch.num_graphs for batch in batches) == 30
    assert batches[0].x.shape == (4 * LENGTH,)
    graph = co_occurrence(dataset.sparse_y(), split=split, label_names=dataset.label_names)
    assert torch.equal(graph.edge_index, co_occurrence(dataset, split=split).edge_index)


def test_small_blocks_give_the_same_data_set(raw, truth, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 100)
    dataset = DeepSEA(raw.parent)
    assert np.array_equal(torch.stack([data.x for data in dataset]), truth.all_letters)
    assert np.array_equal(dataset.y, truth.all_y[:, FACTORS])


def test_error_says_where_to_get_a_missing_file(raw, monkeypatch, truth, tmp_path):
    monkeypatch.delenv("TG_MLC_DATA", raising=False)
    (raw / "test.mat").rename(tmp_path / "test.mat")
    message = r"'test\.mat'.*\n.*Place train.mat.*\n.*deepsea_train_bundle"
    with pytest.raises(DatasetUnavailableError, match=message):
        DeepSEA(raw.parent)
    assert not list((raw.parent / "processed").glob("*.bin"))
    monkeypatch.setenv("TG_MLC_DATA", str(tmp_path))
    (tmp_path / "deepsea" / "raw").mkdir(parents=True)
    (tmp_path / "test.mat").rename(tmp_path / "deepsea" / "raw" / "test.mat")
    assert np.array_equal(DeepSEA(raw.parent).y, truth.all_y[:, FACTORS])


def write_without_arrays(path):
    with h5py.File(path, "w") as file:
        file["x"] = 1


def spoil(raw, damage, truth):
    x, y = one_hot(truth.letters["valid"]), truth.y["valid"]
    valid, train = raw / "valid.mat", raw / "train.mat"

    def matlab(x, y, name="validxdata"):
        scipy.io.savemat(valid, {name: x, "validdata": y})

    {
        "truncated hdf5": lambda: train.write_bytes(train.read_bytes()[:-500]),
        "truncated matlab": lambda: valid.write_bytes(valid.read_bytes()[:-50]),
        "another kind": lambda: valid.write_bytes(b"<html>" * 99),
        "other arrays": lambda: matlab(x, y, "x"),
        "text": lambda: matlab(x.astype(str), y),
        "no hdf5 arrays": lambda: write_without_arrays(train),
        "shapes": lambda: matlab(x, y[:, 1:]),
        "two letters": lambda: matlab(np.ones_like(x), y),
        "a number": lambda: matlab(x, y + 0.5),
        "names": lambda: (raw / "predictor.names").write_text("K562|CTCF|None\nK562|CTCF\n"),
    }[damage]()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("truncated hdf5", r"a whole HDF5 file in '.*train\.mat'"),
        ("truncated matlab", r"a whole MATLAB 5 file in '.*valid\.mat' .*cannot be read"),
        ("another kind", r"a whole MATLAB 5 file in '.*valid\.mat' .*cannot be read"),
        ("other arrays", r"\[10, N\] .* in '.*valid\.mat' \(got \[0\] and \[10, 10\]"),
        ("text", r"arrays of 0 and 1 in '.*valid\.mat' \(got valid sequences of type <U3\)"),
        ("no hdf5 arrays", r"trainxdata and traindata in '.*train\.mat' \(got \['x'\]\)"),
        ("shapes", r"\[10, N\] .*valid\.mat' \(got \[12, 4, 10\] and \[9, 10\]; .*names"),
        ("two letters", r"at most one of the four letters .*valid\.mat' \(got several\)"),
        ("a number", r"arrays of 0 and 1 in '.*valid\.mat' \(got (0|1)\.5\)"),
        ("names", r"'cell\|target\|treatment' in line 2 of '.*' \(got 'K562\|CTCF'\)"),
    ],
)
def test_wrong_files_leave_no_unfinished_output(raw, truth, damage, message):
    spoil(raw, damage, truth)
    with pytest.raises(ValueError, match=message):
        DeepSEA(raw.parent)
    processed = raw.parent / "processed"
    assert not (processed / "predictor.names").exists()
    assert not [path for path in processed.iterdir() if "unfinished" in path.name]


def test_damaged_converted_files_ask_for_force_reload(root, tmp_path):
    shutil.copytree(root, tmp_path, dirs_exist_ok=True)
    for name in ("letters.bin", "labels.bin", "shape.npy"):
        file = tmp_path / "processed" / name
        original = file.read_bytes()
        for content in (original[:-5], b""):
            file.write_bytes(content)
            with pytest.raises(RuntimeError, match=r"the same samples in .*force_reload=True"):
                DeepSEA(tmp_path)
        file.write_bytes(original)
    assert len(DeepSEA(tmp_path, force_reload=True)) == 57


def test_the_outputs_of_the_real_file_are_counted(real_file):
    outputs = read_outputs(real_file("deepsea/raw/predictor.names"))
    assert len(outputs) == len(set(unique_names(outputs))) == 919
    factors = select_outputs(outputs, None, True, False)
    assert (len(factors.names), len(select_outputs(outputs, None, True, True).names)) == (690, 172)
    counts = {"GM12878": (90, 79), "H1-hESC": (58, 51), "K562": (150, 108)}
    for cell, expected in counts.items():
        labels = [select_outputs(outputs, [cell], True, per_target) for per_target in (False, True)]
        assert tuple(len(selection.names) for selection in labels) == expected
    with real_file("string_tf/derived/deepsea_tf_columns.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert factors.columns.tolist() == [int(row["column"]) for row in rows]


@pytest.fixture(scope="module")
def small_hdf5(tmp_path_factory):
    """Returns the path of an HDF5 file that tests change, and the original bytes of the file."""
    path = tmp_path_factory.mktemp("hdf5") / "train.h5"
    with h5py.File(path, "w") as file:
        file["trainxdata"] = one_hot(np.arange(24).reshape(6, 4) % 5).transpose(2, 1, 0)
        file["traindata"] = np.ones((2, 6), dtype=np.uint8)
    return path, path.read_bytes()


def message_of(path):
    with pytest.raises(ValueError, match=str(path)) as error:
        files.convert(path, "train", 2, io.BytesIO(), io.BytesIO())
    return str(error.value)


def test_array_names_that_are_not_utf8_are_shown(small_hdf5):
    path, content = small_hdf5
    path.write_bytes(content.replace(b"traindata", b"train\xff\xfeta"))
    message = message_of(path)
    assert f"arrays trainxdata and traindata in '{path}' (got [" in message
    assert "\\xff" in message.partition("got")[2]


def test_types_unknown_to_numpy_count_as_damage(small_hdf5):
    (path, content), time_class = small_hdf5, b"\x12"
    messages = []
    # The type of an array begins with its version and its class.
    for match in re.finditer(b"\x10\x00", content):
        path.write_bytes(content[: match.start()] + time_class + content[match.start() + 1 :])
        with contextlib.suppress(AssertionError, pytest.fail.Exception):
            messages.append(message_of(path))
    assert re.search(r"whole HDF5 file in '.*' \(got .*No NumPy equivalent", "\n".join(messages))


CONVERT = """
import re, sys
from tg_mlc.datasets.deepsea import DeepSEA
import h5py, torch
def peak():  # Returns MB. The peak from resource.getrusage is at least that of the parent process.
    return int(re.search(r"VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1]) / 1024
before = peak()
dataset = DeepSEA(sys.argv[1])
assert len(dataset) == 100_020
for index in torch.randperm(len(dataset))[:2000].tolist():
    dataset.get(index)
assert dataset.sparse_y().shape == (100_020, 6)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="resource counts in kilobytes on Linux")
@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    raw, length = tmp_path / "raw", 1_000
    raw.mkdir()
    (raw / "predictor.names").write_text("\n".join(OUTPUTS) + "\n")
    rng = np.random.default_rng(0)
    for part, size in (("train", 100_000), ("valid", 10), ("test", 10)):
        block = one_hot(rng.integers(0, 4, (10, length))).transpose(2, 1, 0)
        with h5py.File(raw / f"{part}.h5", "w") as file:
            shape, chunks = (length, 4, size), (length, 4, min(size, 1_000))
            x = file.create_dataset(f"{part}xdata", shape, "u1", chunks=chunks)
            # Chunks that were never written are zeros and take no space.
            x[:, :, :10] = x[:, :, -10:] = block
            file[f"{part}data"] = rng.integers(0, 2, (len(OUTPUTS), size), dtype=np.uint8)
    printed = run_alone(CONVERT, [str(tmp_path)])
    # One-hot letters would take 400 MB, and letters 100 MB.
    assert float(printed) < 200
