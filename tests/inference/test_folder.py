import copy
import errno
import hashlib
import json
import math
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save

import tg_mlc
from tg_mlc._files import sha256
from tg_mlc.inference import folder as folders
from tg_mlc.inference.folder import check_finite, read_folder, write_folder

KINDS = ("vectors", "dna", "texts")


def write_signed(folder, entries):
    """Writes model.json with the hash of its entries."""
    entries = {name: value for name, value in entries.items() if name != "sha256"}
    digest = sha256(folders._dump(entries))
    (folder / "model.json").write_bytes(folders._dump({"sha256": digest, **entries}))


def write_small(folder, value=1.0):
    return write_folder(folder, {"a": torch.full((3,), value), "b": [1, "x", math.inf]})


def test_other_files_in_the_folder_stay(tmp_path):
    contents = {
        "weights-mine.safetensors": b"x",
        "weights-0123456789ab.safetensors": b"twelve digits, of another hash",
        "weights-0.safetensors": save({"a": torch.ones(2)}),
        "notes.txt": b"x",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "weights-ffffffffffff.safetensors").mkdir()
    for value in (1.0, 2.0):
        write_small(tmp_path, value)
    assert {name: (tmp_path / name).read_bytes() for name in contents} == contents
    names = {path.name for path in tmp_path.iterdir()}
    new_names = names - {*contents, "weights-ffffffffffff.safetensors", "model.json"}
    assert new_names == {json.loads((tmp_path / "model.json").read_text())["weights"]["file"]}


def test_a_folder_may_be_replaced_while_it_is_read(tmp_path, monkeypatch):
    write_small(tmp_path)
    open_file, replaced = folders._open, []

    def replacing(path, max_bytes):
        if path.suffix == ".safetensors" and len(replaced) < 3:  # model.json has been read.
            replaced.append(write_small(tmp_path, len(replaced) + 2.0))
        return open_file(path, max_bytes)

    monkeypatch.setattr(folders, "_open", replacing)
    assert read_folder(tmp_path)["a"].tolist() == [4.0, 4.0, 4.0]


def test_reading_gives_whole_models_while_another_thread_writes(tmp_path):
    write_small(tmp_path)
    done = threading.Event()

    def write():
        while not done.is_set():
            for value in (1.0, 2.0, 3.0):
                write_small(tmp_path, value)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert {read_folder(tmp_path)["a"][0].item() for _ in range(100)} <= {1.0, 2.0, 3.0}
    finally:
        done.set()
        writer.join()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("name", ["model.json", "weights"])
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_devices_and_pipes_are_not_read(tmp_path, name, kind):
    write_small(tmp_path)
    path = next(tmp_path.glob(f"{name}*"))
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(ValueError, match=f"{name}.*to be a file"):
        tg_mlc.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "limit"), [("model.json", "MAX_BYTES"), ("weights", "MAX_WEIGHTS")]
)
def test_too_large_files_are_refused(tmp_path, name, limit, monkeypatch):
    write_small(tmp_path)
    path = next(tmp_path.glob(f"{name}*"))
    with path.open("r+b") as file:
        file.truncate(getattr(folders, limit) + 1)  # A sparse file takes no disk space.
    with pytest.raises(ValueError, match=f"{name}.*at most"):
        tg_mlc.load(tmp_path)
    monkeypatch.setattr(folders, limit, 10)
    with pytest.raises(ValueError, match="at most"):
        write_small(tmp_path)


def test_sizes_are_checked_before_weights_take_memory(tmp_path):
    [weights] = write_small(tmp_path).glob("weights-*")
    with weights.open("r+b") as file:
        file.truncate(2**35)  # No machine of tests has this memory.
    with pytest.raises(ValueError, match="got 34,359,738,368 bytes, not those of its header"):
        read_folder(tmp_path)


@pytest.mark.parametrize("end", ["1e999", "-1", "null", '"4"', "[]"])
def test_offsets_in_the_header_of_weights_are_checked(tmp_path, end):
    [weights] = write_small(tmp_path).glob("weights-*")
    header = f'{{"x": {{"dtype": "F32", "shape": [1], "data_offsets": [0, {end}]}}}}'.encode()
    weights.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ValueError, match="not those of its header"):
        read_folder(tmp_path)


@pytest.mark.parametrize("name", ["weights-\0.safetensors", "w" * 5000, "../model.json"])
def test_names_of_weights_are_checked(tmp_path, name):
    entries = json.loads((write_small(tmp_path) / "model.json").read_text())
    write_signed(tmp_path, {**entries, "weights": {**entries["weights"], "file": name}})
    with pytest.raises(ValueError, match="got a file of weights with the name"):
        read_folder(tmp_path)


