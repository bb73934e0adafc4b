"""Command line of the benchmarks."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from jsonargparse import auto_cli

#: Environment variables that keep freed memory in the process and let idle threads sleep.
RETAINED_HEAP = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**46),
    "MALLOC_TOP_PAD_": str(2**30),
    "OMP_WAIT_POLICY": "passive",
}


def run(main: Callable[..., int | None]) -> int:
    """Runs the main function on the command line's options. ``--quick`` means ``--quick true``.

    Returns:
        The function's exit status, or 130 if it was interrupted.
    """
    options = inspect.signature(main, eval_str=True).parameters.items()
    switches = [name for name, option in options if option.annotation is bool]
    try:
        arguments = with_switches(sys.argv[1:], switches)
        status: int | None = auto_cli(main, as_positional=False, args=arguments)
    except KeyboardInterrupt:
        print("Interrupted", file=sys.stderr)
        return 130
    return status or 0


def with_switches(arguments: Sequence[str], switches: Sequence[str]) -> list[str]:
    """Adds the value true to switches that have none."""
    out: list[str] = []
    for index, argument in enumerate(arguments):
        out.append(argument)
        following = arguments[index + 1 : index + 2]
        bare = not following or following[0].startswith("--")
        if bare and argument.startswith("--") and argument[2:].replace("-", "_") in switches:
            out.append("true")
    return out


def retain_heap() -> None:
    """Restarts the program with a retained heap, unless the heap is retained already."""
    if heap_is_retained():
        return
    settings = " ".join(f"{name}={value}" for name, value in RETAINED_HEAP.items())
    print(
        f"Starting again with {settings}: by default glibc returns every large temporary to the "
        f"system, so that candidates with large ones, the literal path above all, would be timed "
        f"at page faults, and spinning OpenMP threads would count as CPU time.",
        flush=True,
    )
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **RETAINED_HEAP})


def heap_is_retained() -> bool:
    """Whether the program was started with a retained heap."""
    return all(os.environ.get(name) == value for name, value in RETAINED_HEAP.items())


def heaps() -> dict[str, Any]:
    """The heaps of measurements, as results store them."""
    heap: Any = RETAINED_HEAP if heap_is_retained() else "default"
    return {"heap": heap, "heap_of_memory_measurements": "default"}


def default_heap() -> dict[str, str]:
    """The environment for measurements of memory, which a retained heap would inflate."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}


def chosen(option: str, text: str, known: Sequence[str]) -> list[str]:
    """The entries of an option like ``R1,R2``, which must all be known."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or not set(names) <= set(known):
        expected = f"some of {', '.join(known)}, joined by commas"
        raise SystemExit(f"Expected '{option}' to be {expected} (got '{text}')")
    return names
