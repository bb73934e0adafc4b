from __future__ import annotations

import pytest
import torch
from torch.utils.data import Subset
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from tg_mlc.data import Split, random_split
from tg_mlc.training import MultiLabelDataModule
from tg_mlc.training.data import EpochSampler


def test_the_order_of_samples_depends_on_seed_and_epoch_alone():
    def order(seed, epoch):
        sampler = EpochSampler(20, seed)
        sampler.set_epoch(epoch)
        torch.rand(3)
        return list(sampler), sampler.generator.initial_seed()

    assert order(0, 1) == order(0, 1)
    assert sorted(order(3, 2)[0]) == list(range(20))
    # With a sum of seed and epoch, two of these orders would be equal.
    assert len({str(order(seed, epoch)) for seed in range(3) for epoch in range(3)}) == 9


def test_loaders_hold_their_parts_and_leave_the_global_generator_alone(dataset, split, data):
    state = torch.get_rng_state()
    loaders = [data.train_dataloader(), data.val_dataloader(), data.test_dataloader()]
    for loader, part in zip(loaders, split.parts, strict=True):
        loaded = torch.cat([batch.x for batch in loader]).sum(dim=1)
        expected = torch.cat([dataset[int(index)].x for index in part]).sum(dim=1)
        assert torch.equal(loaded.sort().values, expected.sort().values)
    y = torch.cat([batch.y for batch in loaders[2]])
    assert torch.equal(y.nan_to_num(-1), dataset.y[split.test].nan_to_num(-1))
    assert torch.equal(torch.get_rng_state(), state)


def test_workers_load_the_same_batches(dataset, split, data):
    with_workers = MultiLabelDataModule(dataset, split, batch_size=8, num_workers=1)
    for alone, worker in zip(data.train_dataloader(), with_workers.train_dataloader(), strict=True):
        assert torch.equal(alone.x, worker.x)


def test_a_split_must_fit_the_data_set(dataset, split):
    too_many = Split(split.train, split.val, torch.tensor([len(dataset)]), "wrong")
    no_validation = Split(split.train, torch.tensor([]), split.test, "wrong")
    for invalid, message in (
        (too_many, r"'dataset' to hold all samples .* \(got 60 samples, and sample 60 in"),
        (no_validation, "samples to train and to validate"),
        (None, r"'split' to be a Split \(got NoneType\)"),
    ):
        with pytest.raises(ValueError, match=message):
            MultiLabelDataModule(dataset, invalid)
    with pytest.warns(UserWarning, match="leaves out 30 of 60 samples"):
        MultiLabelDataModule(dataset, random_split(30))
    with pytest.raises(ValueError, match="'seed' to be at least 0"):
        MultiLabelDataModule(dataset, split, seed=-1).train_dataloader()
    for batch_size in (0, -8, 2.5, "8"):
        with pytest.raises(ValueError, match=r"'batch_size' to be a whole number .* \(got "):
            MultiLabelDataModule(dataset, split, batch_size)


@pytest.mark.parametrize("wrap", [list, tuple, lambda samples: Subset(samples, range(12))])
def test_lists_of_samples_are_taken_and_stay_lists(wrap):
    samples = [Data(x=torch.tensor([[i / 10]]), y=torch.tensor([[i % 2.0]])) for i in range(12)]
    data = MultiLabelDataModule(wrap(samples), random_split(12), batch_size=4)
    loaders = (data.train_dataloader(), data.val_dataloader(), data.test_dataloader())
    x = torch.cat([batch.x for loader in loaders for batch in loader])
    assert sorted(x.flatten().tolist()) == pytest.approx([i / 10 for i in range(12)])
    assert [len(batch.ptr) for batch in DataLoader(samples, batch_size=6)] == [7, 7]


@pytest.mark.parametrize(
    ("dataset", "got"),
    [([1], "list of int"), ([], "an empty list"), (torch.zeros(2), "Tensor"), (None, "NoneType")],
)
def test_invalid_data_are_refused_by_the_data_module(dataset, got):
    with pytest.raises(ValueError, match=rf"'dataset' to be a data set of PyG, .*\(got {got}\)"):
        MultiLabelDataModule(dataset, random_split(12))
