"""Reads the Python blocks of the documentation, so that tests can run the blocks."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_CELL = re.compile(r"^```\{code-cell\}\n(.*?)^```", re.DOTALL | re.MULTILINE)


def python_blocks(page: str) -> list[str]:
    """Returns all Python blocks of a page, in order."""
    return _BLOCK.findall((ROOT / page).read_text())


def cells(page: str) -> str:
    """Returns all cells of a tutorial as one text."""
    return "\n".join(_CELL.findall((ROOT / page).read_text()))
