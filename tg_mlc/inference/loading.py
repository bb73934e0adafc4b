"""Loads models from folders or from the Hugging Face hub, and uploads them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tg_mlc._names import shorten
from tg_mlc._optional import require
from tg_mlc.inference.folder import CONTENT, WEIGHTS, folder_sha256, read_folder
from tg_mlc.inference.model import Model


def load(
    path: str | os.PathLike[str],
    network: type[nn.Module] | None = None,
    *,
    device: torch.device | str = "cpu",
) -> Model:
    """Loads a model that :func:`tg_mlc.training.fit` or :meth:`~tg_mlc.inference.Model.save` wrote.

    No code in the folder is run: it holds tensors and plain data, and hashes show whether a file
    has changed.

    Args:
        path (str or PathLike): The folder.
        network (type, optional): The class of your own network, which is called with the
            arguments in the folder. (default: :obj:`None`)
        device (torch.device or str, optional): The device of the model. (default: :obj:`"cpu"`)

    Raises:
        FileNotFoundError: If there is no saved model.
        ValueError: If the folder is damaged, this version of the package cannot build the model,
            PyTorch has no such device, or :obj:`network` is not the class of the saved network.
    """
    content = read_folder(path)
    _check_network(content, network)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # PyTorch without CUDA raises AssertionError.
        got = f"(got {str(device)!r}: {str(error).splitlines()[0]})"
        raise ValueError(f"Expected 'device' to be one that PyTorch has here {got}") from None
    try:
        model = Model.from_content(content, network).to(device)
    except Exception as error:  # Values of another version may raise any error.
        hint = f"'{Path(path) / CONTENT}' says which versions saved it"
        raise ValueError(
            f"Expected '{path}' to hold a model that this version of tg_mlc can build (got "
            f"{type(error).__name__}: {error}); {hint}"
        ) from error
    model.sha256 = folder_sha256(path)
    return model


def _check_network(content: Mapping[str, Any], network: Any) -> None:
    """Raises ValueError if the class of a network is missing, wrong, or not needed."""
    entry = _own_network(content)
    if entry is None:
        if network is not None:
            got = f"(got {shorten(repr(network))})"
            raise ValueError(f"Expected no 'network' for a model that this package builds {got}")
        return
    if not isinstance(entry, Mapping):
        expected = "the entry 'network' of a saved model to be an object"
        raise ValueError(f"Expected {expected} (got {shorten(repr(entry))})")
    name = shorten(f"{entry.get('module')}.{entry.get('class')}")
    is_class = isinstance(network, type) and issubclass(network, nn.Module)
    # Modules are not compared: the training script calls its own module __main__.
    names = entry.get("class"), getattr(network, "__qualname__", "")
    local_names = {str(text).rpartition("<locals>.")[2] for text in names}
    if not is_class or len(local_names) > 1:
        raise ValueError(
            f"Expected 'network' to be the class {name}, because the folder holds a network of "
            f"your own and no class is unpickled (got {shorten(repr(network))}); import it and "
            f"pass it: load(path, {name.rpartition('.')[2]})"
        )


def _own_network(content: Mapping[str, Any]) -> Any:
    """Returns the entry of a user's own network in a folder; :obj:`None` if there is none."""
    try:
        states = [stage["state"] for stage in content["stages"]]
        entries = [entry for state in states for entry in state.get("networks", ())]
        return next((entry["network"] for entry in entries if "network" in entry), None)
    except (AttributeError, KeyError, TypeError):
        return None  # Model.from_content raises the error.


def push_to_hub(
    path: str | os.PathLike[str], repo_id: str, *, private: bool = True, **options: Any
) -> str:
    """Uploads the folder of a saved model, and returns the address of the upload.

    Args:
        path (str or PathLike): The folder.
        repo_id (str): The name on the hub, *e.g.* :obj:`"me/side-effects"`.
        private (bool, optional): Whether a new repository is private. (default: :obj:`True`)
        **options (optional): Further arguments of :meth:`huggingface_hub.HfApi.upload_folder`.

    Raises:
        ValueError: If the folder holds no model, or a damaged one.
        ImportError: If huggingface_hub is not installed (extra ``hub``).
    """
    if _own_network(read_folder(path)) is None:
        load(path)
    hub = require("huggingface_hub", extra="hub")
    hub.create_repo(repo_id, private=private, exist_ok=True)
    files = [CONTENT, WEIGHTS]
    options |= {"allow_patterns": files, "delete_patterns": files}
    return str(hub.upload_folder(repo_id=repo_id, folder_path=os.fspath(path), **options))


def from_pretrained(
    name: str | os.PathLike[str],
    device: str = "cpu",
    network: type[nn.Module] | None = None,
    **options: Any,
) -> Model:
    """Loads a model from a folder, or from the hub.

    Args:
        name (str or PathLike): A folder, or a name on the hub.
        network (type, optional): As in :func:`load`. (default: :obj:`None`)
        device (str, optional): The device of the model. (default: :obj:`"cpu"`)
        **options (optional): Further arguments of :func:`huggingface_hub.snapshot_download`,
            *e.g.* :obj:`revision`.

    Raises:
        ValueError: If the model is damaged, or this version of the package cannot build it.
        ImportError: If the name is no folder and huggingface_hub is not installed (extra ``hub``).
    """
    if Path(name).is_dir():
        return load(name, network, device=device)
    hub, files = require("huggingface_hub", extra="hub"), [CONTENT, WEIGHTS]
    folder = hub.snapshot_download(os.fspath(name), allow_patterns=files, **options)
    return load(folder, network, device=device)
