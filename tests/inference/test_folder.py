from __future__ import annotations

import copy
import errno
import json
import math
import os
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save

import tg_mlc
from tg_mlc._files import sha256
from tg_mlc.inference import folder as folders
from tg_mlc.inference.folder import check_finite, read_folder, write_folder

KINDS = ("vectors", "dna", "texts")


def signed(folder, entries):
    """Writes a description with the hash that it ought to have."""
    entries = {name: value for name, value in entries.items() if name != "sha256"}
    hashed = sha256(folders._dump(entries))
    (folder / "model.json").write_bytes(folders._dump({"sha256": hashed, **entries}))


def small(folder, value=1.0):
    return write_folder(folder, {"a": torch.full((3,), value), "b": [1, "x", math.inf]})


def test_files_of_others_stay(tmp_path):
    mine = {
        "weights-mine.safetensors": b"x",
        "weights-0123456789ab.safetensors": b"twelve digits, of another hash",
        "weights-0.safetensors": save({"a": torch.ones(2)}),
        "notes.txt": b"x",
    }
    for name, content in mine.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "weights-ffffffffffff.safetensors").mkdir()
    for value in (1.0, 2.0):
        small(tmp_path, value)
    assert {name: (tmp_path / name).read_bytes() for name in mine} == mine
    names = {path.name for path in tmp_path.iterdir()}
    ours = names - {*mine, "weights-ffffffffffff.safetensors", "model.json"}
    assert ours == {json.loads((tmp_path / "model.json").read_text())["weights"]["file"]}


def test_a_folder_may_be_replaced_while_it_is_read(tmp_path, monkeypatch):
    small(tmp_path)
    read, replaced = folders._read, []

    def replacing(path, max_bytes):
        if path.suffix == ".safetensors" and len(replaced) < 3:  # its description has been read
            replaced.append(small(tmp_path, len(replaced) + 2.0))
        return read(path, max_bytes)

    monkeypatch.setattr(folders, "_read", replacing)
    assert read_folder(tmp_path)["a"].tolist() == [4.0, 4.0, 4.0]


def test_readers_and_a_writer_at_once(tmp_path):
    small(tmp_path)
    done = threading.Event()

    def write():
        while not done.is_set():
            for value in (1.0, 2.0, 3.0):
                small(tmp_path, value)

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
    small(tmp_path)
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
def test_files_have_a_largest_size(tmp_path, name, limit, monkeypatch):
    small(tmp_path)
    path = next(tmp_path.glob(f"{name}*"))
    with path.open("r+b") as file:
        file.truncate(getattr(folders, limit) + 1)  # a hole, which takes no room
    with pytest.raises(ValueError, match=f"{name}.*at most"):
        tg_mlc.load(tmp_path)
    monkeypatch.setattr(folders, limit, 10)
    with pytest.raises(ValueError, match="at most"):
        small(tmp_path)


def test_a_link_to_a_file_is_read(tmp_path):
    small(tmp_path / "kept")
    (tmp_path / "links").mkdir()
    for path in (tmp_path / "kept").iterdir():
        (tmp_path / "links" / path.name).symlink_to(path)
    assert read_folder(tmp_path / "links")["b"] == [1, "x", math.inf]


def test_a_full_disk_is_told_by_path(tmp_path, monkeypatch):
    small(tmp_path)
    before = (tmp_path / "model.json").read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match=rf"{tmp_path}.*No space left.*bytes are free"):
            small(tmp_path, 2.0)
    assert (tmp_path / "model.json").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_file_in_the_way_is_named(tmp_path, below):
    (tmp_path / "out").write_text("x")
    with pytest.raises(ValueError, match=f"to be a folder.*{tmp_path / 'out'}"):
        small(tmp_path / "out" / below)


def copy_of(source, tmp_path):
    for path in source.glob("weights-*"):
        (tmp_path / path.name).symlink_to(path)
    return json.loads((source / "model.json").read_text())


def items_of(value):
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def places(value, path=()):
    """Yields the paths of all entries of a description, one for each list of plain values."""
    yield path
    for key, item in items_of(value):
        if key and isinstance(value, list) and not isinstance(item, dict):
            break
        yield from places(item, (*path, key))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ("tg_mlc.model/2", "a newer version of tg_mlc wrote it: update tg_mlc"),
        ("tg_mlc.model/10", "a newer version of tg_mlc wrote it: update tg_mlc"),
        ("tg_mlc.model/0", "save the model again with this version"),
    ],
)
def test_another_version_of_the_format_is_no_damage(found, message, tmp_path):
    entries = json.loads((small(tmp_path) / "model.json").read_text())
    signed(tmp_path, {**entries, "format": found, "more": 1})
    with pytest.raises(
        ValueError, match=rf"in the format tg_mlc.model/1 \(got '{found}'\); .*{message}"
    ):
        read_folder(tmp_path)
    text = (tmp_path / "model.json").read_text()
    (tmp_path / "model.json").write_text(text.replace('"b"', '"c"'))
    with pytest.raises(ValueError, match=r"to be as tg_mlc wrote it .*SHA-256"):
        read_folder(tmp_path)


