from __future__ import annotations

import pytest

from benchmarks.accuracy.paper_rows import NAMES, TABLES, title
from benchmarks.accuracy.papers import reported
from benchmarks.accuracy.rows import Row
from tg_mlc.papers.recipes.family import FAMILY


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_called_as_in_the_papers(name: str) -> None:
    table = TABLES[name]
    known = {model for paper, _, model, _ in reported() if paper == table.paper}
    assert {each for names in table.rows.values() for each in names} <= known
    assert len({title(row) for row in table.rows}) == len(table.rows)


def test_every_model_of_the_family_has_a_row_and_a_name() -> None:
    rows = {row.model for table in TABLES.values() for row in table.rows}
    assert FAMILY.keys() <= rows
    assert {row.model for table in TABLES.values() for row in table.rows if row.encoder} == NAMES.keys()


def test_titles() -> None:
    assert title(Row("lamp", "fmp", "pr")) == "LaMP fmp pr"
    assert title(Row("mped", "fmp", "fc", change="T=1")) == "MPED fc, T=1"
    assert title(Row("label frequency")) == "label frequency"
