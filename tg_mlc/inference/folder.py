"""Folders of tensors and plain data: readable, replaced as a whole, refused if a bit has changed; no code is ever run.

``model.json`` holds the plain data, and names the tensors, which are in ``weights-<start of their hash>.safetensors``.
Replacing the first is what replaces the folder's content. The hash in its name marks a file of weights as ours: saving
deletes earlier ones, and no other file.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load, save
from torch import Tensor

from tg_mlc._files import file_sha256, replace_when_done, sha256

FORMAT = "tg_mlc.model/4"
CONTENT = "model.json"
WEIGHTS = "weights-*.safetensors"  #: of which the content names one
MAX_BYTES = 2**28  #: of the plain data
MAX_WEIGHTS = 2**36  #: bytes, of a file of weights
_READS = 10  # of a folder that another process replaces meanwhile

# the only key of what stands for a tensor; for NaN or infinity, as JSON has none
_TENSOR, _FLOAT = "tensor", "float"
_KEYS = {"format", "sha256", "weights", "content"}


def write_folder(path: str | os.PathLike[str], content: Mapping[str, Any]) -> Path:
    """Writes tensors and plain data to a folder, whose earlier model stays until all is written."""
    folder = check_folder(path)
    tensors: dict[str, Tensor] = {}
    plain = _without_tensors(content, "", tensors)
    packed = save(tensors)
    weights = folder / WEIGHTS.replace("*", sha256(packed)[:12])
    entries = {
        "format": FORMAT,
        "weights": {"file": weights.name, "sha256": sha256(packed)},
        "content": plain,
    }
    described = _dump({"sha256": sha256(_dump(entries)), **entries})
    if len(described) > MAX_BYTES or len(packed) > MAX_WEIGHTS:
        most = f"at most {MAX_BYTES:,} bytes of plain data and {MAX_WEIGHTS:,} of weights"
        raise ValueError(f"Expected {most} to save (got {len(described):,} and {len(packed):,})")
    for file, written in ((weights, packed), (folder / CONTENT, described)):
        try:
            with replace_when_done(file) as unfinished:
                unfinished.write_bytes(written)
        except OSError as error:
            free = (
                f"{shutil.disk_usage(folder).free:,} bytes are free on that disk"
                if folder.is_dir()
                else "no folder"
            )
            reason = f"got '{error.strerror or error}', and {free}"
            raise OSError(
                f"Expected to write {len(written):,} bytes to '{file}' ({reason})"
            ) from error
    for other in folder.glob(WEIGHTS):
        # Those of others do not have the start of their own SHA-256 as their name.
        if (
            other != weights
            and other.is_file()
            and other.name == WEIGHTS.replace("*", file_sha256(other)[:12])
        ):
            other.unlink(missing_ok=True)
    return folder


def check_folder(path: str | os.PathLike[str]) -> Path:
    """Refuses a path that can be no folder, before anything that takes long."""
    folder = Path(path)
    if found := next(
        (each for each in (folder, *folder.parents) if each.exists() and not each.is_dir()), None
    ):
        raise ValueError(
            f"Expected '{folder}' to be a folder, or a name for a new one (got the file '{found}')"
        )
    return folder


def read_folder(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads what :func:`write_folder` wrote, once more if the folder is replaced meanwhile; a :class:`ValueError` if a
    file is damaged, too large, or a device or a pipe.
    """
    description = Path(path) / CONTENT
    for attempt in range(_READS):
        entries = _described(description)
        weights = description.parent / Path(entries["weights"]["file"]).name
        try:
            packed = _read(weights, MAX_WEIGHTS)
            break
        except (FileNotFoundError, IsADirectoryError):
            # Unless another process has replaced the description, and deleted these weights:
            is_same = _described(description)["sha256"] == entries["sha256"]
            # It may be there once more.
            if attempt == _READS - 1 or (is_same and not weights.exists()):
                missing = f"Expected the file '{weights}' of a saved model (found none); copy the whole folder"
                raise FileNotFoundError(missing) from None
    if sha256(packed) != entries["weights"]["sha256"]:
        raise ValueError(
            _damaged(weights, f"{len(packed):,} bytes of another SHA-256 than '{CONTENT}' says")
        )
    try:
        content: dict[str, Any] = _with_tensors(entries["content"], load(packed))
        if not isinstance(content, dict):
            raise TypeError(f"the content is no object but {str(content)[:40]}")
    except Exception as error:  # of any class, because any value may be of another type
        said = " ".join(str(error).split())[:300]
        said = said if isinstance(error, ValueError) else f"{type(error).__name__}: {said}"
        raise ValueError(_damaged(description, f"inconsistent entries: {said}")) from error
    return content


