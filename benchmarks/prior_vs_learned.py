"""Comparison of label graphs: ``python -m benchmarks.accuracy.prior_vs_learned`` under a shorter name."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # instead of the folder of this file
    runpy.run_module("benchmarks.accuracy.prior_vs_learned", run_name="__main__", alter_sys=True)
