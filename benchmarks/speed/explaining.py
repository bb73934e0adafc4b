"""Times the report of some drugs of SIDER: explanations of all labels, faithfulness, the page.

    tg-mlc train --csv train.csv --out model
    python -m benchmarks.speed.explaining --model model --replace

The drugs are drawn at random from the whole data set, including the model's training molecules.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import torch

import tg_mlc
from benchmarks.command_line import run
from benchmarks.files import check_replacement, write_results
from tg_mlc.datasets.registry import load

NAME, SEED = "explaining-cpu", 0


def main(
    model: Path,
    root: Path = Path("data"),
    drugs: int = 20,
    threads: int = 2,
    replace: bool = False,
    quick: bool = False,
) -> None:
    """Prints seconds, and writes benchmarks/runs/.

    Args:
        model: The folder of a model of molecules.
        root: The folder of data sets, to which SIDER is downloaded.
        drugs: Number of drugs.
        threads: Number of threads of PyTorch.
        replace: Whether to replace the tracked file in benchmarks/results/ instead.
        quick: Whether to take two drugs.
    """
    check_replacement(replace, quick=quick)
    torch.set_num_threads(threads)
    smiles = [str(text) for text in load("sider", root).smiles]
    rows = np.random.default_rng(SEED).permutation(len(smiles))[: 2 if quick else drugs]
    loaded = tg_mlc.load(model)
    start, cpu_start = time.perf_counter(), time.process_time()
    explanation = tg_mlc.explain(loaded, [smiles[row] for row in rows])
    explain_seconds = time.perf_counter() - start
    page = explanation.to_html()
    measurement = {
        "drugs": len(explanation),
        "atoms": sum(int((sample.atoms >= 0).sum()) for sample in explanation),
        "labels": len(explanation.labels),
        "methods": explanation.methods,
        "curves": explanation.faithfulness[explanation.method].number,
        "seconds": time.perf_counter() - start,
        "seconds_of_explain": explain_seconds,
        "processor_seconds": time.process_time() - cpu_start,
        "bytes": len(page.encode()),
    }
    print(measurement)
    content = {"settings": {"seed": SEED, "model": repr(loaded)}, "explained": measurement}
    print(f"Wrote {write_results(NAME, content, replace=replace)}")


if __name__ == "__main__":
    sys.exit(run(main))
