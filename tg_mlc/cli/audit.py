"""The command ``tg-mlc audit``: which recorded labels of a file are likely wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tg_mlc.cli._options import InputColumns, TableOptions
from tg_mlc.cli._output import check_output

if TYPE_CHECKING:
    from tg_mlc.cli._inputs import Inputs
    from tg_mlc.data import MultiLabelDataset
    from tg_mlc.inputs.tables import Table
    from tg_mlc.joint import Audit

NUM_WORST = 3  #: number of labels with the most noise that are printed


def audit_(
    columns: InputColumns,
    table: TableOptions,
    *,
    out: str,
    seconds: float = 300.0,
    seed: int = 0,
    top: int | None = None,
    report: str | None = None,
    details: str | None = None,
    names: str | None = None,
) -> int:
    """Finds recorded labels of a file that are likely wrong.

    Each recorded label is compared with its probability given the inputs and all other labels of
    its row. The file --out lists them, the most suspicious first: the row (the first is 0), the
    label, the recorded value with its probability, and the suspicion that it is wrong. A summary is
    printed. No other file changes.

    Args:
        out (FILE): The CSV file for the suspects.
        seconds (SECONDS): The time that all trainings may take, roughly; small files take less.
        seed (NUMBER): Seed of all random choices.
        top (NUMBER): The number of suspects to write; by default, all recorded labels.
        report (FILE): An HTML file in which a person goes through the first 200 suspects, sees what
            speaks against each, and exports decisions.
        details (FOLDER): An existing folder for more tables: rows.csv with the suspicion of each
            row, noise.csv with the estimated errors of each label, and blanks.csv with unknown
            labels that are likely present.
        names (COLUMN): The column of the file that names the rows in the report; by default, the
            columns with the names of rows, if there are some.

    Examples:
        tg-mlc audit --csv drugs.csv --smiles smiles --labels liver,skin --out suspects.csv
    """
    from tg_mlc._optional import require
    from tg_mlc._options import check_count, check_number
    from tg_mlc.cli._inputs import make_inputs
    from tg_mlc.cli._training import read_dataset, time_left
    from tg_mlc.inputs.schema import match_names
    from tg_mlc.inputs.tables import read_table
    from tg_mlc.joint import audit

    check_output(out, table.path)
    if report is not None:
        check_output(report, table.path, name="--report")
        if Path(report).absolute() == Path(out).absolute():
            raise ValueError(f"Expected another --report than --out (got '{report}')")
        require("jinja2", extra="explain")
    tables = {name: Path(details or "", f"{name}.csv") for name in ("rows", "noise", "blanks")}
    for path in tables.values() if details is not None else ():
        check_output(str(path), table.path, name="--details")
    check_number("--seconds", seconds)
    if top is not None:
        check_count("--top", top)
    inputs, table = make_inputs(columns, table)
    dataset = read_dataset(inputs, table)
    if dataset.num_labels < 2:
        hint = "a label is compared with the others of its row"
        raise ValueError(f"Expected --labels to name several labels (got one); {hint}")
    cells = read_table(table.path, table.delimiter, table.encoding)
    if names is not None:
        [names] = match_names([names], cells.header, f"'{table.path}'")
    rows = _rows_in_file(inputs, cells, len(dataset))
    with time_left(seconds):
        result = audit(dataset, seconds, seed)
    suspects = result.cells.head(len(result.cells) if top is None else top)
    _write(suspects, out, rows)
    if details is not None:
        for name, path in tables.items():
            _write(getattr(result, name), path, rows)
    lines = f"'{out}' lists {len(suspects)} labels, the most suspicious first."
    if report is not None:
        result.report(report, **_in_file(inputs, cells, dataset, rows, names))
        lines += f"\nDecide about them in '{report}', in a browser."
    print(f"{_summary(result)}\n{lines}")  # noqa: T201
    return 0


def _write(frame: Any, path: str | Path, rows: Sequence[int]) -> None:
    """Writes a table of the audit, with the rows of the file in place of samples."""
    from tg_mlc._files import replace_when_done

    frame = frame.round(6)
    if "row" in frame:
        frame["row"] = [rows[row] for row in frame["row"]]
    with replace_when_done(path) as unfinished:
        frame.to_csv(unfinished, index=False)


def _rows_in_file(inputs: Inputs, table: Table, num_samples: int) -> list[int]:
    """Returns the row of each sample in the file. Rows that cannot be read give no sample."""
    if len(table) == num_samples:
        return [*range(num_samples)]
    refused = inputs.input_kind.refused_rows(table, inputs.columns, inputs.parts or {})
    rows = [row for row in range(len(table)) if row not in refused]
    assert len(rows) == num_samples
    return rows


def _in_file(
    inputs: Inputs, table: Table, dataset: MultiLabelDataset, rows: list[int], column: str | None
) -> dict[str, Any]:
    """Returns the raw inputs, the names and the row numbers of samples, for the report."""
    from tg_mlc.inference.features import rows_of

    columns = [] if dataset.schema is None else dataset.schema.columns
    if inputs.input_kind.reads_columns:
        inputs = inputs._replace(columns=[column.name for column in dataset.schema.inputs])
    ids = [entry.name for entry in columns if entry.role == "id"] if column is None else [column]
    texts = [table.texts(name) for name in ids]
    names = [", ".join(cells[row] for cells in texts) for row in rows] if ids else None
    return {"raw": rows_of(inputs.raw(table), rows), "names": names, "rows": rows}


def _summary(result: Audit) -> str:
    """Returns lines on wrong labels, swapped rows, and blanks that are likely present."""
    noise = result.noise
    present = result.cells.groupby("label")["recorded"].mean().reindex(noise["label"]).to_numpy()
    wrong = noise["wrongly_present"] * present + noise["wrongly_absent"] * (1 - present)
    wrong = wrong.fillna(0.0)  # for labels that are known in no row
    num_wrong = wrong * noise["known"]
    worst = wrong.sort_values(ascending=False, kind="stable").index[:NUM_WORST]
    labels = ", ".join(f"{noise['label'][index]} {wrong[index]:.1%}" for index in worst)
    num_blanks = len(result.rows) * len(noise) - len(result.cells)
    fraction, swapped = num_wrong.sum() / noise["known"].sum(), noise.attrs["swapped_rows"]
    lines = [
        f"Estimated wrong labels: {fraction:.1%} (most: {labels})",
        f"Rows with the labels of another row: at most {swapped:.1%}",
        f"Blanks that are likely present: {len(result.blanks)} of {num_blanks}",
    ]
    return "\n".join(lines)
