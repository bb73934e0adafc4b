"""Output of commands: text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
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


def check_output(out: str, csv: str, model: str) -> None:
    """Refuses a file for results that a command reads, or that cannot be one, before anything that takes long."""
    from tg_mlc.saving.folder import CONTENT, WEIGHTS

    path, folder = Path(out), Path(model)
    if path.is_dir() or not path.absolute().parent.is_dir():
        wanted = "the name of a file in a folder that there is"
        raise ValueError(f"Expected --out to be {wanted} (got '{out}', {'a folder' if path.is_dir() else 'in none'})")
    is_csv = path.exists() and Path(csv).exists() and path.samefile(csv)
    in_model = folder.is_dir() and path.absolute().parent.samefile(folder)
    if is_csv or (in_model and any(fnmatch(path.name, name) for name in (CONTENT, WEIGHTS))):
        other = "--csv" if is_csv else "a file of the model"
        raise ValueError(f"Expected another --out than {other} (got '{out}', which the command reads)")
