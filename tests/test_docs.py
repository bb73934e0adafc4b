"""The pages' promises, run in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.convert.released import Config, random_state
from tests.snippets import ROOT, python_blocks

PAGES = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md"))


@pytest.fixture
def readers_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What a page takes for granted: a file in the working folder, and the input of a checkpoint's model."""
    monkeypatch.chdir(tmp_path)
    torch.save(random_state(Config()), "model.chkpt")
    return {"src_seq": torch.tensor([[2, 5, 6, 3], [2, 4, 3, 0]])}


@pytest.mark.parametrize(
    "block",
    [pytest.param(block, id=f"{page}-{i}") for page in PAGES for i, block in enumerate(python_blocks(page))],
)
def test_every_block_runs(block: str, readers_own: dict[str, object]) -> None:
    names = set(readers_own)
    exec(block, readers_own)
    assert set(readers_own) > names
