"""Output of commands: text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any


def show(result: Any, text: str, as_json: bool) -> None:
    """Prints a result for programs or for people."""
    finite = json.loads(json.dumps(result), parse_constant=lambda _: None)  # NaN and infinity, which JSON has not
    print(json.dumps(finite, ensure_ascii=False, allow_nan=False) if as_json else text)  # noqa: T201


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is aligned to the left, the others to the right."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join([first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))])
        for first, *rest in lines
    )
