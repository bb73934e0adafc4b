"""Runs code in a new process that has imported PyTorch and PyG, but nothing of this package."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch", "torch_geometric"])


def run_python(code: str, words: Iterable[str] = (), folder: Path | None = None) -> tuple[str, str]:
    """Runs code that must end without an error, and returns its standard output and error.

    Environment variables that a test sets after the first call of the test run have no effect.
    """
    with tempfile.TemporaryDirectory() as files:
        printed = [Path(files) / name for name in ("stdout", "stderr")]
        process = CONTEXT.Process(target=_execute, args=(code, [*words], folder, printed))
        process.start()
        process.join(300)
        process.kill()
        process.join()
        out, err = (path.read_text() if path.exists() else "" for path in printed)
    assert process.exitcode == 0, err
    return out, err


def run_alone(code: str, words: Iterable[str] = (), folder: Path | None = None) -> str:
    """Runs code in a new interpreter, without PyTorch and PyG in memory, and returns its output."""
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, cwd=folder, timeout=300
    ).stdout


def _execute(code: str, words: list[str], folder: Path | None, printed: list[Path]) -> None:
    for number, path in enumerate(printed, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    if folder:
        os.chdir(folder)
    sys.argv = ["-c", *words]
    exec(code, {"__name__": "__main__"})
