"""Output of commands: text or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

_ARGUMENT = re.compile(
    r"\b(ignore|categorical|encoding|delimiter|decimal|label_separator|label_paths)="
    r"""(\[?)(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]?|\bmax_lost=([0-9]+(?:\.[0-9]+)?)"""
)
_NAMED = re.compile(r"'(label_columns|feature_columns|delimiter|categorical|encoding)'")


def with_options(message: str) -> str:
    """A message that names the options of the command line, not the arguments of functions."""

    def option(found: re.Match[str]) -> str:
        name, is_list, *texts = found.groups(default="")
        text = re.sub(r"\\(['\"\\])", r"\1", "".join(texts))  # as Python writes quotes within quotes
        if is_list and "," in text:  # which stands between several columns, if they are no list of JSON
            text = json.dumps([text], ensure_ascii=False)
        return f"--{name or 'max_lost'} " + "'{}'".format(text.replace("'", "'\"'\"'"))

    message = _ARGUMENT.sub(option, message)
    names = {"label_columns": "--labels", "feature_columns": "--features"}
    return _NAMED.sub(lambda found: names.get(found[1], f"--{found[1]}"), message)


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
