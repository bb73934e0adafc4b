"""Compares the project's reader of ARFF files with liac-arff, which is in no extra.

    pip install liac-arff
    python -m benchmarks.speed.arff_readers --file bibtex-train.arff

Both get the text of the file. Times are given only if both read the same numbers from it; what liac-arff's would need
to become a matrix is not timed. SciPy's reader supports no sparse rows: its error message is printed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io.arff import loadarff
from scipy.sparse import csr_array, issparse

from benchmarks.command_line import run
from benchmarks.files import describe_environment
from benchmarks.speed.measure import interleave
from tg_mlc._files import read_unpacked, sha256
from tg_mlc.inputs._arff_table import read_arff


def main(file: Path, repeats: int = 7) -> int:
    """Times both readers and returns 1 if their numbers differ.

    Args:
        file: The ARFF file, which may be compressed (.gz, .bz2, .xz).
        repeats: Rounds in which the readers take turns.
    """
    try:
        liac = import_module("arff")
    except ImportError:
        raise SystemExit("Expected liac-arff to be installed (got no 'arff'); run 'pip install liac-arff'") from None
    content = read_unpacked(file)
    text, ours = content.decode(), read_arff(content).matrix
    options = {"encode_nominal": True, "return_type": liac.COO if issparse(ours) else liac.DENSE}
    print(f"{file.name}, SHA-256 {sha256(content)}: {ours.shape[0]} rows of {ours.shape[1]} numbers")
    theirs = _matrix(liac.loads(text, **options)["data"], ours.shape)
    if not np.array_equal(ours.toarray() if issparse(ours) else ours, theirs, equal_nan=True):
        print("The readers disagree, so no times are given")
        return 1
    jobs = {"ours": lambda: read_arff(content), "liac-arff": lambda: liac.loads(text, **options)}
    times = {name: samples.summary()["wall_ms"] for name, samples in interleave(jobs, repeats).items()}
    for name, found in times.items():
        print(f"{name:<10}{found['median']:9.1f} ms (quartiles {found['q1']:.1f} and {found['q3']:.1f})")
    print(f"liac-arff takes {times['liac-arff']['median'] / times['ours']['median']:.1f} times as long as ours")
    try:
        loadarff(StringIO(text))
        print("SciPy: can read it")
    except (ValueError, NotImplementedError) as error:
        print(f"SciPy: cannot read it, {type(error).__name__}: {error}")
    machine = describe_environment()
    others = ", ".join(f"{name} {version(name)}" for name in ("liac-arff", "numpy", "scipy"))
    print(f"{machine['processor']}, Python {machine['python']}, tg_mlc {machine['versions']['tg_mlc']}, {others}")
    return 0


def _matrix(data: Any, shape: tuple[int, int]) -> np.ndarray:
    """The numbers that liac-arff read: lists of rows, or values with their places."""
    if not isinstance(data, tuple):
        return np.array(data, dtype=np.float32)
    values, rows, columns = data
    return csr_array((np.array(values, dtype=np.float32), (rows, columns)), shape=shape).toarray()


if __name__ == "__main__":
    sys.exit(run(main))
