"""Raw files that their publisher offers as members of one tar archive."""

from __future__ import annotations

import gzip
import io
import tarfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tg_mlc._files import DAMAGED, read_bounded
from tg_mlc.datasets._download import Source, SourceError, fetch_first
from tg_mlc.datasets._resume import fetch_resumable, once_more_if_resumed, part_of, remove_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tg_mlc.datasets._sources import RawFile

MAX_BYTES = 2**27  # of an unpacked archive; four times the largest that is known here
NAME = "archive"  # of its part files


class Archive:
    """A ``.tar.gz`` behind an address, downloaded when first asked for and at most once.

    Args:
        url (str): Where it is.
        members (list of str): The names of the files of interest.
        folder (Path): Where to keep what has come of a download until it is complete.
    """

    def __init__(self, url: str, members: Collection[str], folder: Path) -> None:
        self.url = url
        self._members = frozenset(members)
        self._part = part_of(folder, NAME, url)
        self._found: dict[str, bytes] | SourceError | None = None

    def read(self, name: str) -> bytes:
        """The content of a member, whatever folder of the archive it is in.

        Raises:
            SourceError: If the archive cannot be had, is damaged or too large, or has no such file.
        """
        if self._found is None:
            self._found = self._open()
        if isinstance(self._found, SourceError):
            raise self._found
        if name not in self._found:
            raise SourceError(f"the archive has no file '{name}'")
        return self._found[name]

    def _open(self) -> dict[str, bytes] | SourceError:
        try:
            return once_more_if_resumed(
                lambda: unpack_members(fetch_resumable(self.url, self._part), self._members), self.url, self._part
            )
        except SourceError as error:
            return error


def unpack_members(content: bytes, names: Collection[str], max_bytes: int = MAX_BYTES) -> dict[str, bytes]:
    """Reads files of a ``.tar.gz`` by the last part of their path. Nothing is written, so that paths can do no harm.

    Raises:
        SourceError: If the archive is damaged, or larger than :obj:`max_bytes` when unpacked.
    """
    try:
        plain = read_bounded(gzip.GzipFile(fileobj=io.BytesIO(content)), "its content", max_bytes)
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            return {
                Path(member.name).name: _read(archive, member)
                for member in archive
                if Path(member.name).name in names and member.isreg()
            }
    except (*DAMAGED, ValueError, tarfile.TarError) as error:
        raise SourceError(f"the archive cannot be unpacked: {error}") from error


def fetch_members(files: Sequence[RawFile], folder: Path, urls: Sequence[str]) -> None:
    """Puts the files that are missing into a folder, each from its own sources or the first archive that has it.

    Raises:
        DatasetUnavailableError: If no source has one of them; files fetched before stay.
    """
    archives = [Archive(url, [file.name for file in files], folder) for url in urls]
    by_hand = f"Unpack the files by hand into '{folder.absolute()}', from one of:\n" + "\n".join(urls)
    for file in files:
        target = folder / file.name
        if not target.exists():
            packed = [Source(archive.url, partial(archive.read, file.name)) for archive in archives]
            fetch_first([*file.sources(folder), *packed], target, file.accepted, by_hand)
            remove_parts(folder, file.name)
    remove_parts(folder, NAME)


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    # A sparse member may claim any size.
    stream = None if member.issparse() else archive.extractfile(member)
    if stream is None:
        raise ValueError(f"'{member.name}' is no plain file")
    return stream.read()
