"""Compares an epoch of LANET's training, with loading and its optimiser, with the layout of the released code.

    python -m benchmarks.speed.lanet --replace
    python -m benchmarks.speed.lanet --channels 16,128 --threads 1
    python -m benchmarks.speed.lanet --quick    # tiny sizes: do both agree?

Both have the same weights and the same targets of random histories, as large as the baskets of Complete Journey; ratios
are given only while their logits and the gradients of the label embedding agree. An epoch is a few batches, repeated;
seconds are given for as many targets as Complete Journey trains with. Beside it, a step of ours with 10,000 labels
along a sparse label graph, which the dense layout cannot hold.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset

from benchmarks.command_line import RETAINED_HEAP, heap_is_retained, retain_heap, run
from benchmarks.files import check_replacement, name_of, write_results
from benchmarks.report.speed import lanet_epochs
from benchmarks.speed.lanet_released_layout import PaddedWindows, ReleasedLANET
from benchmarks.speed.measure import Job, interleave, relative_rms
from benchmarks.speed.regimes import SEED
from tg_mlc.graphs import LabelGraph, fully_connected
from tg_mlc.sequences import LANET, NextSetDataset

OURS, RELEASED = "ours", "released layout"
BATCH_SIZE = 32
#: Targets of an epoch on Complete Journey, weeks of 302 categories.
EPOCH_TARGETS = 48_000
TOLERANCES = {"logits": 1e-4, "gradient of labels": 1e-3}
Row = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model and of its histories."""

    num_labels: int = 302
    channels: int = 128
    set_size: int = 14
    window_size: int = 3
    num_entities: int = 200
    num_events: int = 10  #: of each entity
    degree: int | None = None  #: neighbours of a label, all if None

    def dataset(self) -> NextSetDataset:
        """Random histories."""
        rng = np.random.default_rng(SEED)
        rows = self.num_entities * self.num_events
        y = sp.random_array((rows, self.num_labels), density=self.set_size / self.num_labels, rng=rng, format="csr")
        y.sort_indices()
        y.data[:] = 1.0
        return NextSetDataset(
            np.arange(self.num_entities + 1) * self.num_events,
            rng.integers(1, 30, rows).cumsum().astype(np.float64),
            y,
            rng.random(y.nnz).astype(np.float32),
            rng.integers(0, 11, y.nnz),
            np.arange(self.num_entities),
            np.ones(rows, dtype=bool),
            label_names=[str(label) for label in range(self.num_labels)],
            num_entities=self.num_entities,
            num_bins=11,
            gaps=list(range(30)),
            window_size=self.window_size,
        )

    def label_graph(self) -> LabelGraph:
        """The complete graph, or one of random neighbours and loops."""
        if self.degree is None:
            return fully_connected(self.num_labels)
        generator = torch.Generator().manual_seed(SEED)
        target = torch.arange(self.num_labels).repeat_interleave(self.degree)
        source = torch.randint(self.num_labels, target.shape, generator=generator)
        edge_index = torch.stack([source, target]).unique(dim=1)
        return LabelGraph(edge_index, num_nodes=self.num_labels).add_self_loops()


def main(
    channels: str = "16,128",
    num_labels: int = 302,
    many_labels: int = 10_000,
    batches: int = 3,
    repeats: int = 5,
    threads: int = 2,
    replace: bool = False,
    quick: bool = False,
    machine: str = "",
) -> int:
    """Compares both layouts, prints a table and returns 1 if they disagree.

    Args:
        channels: Sizes of a view, joined by commas.
        num_labels: Number of labels of both layouts.
        many_labels: Number of labels of ours alone, along about 10 neighbours each.
        batches: Batches of an epoch as measured.
        repeats: Rounds in which the layouts take turns.
        threads: Number of threads.
        replace: Whether to replace the tracked file in benchmarks/results/, instead of writing benchmarks/runs/.
        quick: Whether to take tiny sizes and one round.
        machine: What to call this machine in the names of its files, if they are to stand beside another's.
    """
    check_replacement(replace, quick=quick)
    torch.set_num_threads(threads)
    settings = {
        "batches": batches,
        "batch_size": BATCH_SIZE,
        "repeats": 1 if quick else repeats,
        "threads": threads,
        "quick": quick,
        "seed": SEED,
        "heap": RETAINED_HEAP if heap_is_retained() else "default",
    }
    few = [int(size) for size in channels.split(",")]
    rows = []
    for size in few:
        rows.append(compare(Sizes(12, 8, 4) if quick else Sizes(num_labels, size), settings))
        print(f"{num_labels} labels, views of {size}: {rows[-1]['state']} {rows[-1]['errors']}", flush=True)
    many = alone(Sizes(40, 8, 4, degree=3) if quick else Sizes(many_labels, few[0], degree=10), settings)
    content = {"settings": settings, "lanet": rows, "many_labels": many}
    print("\n".join(["", *lanet_epochs(content)]), flush=True)
    print(f"\nWrote {write_results(name_of('lanet_epoch', 'cpu', machine), content, replace=replace)}")
    return int(any(row["state"] == "disagrees" for row in rows))


