"""Compares whole LaMP models: samples per second, CPU time and peak memory.

    python -m benchmarks.speed.models --replace
    python -m benchmarks.speed.models --labels 159 --graphs complete --channels 64,128 --threads 1
    python -m benchmarks.speed.models --quick    # tiny sizes: do all layouts agree?

Our layout is compared with the same model along explicit lists of edges, and with the padded and
dense layout of the released code, in training (without an optimiser) and inference. All have the
same weights, and ratios are reported only while their logits and gradients agree. The floor is the
time of the matrix products that the model itself needs, at the rate of a large product measured in
the same run, under the same setting of PyTorch; these products alone, at their own sizes, are timed
like a layout.
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
#: Limits for logits and gradients. Those of bf16 are as wide as the released layout needs.
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
        graphs: Label graphs, joined by commas: complete, or random of about degree 10 (prior).
        channels: Sizes of a state, joined by commas; results of others than 512 are called narrow.
        repeats: Rounds in which the layouts take turns.
        device: Where to compute.
        precision: fp32, or bf16 under autocast.
        matmul_precision: An exact setting of ``torch.set_float32_matmul_precision``.
        threads: Number of threads.
        checkpoint: Whether to add ours with activation checkpointing.
        replace: Whether to write the tracked file in benchmarks/results/ instead of a new one.
        quick: Whether to take tiny sizes, one round, and no measurements of memory.
        machine: A suffix of the file's name that keeps results of several machines apart.
        seconds: No size begins after this time; the remaining ones are listed.
    """
    end, skipped = time.monotonic() + seconds, []
    check_replacement(replace, quick=quick)
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(matmul_precision)
    # Convolutions of the released layout follow the same setting.
    torch.backends.cudnn.allow_tf32 = matmul_precision != "highest"
    dtype = torch.float32 if precision == "fp32" else torch.bfloat16
    limits = measure_limits(device, dtype, quick=quick)
    limits.flops_under(matmul_precision)  # Raises unless the setting is exact.
    settings = {"repeats": 1 if quick else repeats, "device": device, "precision": precision}
    settings |= {"matmul_precision": matmul_precision, "threads": threads}
    settings |= {"quick": quick, "seed": SEED, **heaps()}
    rows, size_pairs = [], list(product(map(int, labels.split(",")), map(int, channels.split(","))))
    for graph in cast(list[lamp.GraphName], chosen("graphs", graphs, ("complete", "prior"))):
        graph_sizes = [Sizes(count, graph, size) for count, size in size_pairs]
        for sizes in [Sizes.tiny(12, graph)] if quick else graph_sizes:
            if time.monotonic() > end:
                skipped.append(asdict(sizes))
                continue
            rows.append(compare(sizes, settings, limits, checkpoint=checkpoint))
            states = {name: row["state"] for name, row in rows[-1]["layouts"].items()}
            print(rows[-1]["sizes"], states, flush=True)
    suffixes = ["" if precision == "fp32" else precision]
    suffixes.append("" if matmul_precision == "highest" else matmul_precision)
    name = name_of("models", device, *suffixes, "" if channels == "512" else "narrow", machine)
    content = {"settings": settings, "limits": asdict(limits), "models": rows, "left_out": skipped}
    path = write_results(name, content, replace=replace)
    print("\n".join(["", *tables.models(read_file(path)), "", f"Wrote {path}"]))
    states = (layout["state"] for row in rows for layout in row["layouts"].values())
    return int("disagrees" in states)


