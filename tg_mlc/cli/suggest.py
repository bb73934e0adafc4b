"""The command ``tg-mlc suggest``: which labels of each row to look up next."""

from __future__ import annotations

import re
import sys

from tg_mlc.cli._options import RowsFile
from tg_mlc.cli._output import check_output

_COST = re.compile("(.+?)=([^=,]+)(?:,|$)")  # Names of labels may contain commas.


def suggest(
    model: str,
    file: RowsFile,
    *,
    k: int = 3,
    targets: str | list[str] | None = None,
    candidates: str | list[str] | None = None,
    cost: str | None = None,
    budget: float | None = None,
    out: str | None = None,
) -> int:
    """Suggests which labels of each row of a file to look up next.

    Columns of labels in the file are known labels, except for blank cells. The result is CSV with a
    line for each suggestion: the row, the label, and the expected gain in bits. Rows that cannot be
    read are reported and skipped; the exit status is then 1.

    Args:
        model (MODEL): The folder of the model.
        k (NUMBER): The largest number of labels per row.
        targets (NAMES): The labels whose values matter, separated by commas; by default, all.
        candidates (NAMES): The labels that can be looked up, separated by commas; by default, all.
        cost (COSTS): Costs of labels, such as liver=20,skin=0.5; other labels cost 1.
        budget (NUMBER): The largest cost of all suggestions together, which the rows share.
        out (FILE): The file for the suggestions; by default, they are printed.

    Examples:
        tg-mlc suggest model --csv new.csv --k 2
        tg-mlc suggest model --csv new.csv --cost liver=20 --budget 100 --out suggestions.csv
    """
    from tg_mlc._files import replace_when_done
    from tg_mlc.cli._inputs import Predictions, inputs_of, split_names
    from tg_mlc.inference import Query, load
    from tg_mlc.inputs.tables import read_table

    path = file.path
    if out is not None:
        check_output(out, path, model)
    costs = None if cost is None else _costs(cost)
    loaded = load(model)
    inputs = inputs_of(loaded, model, file)
    table = read_table(path, file.delimiter, file.encoding)
    rows = Predictions(loaded, inputs, path, Query())
    reading = loaded.read(inputs.raw(table))
    rows.report(table, reading)
    if reading.samples is None:
        raise ValueError(f"Expected at least one row that can be read in '{path}' (got none)")
    given = None
    if inputs.label_columns(table, loaded.label_names):
        given = inputs.given(table, loaded.label_names, "all")
    frame = loaded.suggest(
        reading._replace(warnings=[]),  # They are reported above.
        given=given,
        k=k,
        targets=None if targets is None else split_names(targets),
        candidates=None if candidates is None else split_names(candidates),
        cost=costs,
        budget=budget,
    )
    text = frame.round(6).to_csv(index=False)
    if out is None:
        sys.stdout.write(text)
    else:
        with replace_when_done(out) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    return rows.status("skipped")


def _costs(text: str) -> dict[str, float]:
    """Returns the costs by label of a text such as ``liver=20,skin=0.5``."""
    pairs = _COST.findall(text)
    try:
        if not pairs or ",".join("=".join(pair) for pair in pairs) != text:
            raise ValueError(text)
        return {name.strip(): float(value) for name, value in pairs}
    except ValueError:
        expected = "--cost as in liver=20,skin=0.5, with a number for each label"
        raise ValueError(f"Expected {expected} (got '{text:.60}')") from None
