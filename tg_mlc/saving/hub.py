"""Saved models on the Hugging Face hub."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tg_mlc._optional import require
from tg_mlc.saving.folder import CONTENT, WEIGHTS
from tg_mlc.saving.predictor import Predictor, load


def push_to_hub(path: str | os.PathLike[str], repo_id: str, *, private: bool = True, **options: Any) -> str:
    """Uploads the folder of a saved model, and returns its address.

    Args:
        path (str or PathLike): The folder.
        repo_id (str): The name on the hub, *e.g.* :obj:`"me/side-effects"`.
        private (bool, optional): Whether only you see it, if it is new. (default: :obj:`True`)
        **options (optional): Further arguments of :meth:`huggingface_hub.HfApi.upload_folder`.

    Raises:
        ValueError: If the folder holds no model, or a damaged one.
        ImportError: If huggingface_hub is not installed (extra ``hub``).
    """
    load(path)
    hub = require("huggingface_hub", extra="hub")
    hub.create_repo(repo_id, private=private, exist_ok=True)
    files = [CONTENT, WEIGHTS]
    return str(
        hub.upload_folder(
            repo_id=repo_id, folder_path=os.fspath(path), allow_patterns=files, delete_patterns=files, **options
        )
    )


def from_pretrained(name: str | os.PathLike[str], device: str = "cpu", **options: Any) -> Predictor:
    """Loads a model from a folder, or from the hub.

    Args:
        name (str or PathLike): A folder, or a name on the hub.
        device (str, optional): Where to compute. (default: :obj:`"cpu"`)
        **options (optional): Further arguments of :func:`huggingface_hub.snapshot_download`, *e.g.* :obj:`revision`.

    Raises:
        ValueError: If the model is damaged, or this version of the package cannot build it.
        ImportError: If it is no folder and huggingface_hub is not installed (extra ``hub``).
    """
    if Path(name).is_dir():
        return load(name, device)
    hub = require("huggingface_hub", extra="hub")
    return load(hub.snapshot_download(os.fspath(name), allow_patterns=[CONTENT, WEIGHTS], **options), device)