def test_an_entry_for_a_network_is_an_object(saved, tmp_path):
    content = read_folder(saved("vectors"))
    for stage in content["stages"]:
        for entry in stage["state"].get("networks", []):
            entry["network"] = 3
    with pytest.raises(ValueError, match="'network' of a saved model to be an object"):
        tg_mlc.load(write_folder(tmp_path, content))


@pytest.mark.parametrize("dtype", [torch.int8, torch.bool])
def test_weights_of_another_kind_of_number_are_refused(saved, tmp_path, dtype):
    content = read_folder(saved("vectors"))
    for stage in content["stages"]:
        for entry in stage["state"].get("networks", []):
            for name, value in entry["state_dict"].items():
                entry["state_dict"][name] = value.to(dtype) if value.is_floating_point() else value
    with pytest.raises(ValueError, match=rf"weights '.*' of {dtype}, not torch.float32"):
        tg_mlc.load(write_folder(tmp_path, content))


@pytest.mark.parametrize("dtype", [torch.int8, torch.bool, torch.float64])
def test_no_tensor_of_a_folder_is_cast_without_a_word(saved, tmp_path, dtype):
    shutil.copytree(saved("vectors"), tmp_path, dirs_exist_ok=True)
    entries = json.loads((tmp_path / "model.json").read_text())
    tensors = load_file(tmp_path / entries["weights"]["file"])
    packed = save({name: tensor.to(dtype) for name, tensor in tensors.items()})
    (tmp_path / entries["weights"]["file"]).write_bytes(packed)
    weights = {**entries["weights"], "sha256": hashlib.sha256(packed).hexdigest()}
    write_signed(tmp_path, {**entries, "weights": weights})
    with pytest.raises(ValueError, match=rf"weights '.*' of {dtype}, not torch"):
        tg_mlc.load(tmp_path)


def test_a_link_to_a_file_is_read(tmp_path):
    write_small(tmp_path / "kept")
    (tmp_path / "links").mkdir()
    for path in (tmp_path / "kept").iterdir():
        (tmp_path / "links" / path.name).symlink_to(path)
    assert read_folder(tmp_path / "links")["b"] == [1, "x", math.inf]


def test_a_full_disk_is_reported_with_the_path(tmp_path, monkeypatch):
    write_small(tmp_path)
    content = (tmp_path / "model.json").read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match=rf"{tmp_path}.*No space left.*bytes are free"):
            write_small(tmp_path, 2.0)
    assert (tmp_path / "model.json").read_bytes() == content
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("subfolder", ["", "deeper"])
def test_a_file_in_place_of_a_folder_is_refused(tmp_path, subfolder):
    (tmp_path / "out").write_text("x")
    with pytest.raises(ValueError, match=f"to be a folder.*{tmp_path / 'out'}"):
        write_small(tmp_path / "out" / subfolder)


def copy_of(source, tmp_path):
    for path in source.glob("weights-*"):
        (tmp_path / path.name).symlink_to(path)
    return json.loads((source / "model.json").read_text())


def items_of(value):
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def entry_paths(value, path=()):
    """Yields the path of each entry. In a list of plain values, only the first entry counts."""
    yield path
    for key, item in items_of(value):
        if key and isinstance(value, list) and not isinstance(item, dict):
            break
        yield from entry_paths(item, (*path, key))


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("tg_mlc.model/2", "a newer version of tg_mlc wrote it: update tg_mlc"),
        ("tg_mlc.model/10", "a newer version of tg_mlc wrote it: update tg_mlc"),
        ("tg_mlc.model/0", "save the model again with this version"),
    ],
)
def test_other_format_versions_are_named(version, message, tmp_path):
    entries = json.loads((write_small(tmp_path) / "model.json").read_text())
    write_signed(tmp_path, {**entries, "format": version, "more": 1})
    refusal = rf"in the format tg_mlc.model/1 \(got '{version}'\); .*{message}"
    with pytest.raises(ValueError, match=refusal):
        read_folder(tmp_path)
    text = (tmp_path / "model.json").read_text()
    (tmp_path / "model.json").write_text(text.replace('"b"', '"c"'))
    with pytest.raises(ValueError, match=r"to be as tg_mlc wrote it .*SHA-256"):
        read_folder(tmp_path)


WRONG_VALUES = (None, -1, 10**6, "x", [], {}, [1, 2], {"a": 1}, True, "gone")
WRONG_VALUES = (*WRONG_VALUES, {"float": "x"}, {"tensor": "x"}, {"tensor": {}})
WRONG_VALUES = (*WRONG_VALUES, {"tensor": "x", "dtype": "torch.int8"}, {"tensor": {}, "dtype": 1})