def compare(sizes: Sizes, settings: Row, limits: Limits, *, checkpoint: bool) -> Row:
    """The errors, times and memory of every layout on one size."""
    flop = {INFERENCE: lamp.forward_flop(sizes), TRAINING: 3 * lamp.forward_flop(sizes)}
    rate = limits.flops_under(settings["matmul_precision"])
    row: Row = {
        "sizes": asdict(sizes),
        "num_label_edges": sizes.num_label_edges(),
        "flop": flop,
        "floor_ms": {mode: 1e3 * flop[mode] / rate for mode in MODES},
        "layouts": {},
    }
    names = [OURS, *([lamp.CHECKPOINTED] if checkpoint else []), LITERAL, RELEASED]
    if why := lamp.why_left_out(LITERAL, sizes, INFERENCE):
        names.remove(LITERAL)
        row["layouts"][LITERAL] = {"state": "left out", "why": why}
    layouts = lamp.layouts(sizes, names, settings["device"])
    row["layouts"].update(check(layouts, sizes, settings))
    row["layouts"][PRODUCTS] = {"state": "no model", "why": None}
    agreeing = [name for name in names if row["layouts"][name]["state"] == "agrees"]
    for mode in MODES:
        fitting = [name for name in agreeing if not lamp.why_left_out(name, sizes, mode)]
        _time(layouts, mode, fitting, settings, row)
    if LITERAL in agreeing:
        row["layouts"][LITERAL]["why"] = lamp.why_left_out(LITERAL, sizes, TRAINING)
    del layouts
    shared = {key: settings[key] for key in ("device", "precision", "matmul_precision", "threads")}
    target = "benchmarks.speed.layouts:memory_jobs"
    for name in [] if settings["quick"] else agreeing:
        peaks = peaks_of(target, name=name, sizes=asdict(sizes), **shared)
        row["layouts"][name]["peak_bytes"] = peaks
    return row


def check(layouts: lamp.Layouts, sizes: Sizes, settings: Row) -> dict[str, Row]:
    """Errors of logits and embedding gradients from the released layout in single precision."""
    for model in layouts.models.values():
        model.eval()  # Without dropout. Gradients do not need training mode.
    precision, device = settings["precision"], settings["device"]
    expected = _results(layouts, RELEASED, "fp32", device, gradients=True)
    logit_limit, gradient_limit = TOLERANCES[precision]
    rows: dict[str, Row] = {}
    for name in layouts.models:
        # The gradients of the literal path may need too much memory.
        gradients = not lamp.why_left_out(name, sizes, TRAINING)
        results = _results(layouts, name, precision, device, gradients=gradients)
        errors = {key: relative_rms(results[key], expected[key].double()) for key in results}
        limits = {key: logit_limit if key == LOGITS else gradient_limit for key in errors}
        agreed = all(value <= limits[key] for key, value in errors.items())
        errors = {key: value if value < float("inf") else None for key, value in errors.items()}
        rows[name] = {"state": "agrees" if agreed else "disagrees", "why": None, "errors": errors}
    return rows


def _results(
    layouts: lamp.Layouts, name: str, precision: str, device: str, *, gradients: bool
) -> dict[str, torch.Tensor]:
    with torch.set_grad_enabled(gradients), lamp.autocast(precision, device)():
        logits, loss = layouts.logits(name), layouts.loss(name)
    if not gradients:
        return {LOGITS: logits}
    words, labels = torch.autograd.grad(loss, layouts.embeddings(name))
    return {LOGITS: logits.detach(), "gradient of words": words, "gradient of labels": labels}


def _time(layouts: lamp.Layouts, mode: str, names: list[str], settings: Row, row: Row) -> None:
    for model in layouts.models.values():
        model.train(mode == TRAINING)
    cast = lamp.autocast(settings["precision"], settings["device"])
    jobs = {name: layouts.job(name, mode, cast) for name in names}
    dtype = torch.float32 if settings["precision"] == "fp32" else torch.bfloat16
    jobs[PRODUCTS] = lamp.products_job(Sizes(**row["sizes"]), mode, dtype, settings["device"])
    for name, samples in interleave(jobs, settings["repeats"], settings["device"]).items():
        times = row["layouts"][name][mode] = samples.summary()
        wall = times["wall_ms"]["median"]
        times["samples_per_second"] = 1e3 * row["sizes"]["num_samples"] / wall
        times["floor_share"] = row["floor_ms"][mode] / wall
    for name in jobs:
        times, ours = row["layouts"][name][mode], row["layouts"].get(OURS, {}).get(mode)
        if ours is not None:
            times["ours_is_faster"] = times["wall_ms"]["median"] / ours["wall_ms"]["median"]
            times["ours_is_faster_cpu"] = times["cpu_ms"]["median"] / ours["cpu_ms"]["median"]


if __name__ == "__main__":
    retain_heap()
    sys.exit(run(main))
