"""Measures exported programs beside their models, for each kind of input.

    python -m benchmarks.speed.exporting --replace
    python -m benchmarks.speed.exporting --quick

A ratio is reported only if probabilities of the program and the model agree to 1e-4. Models have
random weights, which do not affect times.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.utils.smiles import e_map, x_map

from benchmarks.command_line import run
from benchmarks.files import check_replacement, write_results
from benchmarks.speed.measure import interleave
from tg_mlc.exporting.folder import TOLERANCE
from tg_mlc.exporting.program import Program, featurize, save_onnx, save_torch, trace
from tg_mlc.graphs import fully_connected
from tg_mlc.inference import Model
from tg_mlc.models import LaMP
from tg_mlc.nn.encoders import BagEncoder, DNAEncoder, MoleculeEncoder, VectorEncoder

SEED = 0
EAGER, PROGRAM, ONNX = "tg_mlc", "torch.export", "ONNX Runtime"


def main(
    kinds: str = "words,vectors,molecules,DNA",
    batch_sizes: str = "1,64",
    num_labels: int = 27,
    channels: int = 64,
    repeats: int = 7,
    threads: int = 1,
    replace: bool = False,
    quick: bool = False,
) -> int:
    """Prints milliseconds of a batch, and returns 1 if a program's probabilities are wrong.

    Args:
        kinds: Kinds of input, joined by commas.
        batch_sizes: Sizes of batches, joined by commas.
        num_labels: Number of labels, all of which attend to each other.
        channels: Size of a state.
        repeats: Rounds in which the forms take turns.
        threads: Number of threads.
        replace: Whether to write the tracked file in benchmarks/results/ instead of a new one.
        quick: Whether to take tiny sizes, one round, and no ONNX, whose export takes long.
    """
    check_replacement(replace, quick=quick)
    torch.set_num_threads(threads)
    sizes = {"num_labels": num_labels, "channels": channels}
    rows: list[dict[str, Any]] = []
    batches, rounds = [int(size) for size in batch_sizes.split(",")], 1 if quick else repeats
    for kind in kinds.split(","):
        kind_rows = measure(kind, batches, rounds, quick, **sizes)
        rows += kind_rows
        print(*kind_rows, sep="\n", flush=True)
    settings = {**sizes, "repeats": repeats, "threads": threads, "seed": SEED, "quick": quick}
    path = write_results("exporting-cpu", {"settings": settings, "exported": rows}, replace=replace)
    print(f"Wrote {path}")
    return int(any(form["apart"] > TOLERANCE for row in rows for form in row["forms"].values()))


def measure(
    kind: str, batch_sizes: list[int], repeats: int, quick: bool, *, num_labels: int, channels: int
) -> list[dict[str, Any]]:
    """Times of the model and of its programs, for batches of each size."""
    torch.manual_seed(SEED)
    channels = 8 if quick else channels
    encoders = {
        "words": lambda: BagEncoder(2000, channels, normalized=True),
        "vectors": lambda: VectorEncoder(100, channels, 8),
        "molecules": lambda: MoleculeEncoder(channels),
        "DNA": lambda: DNAEncoder(channels, both_strands=True, pool=4),
    }
    layers = 2 if kind == "molecules" else 0
    network = LaMP(encoders[kind](), fully_connected(num_labels), num_feature_layers=layers)
    model = Model.of(network, [f"label {index}" for index in range(num_labels)])
    tensors = featurize(model, samples(kind, 20))
    stages = Program(model, list(tensors)).eval()
    program = trace(stages, tensors)
    with tempfile.TemporaryDirectory() as folder:
        forms = {PROGRAM: save_torch(program, Path(folder) / "network.pt2")}
        if not quick:
            forms[ONNX] = save_onnx(program, Path(folder) / "network.onnx", stages.names)
        rows = []
        for size in batch_sizes:
            batch = featurize(model, samples(kind, size))
            values = [batch[name] for name in stages.names]
            # The model itself runs the same stages on an existing batch.
            jobs: dict[str, Any] = {EAGER: lambda: stages(*values)}  # noqa: B023
            jobs |= {name: partial(form, *values) for name, form in forms.items()}
            with torch.inference_mode():
                expected = jobs[EAGER]()
                errors = {name: float((job() - expected).abs().max()) for name, job in jobs.items()}
                times = interleave(jobs, repeats)
            by_form = {name: {"apart": errors[name], **times[name].summary()} for name in jobs}
            rows.append({"kind": kind, "batch_size": size, "forms": by_form})
    return rows


def samples(kind: str, number: int) -> list[Data]:
    """Random samples of common sizes: 60 words, 100 columns, 25 atoms, 200 letters on average."""
    generator = torch.Generator().manual_seed(SEED)

    def draw(high: int, *size: int) -> torch.Tensor:
        return torch.randint(high, size, generator=generator)

    out = []
    for row in range(number):
        if kind == "vectors":
            out.append(Data(x=torch.randn(1, 100, generator=generator)))
            continue
        length = {"words": 60, "molecules": 25, "DNA": 200}[kind] * (row % 5 + 8) // 10
        data = Data(x=draw(2000 if kind == "words" else 4, length), num_nodes=length)
        if kind == "words":
            data.weight = torch.rand(length, generator=generator)
        if kind == "molecules":
            ends = torch.stack([torch.arange(length - 1), torch.arange(1, length)])
            data.edge_index = torch.cat([ends, ends.flip(0)], dim=1)
            data.x = torch.stack([draw(len(values), length) for values in x_map.values()], dim=1)
            columns = [draw(len(values), 2 * (length - 1)) for values in e_map.values()]
            data.edge_attr = torch.stack(columns, dim=1)
        out.append(data)
    return out


if __name__ == "__main__":
    sys.exit(run(main))
