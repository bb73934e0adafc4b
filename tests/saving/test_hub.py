from __future__ import annotations

import inspect
import shutil
import sys
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tg_mlc
from tg_mlc.saving import from_pretrained, push_to_hub

NEW = ["Red pears!"]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub that is a folder."""

    class Hub(ModuleType):
        root = tmp_path / "hub"

        def create_repo(self, repo_id, *, private, exist_ok):
            (self.root / repo_id).mkdir(parents=True, exist_ok=exist_ok)

        def upload_folder(self, *, repo_id, folder_path, allow_patterns, delete_patterns, commit_message=None):
            repo = self.root / repo_id
            for path in repo.iterdir():
                if any(fnmatch(path.name, pattern) for pattern in delete_patterns):
                    path.unlink()
            for path in Path(folder_path).iterdir():
                if any(fnmatch(path.name, pattern) for pattern in allow_patterns):
                    shutil.copy(path, repo)
            return f"https://hub/{repo_id}"

        def snapshot_download(self, repo_id, *, allow_patterns, revision=None):
            return str(self.root / repo_id)

    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub("huggingface_hub"))
    return Hub.root


def test_to_the_hub_and_back(hub, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "notes.txt").write_text("mine")
    assert push_to_hub(copy, "me/fruit", commit_message="first") == "https://hub/me/fruit"
    stale = hub / "me" / "fruit" / "weights-0.safetensors"
    stale.touch()
    push_to_hub(copy, "me/fruit")
    assert not stale.exists()
    assert len(list((hub / "me" / "fruit").iterdir())) == 2
    np.testing.assert_array_equal(from_pretrained("me/fruit").scores(NEW), tg_mlc.load(folder).scores(NEW))


def test_a_damaged_model_is_not_pushed(hub, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "model.json").write_text("{}")
    with pytest.raises(ValueError, match="to be as tg_mlc wrote it"):
        push_to_hub(copy, "me/fruit")
    assert not hub.exists()


def test_a_folder_needs_no_hub(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    np.testing.assert_array_equal(from_pretrained(folder).scores(NEW), tg_mlc.load(folder).scores(NEW))
    with pytest.raises(ImportError, match=r"tg_mlc\[hub\]"):
        from_pretrained("me/fruit")


def test_huggingface_hub_takes_what_it_is_given():
    hub = pytest.importorskip("huggingface_hub")
    inspect.signature(hub.create_repo).bind("me/fruit", private=True, exist_ok=True)
    patterns = {"allow_patterns": ["a"], "delete_patterns": ["a"]}
    inspect.signature(hub.upload_folder).bind(repo_id="me/fruit", folder_path="model", **patterns)
    inspect.signature(hub.snapshot_download).bind("me/fruit", allow_patterns=["a"], revision="main")