def _described(path: Path) -> dict[str, Any]:
    """The entries of a file that is, to the last byte, as it was written."""
    try:
        text = _read(path, MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise FileNotFoundError(
            f"Expected '{path.parent}' to be the folder of a saved model (found no file '{CONTENT}' in it)"
        ) from None
    try:
        entries = dict(json.loads(text))
        # The first entry is the hash of all others, as _dump writes them without it.
        first = _dump({"sha256": entries["sha256"]})[:-3] + b",\n"
        if not text.startswith(first) or entries["sha256"] != sha256(b"{\n" + text[len(first) :]):
            raise ValueError("other characters than those of its SHA-256")
        check_format(entries["format"], path)
        if entries.keys() != _KEYS:
            raise ValueError(f"other entries than {sorted(_KEYS)}")
        weights = entries["weights"]
        if not isinstance(weights, dict) or not all(
            isinstance(weights.get(key), str) for key in ("file", "sha256")
        ):
            raise ValueError(f"no file and SHA-256 of weights but {str(weights)[:40]}")
    except UnknownFormatError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ValueError(_damaged(path, str(error)[:200])) from None
    return entries


class UnknownFormatError(ValueError):
    """A whole file of a version of the format that this version of the package does not read."""


def check_format(found: Any, path: str | os.PathLike[str]) -> None:
    """Refuses a format that a newer version wrote, or one that is too old."""
    if found == FORMAT:
        return
    given = re.fullmatch(r"tg_mlc\.model/(\d+)", str(found))
    if given is not None and int(given[1]) > int(FORMAT.rpartition("/")[2]):
        hint = "a newer version of tg_mlc wrote it: update tg_mlc, or save it with a version that writes this format"
    else:
        hint = "this version reads no format that old: save it again with a version between the two"
    raise UnknownFormatError(
        f"Expected '{os.fspath(path)}' in a format up to {FORMAT} (got {found!r}); {hint}"
    )


def _read(path: Path, max_bytes: int) -> bytes:
    """The bytes of a file; one of another kind, such as a pipe, might never end."""
    mode = path.stat().st_mode  # asked before, because opening a pipe waits for who writes to it
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise ValueError(f"Expected '{path}' to be a file (got a device, a pipe or a socket)")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise ValueError(
                f"Expected '{path}' to have at most {max_bytes:,} bytes (got {size:,})"
            )
        return file.read(size)


def _damaged(path: Path, got: str) -> str:
    return f"Expected '{path}' to be as tg_mlc wrote it (got {got}); copy the folder again, or save the model once more"


def _dump(entries: Mapping[str, Any]) -> bytes:
    return json.dumps(entries, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _without_tensors(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Plain data in which names stand for tensors, which are collected."""
    if isinstance(value, Tensor):
        # as safetensors takes none that share memory
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {_TENSOR: name}
    if isinstance(value, Mapping):
        if others := [key for key in value if not isinstance(key, str) or key in (_TENSOR, _FLOAT)]:
            wanted = f"to be strings, not '{_TENSOR}' or '{_FLOAT}'"
            raise ValueError(f"Expected the keys of '{name}' {wanted} (got {others[0]!r})")
        return {
            key: _without_tensors(item, f"{name}.{key}".strip("."), tensors)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [
            _without_tensors(item, f"{name}.{index}", tensors) for index, item in enumerate(value)
        ]
    if value is not None and type(value) not in (str, int, float, bool):
        raise ValueError(
            f"Expected '{name}' to be a tensor, number, string, list or dict, which a model's folder can hold (got "
            f"{type(value).__name__})"
        )
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: str(value)}
    return value


def _with_tensors(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Puts tensors where their names stand, in place."""
    if isinstance(value, dict):
        if value.keys() == {_TENSOR}:
            return tensors[value[_TENSOR]]
        if value.keys() == {_FLOAT}:
            return float(value[_FLOAT])
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, (dict, list)):
            value[key] = _with_tensors(item, tensors)
    return value


def check_finite(state: Any, name: str = "") -> None:
    """Refuses numbers that a model computes with and that are infinite or NaN, by their names: all of its tensors but
    thresholds, which are infinite where a label never applies.
    """
    if isinstance(state, Mapping):
        for key, value in state.items():
            check_finite(value, f"{name}.{key}".strip("."))
    elif isinstance(state, list):
        for index, value in enumerate(state):
            check_finite(value, f"{name}.{index}")
    elif (
        isinstance(state, Tensor) and not name.endswith("thresholds") and not state.isfinite().all()
    ):
        found = int((~state.isfinite()).sum())
        raise ValueError(
            f"the weights '{name}' hold {found} of {state.numel()} numbers that are NaN or infinite"
        )
