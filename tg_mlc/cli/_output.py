"""Output of commands: text or JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tg_mlc._optional import require

if TYPE_CHECKING:
    from tg_mlc.metrics import Evaluation

MAX_LABELS = 30  #: Maximum number of labels whose results are printed.
#: Options by Python name, unless the names only differ by the suffix "_column".
_OPTIONS = {"label_columns": "labels", "feature_columns": "features", "drop": "ignore"}


def option(name: str, *value: Any) -> str:
    """Returns an option and its value in shell syntax, from its name in Python."""
    text = f"--{_OPTIONS.get(name, name.removesuffix('_column'))}"
    for values in value:
        names = values if isinstance(values, list) else [str(values)]
        # Names are separated by commas, or a JSON list if a name contains a comma.
        is_plain = values is not names or not any("," in entry for entry in names)
        word = ",".join(names) if is_plain else json.dumps(names, ensure_ascii=False)
        text += " '{}'".format(word.replace("'", "'\"'\"'"))
    return text


def show(result: Any, text: str, as_json: bool) -> None:
    """Prints a result as JSON or as text."""
    # JSON has no NaN or infinity, so they become null.
    finite = json.loads(json.dumps(result), parse_constant=lambda _: None)
    as_text = json.dumps(finite, ensure_ascii=False, allow_nan=False) if as_json else text
    print(as_text)  # noqa: T201


def aligned(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table with the first column aligned left, and all other columns right."""
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = []
    for first_cell, *other_cells in lines:
        cells = [cell.rjust(width) for cell, width in zip(other_cells, widths[1:], strict=True)]
        texts.append("  ".join([first_cell.ljust(widths[0]), *cells]))
    return "\n".join(texts)


def results_by_label(evaluation: Evaluation) -> str:
    """Returns a table of the results of each label, if these are few enough to be read."""
    if evaluation.num_labels > MAX_LABELS:
        return (
            f"Results of each of the {evaluation.num_labels} labels: --json, or evaluate --by_label"
        )
    header = ("label", "known", "positives", "ROC-AUC", "95 %", "AP", "F1", "threshold")
    rows = []
    for values in evaluation.records():
        label, *counts = (str(values[name]) for name in ("label", "known", "positives"))
        names = ("roc_auc", "roc_auc_low", "roc_auc_high", "average_precision", "f1", "threshold")
        cells = ["" if values[name] is None else f"{values[name]:.3f}" for name in names]
        auc, low, high, *others = cells
        rows.append((label, *counts, auc, f"{low}-{high}".strip("-"), *others))
    return f"\n{aligned(header, rows)}\n"


def check_output(out: str, csv: str, model: str | None = None, name: str = "--out") -> None:
    """Raises ValueError if the command also reads the output file, or cannot write it."""
    from tg_mlc.inference.folder import CONTENT, WEIGHTS

    path = Path(out)
    if path.is_dir() or not path.absolute().parent.is_dir():
        got = f"'{out}', {'a folder' if path.is_dir() else 'whose folder does not exist'}"
        raise ValueError(f"Expected {name} to be a file in an existing folder (got {got})")
    is_csv = path.exists() and Path(csv).exists() and path.samefile(csv)
    has_folder = model is not None and Path(model).is_dir()
    in_model = has_folder and path.absolute().parent.samefile(str(model))
    if is_csv or (in_model and any(fnmatch(path.name, name) for name in (CONTENT, WEIGHTS))):
        reserved = "--csv" if is_csv else "a file of the model"
        got = f"'{out}', which the command reads"
        raise ValueError(f"Expected another {name} than {reserved} (got {got})")


def identity(model: str, path: str) -> dict[str, str]:
    """Returns the version, the model and the file of a command, without which none is resumed."""
    from tg_mlc import __version__
    from tg_mlc._files import file_sha256
    from tg_mlc.inference.folder import CONTENT

    csv = file_sha256(Path(path)) if Path(path).is_file() else path
    return {"version": __version__, "model": file_sha256(Path(model) / CONTENT), "csv": csv}


@dataclass
class RowWriter:
    """A file of rows, with the numbers of written blocks and unreadable rows. The file
    :attr:`notes` stores these numbers.
    """

    file: TextIO
    num_blocks: int = 0
    num_refused: int = 0
    notes: Path | None = None
    command: Mapping[str, Any] = field(default_factory=dict)

    def note(self, num_refused: int) -> None:
        """Counts a written block. If the command is resumed, it skips this block."""
        self.num_blocks, self.num_refused = self.num_blocks + 1, num_refused
        if self.notes is not None:
            from tg_mlc._files import replace_when_done

            self.file.flush()
            os.fsync(self.file.fileno())
            done = [os.fstat(self.file.fileno()).st_size, self.num_blocks, self.num_refused]
            text = json.dumps({"command": self.command, "done": done})
            with replace_when_done(self.notes) as unfinished:
                unfinished.write_text(text, encoding="utf-8")


@contextmanager
def resumable(out: str, command: Mapping[str, Any]) -> Iterator[RowWriter]:
    """Writes a file that appears when all rows are written. After an interruption, the same command
    continues from a partial file. Errors of the input leave no partial file.
    """
    from tg_mlc._files import named_if_full

    locks = require("filelock", extra="train")
    path = Path(out)
    partial, notes, lock = (
        path.with_name(f".{path.name}.{end}") for end in ("partial", "notes", "lock")
    )
    try:
        held_lock = locks.FileLock(lock, blocking=False).acquire()
    except locks.Timeout:
        expected = "no other command that writes to --out"
        got = f"'{out}', which another command is writing"
        raise ValueError(f"Expected {expected} (got {got})") from None
    with held_lock:
        size, num_blocks, num_refused = 0, 0, 0
        if notes.exists() and partial.exists():
            saved = json.loads(notes.read_text(encoding="utf-8"))
            previous = saved["command"]
            if changed := [name for name, value in command.items() if previous.get(name) != value]:
                expected, got = f"the command that began '{partial}'", ", ".join(changed)
                hint = f"run that command again, or delete '{notes}' to start anew"
                raise ValueError(f"Expected {expected} (got another {got}); {hint}")
            if saved["done"][0] <= partial.stat().st_size:
                size, num_blocks, num_refused = saved["done"]
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
