from __future__ import annotations

import shutil

import pytest
import torch
from lightning.pytorch.callbacks import Callback

from tests.training.conftest import GINE, LABELS, LabelModel, ToyGraphs, make_module, train
from tg_mlc.data import random_split
from tg_mlc.inference import read_checkpoint
from tg_mlc.training import BinaryObjective, MultiLabelDataModule, MultiLabelModule

SCHEDULE = {"lr_schedule": "cosine", "warmup": 0.2, "weight_decay": 0.01}


class InterruptionError(Exception):
    pass


class InterruptAt(Callback):
    """Raises an error in the middle of an epoch."""

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
    callbacks = checkpoint["callbacks"].items()
    others = {key: value for key, value in callbacks if "FileCheckpoint" not in key}
    return {**checkpoint, "callbacks": others}


def assert_same_checkpoints(folder, other):
    for name in ("last.ckpt", "best.ckpt"):
        assert_same(without_paths(load(other / name)), without_paths(load(folder / name)))


def interrupted(folder, data, epoch, *args, **options):
    """Trains until the middle of an epoch."""
    options["callbacks"] = [InterruptAt(epoch)]
    with pytest.raises(InterruptionError):
        train(make_module(*args, **options.pop("module", {})), data, folder, **options)


@pytest.mark.parametrize(
    ("model", "ema_decay"),
    [
        (GINE, None),
        (LabelModel, 0.9),
        pytest.param(GINE, 0.9, marks=pytest.mark.slow),
        pytest.param(LabelModel, None, marks=pytest.mark.slow),
    ],
)
def test_resuming_gives_the_weights_of_an_uninterrupted_training(
    tmp_path, dataset, split, model, ema_decay
):
    options = {"max_epochs": 4, "ema_decay": ema_decay, "gradient_clip": 1.0, "patience": 3}
    data = make_data(dataset, split)
    expected = train(make_module(model, **SCHEDULE), data, tmp_path / "a", **options)
    interrupted(tmp_path / "b", make_data(dataset, split), 2, model, module=SCHEDULE, **options)
    assert load(tmp_path / "b" / "last.ckpt")["epoch"] == 1
    module, data = make_module(model, seed=99, **SCHEDULE), make_data(dataset, split)
    resumed = train(module, data, tmp_path / "b", resume=True, **options)
    assert resumed.num_epochs == expected.num_epochs == 4
    assert resumed.best_value == expected.best_value
    assert_same_checkpoints(tmp_path / "a", tmp_path / "b")
    assert_same(dict(resumed.module.state_dict()), dict(expected.module.state_dict()))


class RandomSamples(ToyGraphs):
    """Samples to which every loading adds random noise, as a transform would."""

    def get(self, index):
        data = super().get(index)
        return data.update({"x": data.x + torch.randn(data.x.shape)})


@pytest.mark.parametrize(
    ("num_workers", "stop", "schedule"),
    [(1, 1, {}), pytest.param(2, 2, SCHEDULE, marks=pytest.mark.slow)],
)
def test_workers_resume_with_the_same_checkpoints(num_workers, stop, schedule, tmp_path, split):
    options = {"max_epochs": 3, "patience": None}

    def data():
        return make_data(RandomSamples(), split, num_workers=num_workers)

    train(make_module(**schedule), data(), tmp_path / "a", **options)
    interrupted(tmp_path / "b", data(), stop, module=schedule, **options)
    train(make_module(seed=99, **schedule), data(), tmp_path / "b", resume=True, **options)
    assert_same_checkpoints(tmp_path / "a", tmp_path / "b")


def test_random_numbers_differ_without_their_saved_state(tmp_path, dataset, split):
    """Shows that the tests above compare trainings that depend on random numbers."""
    train(make_module(), make_data(dataset, split), tmp_path / "a", max_epochs=2)
    interrupted(tmp_path / "b", make_data(dataset, split), 1, max_epochs=2)
    checkpoint = load(tmp_path / "b" / "last.ckpt")
    checkpoint["callbacks"].pop("RandomState")
    torch.save(checkpoint, tmp_path / "b" / "last.ckpt")
    data = make_data(dataset, split)
    train(make_module(seed=99), data, tmp_path / "b", max_epochs=2, resume=True)
    resumed, expected = (load(tmp_path / folder / "last.ckpt")["state_dict"] for folder in "ba")
    with pytest.raises(AssertionError, match="checkpoint"):
        assert_same(resumed, expected)


def test_resuming_in_a_moved_folder_keeps_the_best_epoch(tmp_path, dataset, split):
    # With a learning rate of zero no later epoch can be better than the first.
    options, frozen = {"max_epochs": 3, "patience": None}, {"lr": 0.0}
    data = make_data(dataset, split)
    interrupted(tmp_path / "a", data, 2, LabelModel, module=frozen, **options)
    shutil.move(tmp_path / "a", tmp_path / "b")
    result = train(make_module(LabelModel, **frozen), data, tmp_path / "b", resume=True, **options)
    assert result.checkpoint == tmp_path / "b" / "best.ckpt"
    assert load(result.checkpoint)["epoch"] == 0
    assert load(result.last_checkpoint)["epoch"] == 2
    assert not (tmp_path / "a").exists()


