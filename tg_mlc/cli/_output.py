"""Output of commands: text or JSON."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TextIO

from tg_mlc._optional import require

_ARGUMENT = re.compile(
    r"\b(ignore|categorical|encoding|delimiter|decimal|label_separator|label_paths)="
    r"""(\[?)(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]?|\bmax_lost=([0-9]+(?:\.[0-9]+)?)"""
)
_NAMED = re.compile(r"'(label_columns|feature_columns|delimiter|categorical|encoding)'")


def with_options(message: str) -> str:
    """A message that names the options of the command line, not the arguments of functions."""

    def option(found: re.Match[str]) -> str:
        name, is_list, *texts = found.groups(default="")
        # as Python writes quotes within quotes
        text = re.sub(r"\\(['\"\\])", r"\1", "".join(texts))
        # which stands between several columns, if they are no list of JSON
        if is_list and "," in text:
            text = json.dumps([text], ensure_ascii=False)
        return f"--{name or 'max_lost'} " + "'{}'".format(text.replace("'", "'\"'\"'"))

    message = _ARGUMENT.sub(option, message)
    names = {"label_columns": "--labels", "feature_columns": "--features"}
    return _NAMED.sub(lambda found: names.get(found[1], f"--{found[1]}"), message)


def show(result: Any, text: str, as_json: bool) -> None:
    """Prints a result for programs or for people."""
    # NaN and infinity, which JSON has not
    finite = json.loads(json.dumps(result), parse_constant=lambda _: None)
    print(json.dumps(finite, ensure_ascii=False, allow_nan=False) if as_json else text)  # noqa: T201


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is aligned to the left, the others to the right."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            [
                first.ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)),
            ]
        )
        for first, *rest in lines
    )


def check_output(out: str, csv: str, model: str) -> None:
    """Refuses a file for results that a command reads, or that cannot be one, before anything that takes long."""
    from tg_mlc.inference.folder import CONTENT, WEIGHTS

    path, folder = Path(out), Path(model)
    if path.is_dir() or not path.absolute().parent.is_dir():
        wanted = "the name of a file in a folder that there is"
        raise ValueError(
            f"Expected --out to be {wanted} (got '{out}', {'a folder' if path.is_dir() else 'in none'})"
        )
    is_csv = path.exists() and Path(csv).exists() and path.samefile(csv)
    in_model = folder.is_dir() and path.absolute().parent.samefile(folder)
    if is_csv or (in_model and any(fnmatch(path.name, name) for name in (CONTENT, WEIGHTS))):
        other = "--csv" if is_csv else "a file of the model"
        raise ValueError(
            f"Expected another --out than {other} (got '{out}', which the command reads)"
        )


@dataclass
class RowWriter:
    """Writes rows to a file, block by block, and counts them; a file of notes keeps the counts, if it has a path."""

    file: TextIO
    num_blocks: int = 0
    num_refused: int = 0
    notes: Path | None = None
    command: Mapping[str, Any] = field(default_factory=dict)

    def note(self, num_refused: int) -> None:
        """Counts a block, which a command that goes on later passes over."""
        self.num_blocks, self.num_refused = self.num_blocks + 1, num_refused
        if self.notes is not None:
            from tg_mlc._files import replace_when_done

            self.file.flush()
            os.fsync(self.file.fileno())
            done = [os.fstat(self.file.fileno()).st_size, self.num_blocks, self.num_refused]
            with replace_when_done(self.notes) as unfinished:
                unfinished.write_text(
                    json.dumps({"command": self.command, "done": done}), encoding="utf-8"
                )


@contextmanager
def resumable(out: str, command: Mapping[str, Any]) -> Iterator[RowWriter]:
    """A file that is there once all of it is written; the same command goes on with what an earlier one has left beside
    it, if that was stopped. Errors of the input leave nothing.
    """
    from tg_mlc._files import named_if_full

    locks = require("filelock", extra="train")
    path = Path(out)
    partial, notes, lock = (
        path.with_name(f".{path.name}.{end}") for end in ("partial", "notes", "lock")
    )
    try:
        held = locks.FileLock(lock, blocking=False).acquire()
    except locks.Timeout:
        raise ValueError(
            f"Expected no other command that writes to --out (got '{out}', which one does)"
        ) from None
    with held:
        size, num_blocks, num_refused = 0, 0, 0
        if notes.exists() and partial.exists():
            before = json.loads(notes.read_text(encoding="utf-8"))
            if changed := [
                name for name, value in command.items() if before["command"].get(name) != value
            ]:
                hint = f"run that command again, or delete '{notes}' to start anew"
                raise ValueError(
                    f"Expected the command that '{partial}' was begun with (got another {', '.join(changed)}); {hint}"
                )
            if before["done"][0] <= partial.stat().st_size:
                size, num_blocks, num_refused = before["done"]
        try:
            with named_if_full(path), partial.open("a", encoding="utf-8", newline="") as file:
                file.truncate(size)
                yield RowWriter(file, num_blocks, num_refused, notes, command)
            partial.replace(path)
            notes.unlink(missing_ok=True)
        except ValueError:
            notes.unlink(missing_ok=True)
            raise
        finally:
            if not notes.exists():
                partial.unlink(missing_ok=True)
            lock.unlink()
