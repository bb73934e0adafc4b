from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest
import torch
from lightning.pytorch.strategies import ModelParallelStrategy

from tests.snippets import ROOT
from tests.training import processes
from tests.training.conftest import GINE
from tests.training.test_resume import assert_same, without_paths
from tg_mlc.training import BinaryObjective, fit
from tg_mlc.training.data import EpochSampler


def run(folder, *launcher, batch_size=16, **options):
    """Trains in the processes that a launcher starts, and returns their results."""
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("", 0))
        port = str(free.getsockname()[1])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MASTER_PORT": port}
    argv = [processes.__file__, str(folder), str(batch_size), json.dumps(options)]
    argv, settings = [sys.executable, *launcher, *argv], {"capture_output": True, "text": True}
    process = subprocess.run(argv, env=environment, check=False, timeout=600, **settings)
    assert process.returncode == 0, process.stdout + process.stderr
    return [torch.load(path, weights_only=False) for path in sorted(folder.glob("found-*.pt"))]


@pytest.mark.slow
@pytest.mark.parametrize("launcher", [(), ("-m", "torch.distributed.run", "--nproc_per_node", "2")])
def test_two_processes_train_as_one_with_the_same_steps(launcher, tmp_path):
    [alone] = run(tmp_path / "alone", devices=1)
    both = run(tmp_path / "both", *launcher, batch_size=8, devices=2, strategy="ddp")
    assert len(both) == 2
    assert_same(*both)
    for name, expected in alone.items():
        options = {"atol": 1e-6, "rtol": 1e-6, "equal_nan": True, "msg": name}
        torch.testing.assert_close(both[0][name], expected, **options)
    names = ("straight", "stopped")
    straight, stopped = (torch.load(tmp_path / "both" / name / "last.ckpt") for name in names)
    assert_same(without_paths(stopped), without_paths(straight))
    assert (tmp_path / "both" / "net" / "model" / "model.json").exists()


@pytest.mark.parametrize("num_samples", [1, 2, 7, 16, 17, 33])
@pytest.mark.parametrize("num_processes", [2, 3])
def test_batches_of_processes_together_equal_those_of_one_process(num_samples, num_processes):
    order = list(EpochSampler(num_samples, 0))
    ranks = []
    for rank in range(num_processes):
        sampler = EpochSampler(num_samples, 0, batch_size=4, process=(rank, num_processes))
        drawn = list(sampler)
        batches = [drawn[start : start + 4] for start in range(0, len(drawn), 4)]
        assert len(drawn) == len(sampler)
        ranks.append((batches, batches[: sampler.num_own_batches]))
    assert len({len(batches) for batches, _ in ranks}) == 1
    for step in range(len(ranks[0][0])):
        indices = [index for _, own in ranks for batch in own[step : step + 1] for index in batch]
        size = 4 * num_processes
        assert sorted(indices) == sorted(order[step * size : (step + 1) * size])


@pytest.mark.parametrize(
    ("options", "loss", "message"),
    [
        ({"strategy": "ddp_spawn"}, "bce", "strategy='ddp' .* processes that end"),
        ({"strategy": ModelParallelStrategy()}, "bce", "strategy='ddp' .* divides weights"),
        ({}, "soft_f1", "a mean over known labels"),
        ({"overfit_batches": 2}, "bce", "'overfit_batches'"),
        ({"use_distributed_sampler": True}, "bce", "'use_distributed_sampler'"),
    ],
)
def test_processes_that_would_not_train_as_one_are_refused(options, loss, message, tmp_path, data):
    options = {"strategy": "ddp", "accelerator": "cpu", "devices": 2, **options}
    with pytest.raises(ValueError, match=message):
        fit(GINE(), data, tmp_path / "run", objective=BinaryObjective(loss_name=loss), **options)
    assert not (tmp_path / "run").exists()
