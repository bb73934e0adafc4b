from datetime import datetime

import numpy as np
import pytest

from tg_mlc._numbers import is_blank
from tg_mlc.inputs.cells import numbers_of
from tg_mlc.inputs.notations import (
    PLAIN,
    AmbiguousError,
    Clock,
    Date,
    Duration,
    Number,
    Truth,
    find_notation,
    looks_like,
    notation_of,
    plain_numbers,
)

NOTATIONS = [
    (["1", "-2.5", "+.5E+3", "7."], PLAIN, [1, -2.5, 500, 7]),
    (["3,5", "-4,75", "6"], Number(","), [3.5, -4.75, 6]),
    (["0,125", "1,250"], Number(","), [0.125, 1.25]),
    (["1.234,5", "12"], Number(",", "."), [1234.5, 12]),
    (["1 100", "10\u202f550", "7"], Number(".", " "), [1100, 10550, 7]),
    (["1'100", "22'000.5"], Number(".", "'"), [1100, 22000.5]),
    (["1.100.000", "12"], Number(",", "."), [1_100_000, 12]),
    (["45%", "3.5 %"], Number(unit="%"), [45, 3.5]),
    (["$1,100.50", "$9"], Number(".", ",", "$"), [1100.5, 9]),
    (["-$5", "$-7", "\u2212$2"], Number(unit="$"), [-5, -7, -2]),
    (["9,50 €", "13 €"], Number(",", "", "€"), [9.5, 13]),
    (["EUR 5", "EUR 7"], Number(unit="EUR"), [5, 7]),
    (["$45k", "$1.5 k"], Number(unit="$ k"), [45, 1.5]),
    (["$5 USD", "$7 USD"], Number(unit="$ USD"), [5, 7]),
    (["5 mg", "7mg"], Number(unit="mg"), [5, 7]),
    (["20 °C", "-3 °C"], Number(unit="°C"), [20, -3]),
    (["3 kg/m2"], Number(unit="kg/m2"), [3]),
    (["TRUE", "False", "0"], Truth("false", "true"), [1, 0, 0]),
    (["Y", "n"], Truth("n", "y"), [1, 0]),
    (["6:00", "17:30"], Clock(), [360, 1050]),
    (["6:00:00", "23:59:30"], Clock(), [360, 1439.5]),
    (["12:15 am", "5:30 PM"], Clock(), [15, 1050]),
    (["12pm", "1 p.m.", "12AM"], Clock(), [720, 780, 0]),
    (["Jan 31 2024"], Date("%b %d %Y"), [19753]),
    (["1/31/2024 6:00 PM"], Date("%m/%d/%Y %I:%M %p"), [19753.75]),
    (["1970-01-02", "2024-01-31T12:00:00Z"], Date(), [1, 19753.5]),
    (["31.01.2024", "01.02.2024"], Date("%d.%m.%Y"), [19753, 19754]),
    (["01/31/2024"], Date("%m/%d/%Y"), [19753]),
    (["31-Jan-2024"], Date("%d-%b-%Y"), [19753]),
    (["30-10-2016 12:00"], Date("%d-%m-%Y %H:%M"), [17104.5]),
    (["2024-1-5", "2024-02-16"], Date("%Y-%m-%d"), [19727, 19769]),
    (["Fri, 05 Jan 2024 12:00:00 GMT"], Date("%d %b %Y %H:%M:%S"), [19727.5]),
    (["2024-01", "2024-03"], Date("%Y-%m"), [19723, 19783]),
    (["01/2024"], Date("%m/%Y"), [19723]),
    (["Jan-24", "Mar-24"], Date("%b-%y"), [19723, 19783]),
    (["2024Q1", "2024 q2"], Date("period"), [19723, 19814]),
    (["Q4 2023"], Date("period"), [19631]),
    (["2024-W01", "2024-W05"], Date("period"), [19723, 19751]),
    (["1 days 12:00:00", "2 days"], Duration(), [1.5, 2]),
    (["100:00:00", "6:00:00"], Duration(), [100 / 24, 0.25]),
    (["1 days 02:00", "2 days"], Duration(), [26 / 24, 2]),
    (["PT6H", "P1DT12H", "PT36M"], Duration(), [0.25, 1.5, 0.025]),
    (["6h 36m", "12h", "3h36"], Duration(), [0.275, 0.5, 0.15]),
    (["nein", "Ja"], Truth("nein", "ja"), [0, 1]),
    (["no", "sí"], Truth("no", "sí"), [0, 1]),
    (["да", "нет"], Truth("нет", "да"), [1, 0]),
    (["negative", "positive"], Truth("negative", "positive"), [0, 1]),
]


