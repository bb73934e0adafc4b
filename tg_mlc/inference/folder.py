"""Folders of tensors and plain data, replaced as a whole, verified by hashes, without code.

``model.json`` holds the plain data, and names the file of the tensors,
``weights-<start of their hash>.safetensors``. Replacing ``model.json`` replaces the content of the
folder. Saving deletes old files of weights only if their hash is in their name.
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
from typing import Any, BinaryIO

from safetensors.torch import load, save
from torch import Tensor

from tg_mlc._files import file_sha256, replace_when_done, sha256
from tg_mlc._names import shorten

FORMAT = "tg_mlc.model/1"
CONTENT = "model.json"
WEIGHTS = "weights-*.safetensors"  #: The content names one of these files.
MAX_BYTES = 2**28  #: The largest size of the plain data, in bytes.
MAX_WEIGHTS = 2**36  #: The largest size of a file of weights, in bytes.
MAX_HEADER = 100_000_000  #: The largest size of the header of weights, as of safetensors.
_MAX_READS = 10  # Attempts to read a folder that another process is replacing.

# {"tensor": name, "dtype": dtype} stands for a tensor, {"float": text} for NaN or infinity.
_TENSOR, _DTYPE, _FLOAT = "tensor", "dtype", "float"
_KEYS = {"format", "sha256", "weights", "content"}


def write_folder(path: str | os.PathLike[str], content: Mapping[str, Any]) -> Path:
    """Writes tensors and plain data to a folder. Earlier content stays until all is written."""
    folder = check_folder(path)
    tensors: dict[str, Tensor] = {}
    plain = _without_tensors(content, "", tensors)
    packed = save(tensors)
    weights = folder / _weights_name(sha256(packed))
    entries = {
        "format": FORMAT,
        "weights": {"file": weights.name, "sha256": sha256(packed)},
        "content": plain,
    }
    description = _dump({"sha256": sha256(_dump(entries)), **entries})
    if len(description) > MAX_BYTES or len(packed) > MAX_WEIGHTS:
        limit = f"at most {MAX_BYTES:,} bytes of plain data and {MAX_WEIGHTS:,} of weights"
        raise ValueError(f"Expected {limit} to save (got {len(description):,} and {len(packed):,})")
    for file, data in ((weights, packed), (folder / CONTENT, description)):
        try:
            with replace_when_done(file) as unfinished:
                unfinished.write_bytes(data)
        except OSError as error:
            free = "no folder"
            if folder.is_dir():
                free = f"{shutil.disk_usage(folder).free:,} bytes are free on that disk"
            got = f"(got '{error.strerror or error}', and {free})"
            raise OSError(f"Expected to write {len(data):,} bytes to '{file}' {got}") from error
    for weights_file in folder.glob(WEIGHTS):
        # Only files that this package wrote have the start of their SHA-256 in their name.
        is_old = weights_file != weights and weights_file.is_file()
        if is_old and weights_file.name == _weights_name(file_sha256(weights_file)):
            weights_file.unlink(missing_ok=True)
    return folder


def _weights_name(sha: str) -> str:
    return WEIGHTS.replace("*", sha[:12])


def check_folder(path: str | os.PathLike[str]) -> Path:
    """Returns the path of a folder. Raises ValueError if it or a parent is a file."""
    folder = Path(path)
    for existing in (folder, *folder.parents):
        if existing.exists() and not existing.is_dir():
            expected = f"'{folder}' to be a folder, or a name for a new one"
            raise ValueError(f"Expected {expected} (got the file '{existing}')")
    return folder


def folder_sha256(path: str | os.PathLike[str]) -> str:
    """Returns the hash of the content of a folder, weights included."""
    return str(_read_description(Path(path) / CONTENT)["sha256"])


def read_folder(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a folder that :func:`write_folder` wrote, again if another process replaces it.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a file is damaged, too large, or a device or a pipe.
    """
    description = Path(path) / CONTENT
    for attempt in range(_MAX_READS):
        entries = _read_description(description)
        weights = description.parent / Path(entries["weights"]["file"]).name
        try:
            packed = _read_weights(weights, entries["weights"]["sha256"])
            break
        except (FileNotFoundError, IsADirectoryError):
            # Another process may have replaced the description and deleted these weights, or
            # written the same weights again.
            is_same = _read_description(description)["sha256"] == entries["sha256"]
            if attempt == _MAX_READS - 1 or (is_same and not weights.exists()):
                hint = "(found none); copy the whole folder"
                missing = f"Expected the file '{weights}' of a saved model {hint}"
                raise FileNotFoundError(missing) from None
    try:
        content: dict[str, Any] = _with_tensors(entries["content"], load(packed))
        if not isinstance(content, dict):
            raise TypeError(f"the content is no object but {str(content)[:40]}")
    except Exception as error:  # Unexpected values may raise any error.
        reason = shorten(" ".join(str(error).split()), 300)
        reason = reason if isinstance(error, ValueError) else f"{type(error).__name__}: {reason}"
        raise ValueError(_damage_message(description, f"inconsistent entries: {reason}")) from error
    return content


