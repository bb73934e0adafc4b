import resource
import sys
from pathlib import Path

import pytest
import torch

import tg_mlc.training
from tests.training.conftest import GINE, LABELS, LabelModel, ToyGraphs, make_module, train
from tg_mlc import __version__
from tg_mlc.data import random_split
from tg_mlc.graphs import LabelGraph, edgeless, fully_connected
from tg_mlc.inference import read_checkpoint
from tg_mlc.training import MultiLabelDataModule, MultiLabelModule, fit
from tg_mlc.training.callbacks import AtomicCheckpointIO

CONFIG = {"encoder": "fmp", "heads": [4, 2], "nested": {"dropout": 0.1, "none": None}}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    dataset = ToyGraphs()
    data = MultiLabelDataModule(dataset, random_split(len(dataset), seed=0), batch_size=8)
    module = make_module(LabelModel, config=CONFIG, lr_schedule="cosine", weight_decay=0.1)
    return fit(module, data, tmp_path_factory.mktemp("run"), max_epochs=2, ema_decay=0.9).training


def test_files_hold_plain_data_only(trained):
    files = sorted(path.name for path in trained.checkpoint.parent.iterdir())
    assert files == [".lock", "best.ckpt", "last.ckpt", "logs", "model"]
    for name in files[1:3]:
        torch.load(trained.checkpoint.parent / name, weights_only=True)


def test_read_checkpoint_returns_what_training_saved(trained, batch):
    checkpoint = read_checkpoint(trained.checkpoint)
    assert checkpoint.label_names == LABELS
    assert checkpoint.config == CONFIG
    assert checkpoint.version == __version__
    assert checkpoint.label_graph.edge_index.equal(fully_connected(3).edge_index)
    assert checkpoint.label_graph.label_names == LABELS
    assert checkpoint.label_graph.kind == "fully_connected"
    for name, tuner in trained.module.tuners.items():
        assert checkpoint.tuners[name].threshold == tuner.threshold
    model = LabelModel(checkpoint.label_graph)
    model.load_state_dict(checkpoint.state_dict)
    assert torch.equal(model.eval()(batch), trained.module(batch))


def load(path, model=None):
    model = model or LabelModel()
    return MultiLabelModule.load_from_checkpoint(path, model=model, weights_only=True)


def test_load_from_checkpoint_restores_the_module(trained, batch):
    module = load(trained.checkpoint).eval()
    assert torch.equal(module(batch), trained.module(batch))
    assert module.label_names == LABELS
    assert module.config == CONFIG
    assert dict(module.hparams) == dict(trained.module.hparams)
    assert module.tuners.keys() == trained.module.tuners.keys()


def test_another_label_graph_is_refused_but_not_another_order_of_edges(trained):
    with pytest.raises(ValueError, match="weights of a model with the same label graph"):
        load(trained.checkpoint, LabelModel(edgeless(LABELS)))
    with pytest.raises(ValueError, match="settings that these weights were trained with"):
        load(trained.checkpoint, GINE())
    flipped = fully_connected(LABELS)
    flipped.edge_index = flipped.edge_index.flip(1)
    load(trained.checkpoint, LabelModel(flipped))


def test_foreign_files_are_refused(tmp_path):
    torch.save({"state_dict": {}}, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match=r"other\.ckpt to be written by tg_mlc"):
        read_checkpoint(tmp_path / "other.ckpt")
    with pytest.raises(FileNotFoundError):
        read_checkpoint(tmp_path / "none.ckpt")


def test_a_flipped_bit_is_refused(trained, tmp_path, batch):
    """A bit of a weight is flipped, which PyTorch would read as another number."""
    content = bytearray(trained.checkpoint.read_bytes())
    weight = trained.module.state_dict()["model.lin_in.weight"].numpy().tobytes()
    content[content.index(weight) + 5] ^= 1
    path = tmp_path / "flipped.ckpt"
    path.write_bytes(content)
    stored = torch.load(path, weights_only=True)["state_dict"]
    assert stored.keys() == trained.module.state_dict().keys()
    for read in (read_checkpoint, AtomicCheckpointIO().load_checkpoint, load):
        with pytest.raises(ValueError, match=r"flipped\.ckpt' to be a whole checkpoint .* damaged"):
            read(path)


