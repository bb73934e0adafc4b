"""The pages' promises, run in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.papers.convert.released import Config, random_state
from tests.snippets import ROOT, python_blocks
from tg_mlc.stacking import folds

PAGES = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md"))


@pytest.fixture
def _readers_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page takes for granted: a checkpoint in the working folder; and no more training than it takes to run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(folds, "MAX_EPOCHS", 3)
    monkeypatch.setattr(folds, "NUM_FOLDS", (2,))
    torch.save(random_state(Config()), "model.chkpt")


@pytest.mark.parametrize(
    "block", [pytest.param(block, id=f"{page}-{i}") for page in PAGES for i, block in enumerate(python_blocks(page))]
)
@pytest.mark.usefixtures("_readers_own")
def test_every_block_runs(block: str) -> None:
    namespace: dict[str, object] = {}
    exec(block, namespace)
    assert namespace.keys() - {"__builtins__"}
