"""Tests short runs of the search for failures."""

import random
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import tg_mlc
from tg_mlc.data import from_arrays
from tools import endurance


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Returns the folder of a model whose inputs are three numbers."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    dataset = from_arrays(X, (X[:, :2] > 0).astype(float), ["a", "b"], kind="vector")
    return tg_mlc.auto(dataset, seconds=0).save(tmp_path_factory.mktemp("saved") / "model")


@pytest.fixture
def place(saved, tmp_path):
    model = shutil.copytree(saved, tmp_path / "model")
    return SimpleNamespace(folder=tmp_path, model=model, largest={})


@pytest.mark.parametrize("seed", range(5))
def test_backends_agree_and_readers_name_the_fault(seed, place):
    endurance.operator(seed, place)
    for file_seed in range(5 * seed, 5 * seed + 5):
        endurance.files(file_seed, place)
    assert 0 <= place.largest["bytes of a reader of a file"] < endurance.MAX_MEMORY


@pytest.mark.parametrize("seed", range(3))
def test_bombs_take_little_memory(seed, place):
    endurance.bombs(seed, place)


def test_heads_and_channels_are_independent(place, monkeypatch):
    shapes = set()

    def record(tensors, pattern, backend):
        shapes.add(tensors[0].shape[1:])
        return []

    monkeypatch.setattr(endurance, "outputs", record)
    for seed in range(200):
        endurance.operator(seed, place)
    assert len(shapes) == 12


def test_errors_of_another_kind_or_without_a_message_are_found(tmp_path):
    def without_a_message(path):
        raise ValueError

    def of_another_kind(path):
        raise KeyError(path)

    with pytest.raises(RuntimeError, match="without a message"):
        endurance.refused(without_a_message, tmp_path)
    with pytest.raises(KeyError):
        endurance.refused(of_another_kind, tmp_path)


def test_a_round_can_be_repeated_by_its_seed(monkeypatch):
    rounds = []
    written = {}
    monkeypatch.setattr(endurance, "Place", lambda folder: SimpleNamespace(close=list, largest={}))
    monkeypatch.setitem(endurance.ROUNDS, "files", lambda seed, place: rounds.append(seed))
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    monkeypatch.setattr(endurance, "write_results", lambda _, result, **__: written.update(result))
    for options in (["--rounds", "2", "--only", "files"], ["--counts", "files=2"]):
        rounds.clear()
        monkeypatch.setattr(sys, "argv", ["endurance", "--seed", "7", *options])
        with pytest.raises(SystemExit) as stop:
            endurance.main()
        assert not stop.value.code
        assert rounds == [7, 8]
    assert (written["rounds"], written["failed"], written["first_seed"]) == ({"files": 2}, [], 7)


def test_entries_of_other_types_are_signed(place):
    original = (place.model / "model.json").read_bytes()
    refusals = []
    for seed in range(20):
        (place.model / "model.json").write_bytes(endurance.mistyped(original, random.Random(seed)))
        try:
            endurance.predict_row(place.model)
        except endurance.ALLOWED as error:
            refusals.append(str(error))
    assert refusals
    assert not any("SHA-256" in refusal for refusal in refusals)


@pytest.mark.slow
def test_a_killed_command_changes_no_result(tmp_path):
    endurance.kills(0, endurance.Place(tmp_path))