def test_damage_anywhere_is_refused_or_harmless(tmp_path):
    entries = {"a": torch.arange(5.0), "b": "text"}
    AtomicCheckpointIO().save_checkpoint(entries, tmp_path / "small.ckpt")
    content, path = (tmp_path / "small.ckpt").read_bytes(), tmp_path / "damaged.ckpt"
    for index in range(0, len(content), 3):
        path.write_bytes(content[:index] + bytes([content[index] ^ 8]) + content[index + 1 :])
        try:
            loaded = AtomicCheckpointIO().load_checkpoint(path)
        except (ValueError, RuntimeError):
            continue
        assert loaded["b"] == "text"
        assert torch.equal(loaded["a"], torch.arange(5.0))


@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.999])
def test_files_cut_short_are_refused(trained, tmp_path, data, fraction):
    path, content = tmp_path / "last.ckpt", trained.last_checkpoint.read_bytes()
    path.write_bytes(content[: int(fraction * len(content))])

    def resume(path):
        train(make_module(LabelModel), data, path.parent, resume=True)

    for read in (read_checkpoint, load, resume):
        with pytest.raises(ValueError, match=rf"{path}' to be a whole .* cut short.*copy it again"):
            read(path)


def test_weights_of_other_settings_are_refused_in_one_line(trained, data):
    def smaller():
        model = LabelModel()
        model.readout = torch.nn.Linear(3, 2)
        return model

    def resume(path, model):
        settings = {"lr_schedule": "cosine", "weight_decay": 0.1}
        module = make_module(lambda: model, **settings)
        train(module, data, path.parent, max_epochs=3, resume=True)

    for read in (load, resume):
        with pytest.raises(ValueError, match=r"settings that these weights .*readout") as caught:
            read(trained.checkpoint, smaller())
        assert "\n" not in str(caught.value)


class Evil:
    def __reduce__(self):
        return Path.touch, (Path("touched"),)


def test_code_in_files_is_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"tg_mlc": Evil()}, "evil.ckpt")
    message = r"'evil\.ckpt' to hold tensors .* \(got (builtins\.)?getattr\).*train anew"
    for read in (read_checkpoint, AtomicCheckpointIO().load_checkpoint, load):
        with pytest.raises(ValueError, match=message) as refused:
            read("evil.ckpt")
        assert "weights_only" not in str(refused.value)
    assert not Path("touched").exists()


def test_a_broken_write_leaves_the_old_file(tmp_path, monkeypatch):
    io, path = AtomicCheckpointIO(), tmp_path / "runs" / "last.ckpt"
    io.save_checkpoint({"epoch": 1}, path)

    def write_half(checkpoint, partial):
        Path(partial).write_bytes(b"half")
        assert path.exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", write_half)
    with pytest.raises(KeyboardInterrupt):
        io.save_checkpoint({"epoch": 2}, path)
    assert io.load_checkpoint(path) == {"epoch": 1}
    assert [file.name for file in path.parent.iterdir()] == ["last.ckpt"]


def test_a_full_disk_is_named_with_the_file(tmp_path):
    io, path = AtomicCheckpointIO(), tmp_path / "last.ckpt"
    io.save_checkpoint({"epoch": 1}, path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"'.*last\.ckpt' .*bytes free.*make room there"):
            io.save_checkpoint({"weights": torch.zeros(100_000)}, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert io.load_checkpoint(path) == {"epoch": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["last.ckpt"]


def test_label_graphs_are_stored_with_weights(tmp_path, data):
    options = {"num_nodes": 3, "edge_weight": torch.tensor([0.5, 2.0]), "kind": "toy"}
    graph = LabelGraph(torch.tensor([[0, 1], [1, 0]]), **options)
    for make, expected in ((GINE, None), (lambda: LabelModel(graph), graph)):
        train(make_module(make), data, tmp_path, max_epochs=1)
        stored = read_checkpoint(tmp_path / "best.ckpt").label_graph
        assert (stored is None) == (expected is None)
    assert torch.equal(stored.edge_weight, graph.edge_weight)
    assert (stored.kind, stored.num_labels) == ("toy", 3)


def test_missing_lightning_names_the_extra(monkeypatch):
    monkeypatch.delattr(tg_mlc.training, "fit", raising=False)
    for name in ("lightning", "lightning.pytorch"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"tg_mlc\[train\]"):
        from tg_mlc.training import fit  # noqa: F401


def test_a_newer_format_is_named(trained, tmp_path):
    content = torch.load(trained.checkpoint, weights_only=True)
    content["tg_mlc"]["format"] = "tg_mlc.model/9"
    torch.save(content, tmp_path / "newer.ckpt")
    with pytest.raises(ValueError, match="a newer version of tg_mlc wrote it"):
        read_checkpoint(tmp_path / "newer.ckpt")
