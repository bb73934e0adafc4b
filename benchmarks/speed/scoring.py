"""Measures scoring of large files: ``tg-mlc predict`` by row count, Ray Data with two workers.

    python -m benchmarks.speed.scoring --replace
    python -m benchmarks.speed.scoring --engine ray --model model --replace  # needs ray[data]
    python -m benchmarks.speed.scoring --quick

The table is scored by a fast model, because the costs outside of the model are measured.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
import threading
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command_line import run
from benchmarks.files import check_replacement, write_results
from benchmarks.speed.measure import memory_of
from tg_mlc import cli
from tg_mlc.datasets.registry import load

SEED = 0
BAD_EVERY = 1000  #: One in this number of rows cannot be read.


def main(
    engine: str = "predict",
    rows: str = "10000,100000,1000000",
    model: str = "model",
    root: str = "data",
    replace: bool = False,
    quick: bool = False,
) -> int:
    """Prints seconds and the peak of resident memory, and returns 1 if rows are lost.

    Args:
        engine: "predict" scores a table of numbers on the command line, "ray" scores molecules.
        rows: Numbers of rows, joined by commas. Ray takes the second one alone.
        model: The folder of a model of molecules, for Ray.
        root: The folder of data sets, to which SIDER is downloaded for Ray.
        replace: Whether to write the tracked file in benchmarks/results/ instead of a new one.
        quick: Whether to take few rows.
    """
    check_replacement(replace, quick=quick)
    row_counts = [300, 600] if quick else [int(number) for number in rows.split(",")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if engine == "predict":
            scored = [predicted(folder, number) for number in row_counts]
        else:
            scored = [with_ray(folder, row_counts[1], model, root)]
    print(*scored, sep="\n")
    content = {"settings": {"seed": SEED}, "scored": scored}
    print(f"Wrote {write_results(f'scoring-{engine}', content, replace=replace)}")
    lost = any(row["rows"] != row["written"] for row in scored)
    return int(lost or any(row["refused"] != row["rows"] // BAD_EVERY for row in scored))


def predicted(folder: Path, number: int) -> dict[str, Any]:
    """Scores a table with four columns of numbers on the command line."""
    model, path, out = folder / "model", folder / "rows.csv", folder / "out.csv"
    rng = np.random.default_rng(SEED)
    if not model.exists():
        x = rng.normal(size=(200, 4)).round(3)
        lines = np.column_stack([x, x[:, :1] > 0, x[:, 1:2] * x[:, 2:3] > 0])
        np.savetxt(folder / "train.csv", lines, "%g", ",", header="a,b,c,d,calm,sad", comments="")
        options = ["--csv", str(folder / "train.csv"), "--labels", "calm,sad"]
        options += ["--seconds", "0", "--out", str(model)]
        assert cli.main(["train", *options]) == 0
    with path.open("w") as file:
        file.write("a,b,c,d\n")
        for row in range(1, number + 1):
            first_cell = "high" if row % BAD_EVERY == 0 else f"{rng.normal():.3f}"
            file.write(f"{first_cell},{','.join(f'{cell:.3f}' for cell in rng.normal(size=3))}\n")
    start = time.monotonic()
    command = [sys.executable, "-m", "tg_mlc", "predict", str(model)]
    command += ["--csv", str(path), "--out", str(out)]
    process, peak = subprocess.Popen(command, stderr=subprocess.DEVNULL), 0
    # The peak that the system reports for an ended child may be that of this process, the parent.
    while process.poll() is None:
        peak = max(peak, memory_of(process.pid, "VmHWM"))
        time.sleep(0.1)
    seconds = time.monotonic() - start
    with out.open(newline="") as file:
        reasons = [row["reason"] for row in csv.DictReader(file)]
    row = _row("tg-mlc predict, 4 numbers", number, reasons, seconds)
    return {**row, "peak_bytes": {"process": peak}}


def _row(what: str, number: int, reasons: list[str], seconds: float) -> dict[str, Any]:
    """A row of results. Reasons are empty for rows that could be read."""
    refused, written = sum(map(bool, reasons)), len(reasons)
    counts = {"what": what, "rows": number, "written": written, "refused": refused}
    return {**counts, "seconds": seconds}


def with_ray(folder: Path, number: int, model: str, root: str) -> dict[str, Any]:
    """Runs the example with Ray Data on the molecules of SIDER, which are repeated as needed."""
    from examples import score_with_ray

    smiles = [str(text) for text in load("sider", root).smiles]
    with (folder / "drugs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["place", "smiles"])
        for index, text in enumerate(islice(cycle(smiles), number), start=1):
            writer.writerow([index, "no molecule" if index % BAD_EVERY == 0 else text])
    peaks: dict[str, int] = {}
    watch = threading.Thread(target=_watch, args=(peaks, stop := threading.Event()))
    watch.start()
    start = time.monotonic()
    try:
        score_with_ray.main(model, str(folder / "drugs.csv"), str(folder / "scores"))
    finally:
        stop.set()
        watch.join()
    seconds = time.monotonic() - start
    import pyarrow.parquet

    scored = pyarrow.parquet.read_table(folder / "scores", columns=["place", "error"]).to_pydict()
    assert scored["place"] == sorted(scored["place"])
    row = _row("Ray Data, 2 workers, molecules", number, scored["error"], seconds)
    return {**row, "peak_bytes": peaks}


def _watch(peaks: dict[str, int], stop: threading.Event) -> None:
    """Records the peak memory of each kind of process: workers, and Ray's other processes."""
    while not stop.wait(0.5):
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                title = path.read_text().partition("\0")[0]
            except OSError:  # The process has ended.
                continue
            if title.startswith("ray::"):
                kind = "worker" if "Scores" in title else "other process"
                peaks[kind] = max(peaks.get(kind, 0), memory_of(path.parent.name, "VmHWM"))


if __name__ == "__main__":
    sys.exit(run(main))
