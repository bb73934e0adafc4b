"""Compares whole LaMP models: samples per second in training (without an optimiser) and inference, CPU time and peak
memory.

    python -m benchmarks.speed.models --replace
    python -m benchmarks.speed.models --labels 159 --graphs complete --channels 64,128 --threads 1
    python -m benchmarks.speed.models --quick    # tiny sizes: do all layouts agree?

Ours stands beside the same model along explicit lists of edges, and beside the padded and dense layout of the released
code. All have the same weights, and ratios are given only while their logits and gradients agree. The floor is the time
of the matrix products that the model itself needs, at the rate of a large product measured in the same run, under the
same setting of PyTorch; these products alone, at their own sizes, stand beside the layouts.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import asdict
from itertools import product
from typing import Any, Literal, cast

import torch

from benchmarks.command_line import chosen, heaps, retain_heap, run
from benchmarks.files import check_replacement, name_of, read_file, write_results
from benchmarks.report import speed as tables
from benchmarks.speed import layouts as lamp
from benchmarks.speed.layouts import (
    INFERENCE,
    LITERAL,
    MODES,
    OURS,
    PRODUCTS,
    RELEASED,
    TRAINING,
    Sizes,
)
from benchmarks.speed.measure import Limits, interleave, measure_limits, peaks_of, relative_rms
from benchmarks.speed.regimes import SEED

LOGITS = "logits"
#: Limits for logits and gradients; those of bf16 are as wide as the released layout needs.
TOLERANCES = {"fp32": (1e-4, 1e-3), "bf16": (2e-2, 1e-1)}
Row = dict[str, Any]


def main(
    labels: str = "27,103,159,983",
    graphs: str = "complete,prior",
    channels: str = "512",
    repeats: int = 7,
    device: Literal["cpu", "cuda"] = "cpu",
    precision: Literal["fp32", "bf16"] = "fp32",
    matmul_precision: Literal["highest", "high", "medium"] = "highest",
    threads: int = 2,
    checkpoint: bool = False,
    replace: bool = False,
    quick: bool = False,
    machine: str = "",
    seconds: float = math.inf,
) -> int:
    """Compares the layouts, prints a table for each size and returns 1 if two of them disagree.

    Args:
        labels: Numbers of labels, joined by commas.
        graphs: Label graphs, joined by commas: complete, or random with about 10 neighbours (prior).
        channels: Sizes of a state, joined by commas; other results than those of 512 alone are called narrow.
        repeats: Rounds in which the layouts take turns.
        device: Where to compute.
        precision: In fp32, or in bf16 where lamp.autocast takes it.
        matmul_precision: The setting of ``torch.set_float32_matmul_precision``; one that is still exact here.
        threads: Number of threads.
        checkpoint: Whether to add ours with activation checkpointing.
        replace: Whether to replace the tracked file in benchmarks/results/, instead of writing benchmarks/runs/.
        quick: Whether to take tiny sizes, one round, and no measurements of memory.
        machine: The name of this machine in the names of its files, if they are to stand beside another's.
        seconds: After this time no further size begins; those that are left out are listed.
    """
    end, left_out = time.monotonic() + seconds, []
    check_replacement(replace, quick=quick)
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(matmul_precision)
    # of the released layout's convolutions
    torch.backends.cudnn.allow_tf32 = matmul_precision != "highest"
    limits = measure_limits(
        device, torch.float32 if precision == "fp32" else torch.bfloat16, quick=quick
    )
    limits.flops_under(matmul_precision)  # is exact, or an error
    settings = {"repeats": 1 if quick else repeats, "device": device, "precision": precision}
    settings |= {
        "matmul_precision": matmul_precision,
        "threads": threads,
        "quick": quick,
        "seed": SEED,
        **heaps(),
    }
    rows, sizes_of = [], list(product(map(int, labels.split(",")), map(int, channels.split(","))))
    for graph in cast(list[lamp.GraphName], chosen("graphs", graphs, ("complete", "prior"))):
        of_graph = [Sizes(count, graph, size) for count, size in sizes_of]
        for sizes in [Sizes.tiny(12, graph)] if quick else of_graph:
            if time.monotonic() > end:
                left_out.append(asdict(sizes))
                continue
            rows.append(compare(sizes, settings, limits, checkpoint=checkpoint))
            print(
                rows[-1]["sizes"],
                {name: found["state"] for name, found in rows[-1]["layouts"].items()},
                flush=True,
            )
    special = (
        precision if precision != "fp32" else "",
        matmul_precision if matmul_precision != "highest" else "",
    )
    name = name_of("models", device, *special, "" if channels == "512" else "narrow", machine)
    content = {"settings": settings, "limits": asdict(limits), "models": rows, "left_out": left_out}
    path = write_results(name, content, replace=replace)
    print("\n".join(["", *tables.models(read_file(path)), "", f"Wrote {path}"]))
    return int(
        any(found["state"] == "disagrees" for row in rows for found in row["layouts"].values())
    )


def compare(sizes: Sizes, settings: Row, limits: Limits, *, checkpoint: bool) -> Row:
    """The errors, times and memory of every layout on one size."""
    flop = {INFERENCE: lamp.forward_flop(sizes), TRAINING: 3 * lamp.forward_flop(sizes)}
    row: Row = {
        "sizes": asdict(sizes),
        "num_label_edges": sizes.num_label_edges(),
        "flop": flop,
        "floor_ms": {
            mode: 1e3 * flop[mode] / limits.flops_under(settings["matmul_precision"])
            for mode in MODES
        },
        "layouts": {},
    }
    names = [OURS, *([lamp.CHECKPOINTED] if checkpoint else []), LITERAL, RELEASED]
    if why := lamp.why_left_out(LITERAL, sizes, INFERENCE):
        names.remove(LITERAL)
        row["layouts"][LITERAL] = {"state": "left out", "why": why}
    compared = lamp.layouts(sizes, names, settings["device"])
    row["layouts"].update(check(compared, sizes, settings))
    row["layouts"][PRODUCTS] = {"state": "no model", "why": None}
    agreeing = [name for name in names if row["layouts"][name]["state"] == "agrees"]
    for mode in MODES:
        _time(
            compared,
            mode,
            [name for name in agreeing if not lamp.why_left_out(name, sizes, mode)],
            settings,
            row,
        )
    if LITERAL in agreeing:
        row["layouts"][LITERAL]["why"] = lamp.why_left_out(LITERAL, sizes, TRAINING)
    del compared
    shared = {key: settings[key] for key in ("device", "precision", "matmul_precision", "threads")}
    for name in [] if settings["quick"] else agreeing:
        peaks = peaks_of(
            "benchmarks.speed.layouts:memory_jobs", name=name, sizes=asdict(sizes), **shared
        )
        row["layouts"][name]["peak_bytes"] = peaks
    return row


def check(compared: lamp.Layouts, sizes: Sizes, settings: Row) -> dict[str, Row]:
    """How far logits and the gradients of both embeddings are from those of the released layout in single precision."""
    for model in compared.models.values():
        model.eval()  # without dropout, and with gradients all the same
    expected = _results(compared, RELEASED, "fp32", settings["device"], gradients=True)
    rows: dict[str, Row] = {}
    for name in compared.models:
        # Its backward pass is what the literal path needs its memory for.
        gradients = not lamp.why_left_out(name, sizes, TRAINING)
        found = _results(
            compared, name, settings["precision"], settings["device"], gradients=gradients
        )
        error = {what: relative_rms(found[what], expected[what].double()) for what in found}
        of_logits, of_gradients = TOLERANCES[settings["precision"]]
        agreed = all(
            value <= (of_logits if what == LOGITS else of_gradients)
            for what, value in error.items()
        )
        error = {what: value if value < float("inf") else None for what, value in error.items()}
        rows[name] = {"state": "agrees" if agreed else "disagrees", "why": None, "errors": error}
    return rows


def _results(
    compared: lamp.Layouts, name: str, precision: str, device: str, *, gradients: bool
) -> dict[str, torch.Tensor]:
    with torch.set_grad_enabled(gradients), lamp.autocast(precision, device)():
        logits, loss = compared.logits(name), compared.loss(name)
    if not gradients:
        return {LOGITS: logits}
    words, labels = torch.autograd.grad(loss, compared.embeddings(name))
    return {LOGITS: logits.detach(), "gradient of words": words, "gradient of labels": labels}


def _time(compared: lamp.Layouts, mode: str, names: list[str], settings: Row, row: Row) -> None:
    for model in compared.models.values():
        model.train(mode == TRAINING)
    cast = lamp.autocast(settings["precision"], settings["device"])
    jobs = {name: compared.job(name, mode, cast) for name in names}
    dtype = torch.float32 if settings["precision"] == "fp32" else torch.bfloat16
    jobs[PRODUCTS] = lamp.products_job(Sizes(**row["sizes"]), mode, dtype, settings["device"])
    for name, samples in interleave(jobs, settings["repeats"], settings["device"]).items():
        found = row["layouts"][name][mode] = samples.summary()
        wall = found["wall_ms"]["median"]
        found["samples_per_second"] = 1e3 * row["sizes"]["num_samples"] / wall
        found["floor_share"] = row["floor_ms"][mode] / wall
    for name in jobs:
        found, ours = row["layouts"][name][mode], row["layouts"].get(OURS, {}).get(mode)
        if ours is not None:
            found["ours_is_faster"] = found["wall_ms"]["median"] / ours["wall_ms"]["median"]
            found["ours_is_faster_cpu"] = found["cpu_ms"]["median"] / ours["cpu_ms"]["median"]


if __name__ == "__main__":
    retain_heap()
    sys.exit(run(main))