def _read_weights(path: Path, expected_sha256: str) -> bytes:
    """Returns the bytes of a file of weights. Raises ValueError if its size is not that of its
    header, before the file takes memory, or if its hash is wrong.
    """
    with _open(path, MAX_WEIGHTS) as file:
        size = os.fstat(file.fileno()).st_size
        header_size = int.from_bytes(file.read(8), "little")
        expected_size = 8 + header_size
        if header_size <= min(MAX_HEADER, size):
            expected_size += _num_bytes(file.read(header_size))
        if size != expected_size:
            raise ValueError(_damage_message(path, f"{size:,} bytes, not those of its header"))
        file.seek(0)
        content = file.read(size)
    if sha256(content) != expected_sha256:
        got = f"{len(content):,} bytes of another SHA-256 than '{CONTENT}' says"
        raise ValueError(_damage_message(path, got))
    return content


def _num_bytes(header: bytes) -> int:
    """Returns the number of bytes of all tensors in a header of safetensors; -1 if it is none."""
    try:
        entries = json.loads(header)
        return max([0, *(int(entries[name]["data_offsets"][1]) for name in entries)])
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError):
        return -1


def _read_description(path: Path) -> dict[str, Any]:
    """Returns the entries of a description. Raises ValueError if its hash does not match."""
    try:
        with _open(path, MAX_BYTES) as file:
            text = file.read(MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        got = f"to be the folder of a saved model (found no file '{CONTENT}' in it)"
        raise FileNotFoundError(f"Expected '{path.parent}' {got}") from None
    try:
        entries = dict(json.loads(text))
        # The first entry is the hash of the other entries, as written by _dump.
        start = _dump({"sha256": entries["sha256"]})[:-3] + b",\n"
        if not text.startswith(start) or entries["sha256"] != sha256(b"{\n" + text[len(start) :]):
            raise ValueError("other characters than those of its SHA-256")
        check_format(entries["format"], path)
        if entries.keys() != _KEYS:
            raise ValueError(f"other entries than {sorted(_KEYS)}")
        weights = entries["weights"]
        keys = ("file", "sha256")
        if not isinstance(weights, dict) or not all(type(weights.get(key)) is str for key in keys):
            raise ValueError(f"no file and SHA-256 of weights but {str(weights)[:40]}")
        if re.fullmatch(WEIGHTS.replace("*", "[0-9a-f]{12}"), weights["file"]) is None:
            raise ValueError(f"a file of weights with the name {shorten(repr(weights['file']))}")
    except UnknownFormatError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ValueError(_damage_message(path, str(error)[:200])) from None
    return entries


class UnknownFormatError(ValueError):
    """An undamaged file in a version of the format that this package cannot read."""


def check_format(found: Any, path: str | os.PathLike[str]) -> None:
    """Raises UnknownFormatError unless a format is the format of this version."""
    if found == FORMAT:
        return
    match = re.fullmatch(r"tg_mlc\.model/(\d+)", str(found))
    hint = "save the model again with this version"
    if match is not None and int(match[1]) > int(FORMAT.rpartition("/")[2]):
        hint = "a newer version of tg_mlc wrote it: update tg_mlc, or save it with this version"
    got = f"(got {shorten(repr(found))}); {hint}"
    raise UnknownFormatError(f"Expected '{os.fspath(path)}' in the format {FORMAT} {got}")


def _open(path: Path, max_bytes: int) -> BinaryIO:
    """Opens a regular file. Raises ValueError for large files, and pipes, which might never end."""
    mode = path.stat().st_mode  # Check before opening: opening a pipe waits for a writer.
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise ValueError(f"Expected '{path}' to be a file (got a device, a pipe or a socket)")
    file = path.open("rb")
    size = os.fstat(file.fileno()).st_size
    if size > max_bytes:
        file.close()
        raise ValueError(f"Expected '{path}' to have at most {max_bytes:,} bytes (got {size:,})")
    return file


def _damage_message(path: Path, got: str) -> str:
    hint = "copy the folder again, or save the model once more"
    return f"Expected '{path}' to be as tg_mlc wrote it (got {got}); {hint}"


def _dump(entries: Mapping[str, Any]) -> bytes:
    return json.dumps(entries, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _without_tensors(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Returns plain data with names in place of tensors, and adds the tensors by name."""
    if isinstance(value, Tensor):
        # Safetensors cannot store tensors that share memory.
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {_TENSOR: name, _DTYPE: str(value.dtype)}
    if isinstance(value, Mapping):
        if others := [key for key in value if not isinstance(key, str) or key in (_TENSOR, _FLOAT)]:
            expected = f"to be strings, not '{_TENSOR}' or '{_FLOAT}'"
            raise ValueError(f"Expected the keys of '{name}' {expected} (got {others[0]!r})")
        return {
            key: _without_tensors(item, f"{name}.{key}".strip("."), tensors)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        items = enumerate(value)
        return [_without_tensors(item, f"{name}.{index}", tensors) for index, item in items]
    if value is not None and type(value) not in (str, int, float, bool):
        raise ValueError(
            f"Expected '{name}' to be a tensor, number, string, list or dict, which a model's "
            f"folder can hold (got {type(value).__name__})"
        )
    is_finite = not isinstance(value, float) or math.isfinite(value)
    return value if is_finite else {_FLOAT: str(value)}


def _with_tensors(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Replaces names by their tensors, in place."""
    if isinstance(value, dict):
        if value.keys() == {_TENSOR, _DTYPE}:
            tensor = tensors[value[_TENSOR]]
            if str(tensor.dtype) != value[_DTYPE]:
                got = f"of {tensor.dtype}, not {value[_DTYPE]}"
                raise ValueError(f"weights '{value[_TENSOR]}' {got}")
            return tensor
        if value.keys() == {_FLOAT}:
            return float(value[_FLOAT])
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, (dict, list)):
            value[key] = _with_tensors(item, tensors)
    return value


def check_finite(state: Any, name: str = "") -> None:
    """Raises ValueError for infinite or NaN weights; thresholds may be infinite."""
    if isinstance(state, (Mapping, list)):
        items = state.items() if isinstance(state, Mapping) else enumerate(state)
        for key, value in items:
            check_finite(value, f"{name}.{key}".strip("."))
    elif isinstance(state, Tensor) and not name.endswith("thresholds"):
        number = int((~state.isfinite()).sum())
        if number:
            got = f"hold {number} of {state.numel()} numbers that are NaN or infinite"
            raise ValueError(f"the weights '{name}' {got}")