@pytest.mark.parametrize("name", KINDS)
def test_inconsistent_folders_with_valid_hashes_are_refused(name, saved, tmp_path):
    original = copy_of(saved(name), tmp_path)
    rng = np.random.default_rng(0)
    paths = [path for path in entry_paths(original) if path and path[0] != "sha256"]
    messages = []
    for number in rng.permutation(len(paths))[:60]:
        entries, path = copy.deepcopy(original), paths[number]
        parent = entries
        for key in path[:-1]:
            parent = parent[key]
        value = WRONG_VALUES[rng.integers(len(WRONG_VALUES))]
        parent[path[-1]] = value
        if value == "gone":
            del parent[path[-1]]
        write_signed(tmp_path, entries)
        try:
            tg_mlc.load(tmp_path)
        except (ValueError, FileNotFoundError) as error:
            messages.append(str(error))
    assert len(messages) > 30
    assert all(str(tmp_path) in message for message in messages)


def change(entries, part):
    content = entries["content"]
    decisions = content["stages"][-1]["state"]["tuners"]["f1_micro"]
    holder, value = {
        "label_names": (content, content["label_names"][:1] * 3),
        "facts": (content, [1]),
        "weights": (entries, "weights.safetensors"),
        "thresholds": (decisions, [0.5] * 7),
        "content": (entries, [content]),
    }[part]
    holder[part] = value


@pytest.mark.parametrize("part", ["label_names", "facts", "weights", "thresholds", "content"])
def test_parts_that_disagree_are_named(saved, tmp_path, part):
    entries = copy_of(saved("vectors"), tmp_path)
    change(entries, part)
    write_signed(tmp_path, entries)
    with pytest.raises(ValueError, match=rf"{tmp_path}.*{part}"):
        tg_mlc.load(tmp_path)


def tensors(value, name=""):
    """Yields the name and value of each floating-point tensor in a state."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        yield name, value
    for key, entry in items_of(value):
        yield from tensors(entry, f"{name}.{key}".strip("."))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_weights_that_are_not_finite_are_named(name, number, saved, tmp_path):
    content = read_folder(saved(name))
    state = content["stages"]
    named_tensors = [entry for entry in tensors(state) if entry[1].numel()]
    for key, values in named_tensors:
        original = values.view(-1)[0].item()
        values.view(-1)[0] = number
        with pytest.raises(ValueError, match=rf"'{key}' hold 1 of .* NaN or infinite"):
            check_finite(state)
        values.view(-1)[0] = original
    values.view(-1)[0] = number
    write_folder(tmp_path, content)
    with pytest.raises(ValueError, match=rf"{tmp_path}.*{key}' hold 1 of .* NaN or infinite"):
        tg_mlc.load(tmp_path)


def holder_of(value, key):
    """Returns the first dictionary in a state that has the key, or None."""
    if isinstance(value, dict):
        if key in value:
            return value
        value = list(value.values())
    holders = (holder_of(item, key) for item in value) if isinstance(value, list) else ()
    return next((holder for holder in holders if holder is not None), None)


@pytest.mark.parametrize(
    ("name", "entry", "corrupt"),
    [
        ("vectors", "right", lambda old: torch.full_like(old, 10**6)),
        ("vectors", "left", lambda old: torch.where(old < 0, old, 0)),  # No node is a leaf.
        ("vectors", "feature", lambda old: old[1:]),
        ("vectors", "labels", lambda old: old + 3),
        ("vectors", "view", lambda old: f"{old}s"),
        ("vectors", "reading", lambda old: [old]),
        ("vectors", "combination", lambda old: old[:, 1:]),
        ("vectors", "num_inputs", lambda old: "x"),
        ("dna", "label_names", lambda old: [1, 2]),
        ("dna", "gamma", lambda old: "x"),
        ("dna", "idf", lambda old: -1),
        ("dna", "dual", lambda old: old[1:]),
        ("dna", "indices", lambda old: old + 10**9),  # Products would read memory out of bounds.
        ("dna", "bias", lambda old: "x"),
    ],
)
def test_inconsistent_states_of_classifiers_are_refused(name, entry, corrupt, saved, tmp_path):
    content = read_folder(saved(name))
    states = {stage["stage"]: stage["state"] for stage in content["stages"]}
    if entry == "combination":
        holder, entry = states["Combination"], "weight"
    else:
        holder = holder_of([states["Features"], states["Classifiers"]], entry)
    holder[entry] = corrupt(holder[entry])
    write_folder(tmp_path, content)
    with pytest.raises(ValueError, match=rf"Expected '{tmp_path}' to hold a model"):
        tg_mlc.load(tmp_path)
