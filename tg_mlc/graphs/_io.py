"""Label graphs on disk: tensors in a safetensors file, the rest as JSON in its header. Nothing is ever executed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from tg_mlc._files import replace_when_done

#: The mark of the file format, which stays the same wherever the class is defined.
FORMAT = "tg_mlc.LabelGraph/1"

GraphT = TypeVar("GraphT")


def save_attributes(attributes: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes the attributes of a label graph."""
    tensors = {key: value.contiguous() for key, value in attributes.items() if isinstance(value, Tensor)}
    rest = {key: value for key, value in attributes.items() if key not in tensors}
    try:
        header = {"format": FORMAT, "attributes": json.dumps(rest)}
    except TypeError as error:
        raise ValueError(
            f"Expected the graph to hold tensors and plain data only ({error}); drop what else it holds"
        ) from error
    with replace_when_done(path) as unfinished:
        save_file(tensors, unfinished, metadata=header)


def load_attributes(path: str | os.PathLike[str], make: Callable[..., GraphT]) -> GraphT:
    """Makes a label graph of the attributes that :func:`save_attributes` wrote."""
    if Path(path).is_dir():
        raise ValueError(f"Expected '{path}' to be a safetensors file that LabelGraph.save wrote (got a folder)")
    try:
        with safe_open(Path(path), framework="pt") as file:
            header = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"Expected '{path}' to be a safetensors file that LabelGraph.save wrote ({error})") from error
    if header.get("format") != FORMAT:
        raise ValueError(f"Expected '{path}' to be of format {FORMAT!r} (got {header.get('format')!r})")
    try:
        return make(**json.loads(header["attributes"]), **tensors)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"Expected '{path}' to hold a label graph as LabelGraph.save wrote it (got {error!r}); the file is "
            f"damaged, make it once more"
        ) from error
