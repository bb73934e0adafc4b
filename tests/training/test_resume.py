from __future__ import annotations

import shutil

import pytest
import torch
from lightning.pytorch.callbacks import Callback

from tests.training.conftest import GINE, LABELS, LabelModel, ToyGraphs, make_module
from tg_mlc.data import random_split
from tg_mlc.inference import read_checkpoint
from tg_mlc.training import MultiLabelDataModule, fit

SCHEDULE = {"lr_schedule": "cosine", "warmup": 0.2, "weight_decay": 0.01}


class InterruptionError(Exception):
    pass


class InterruptAt(Callback):
    """Breaks off in the middle of an epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.current_epoch == self.epoch and batch_idx == 1:
            raise InterruptionError


def make_data(dataset, split, **options):
    return MultiLabelDataModule(dataset, split, batch_size=8, **options)


def load(path):
    return torch.load(path, weights_only=True)


def assert_same(a, b, where="checkpoint"):
    assert type(a) is type(b), where
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            assert_same(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for index, (left, right) in enumerate(zip(a, b, strict=True)):
            assert_same(left, right, f"{where}[{index}]")
    elif isinstance(a, torch.Tensor):
        assert torch.equal(a, b), where
    else:
        assert a == b, where


def without_paths(checkpoint):
    callbacks = {
        key: value for key, value in checkpoint["callbacks"].items() if "FileCheckpoint" not in key
    }
    return {**checkpoint, "callbacks": callbacks}


@pytest.mark.parametrize("ema_decay", [None, 0.9])
@pytest.mark.parametrize("model", [GINE, LabelModel])
def test_resuming_gives_the_weights_of_an_uninterrupted_training(
    tmp_path, dataset, split, model, ema_decay
):
    options = {
        "max_epochs": 4,
        "ema_decay": ema_decay,
        "gradient_clip": 1.0,
        "logger": False,
        "patience": 3,
    }
    straight = fit(
        make_module(model, **SCHEDULE), make_data(dataset, split), tmp_path / "straight", **options
    ).training

    module, interrupt = make_module(model, **SCHEDULE), InterruptAt(epoch=2)
    with pytest.raises(InterruptionError):
        fit(module, make_data(dataset, split), tmp_path / "b", callbacks=[interrupt], **options)
    assert load(tmp_path / "b" / "last.ckpt")["epoch"] == 1
    module = make_module(model, seed=99, **SCHEDULE)
    resumed = fit(
        module, make_data(dataset, split), tmp_path / "b", resume=True, **options
    ).training

    assert resumed.num_epochs == straight.num_epochs == 4
    assert resumed.best_value == straight.best_value
    for name in ("last.ckpt", "best.ckpt"):
        expected, got = (load(tmp_path / folder / name) for folder in ("straight", "b"))
        assert_same(without_paths(got), without_paths(expected))
    assert_same(dict(resumed.module.state_dict()), dict(straight.module.state_dict()))


class RandomSamples(ToyGraphs):
    """Samples that are changed at random wherever they are loaded, as by a transform that augments them."""

    def get(self, index):
        data = super().get(index)
        return data.update({"x": data.x + torch.randn(data.x.shape)})


@pytest.mark.parametrize(("num_workers", "stop", "schedule"), [(1, 1, {}), (2, 2, SCHEDULE)])
def test_resuming_with_workers_does_too(num_workers, stop, schedule, tmp_path, split):
    options = {"max_epochs": 3, "logger": False, "patience": None}

    def data():
        return make_data(RandomSamples(), split, num_workers=num_workers)

    fit(make_module(**schedule), data(), tmp_path / "straight", **options)
    with pytest.raises(InterruptionError):
        fit(
            make_module(**schedule),
            data(),
            tmp_path / "b",
            callbacks=[InterruptAt(stop)],
            **options,
        )
    fit(make_module(seed=99, **schedule), data(), tmp_path / "b", resume=True, **options)
    for name in ("last.ckpt", "best.ckpt"):
        expected, got = (load(tmp_path / folder / name) for folder in ("straight", "b"))
        assert_same(without_paths(got), without_paths(expected))


def test_random_numbers_differ_without_their_saved_state(tmp_path, dataset, split):
    """The test above would not notice a model without randomness."""
    options = {"max_epochs": 2, "logger": False}
    fit(make_module(), make_data(dataset, split), tmp_path / "straight", **options)
    with pytest.raises(InterruptionError):
        fit(
            make_module(),
            make_data(dataset, split),
            tmp_path / "b",
            callbacks=[InterruptAt(1)],
            **options,
        )
    checkpoint = load(tmp_path / "b" / "last.ckpt")
    checkpoint["callbacks"].pop("RandomState")
    torch.save(checkpoint, tmp_path / "b" / "last.ckpt")
    fit(make_module(seed=99), make_data(dataset, split), tmp_path / "b", resume=True, **options)
    got, straight = (
        load(tmp_path / folder / "last.ckpt")["state_dict"] for folder in ("b", "straight")
    )
    with pytest.raises(AssertionError, match="checkpoint"):
        assert_same(got, straight)


def test_resuming_in_a_moved_folder_keeps_the_best_epoch(tmp_path, dataset, split):
    # With a learning rate of zero no later epoch can be better than the first.
    options = {"max_epochs": 3, "logger": False, "patience": None}
    data, interrupt = make_data(dataset, split), InterruptAt(epoch=2)
    with pytest.raises(InterruptionError):
        fit(make_module(LabelModel, lr=0.0), data, tmp_path / "a", callbacks=[interrupt], **options)
    shutil.move(tmp_path / "a", tmp_path / "b")
    result = fit(
        make_module(LabelModel, lr=0.0), data, tmp_path / "b", resume=True, **options
    ).training
    assert result.checkpoint == tmp_path / "b" / "best.ckpt"
    assert load(result.checkpoint)["epoch"] == 0
    assert load(result.last_checkpoint)["epoch"] == 2
    assert not (tmp_path / "a").exists()


def test_resuming_a_stopped_training_trains_no_more(tmp_path, dataset, split):
    options = {"max_epochs": 9, "patience": 2, "logger": False}
    first = fit(
        make_module(LabelModel, lr=0.0), make_data(dataset, split), tmp_path, **options
    ).training
    assert first.num_epochs == 3
    before = (tmp_path / "last.ckpt").read_bytes()
    again = fit(
        make_module(LabelModel, lr=0.0), make_data(dataset, split), tmp_path, resume=True, **options
    ).training
    assert again.num_epochs == 3
    assert again.best_value == first.best_value
    assert (tmp_path / "last.ckpt").read_bytes() == before


def test_resuming_a_finished_training_trains_on_to_a_larger_number_of_epochs(
    tmp_path, dataset, split
):
    for max_epochs, resume in [(1, False), (1, True), (2, True)]:
        module = make_module()
        result = fit(
            module,
            make_data(dataset, split),
            tmp_path,
            max_epochs=max_epochs,
            resume=resume,
            logger=False,
        ).training
        assert result.num_epochs == max_epochs
        assert len(result.module.tuners) == 5


def test_resume_needs_a_checkpoint_in_the_folder(tmp_path, data):
    with pytest.raises(FileNotFoundError, match=r"got no file .*last\.ckpt"):
        fit(make_module(), data, tmp_path, resume=True)
    with pytest.raises(ValueError, match="'resume' to be True or False"):
        fit(make_module(), data, tmp_path, resume=tmp_path / "last.ckpt")


class Untrained(Callback):
    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        raise AssertionError("training has begun")


def test_resuming_without_the_best_weights_is_refused_before_training(tmp_path, data):
    fit(make_module(), data, tmp_path, max_epochs=2, logger=False)
    best = tmp_path / "best.ckpt"
    content = best.read_bytes()
    options = {"max_epochs": 3, "resume": True, "logger": False, "callbacks": [Untrained()]}
    best.write_bytes(content[:-100])
    with pytest.raises(ValueError, match=r"best\.ckpt' to be a whole checkpoint"):
        fit(make_module(), data, tmp_path, **options)
    best.unlink()
    with pytest.raises(
        FileNotFoundError, match=r"best weights so far in '.*best\.ckpt' .*put it back"
    ):
        fit(make_module(), data, tmp_path, **options)


def test_resume_refuses_other_data_and_other_labels(tmp_path, dataset, split, data, monkeypatch):
    fit(make_module(), data, tmp_path, max_epochs=1, logger=False)
    for other in (
        make_data(dataset, random_split(len(dataset), seed=1)),
        make_data(dataset, split, seed=1),
    ):
        with pytest.raises(ValueError, match="Expected the data of the checkpoint"):
            fit(make_module(), other, tmp_path, max_epochs=2, resume=True, logger=False)
    module = make_module()
    module.label_names = LABELS[::-1]
    monkeypatch.setattr(data.dataset, "label_names", LABELS[::-1])
    with pytest.raises(ValueError, match="Expected the label names"):
        fit(module, data, tmp_path, max_epochs=2, resume=True, logger=False)


def test_a_checkpoint_in_the_middle_of_an_epoch_has_no_thresholds(tmp_path, data):
    class Save(Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            trainer.save_checkpoint(tmp_path / "middle.ckpt")

    fit(make_module(), data, tmp_path, max_epochs=2, callbacks=[Save()], logger=False)
    assert read_checkpoint(tmp_path / "middle.ckpt").tuners == {}
    assert len(read_checkpoint(tmp_path / "last.ckpt").tuners) == 5