def test_resuming_a_stopped_training_trains_no_more(tmp_path, dataset, split):
    results, contents = [], []
    for resume in (False, True):
        module, data = make_module(LabelModel, lr=0.0), make_data(dataset, split)
        results.append(train(module, data, tmp_path, max_epochs=9, patience=2, resume=resume))
        contents.append((tmp_path / "last.ckpt").read_bytes())
    assert [result.num_epochs for result in results] == [3, 3]
    assert results[0].best_value == results[1].best_value
    assert contents[0] == contents[1]


def test_resuming_a_finished_training_trains_on_to_a_larger_number_of_epochs(
    tmp_path, dataset, split
):
    for max_epochs, resume in [(1, False), (1, True), (2, True)]:
        options = {"max_epochs": max_epochs, "resume": resume}
        result = train(make_module(), make_data(dataset, split), tmp_path, **options)
        assert result.num_epochs == max_epochs
        assert len(result.module.tuners) == 5


def test_resume_needs_a_checkpoint_in_the_folder(tmp_path, data):
    with pytest.raises(FileNotFoundError, match=r"got no file .*last\.ckpt"):
        train(make_module(), data, tmp_path, resume=True)
    with pytest.raises(ValueError, match="'resume' to be True or False"):
        train(make_module(), data, tmp_path, resume=tmp_path / "last.ckpt")


class Untrained(Callback):
    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        raise AssertionError("training has begun")


def test_resuming_without_the_best_weights_is_refused_before_training(tmp_path, data):
    train(make_module(), data, tmp_path, max_epochs=2)
    best = tmp_path / "best.ckpt"
    options = {"max_epochs": 3, "resume": True, "callbacks": [Untrained()]}
    best.write_bytes(best.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"best\.ckpt' to be a whole checkpoint"):
        train(make_module(), data, tmp_path, **options)
    best.unlink()
    with pytest.raises(FileNotFoundError, match=r"best weights .*best\.ckpt' .*put it back"):
        train(make_module(), data, tmp_path, **options)


def test_resume_refuses_other_data_and_other_labels(tmp_path, dataset, split, data, monkeypatch):
    train(make_module(), data, tmp_path, max_epochs=1)
    options = {"max_epochs": 2, "resume": True}
    other_split = make_data(dataset, random_split(len(dataset), seed=1))
    for other in (other_split, make_data(dataset, split, seed=1)):
        with pytest.raises(ValueError, match="Expected the data of the checkpoint"):
            train(make_module(), other, tmp_path, **options)
    module = make_module()
    module.label_names = LABELS[::-1]
    monkeypatch.setattr(data.dataset, "label_names", LABELS[::-1])
    with pytest.raises(ValueError, match="Expected the label names"):
        train(module, data, tmp_path, **options)


@pytest.mark.parametrize(
    "changed",
    [{"lr": 0.5}, {"weight_decay": 0.1}, {"betas": (0.8, 0.9)}, {"lr_schedule": "linear"}],
)
def test_resume_refuses_other_settings_of_the_optimiser(tmp_path, data, changed):
    train(make_module(), data, tmp_path, max_epochs=1)
    options = {"max_epochs": 2, "resume": True}
    [name] = changed
    with pytest.raises(
        ValueError, match=rf"optimiser's settings of .*'{name}': .* resume with the"
    ):
        train(make_module(**changed), data, tmp_path, **options)
    # Weights alone can be loaded with other settings.
    path = tmp_path / "last.ckpt"
    module = MultiLabelModule.load_from_checkpoint(path, model=GINE(), **changed)
    assert module.hparams[name] == changed[name]


def test_resume_refuses_another_loss(tmp_path, data):
    weighted, other = ({"loss_options": {"pos_weight": weight}} for weight in ([2.0] * 3, 3.0))
    weighted, other = ({"objective": BinaryObjective(**options)} for options in (weighted, other))
    options = {"max_epochs": 2, "resume": True}
    train(make_module(**weighted), data, tmp_path, max_epochs=1)
    message = r"got objective.loss_options={'pos_weight': 3.0} instead of {'pos_weight': \[2.0"
    with pytest.raises(ValueError, match=message):
        train(make_module(**other), data, tmp_path, **options)
    assert train(make_module(**weighted), data, tmp_path, **options).num_epochs == 2


def test_a_checkpoint_in_the_middle_of_an_epoch_has_no_thresholds(tmp_path, data):
    class Save(Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            trainer.save_checkpoint(tmp_path / "middle.ckpt")

    train(make_module(), data, tmp_path, max_epochs=2, callbacks=[Save()])
    assert read_checkpoint(tmp_path / "middle.ckpt").tuners == {}
    assert len(read_checkpoint(tmp_path / "last.ckpt").tuners) == 5
