from __future__ import annotations

from dataclasses import replace

from benchmarks.report.steps import MPED, draw, numbers, table
from tests.benchmarks.report.test_papers import stored


def test_steps_of_rows_with_and_without_a_change() -> None:
    one = replace(MPED, change="T=1")
    cells = [
        stored(MPED, 10, 0.5, decoder_steps=3),
        stored(one, 10, 0.4, decoder_steps=1),
        stored(one, 11, 0.42, decoder_steps=1),
    ]
    found = numbers([*cells, stored(MPED, 10, 0.8, "reuters", decoder_steps=3)])
    assert list(found) == ["bibtex"]  # on the other there is nothing to compare
    assert list(found["bibtex"]) == [1, 3]
    assert "| bibtex | 0.410 ± 0.014 | 0.500 |" in table(found, "steps.svg")
    assert len(draw(found).axes[0].lines) > 0
    # What changes the dropout has as many steps as the row itself, and is none of this picture.
    dropped = stored(replace(MPED, change="label dropout 0.5"), 10, 0.1, decoder_steps=3)
    assert numbers([*cells, dropped]) == found
    assert table({}, "steps.svg") == ["Not run with several numbers of steps."]
