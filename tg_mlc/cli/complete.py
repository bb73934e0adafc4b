"""The command ``tg-mlc complete``: fills the blank labels of a file."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from tg_mlc.cli._options import RowsFile
from tg_mlc.cli._output import check_output, identity, resumable

if TYPE_CHECKING:
    from tg_mlc.cli._inputs import Inputs
    from tg_mlc.inference import Model, Prediction
    from tg_mlc.inputs.tables import Table


def complete(
    model: str,
    file: RowsFile,
    *,
    out: str,
    labels: str | list[str] | None = None,
    metric: str = "f1_micro",
    batch_size: int = 256,
    device: str = "cpu",
) -> int:
    """Fills the blank cells of the label columns of a file with 0 or 1.

    Labels that a row has are given to the model. The file --out has all columns of the file, with
    known cells as they were. For each label with blanks, a further column, such as "liver
    probability", holds the probabilities of filled cells, and is blank in other rows. Rows that
    cannot be read stay as they are, with the reason; the exit status is then 1. Files are read and
    written some rows at a time: if the command is stopped, run it again to go on.

    Args:
        model (MODEL): The folder of the model.
        out (FILE): The CSV file for the result, with the delimiter of the file, in UTF-8.
        labels (NAMES): The columns of labels to fill, separated by commas; by default, all that the
            model knows.
        metric (NAME): The metric that decisions are tuned for: subset_accuracy, hamming_accuracy,
            f1_samples, f1_micro or f1_macro.
        batch_size (NUMBER): The number of samples at a time.
        device (NAME): The device to compute on, such as cpu or cuda.

    Examples:
        tg-mlc complete model --csv drugs.csv --out completed.csv
        tg-mlc complete model --csv drugs.csv --labels skin --out completed.csv
    """
    from tg_mlc.cli._inputs import Predictions, calibration_of, inputs_of, split_names
    from tg_mlc.inference import Query, load

    path = file.path
    check_output(out, path, model)
    loaded = load(model, device=device)
    inputs = inputs_of(loaded, model, file)
    columns = _columns_with_blanks(loaded, inputs, path, split_names(labels))
    # A model of one label has no other labels that a known one could change.
    given = "all" if loaded.takes_given else None
    query = Query(metric=metric, batch_size=batch_size)
    blocks = Predictions(loaded, inputs, path, query, given=given)
    command: dict[str, Any] = {
        "command": "complete",
        "labels": columns,
        "metric": metric,
        "delimiter": file.delimiter,
        "encoding": file.encoding,
        "device": device,
        "batch_size": batch_size,
        **identity(model, path),
    }
    with resumable(out, command) as writer:
        blocks.num_done, blocks.num_refused = writer.num_blocks, writer.num_refused
        for table, prediction in blocks:
            lines = csv.writer(_Lines(writer.file), delimiter=table.delimiter or ",")
            if writer.num_blocks == 0:
                lines.writerow([*table.header, *map(_added, columns), "reason"])
            lines.writerows(_filled_rows(table, inputs, prediction, columns))
            writer.note(blocks.num_refused)
    print(f"tg-mlc: probabilities are {calibration_of(loaded)}", file=sys.stderr)  # noqa: T201
    return blocks.status("left unchanged")


class _Lines(NamedTuple):
    r"""A file for :func:`csv.writer`, whose lines end in ``\n``. The writer itself ends them with
    ``\r\n``, so that it quotes cells that contain either character.
    """

    file: TextIO

    def write(self, line: str) -> None:
        self.file.write(line.removesuffix("\r\n") + "\n")


def _added(column: str) -> str:
    return f"{column} probability"


def _columns_with_blanks(
    model: Model, inputs: Inputs, path: str, names: Sequence[str]
) -> list[str]:
    """Returns the columns of labels to fill that have blank cells: of the names, if there are any,
    else of all labels of the model. Raises ValueError for files that cannot be completed.
    """
    import numpy as np
    import torch

    from tg_mlc.graphs.hierarchy import propagate
    from tg_mlc.inference.decisions import Coherence
    from tg_mlc.inputs.tables import check_columns

    coherence = model.stage(Coherence)
    pairs = None if coherence is None else coherence.pairs()
    label_names, source, columns = model.label_names, f"'{path}'", dict[str, bool]()
    if inputs.separator is not None:
        got = f"names in the column {inputs.labels[0]!r}, where no cell is one label"
        hint = "use 'tg-mlc predict --given all'"
        raise ValueError(f"Expected a model with a column for each label (got {got}); {hint}")
    if unknown := [name for name in names if name not in label_names]:
        expected = f"--labels among labels of the model, such as {label_names[:5]}"
        raise ValueError(f"Expected {expected} (got {unknown[:5]})")
    for table in inputs.blocks(path):
        header = table.header
        present = inputs.label_columns(table, label_names)
        if not present:
            expected = f"columns of labels in {source}, such as {label_names[:5]}"
            hint = "add the columns to fill, with blank cells"
            raise ValueError(f"Expected {expected} (got none); {hint}")
        check_columns(list({*present, *names}), header, source)
        given = inputs.given(table, label_names, "all")
        if pairs is not None:
            propagate(torch.from_numpy(given), pairs, label_names, path, where=table.where)
        is_blank = np.isnan(given).any(axis=0)
        for name in names or present:
            is_found = columns.get(name, False)
            columns[name] = is_found or bool(is_blank[label_names.index(name)])
    with_blanks = [name for name, has_blanks in columns.items() if has_blanks]
    if not with_blanks:
        expected = f"blank cells in the columns {list(columns)[:5]} of {source}"
        raise ValueError(f"Expected {expected} (got none); nothing is left to complete")
    added = [*map(_added, with_blanks), "reason"]
    if taken := [name for name in added if name in header]:
        hint = "rename it, because the result gets a column of this name"
        raise ValueError(f"Expected no column {taken[0]!r} in {source} (got one); {hint}")
    return with_blanks


def _filled_rows(
    table: Table, inputs: Inputs, prediction: Prediction, columns: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Yields the cells of each row, with blank labels filled, and of the columns after them."""
    import numpy as np

    label_names, cells, added = prediction.label_names, table.all_texts(), list[list[str]]()
    is_blank = np.isnan(inputs.given(table, label_names, "all"))
    is_filled = is_blank & ~np.isnan(prediction.probabilities)
    probabilities = prediction.probabilities.round(6)
    for name in columns:
        index, column = label_names.index(name), cells[table.header.index(name)]
        added.append([""] * len(table))
        for row in np.flatnonzero(is_filled[:, index]).tolist():
            column[row] = str(int(prediction.decisions[row, index]))
            added[-1][row] = str(probabilities[row, index])
    reasons = [prediction.reasons.get(row, "") for row in range(len(table))]
    return zip(*cells, *added, reasons, strict=True)
