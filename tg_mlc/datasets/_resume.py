"""Downloads that go on where they were interrupted."""

from __future__ import annotations

import glob
import logging
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from tg_mlc._files import sha256
from tg_mlc._optional import is_installed, require
from tg_mlc.datasets._download import STALL_SECONDS, ChecksumError, SourceError, in_background

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)
Content = TypeVar("Content")

TRIES = 3
CHUNK_BYTES = 2**14
SLOW_SECONDS = 60.0
SLOW_BYTES = 10_000  # below this in SLOW_SECONDS, another source is worth a try
_RANGE_REFUSED = 416


def fetch_resumable(url: str, part: Path) -> bytes:
    """Downloads a file with pooch into a part file, which stays if the connection breaks and is gone on with.

    Args:
        url (str): The file; a server that cannot continue a download starts again.
        part (Path): Where to keep what has come so far; removed once the download is complete.

    Raises:
        SourceError: If the server does not have it, or broke off again and again.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, TRIES + 1):
        before = _size(part)
        if before:
            logger.info("Going on with %s at byte %d", url, before)
        try:
            _Transfer(url, part).run()
        except SourceError as error:
            if _size(part) == before or attempt == TRIES:  # nothing came
                raise SourceError(f"{error}{_keep(part)}") from error
        else:
            break
    content = part.read_bytes()
    part.unlink()
    return content


def once_more_if_resumed(read: Callable[[], Content], url: str, part: Path) -> Content:
    """Reads a download, and reads it from its beginning if it is damaged where it was gone on with: the server may have
    another file there since.

    Raises:
        SourceError: If it cannot be had, or is damaged.
        ChecksumError: If it is another file.
    """
    resumed = part.exists()
    try:
        return read()
    except (SourceError, ChecksumError):
        if not resumed or part.exists():
            raise
    logger.info("What had come of %s before is of another file; starting again", url)
    return read()


def part_of(folder: Path, name: str, url: str) -> Path:
    """Where to keep what has come of a file from an address."""
    return folder / f"{name}.{sha256(url.encode())[:8]}.part"


def remove_parts(folder: Path, name: str) -> None:
    """Removes what has come of a file from any address, once it is there."""
    for part in folder.glob(f"{glob.escape(name)}.*.part"):
        part.unlink(missing_ok=True)


class _Transfer:
    """One request, whose answer is appended to a part file."""

    file: IO[bytes]

    def __init__(self, url: str, part: Path) -> None:
        self.url = url
        self.part = part
        self.start = _size(part)
        self.expected: int | None = None  #: the size of the whole file, if the server tells it
        self.complete = False  #: whether the part file was the whole already

    def run(self) -> None:
        try:
            # Ranges count the bytes of what is sent, so that it must not be compressed on the way.
            headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={self.start}-"} if self.start else {})}
            download = require("pooch", extra="data").HTTPDownloader(
                chunk_size=CHUNK_BYTES,
                progressbar=sys.stderr.isatty() and is_installed("tqdm"),
                timeout=STALL_SECONDS,
                headers=headers,
                hooks={"response": self._on_response},
            )
        except ImportError as error:
            raise SourceError(str(error)) from error
        try:
            with self.part.open("ab") as self.file:
                _while_it_grows(lambda: download(self.url, self.file, None), self.part)
        except (OSError, ValueError) as error:  # requests' own errors are of these kinds.
            if not self.complete:
                raise SourceError(f"{type(error).__name__}: {error}") from error
        if self.expected is not None and _size(self.part) != self.expected:
            raise SourceError(f"the connection ended after {_size(self.part)} of {self.expected} bytes")

    def _on_response(self, response: Any, *_: Any, **__: Any) -> None:
        """Drops what is there where the server does not go on with it."""
        content_range = response.headers.get("content-range", "")
        if response.status_code == _RANGE_REFUSED:
            self.complete = content_range == f"bytes */{self.start}"
            if not self.complete:
                self.file.truncate(0)
        elif response.ok and not response.is_redirect:
            if not content_range.startswith(f"bytes {self.start}-"):
                self.file.truncate(0)
                self.start = 0
            length = response.headers.get("content-length")
            self.expected = self.start + int(length) if length else None


def _while_it_grows(action: Callable[[], object], part: Path) -> None:
    """Runs an action as long as it adds to a file: HTTP timeouts restart with every byte."""
    thread, errors = in_background(action)
    while thread.is_alive():
        before = _size(part)
        thread.join(SLOW_SECONDS)
        if thread.is_alive() and _size(part) - before < SLOW_BYTES:
            # The caller closes the file, so that whatever the thread still gets is not written.
            raise TimeoutError(f"fewer than {SLOW_BYTES} bytes within {SLOW_SECONDS:g} seconds")
    if errors:
        raise errors[0]


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _keep(part: Path) -> str:
    if not _size(part):
        part.unlink(missing_ok=True)
        return ""
    return f"; run again to go on from byte {_size(part)}"
