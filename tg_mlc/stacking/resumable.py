"""Parts of a long computation in a folder, of which another run makes only those that are missing."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from tg_mlc.inputs.preprocessor import as_tensors
from tg_mlc.saving.folder import CONTENT, read_folder, write_folder

PartT = TypeVar("PartT")

#: Of what parts are made of, which changes where the same data and options no longer make the same.
VERSION = 7


class ResumableParts:
    """The parts of one computation with the same data and options.

    Args:
        folder (Path, optional): Where to keep them. (default: :obj:`None`, nowhere)
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._earlier = 0.0  # seconds that the parts took that were read

    def clock(self) -> float:
        """Returns seconds as if parts that were read had been made just now: interruptions change no budget of time."""
        return time.monotonic() + self._earlier

    def part(
        self,
        name: str,
        make: Callable[[], PartT],
        pack: Callable[[PartT], Any] = lambda part: part,
        unpack: Callable[[Any], PartT] = lambda state: state,
    ) -> PartT:
        """Returns a part, made only if it is not there.

        Args:
            name (str): The name of its folder.
            make (Callable): Makes it.
            pack, unpack (Callable, optional): Make arrays and plain data of it, and it of tensors and plain data.
        """
        if self.folder is None:
            return make()
        path = self.folder / name
        if (path / CONTENT).exists():
            try:
                kept = read_folder(path)
            except (FileNotFoundError, ValueError) as error:
                warnings.warn(f"'{name}' is made again, as what was kept of it is damaged: {error}", stacklevel=2)
            else:
                self._earlier += kept["seconds"]
                return unpack(kept["part"])
        start = time.monotonic()
        part = make()
        write_folder(path, {"seconds": time.monotonic() - start, "part": as_tensors(pack(part))})
        return part


def key_of(options: Any, samples: Sequence[Any]) -> str:
    """The key of what is made of these samples with these options.

    Args:
        options (Any): Plain data, of which :func:`repr` tells everything.
        samples (Sequence): Arrays, sparse matrices and tensors.
    """
    digest = hashlib.sha256(repr((VERSION, options)).encode())
    for x in samples:
        digest.update(repr(x.shape).encode())
        for part in [x.data, x.indices, x.indptr] if sp.issparse(x) else [x]:
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:16]
