"""The command line ``tg-mlc``, also as ``python -m tg_mlc``."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tg_mlc
from tg_mlc._memory import keep_heap
from tg_mlc.cli._output import with_options
from tg_mlc.cli._parser import parse
from tg_mlc.cli.compare import compare_
from tg_mlc.cli.data import DamagedError, check, get, info, list_
from tg_mlc.cli.evaluate import evaluate
from tg_mlc.cli.explain import explain_
from tg_mlc.cli.export import export_
from tg_mlc.cli.predict import predict
from tg_mlc.cli.serve import serve
from tg_mlc.cli.train import train
from tg_mlc.cli.tune import tune

_COMMANDS = {
    "train": train,
    "predict": predict,
    "evaluate": evaluate,
    "explain": explain_,
    "tune": tune,
    "compare": compare_,  # jsonargparse would import what has its name at the top
    "export": export_,
    "serve": serve,
    "data": {"check": check, "get": get, "info": info, "list": list_},
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``tg-mlc`` and returns its exit status: 0; 1 if something went wrong; 2 if the command is not one; 130 if it
    was interrupted, 141 if its output is no longer read, and 143 if it was terminated.
    """
    warnings.showwarning = _show_warning
    _SHOWN.clear()
    if argv is None:  # the process is this command alone
        keep_heap()
    try:
        with _terminable():
            words = sys.argv[1:] if argv is None else argv
            try:
                return parse(
                    words, _COMMANDS, "tg-mlc", tg_mlc.__doc__.splitlines()[0], tg_mlc.__version__
                )()
            finally:
                # else Python notices only at its exit that the output is no longer read
                sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more when it exits, see the note on SIGPIPE in the documentation of its module signal.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (
        KeyboardInterrupt
    ):  # before others, whose names need PyTorch, which may be imported by half
        return _ended("interrupted", 130)
    except _Terminated:
        return _ended("terminated", 143)
    except SystemExit as stop:
        if isinstance(stop.__context__, KeyboardInterrupt):  # as Lightning makes of one
            return _ended("interrupted", 130)
        raise
    except _expected() as error:
        print(f"tg-mlc: {with_options(str(error))}", file=sys.stderr)  # noqa: T201
        return 1


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, *rest: Any, **others: Any
) -> None:
    """Prints a warning of ours as a line for people, once; those of others stay as they are."""
    if category is UserWarning and f"{os.sep}tg_mlc{os.sep}" in filename:
        if str(message) not in _SHOWN:  # as where a part of a file is read twice
            print(f"tg-mlc: {with_options(str(message))}", file=sys.stderr)  # noqa: T201
        _SHOWN.add(str(message))
    else:
        _USUAL(message, category, filename, *rest, **others)


_USUAL = warnings.showwarning
_SHOWN = set[str]()


def _expected() -> tuple[type[Exception], ...]:
    """Errors that a person can mend, as the message says; any other is a mistake of ours and shows its traceback."""
    from tg_mlc.datasets import ChecksumError, DatasetUnavailableError

    return ValueError, ImportError, OSError, ChecksumError, DatasetUnavailableError, DamagedError


def _ended(how: str, status: int) -> int:
    print(f"tg-mlc: {how}; run it again", file=sys.stderr)  # noqa: T201
    return status


class _Terminated(SystemExit):
    """The signal SIGTERM, which a system sends before it shuts down or ends a job; Lightning would exit with 0."""


@contextmanager
def _terminable() -> Iterator[None]:
    """Lets SIGTERM end a command as an interruption does, where nothing else has been told to."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    process = os.getpid()
    seen: list[int] = []

    def terminate(number: int, _: Any) -> None:
        if os.getpid() != process:  # a worker, which inherits this function
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif not seen:  # a second signal is not to disturb what the first one has begun
            seen.append(number)
            raise _Terminated(143)

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
