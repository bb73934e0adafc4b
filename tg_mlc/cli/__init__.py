"""The command line ``tg-mlc``, also available as ``python -m tg_mlc``."""

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
from tg_mlc._options import SPELLING
from tg_mlc.cli._output import option
from tg_mlc.cli._parser import parse
from tg_mlc.cli.audit import audit_
from tg_mlc.cli.compare import compare_
from tg_mlc.cli.complete import complete
from tg_mlc.cli.data import check, get, info, list_
from tg_mlc.cli.evaluate import evaluate
from tg_mlc.cli.explain import explain_
from tg_mlc.cli.export import export_
from tg_mlc.cli.predict import predict
from tg_mlc.cli.serve import serve
from tg_mlc.cli.suggest import suggest
from tg_mlc.cli.train import train
from tg_mlc.cli.tune import tune

_COMMANDS = {
    "train": train,
    "predict": predict,
    "evaluate": evaluate,
    "explain": explain_,
    "complete": complete,
    "suggest": suggest,
    "audit": audit_,
    "tune": tune,
    "compare": compare_,  # There also is a function tg_mlc.compare.
    "export": export_,
    "serve": serve,
    "data": {"check": check, "get": get, "info": info, "list": list_},
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``tg-mlc`` and returns its exit status: 0 for success, 1 for an error, 2 for a wrong
    command line, 130 if interrupted, 141 if the output is no longer read, and 143 if terminated.
    """
    warnings.showwarning = _show_warning
    spelling = SPELLING.set(option)
    _SHOWN.clear()
    description = tg_mlc.__doc__.splitlines()[0]
    if argv is None:  # The process runs only this command.
        keep_heap()
    try:
        with _terminable():
            words = sys.argv[1:] if argv is None else argv
            try:
                return parse(words, _COMMANDS, "tg-mlc", description, tg_mlc.__version__)()
            finally:
                # Without a flush, Python would notice a closed output only at its exit.
                sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes again at its exit; see the note on SIGPIPE in the documentation of signal.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    # This comes first: naming other errors imports PyTorch, which may be half imported.
    except KeyboardInterrupt:
        return _report_end("interrupted", 130)
    except _Terminated:
        return _report_end("terminated", 143)
    except SystemExit as stop:
        # Lightning exits after an interruption.
        if isinstance(stop.__context__, KeyboardInterrupt):
            return _report_end("interrupted", 130)
        raise
    except _expected() as error:
        print(f"tg-mlc: {error}", file=sys.stderr)  # noqa: T201
        return 1
    finally:
        SPELLING.reset(spelling)


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, *args: Any, **kwargs: Any
) -> None:
    """Prints each warning of this package once, as a line. Other warnings are printed as usual."""
    if category is UserWarning and f"{os.sep}tg_mlc{os.sep}" in filename:
        if str(message) not in _SHOWN:  # A part of a file may be read twice.
            print(f"tg-mlc: {message}", file=sys.stderr)  # noqa: T201
        _SHOWN.add(str(message))
    else:
        _DEFAULT_SHOW(message, category, filename, *args, **kwargs)


_DEFAULT_SHOW = warnings.showwarning
_SHOWN = set[str]()


def _expected() -> tuple[type[Exception], ...]:
    """Returns errors that users can correct. Other errors are bugs, and show a traceback."""
    from tg_mlc.data.samples import DamagedError
    from tg_mlc.datasets import ChecksumError, DatasetUnavailableError

    return ValueError, ImportError, OSError, ChecksumError, DatasetUnavailableError, DamagedError


def _report_end(how: str, status: int) -> int:
    print(f"tg-mlc: {how}; run it again", file=sys.stderr)  # noqa: T201
    return status


class _Terminated(SystemExit):
    """The exit after SIGTERM, where Lightning would exit with status 0."""


@contextmanager
def _terminable() -> Iterator[None]:
    """Lets SIGTERM end a command like an interruption, unless SIGTERM has another handler."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    process, signals = os.getpid(), list[int]()

    def terminate(number: int, _: Any) -> None:
        if os.getpid() != process:  # A worker inherits this handler.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif not signals:  # A second signal does not interrupt the clean-up after the first.
            signals.append(number)
            raise _Terminated(143)

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