def compare(sizes: Sizes, settings: Row) -> Row:
    """The time of an epoch in both layouts."""
    torch.manual_seed(SEED)
    dataset = sizes.dataset()
    ours = _lanet(sizes, dataset)
    models = {OURS: ours, RELEASED: ReleasedLANET(ours)}
    loaders = {OURS: _loader(dataset, settings), RELEASED: _loader(PaddedWindows(dataset, sizes.window_size), settings)}
    row: Row = {"sizes": asdict(sizes), "errors": _errors(models, loaders)}
    agrees = all(row["errors"][name] <= tolerance for name, tolerance in TOLERANCES.items())
    row["state"] = "agrees" if agrees else "disagrees"
    if agrees:
        jobs = {name: _epoch(model, loaders[name]) for name, model in models.items()}
        row |= _times(jobs, settings)
        row["ours_is_faster"] = row[RELEASED]["wall_ms"]["median"] / row[OURS]["wall_ms"]["median"]
        row["ours_is_faster_cpu"] = row[RELEASED]["cpu_ms"]["median"] / row[OURS]["cpu_ms"]["median"]
    return row


def alone(sizes: Sizes, settings: Row) -> Row:
    """The time of an epoch of ours along a sparse graph."""
    torch.manual_seed(SEED)
    dataset = sizes.dataset()
    job = _epoch(_lanet(sizes, dataset), _loader(dataset, settings))
    return {"sizes": asdict(sizes), "state": "alone", **_times({OURS: job}, settings)}


def _lanet(sizes: Sizes, dataset: NextSetDataset) -> LANET:
    window: Any = {"window_size": sizes.window_size, "num_bins": dataset.num_bins}
    return LANET(sizes.label_graph(), dataset.num_entities, sizes.channels, window=window)


def _loader(dataset: Any, settings: Row) -> DataLoader[Any]:
    part = Subset(dataset, range(9, 9 + settings["batches"] * BATCH_SIZE))
    collate: Any = _as_it_is if isinstance(dataset, NextSetDataset) else None
    return DataLoader(part, BATCH_SIZE, collate_fn=collate)


def _as_it_is(batch: Any) -> Any:
    return batch


def _errors(models: dict[str, nn.Module], loaders: dict[str, DataLoader[Any]]) -> dict[str, float]:
    """How far both are from each other without dropout."""
    found = {}
    for name, model in models.items():
        batch = next(iter(loaders[name]))
        logits = model.eval()(batch)
        table: Tensor = cast(Any, model).views.label.weight if name == OURS else cast(Any, model).label.weight
        (gradient,) = torch.autograd.grad(F.binary_cross_entropy_with_logits(logits, batch["y"]), [table])
        found[name] = {"logits": logits, "gradient of labels": gradient}
        model.train()
    return {key: relative_rms(found[OURS][key], found[RELEASED][key].double()) for key in TOLERANCES}


def _epoch(model: nn.Module, loader: DataLoader[Any]) -> Job:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def train() -> None:
        for batch in loader:
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(batch), batch["y"]).backward()
            optimizer.step()

    return train


def _times(jobs: dict[str, Job], settings: Row) -> Row:
    times: Row = {name: samples.summary() for name, samples in interleave(jobs, settings["repeats"]).items()}
    for found in times.values():
        targets = settings["batches"] * BATCH_SIZE
        found["seconds_per_epoch"] = 1e-3 * found["wall_ms"]["median"] * EPOCH_TARGETS / targets
    return times


if __name__ == "__main__":
    retain_heap()
    sys.exit(run(main))
