from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp

from tg_mlc.stacking.resumable import ResumableParts, key_of


def test_parts_are_made_once(tmp_path):
    made = []

    def make():
        made.append(1)
        return {"x": np.array([1.0, 2.0]), "names": ("a", "b")}

    for _ in range(2):
        part = ResumableParts(tmp_path).part("first", make)
        assert np.asarray(part["x"]).tolist() == [1.0, 2.0]
        assert list(part["names"]) == ["a", "b"]
    assert len(made) == 1
    ResumableParts().part("first", make)
    assert len(made) == 2


def test_nothing_is_kept_of_what_was_interrupted(tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ResumableParts(tmp_path).part("first", interrupted)
    assert ResumableParts(tmp_path).part("first", lambda: 1) == 1


@pytest.mark.parametrize("name", ["model.json", "weights-*.safetensors"])
@pytest.mark.parametrize("lost", [False, True])
def test_what_is_damaged_is_made_again(tmp_path, name, lost):
    ResumableParts(tmp_path).part("first", lambda: np.arange(50.0))
    [file] = (tmp_path / "first").glob(name)
    if lost:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1])
    if name == "model.json" and lost:  # as if the other file had only just been written
        assert ResumableParts(tmp_path).part("first", lambda: 7) == 7
    else:
        with pytest.warns(UserWarning, match="'first' is made again, as what was kept of it is damaged"):
            assert ResumableParts(tmp_path).part("first", lambda: 7) == 7
    assert ResumableParts(tmp_path).part("first", lambda: 8) == 7


def test_parts_that_are_read_take_the_time_that_they_once_took(tmp_path):
    ResumableParts(tmp_path).part("slow", lambda: time.sleep(0.3))
    kept, now = ResumableParts(tmp_path), time.monotonic()
    kept.part("slow", lambda: time.sleep(0.3))
    assert kept.clock() - time.monotonic() >= 0.3
    assert time.monotonic() - now < 0.3


def test_keys_tell_options_shapes_and_entries_apart():
    x = sp.csr_array(np.eye(3))
    other = x.copy()
    other.data[0] = 2.0
    different = [((), [x]), ((1,), [x]), ((), [other]), ((), [np.eye(3)]), ((), [np.ones(6)]), ((), [np.ones((2, 3))])]
    assert len({key_of(*each) for each in different}) == len(different)
    assert key_of((1.0, "svm"), [x]) == key_of((1.0, "svm"), [x.copy()])
