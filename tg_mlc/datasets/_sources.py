"""The raw files of published data sets: where they come from, and whether they are the right ones."""

from __future__ import annotations

import bz2
import gzip
import logging
import lzma
import os
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tg_mlc.datasets._download import (
    ChecksumError,
    NotConfiguredError,
    Source,
    SourceError,
    check,
    fetch_first,
    fetch_url,
    read_local,
)
from tg_mlc.datasets._files import set_aside

logger = logging.getLogger(__name__)

DATA_FOLDER_VARIABLE = "TG_MLC_DATA"
DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}
_DAMAGED = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)


class RawFile(NamedTuple):
    """One file in ``root/raw``, kept there without compression."""

    name: str  #: its name in ``root/raw``
    sha256: str  #: of its content without compression
    urls: tuple[str, ...] = ()  #: where to get it, in order; those that end in .gz, .bz2 or .xz are unpacked
    local: str = ""  #: its folder within the one that the environment variable names

    def sources(self) -> list[Source]:
        """Where the file may be, in the order in which to ask."""
        local = Source(f"the folder in {DATA_FOLDER_VARIABLE}", partial(_read_data_folder, self))
        return [local, *(Source(url, partial(_read_url, url)) for url in self.urls)]


def fetch_all(files: Sequence[RawFile], folder: Path) -> None:
    """Puts the files that are missing into a folder, each from the first source that has it.

    Raises:
        DatasetUnavailableError: If no source has one of them; files fetched before stay.
    """
    for file in files:
        target = folder / file.name
        if target.exists():
            continue
        where = "\n".join(file.urls) or "(no public address is known)"
        by_hand = (
            f"Place the file by hand as '{target.absolute()}' (SHA-256 {file.sha256}, unpacked), from one of:\n{where}"
        )
        fetch_first(file.sources(), target, [file.sha256], by_hand)


def read_checked(file: RawFile, folder: Path) -> bytes:
    """Reads a file of ``root/raw``.

    Raises:
        ChecksumError: If it is another file; it is set aside with the suffix ``.bad``.
    """
    path = folder / file.name
    content = path.read_bytes()
    try:
        check(content, [file.sha256])
    except ChecksumError as error:
        aside = set_aside(path)
        raise ChecksumError(
            f"'{path}' is not the file it should be. {error}. It was set aside as '{aside}'; "
            f"run again to get the right file, or place it by hand"
        ) from error
    return content


def unpack(content: bytes, name: str) -> bytes:
    """Unpacks the content of a file by its name's suffix; what has no such suffix is returned as it is."""
    decompress = DECOMPRESS.get(Path(name).suffix)
    if decompress is None:
        return content
    try:
        return decompress(content)
    except _DAMAGED as error:
        raise SourceError(f"'{name}' cannot be unpacked: {error}") from error


def _read_url(url: str) -> bytes:
    return unpack(fetch_url(url), url)


def _read_data_folder(file: RawFile) -> bytes:
    folder = os.environ.get(DATA_FOLDER_VARIABLE)
    if not folder:
        raise NotConfiguredError("the environment variable is not set")
    plain = Path(folder) / file.local / file.name
    for path in (plain, *(plain.with_name(plain.name + suffix) for suffix in DECOMPRESS)):
        if path.exists():
            return unpack(read_local(path), path.name)
    raise SourceError(f"no file '{plain}', nor with {', '.join(DECOMPRESS)}")
