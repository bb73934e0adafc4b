"""Folders of tensors and plain data: readable, replaced as a whole, refused if a bit has changed; no code is ever run.

``model.json`` holds the plain data, and names the tensors, which are in ``weights-<start of their hash>.safetensors``.
Replacing the first is what replaces the folder's content.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load, save
from torch import Tensor

from tg_mlc._files import replace_when_done, sha256
from tg_mlc.saving.legacy import upgrade

FORMAT = "tg_mlc.model/2"
EARLIER = ("tg_mlc.model/1",)  #: formats whose names :mod:`tg_mlc.saving.legacy` knows
CONTENT = "model.json"
WEIGHTS = "weights-*.safetensors"  #: of which the content names one

_TENSOR, _FLOAT = "tensor", "float"  # the only key of what stands for a tensor; for NaN or infinity, as JSON has none
_KEYS = {"format", "sha256", "weights", "content"}


def write_folder(path: str | os.PathLike[str], content: Mapping[str, Any]) -> Path:
    """Writes tensors and plain data to a folder, whose earlier content stays until all of it is there.

    Raises:
        ValueError: If there is anything else in it, or the path is one of a file.
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"Expected '{folder}' to be a folder, or a name for a new one (got a file)")
    tensors: dict[str, Tensor] = {}
    plain = _without_tensors(content, "", tensors)
    packed = save(tensors)
    weights = folder / WEIGHTS.replace("*", sha256(packed)[:12])
    entries = {"format": FORMAT, "weights": {"file": weights.name, "sha256": sha256(packed)}, "content": plain}
    for file, written in ((weights, packed), (folder / CONTENT, _dump({"sha256": sha256(_dump(entries)), **entries}))):
        with replace_when_done(file) as unfinished:
            unfinished.write_bytes(written)
    for stale in folder.glob(WEIGHTS):
        if stale != weights:
            stale.unlink(missing_ok=True)
    return folder


def read_folder(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads what :func:`write_folder` wrote.

    Raises:
        FileNotFoundError: If the folder or a file in it is missing.
        ValueError: If a file is damaged.
    """
    folder = Path(path)
    try:
        text = (folder / CONTENT).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise FileNotFoundError(
            f"Expected '{folder}' to be the folder of a saved model (found no file '{CONTENT}' in it)"
        ) from None
    entries = _checked(text, folder / CONTENT)
    weights = folder / Path(entries["weights"]["file"]).name
    if not weights.is_file():
        raise FileNotFoundError(f"Expected the file '{weights}' of a saved model (found none); copy the whole folder")
    packed = weights.read_bytes()
    if sha256(packed) != entries["weights"]["sha256"]:
        raise ValueError(_damaged(weights, f"{len(packed):,} bytes of another SHA-256 than '{CONTENT}' says"))
    content: dict[str, Any] = _with_tensors(entries["content"], load(packed))
    return upgrade(content) if entries["format"] in EARLIER else content


def _checked(text: bytes, path: Path) -> dict[str, Any]:
    """The entries of a file that is, to the last byte, as it was written."""
    try:
        entries = dict(json.loads(text))
        if entries.keys() != _KEYS or entries["format"] not in (FORMAT, *EARLIER):
            raise ValueError(f"entries of another format than {FORMAT}")
        # The first entry is the hash of all others, as _dump writes them without it.
        first = _dump({"sha256": entries["sha256"]})[:-3] + b",\n"
        if not text.startswith(first) or entries["sha256"] != sha256(b"{\n" + text[len(first) :]):
            raise ValueError("other characters than those of its SHA-256")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(_damaged(path, str(error)[:200])) from None
    return entries


def _damaged(path: Path, got: str) -> str:
    return f"Expected '{path}' to be as tg_mlc wrote it (got {got}); copy the folder again, or save the model once more"


def _dump(entries: Mapping[str, Any]) -> bytes:
    return json.dumps(entries, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _without_tensors(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Plain data in which names stand for tensors, which are collected."""
    if isinstance(value, Tensor):
        tensors[name] = value.detach().cpu().contiguous().clone()  # as safetensors takes none that share memory
        return {_TENSOR: name}
    if isinstance(value, Mapping):
        if others := [key for key in value if not isinstance(key, str) or key in (_TENSOR, _FLOAT)]:
            wanted = f"to be strings, not '{_TENSOR}' or '{_FLOAT}'"
            raise ValueError(f"Expected the keys of '{name}' {wanted} (got {others[0]!r})")
        return {key: _without_tensors(item, f"{name}.{key}".strip("."), tensors) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_tensors(item, f"{name}.{index}", tensors) for index, item in enumerate(value)]
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
