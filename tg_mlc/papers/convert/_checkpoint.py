"""Content of a checkpoint file: a state dict and, beside it, the command line it was trained with."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor


class ReleasedFile(NamedTuple):
    """A state dict by the names of the bare model, and the settings of the run as far as they are known."""

    state: dict[str, Tensor]
    settings: dict[str, Any]


def read_released(source: Mapping[str, Any] | str | os.PathLike[str]) -> ReleasedFile:
    """Takes a file, the dict that the training script saves, or a bare state dict."""
    content = source if isinstance(source, Mapping) else _load(source)
    settings: dict[str, Any] = {}
    if "model" in content:
        found = content.get("settings", {})
        settings = dict(found if isinstance(found, Mapping) else vars(found))
        content = content["model"]
    state = {str(name).removeprefix("module."): _as_tensor(value) for name, value in content.items()}
    strange = [name for name, tensor in state.items() if not isinstance(tensor, Tensor)]
    if strange:
        raise ValueError(
            f"Expected 'state_dict' to hold tensors, or to be a dict with a state dict under 'model' "
            f"(got {', '.join(strange[:5])}, which are none)"
        )
    return ReleasedFile(state, settings)


def _as_tensor(value: Any) -> Any:
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def _load(path: Any) -> Mapping[str, Any]:
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"Expected 'state_dict' to be a dict or the path of a checkpoint (got {type(path).__name__})")
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"Expected 'state_dict' to be the path of a checkpoint (found no file '{path}')")
    try:
        # The settings are an argparse.Namespace, a plain holder of attributes; nothing else is let in beside tensors.
        with torch.serialization.safe_globals([argparse.Namespace]):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever comes of reading bytes as a pickle; PyTorch before 1.6 wrote no archive
        raise ValueError(
            f"Expected '{path}' to be a whole checkpoint of tensors and plain settings (got {path.stat().st_size:,} "
            f"bytes that are cut short, hold other objects, or are something else: {type(error).__name__}); copy it "
            f"again, or take another checkpoint"
        ) from error
    if not isinstance(content, Mapping):
        raise ValueError(f"Expected '{path}' to hold a dict (got {type(content).__name__})")
    return content