@pytest.mark.parametrize(
    ("cells", "notation", "values"), NOTATIONS, ids=[cells[0] for cells, _, _ in NOTATIONS]
)
def test_numbers_in_any_notation_are_parsed(cells, notation, values):
    inferred = find_notation(cells)
    assert inferred == notation
    assert [inferred.parse(cell) for cell in cells] == pytest.approx(values)
    assert notation_of(inferred.to_dict()) == inferred
    assert str(inferred)


#: Cells without a notation. The opposite of "yes" alone is unknown.
OTHERS = ["yes", "10-20", "<5", "1_000", "inf", "1e999", "\u0663", "2024-02-30", "24:60"]
OTHERS += ["13:00 pm", "12,34,567"]
#: Pairs of cells without a common notation.
PAIRS = ["red|blue", "1|x", "5 mg|5 g", "5 mg|5", "1:30|1h 30m", "$45k|$1.2m", "$45k|$45000"]
PAIRS += ["$5 USD|$5 CAD", "yes|maybe", "A1|B2", "1,5|1.5"]


@pytest.mark.parametrize("cells", [*OTHERS, *PAIRS])
def test_other_texts_have_no_notation(cells):
    assert find_notation(cells.split("|")) is None


@pytest.mark.parametrize(
    "cells", [["01/02/2024"], ["1,100", "2,150"], ["3:45", "1:02:45", "4:10"], ["75:10", "3:45"]]
)
def test_ambiguous_cells_are_refused(cells):
    with pytest.raises(AmbiguousError):
        find_notation(cells)


def test_ambiguous_cells_are_settled_by_context():
    assert find_notation(["1,100"], delimiter=",") == Number(".", ",")
    assert find_notation(["1,100"], decimal=",") == Number(",")
    assert find_notation(["1,100"], decimal=".") == Number(".", ",")
    assert find_notation(["3.5"], decimal=",") is None
    assert find_notation(["01/02/2024", "31/01/2024"]) == Date("%d/%m/%Y")
    assert find_notation(["05/05/2024"]).parse("05/05/2024") == 19848  # Both orders give this date.


def test_blank_cells_are_recognized():
    blank = ["", " ", "NA", "n/a", "NaN", "-nan", "NULL", "None", "<NA>", r"\N", "?", "NaT"]
    assert [cell for cell in blank if not is_blank(cell)] == []
    assert [cell for cell in ("0", "no", "-", "nil", "nothing") if is_blank(cell)] == []


def test_plain_numbers_are_decimal_and_finite():
    assert plain_numbers(["1", "-2e3", ".5"]) == [1, -2000, 0.5]
    for cell in ("1_0", "inf", "nan", "\u0663", "x", "1e999"):
        assert plain_numbers(["1", cell]) is None


def test_cells_are_described():
    descriptions = {"9,5": "decimal comma", "45%": "percentage", "5 mg": "'mg'"}
    descriptions |= {"2024-01-31": "date", "7:30": "time", "x": "text"}
    for cell, description in descriptions.items():
        assert description in looks_like(cell)


def test_early_and_late_dates_are_the_same_numbers_as_texts_and_times():
    days = ["0001-01-01", "1677-01-01", "2262-12-31", "9999-12-31"]
    times = np.array([datetime.fromisoformat(day) for day in days], dtype=object)
    for cells in (np.array(days, dtype=object), times, np.array(days, dtype="datetime64[s]")):
        assert numbers_of("day", Date(), cells).tolist() == [-719162, -107015, 107015, 2932896]
