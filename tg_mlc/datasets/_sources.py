"""The raw files of published data sets: where they come from, and whether they are the right ones."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tg_mlc._files import SUFFIXES, sha256
from tg_mlc.datasets._download import (
    MAX_UNPACKED,
    ChecksumError,
    NotConfiguredError,
    Source,
    SourceError,
    check,
    fetch_first,
    read_local,
    unpack,
)
from tg_mlc.datasets._resume import fetch_resumable, once_more_if_resumed, part_of, remove_parts

logger = logging.getLogger(__name__)

DATA_FOLDER_VARIABLE = "TG_MLC_DATA"


class RawFile(NamedTuple):
    """One file in ``root/raw``, kept there without compression."""

    name: str  #: its name in ``root/raw``
    sha256: str | None  #: of its content without compression; None: not known, which is warned of
    urls: tuple[str, ...] = ()  #: where to get it, in order; those that end in .gz, .bz2 or .xz are unpacked
    local: str = ""  #: its folder within the one that the environment variable names
    hint: str = ""  #: where a person can get it, if that is no address to download it from
    max_bytes: int = MAX_UNPACKED  #: the most bytes to unpack
    also: tuple[str, ...] = ()  #: SHA-256 of other forms of it that will do

    @property
    def accepted(self) -> list[str]:
        """The SHA-256 to accept; none if any content will do."""
        return [] if self.sha256 is None else [self.sha256, *self.also]

    def sources(self, folder: Path) -> list[Source]:
        """Where the file may be, in the order in which to ask; what has come of a download is kept in a folder."""
        local = Source(f"the folder in {DATA_FOLDER_VARIABLE}", partial(_read_data_folder, self))
        return [local, *(Source(url, partial(_read_url, self, url, folder)) for url in self.urls)]


def fetch_all(files: Sequence[RawFile], folder: Path) -> None:
    """Puts the files that are missing into a folder, each from the first source that has it.

    Raises:
        DatasetUnavailableError: If no source has one of them; files fetched before stay.
    """
    for file in files:
        target = folder / file.name
        if target.exists():
            continue
        where = "\n".join([*file.urls, *([file.hint] if file.hint else [])]) or "(no public address is known)"
        which = f"SHA-256 {file.sha256}, unpacked" if file.sha256 else "unpacked"
        by_hand = f"Place the file by hand as '{target.absolute()}' ({which}), from one of:\n{where}"
        fetch_first(file.sources(folder), target, file.accepted, by_hand)
        remove_parts(folder, file.name)


def read_checked(file: RawFile, folder: Path) -> bytes:
    """Reads a file of ``root/raw``.

    Raises:
        ChecksumError: If it is another file; it is set aside with the suffix ``.bad``.
    """
    path = folder / file.name
    content = path.read_bytes()
    try:
        check(content, file.accepted)
    except ChecksumError as error:
        aside = set_aside(path)
        raise ChecksumError(
            f"'{path}' is not the file it should be. {error}. It was set aside as '{aside}'; "
            f"run again to get the right file, or place it by hand"
        ) from error
    if file.sha256 is None:
        logger.warning("The SHA-256 of '%s' is not known here, so it is not checked; it is %s", path, sha256(content))
    return content


def set_aside(path: Path) -> Path:
    """Renames a bad file to the first free one of ``<name>.bad``, ``<name>.bad1``, ... and returns that path."""
    number = 0
    aside = path.with_name(f"{path.name}.bad")
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.bad{number}")
    return path.rename(aside)


def _read_url(file: RawFile, url: str, folder: Path) -> bytes:
    part = part_of(folder, file.name, url)

    def read() -> bytes:
        content = unpack(fetch_resumable(url, part), url, file.max_bytes)
        check(content, file.accepted)
        return content

    return once_more_if_resumed(read, url, part)


def _read_data_folder(file: RawFile) -> bytes:
    folder = os.environ.get(DATA_FOLDER_VARIABLE)
    if not folder:
        raise NotConfiguredError("the environment variable is not set")
    plain = Path(folder) / file.local / file.name
    for path in (plain, *(plain.with_name(plain.name + suffix) for suffix in SUFFIXES)):
        if path.exists():
            return unpack(read_local(path), path.name, file.max_bytes)
    raise SourceError(f"no file '{plain}', nor with {', '.join(SUFFIXES)}")
