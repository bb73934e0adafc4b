import logging
import pickle
import re
from functools import partial

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from torch_geometric.data import Data

from tests.fresh import run_python
from tg_mlc.data.samples import Samples, settings_key


def make_samples(num=3):
    y, x = torch.ones(1, 2), [torch.full((i + 1, 2), i) for i in range(num)]
    data = [Data(x=rows, y=y, smiles="C" * i) for i, rows in enumerate(x)]
    return Samples.collate(data, ["a", "b"], {"num_rows": num})


@pytest.mark.parametrize("num", [1, 3])
def test_samples_survive_saving_and_loading(tmp_path, num):
    path = tmp_path / "new" / "data.pt"
    samples = make_samples(num)
    samples.save(path)
    loaded = Samples.load(path)
    assert loaded.label_names == ["a", "b"]
    assert loaded.report == {"num_rows": num}
    assert loaded.data.smiles == samples.data.smiles
    assert torch.equal(loaded.data.x, samples.data.x)
    assert [path.name for path in path.parent.iterdir()] == ["data.pt"]


def test_an_empty_list_of_samples_is_refused():
    with pytest.raises(ValueError, match="at least one sample"):
        Samples.collate([], ["a"], None)


def test_a_single_changed_byte_of_a_tensor_is_noticed(tmp_path):
    path = tmp_path / "data.pt"
    data = Data(x=torch.arange(1000, dtype=torch.long).view(-1, 1), y=torch.ones(1, 1))
    Samples.collate([data], ["a"], None).save(path)
    content = bytearray(path.read_bytes())
    offset = content.find((777).to_bytes(8, "little") + (778).to_bytes(8, "little"))
    content[offset] ^= 1
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match=r"checksum.*force_reload=True"):
        Samples.load(path)


class Attack:
    def __reduce__(self):
        return (eval, ("open('attacked', 'w')",))


def write_truncated(path, fraction):
    make_samples().save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * fraction)])


@pytest.mark.parametrize(
    "write",
    [
        *(partial(write_truncated, fraction=fraction) for fraction in (0.0, 0.5, 0.99)),
        *(
            partial(lambda path, content: torch.save(content, path), content=content)
            for content in ({"format": 0}, {"format": 1}, [1, 2], torch.ones(3))
        ),
        lambda path: torch.save({"format": 1, "data": Attack()}, path),
        lambda path: path.write_bytes(pickle.dumps({"format": 1})),
    ],
)
def test_other_files_ask_for_force_reload(tmp_path, write):
    write(tmp_path / "data.pt")
    with pytest.raises(RuntimeError, match="force_reload=True"):
        Samples.load(tmp_path / "data.pt")


def test_unreadable_values_are_not_written(tmp_path):
    path = tmp_path / "data.pt"
    for value, message in ((pytest, None), (pytest.approx, "pre_transform")):
        data = [Data(x=torch.ones(1, 1), y=torch.ones(1, 1), odd=value)]
        with pytest.raises((TypeError, pickle.PicklingError), match=message):
            Samples.collate(data, ["a"], None).save(path)
    assert list(tmp_path.iterdir()) == []


class Marker:
    def __init__(self, number):
        self.number = number

    def __call__(self, data):
        return self.number


class Slots:
    __slots__ = ("number",)


# Each setting behaves differently from all others.
DIFFERENT = {
    "nothing": None,
    "a number": 1,
    "another kind of number": 1.0,
    "a word": "1",
    "a list": [1, "a"],
    "another list": [1, "b"],
    "a set": {"a", "b", "c"},
    "another set": {"a", "b", "d"},
    "an object": Marker(1),
    "another object": Marker(2),
    "an object in an object": Marker(Marker(1)),
    "another object in one": Marker(Marker(2)),
    "a transform": T.AddLaplacianEigenvectorPE(4),  # The repr lacks the number.
    "another transform": T.AddLaplacianEigenvectorPE(8),
    "transforms": T.Compose([T.ToUndirected(), T.AddLaplacianEigenvectorPE(4)]),
    "other transforms": T.Compose([T.ToUndirected(), T.AddLaplacianEigenvectorPE(8)]),
    "a tensor": torch.arange(2_000),
    "another tensor": torch.arange(2_000).index_fill(0, torch.tensor([1_000]), 0),
    "an array": np.arange(2_000) * 2,
    "another array": np.arange(2_000) * 3,
    "a pattern": re.compile("a"),
    "another pattern": re.compile("b"),
    "a class": Marker,
    "a function of C": len,
    "bytes": b"a",
}


def test_different_settings_have_different_keys():
    keys = {name: settings_key(setting) for name, setting in DIFFERENT.items()}
    assert None not in keys.values()
    assert len(set(keys.values())) == len(DIFFERENT)


@pytest.mark.parametrize(
    "setting",
    [
        lambda data: data.y.sum() > 2,
        partial(max, key=lambda data: data.y.sum()),
        Marker(lambda data: True),
        Marker(1).__call__,
        T.Compose([lambda data: data]),
        Slots(),
        logging.getLogger(__name__),  # The logger refers to itself.
    ],
)
def test_settings_with_functions_have_no_key(setting):
    assert settings_key(1, setting) is None


def test_keys_are_the_same_in_every_run():
    """Keys depend neither on the order of sets nor on addresses in memory."""
    code = "from tests.data.test_samples import *; "
    code += "print({name: settings_key(value) for name, value in DIFFERENT.items()})"
    keys = {name: settings_key(value) for name, value in DIFFERENT.items()}
    assert run_python(code)[0] == f"{keys}\n"