WRONG = (None, -1, 10**6, "x", [], {}, [1, 2], {"a": 1}, True, "gone")
WRONG = (*WRONG, {"float": "x"}, {"tensor": "x"}, {"tensor": {}})


@pytest.mark.parametrize("name", KINDS)
def test_well_signed_folders_that_are_inconsistent(name, saved, tmp_path):
    whole = copy_of(saved(name), tmp_path)
    rng = np.random.default_rng(0)
    found = [place for place in places(whole) if place and place[0] != "sha256"]
    messages = []
    for number in rng.permutation(len(found))[:60]:
        entries, place = copy.deepcopy(whole), found[number]
        inner = entries
        for key in place[:-1]:
            inner = inner[key]
        wrong = WRONG[rng.integers(len(WRONG))]
        inner[place[-1]] = wrong
        if wrong == "gone":
            del inner[place[-1]]
        signed(tmp_path, entries)
        try:
            tg_mlc.load(tmp_path)
        except (ValueError, FileNotFoundError) as error:
            messages.append(str(error))
    assert len(messages) > 30
    assert all(str(tmp_path) in message for message in messages)


def change(entries, what):
    content = entries["content"]
    if what == "label_names":
        content["label_names"] = content["label_names"][:1] * 3
    elif what == "facts":
        content["facts"] = [1]
    elif what == "weights":
        entries["weights"] = "weights.safetensors"
    elif what == "thresholds":
        content["stages"][-1]["state"]["tuners"]["f1_micro"]["thresholds"] = [0.5] * 7
    else:
        entries["content"] = [content]


@pytest.mark.parametrize("what", ["label_names", "facts", "weights", "thresholds", "content"])
def test_parts_that_disagree_are_named(saved, tmp_path, what):
    entries = copy_of(saved("vectors"), tmp_path)
    change(entries, what)
    signed(tmp_path, entries)
    with pytest.raises(ValueError, match=rf"{tmp_path}.*{what}"):
        tg_mlc.load(tmp_path)


def tensors(value, name=""):
    """All tensors of numbers with a point in a state, by their names."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        yield name, value
    for key, entry in items_of(value):
        yield from tensors(entry, f"{name}.{key}".strip("."))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_weights_that_are_not_finite_are_named(name, number, saved, tmp_path):
    content = read_folder(saved(name))
    state = content["stages"]
    found = [each for each in tensors(state) if each[1].numel()]
    for broken, values in found:
        good = values.view(-1)[0].item()
        values.view(-1)[0] = number
        with pytest.raises(ValueError, match=rf"'{broken}' hold 1 of .* NaN or infinite"):
            check_finite(state)
        values.view(-1)[0] = good
    values.view(-1)[0] = number
    write_folder(tmp_path, content)
    with pytest.raises(ValueError, match=rf"{tmp_path}.*{broken}' hold 1 of .* NaN or infinite"):
        tg_mlc.load(tmp_path)


def first(value, key):
    """The dictionary that holds the first entry of a name in a state."""
    if isinstance(value, dict):
        if key in value:
            return value
        value = list(value.values())
    found = (first(item, key) for item in value) if isinstance(value, list) else ()
    return next((holder for holder in found if holder is not None), None)


@pytest.mark.parametrize(
    ("name", "entry", "wrong"),
    [
        ("vectors", "right", lambda old: torch.full_like(old, 10**6)),
        ("vectors", "left", lambda old: torch.where(old < 0, old, 0)),  # no end
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
        ("dna", "indices", lambda old: old + 10**9),  # products would read memory there
        ("dna", "bias", lambda old: "x"),
    ],
)
def test_states_of_classifiers_that_are_inconsistent(name, entry, wrong, saved, tmp_path):
    content = read_folder(saved(name))
    states = {stage["stage"]: stage["state"] for stage in content["stages"]}
    if entry == "combination":
        holder, entry = states["Combination"], "weight"
    else:
        holder = first([states["Features"], states["Classifiers"]], entry)
    holder[entry] = wrong(holder[entry])
    write_folder(tmp_path, content)
    with pytest.raises(ValueError, match=rf"Expected '{tmp_path}' to hold a model"):
        tg_mlc.load(tmp_path)
