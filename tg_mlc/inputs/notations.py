"""Notations of numbers, dates, times of day, durations and truth values in cells of tables."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta, timezone
from functools import cache
from numbers import Real
from typing import Any, ClassVar

from tg_mlc._numbers import TRUTHS
from tg_mlc._options import argument

_SPACES = str.maketrans(dict.fromkeys("\u00a0\u2009\u202f", " ") | {"\u2212": "-", "\u2019": "'"})
_DIGITS = r"[0-9][0-9.,' ]*(?<=[0-9.])|\.[0-9]+"
_SYMBOL = "[$€£¥₹₩₽₺₴₦₫฿¢%‰°µ]"
_NUMBER = re.compile(
    rf"(?P<sign>[-+]?) ?(?:(?P<before>{_SYMBOL}|[A-Z]{{3}} ) ?)?(?P<minus>-?)"
    rf"(?P<digits>{_DIGITS})(?P<power>[eE][-+]?[0-9]+)?"
    rf"(?: ?(?P<after>{_SYMBOL}[^\W\d]*|[^\W\d_A-Z][^\s0-9]*)| (?P<word>[^\W\d][^\s]*))?"
)
#: Pairs of decimal and thousands separators, the most common first.
_CONVENTIONS = (
    (".", ""),
    (".", ","),
    (",", ""),
    (",", "."),
    (".", " "),
    (",", " "),
    (".", "'"),
    (",", "'"),
)
_CLOCK = re.compile(
    r"([0-9]{1,2}):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]+)?))?(?: ?([ap])\.?m\.?)?", re.IGNORECASE
)
_COLONS = re.compile(r"([0-9]+):[0-5][0-9](:[0-5][0-9](?:\.[0-9]+)?)?")
_HOUR = re.compile(r"([0-9]{1,2})()() ?([ap])\.?m\.?", re.IGNORECASE)
_DURATION = re.compile(
    r"(?![0-9]+:[0-9]+$)(?:([0-9]+) ?days?,? ?)?"
    r"(?:([0-9]+):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]+)?))?)?"
    r"|(?:([0-9]+) ?d(?:ays?)?,? ?)?(?:([0-9]+) ?h(?:ours?|rs?)? ?)?"
    r"(?:([0-9]+) ?(?:m(?:in(?:utes?)?)?|(?<=h[0-9]{2})$) ?)?(?:([0-9.]+) ?s(?:ec)?)?"
    r"|P(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9.]+)S)?)?"
)
_PERIOD = re.compile(
    r"(?P<year>[0-9]{4})[- ]?([QW])([0-9]{1,2})|([QW])([0-9]{1,2})[- /]?([0-9]{4})", re.IGNORECASE
)
_WEEKDAY = re.compile(
    r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? "
    r"|(?<=:[0-9]{2}) (?:GMT|UTC)$"
)
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}.*)?")
_MONTHS = ("%Y-%m", "%Y/%m", "%m/%Y", "%m-%Y", "%b %Y", "%B %Y", "%b-%Y", "%b-%y")
_DAYS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y"),
    "%m-%d-%Y",
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d %b %Y", "%d-%b-%Y", "%d %B %Y"),
    *("%b %d, %Y", "%B %d, %Y", "%d-%b-%y", "%b %d %Y", "%B %d %Y", "%d. %B %Y"),
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
_DATED = tuple(day + time for time in _TIMES for day in _DAYS)
_DATES = ("ISO 8601", *_DATED, "%Y%m%dT%H%M%S", "period", *_MONTHS)
_LONGEST = 1_000  # characters of a cell that may be a number or a date
_SAMPLE = 30  #: Number of cells that decide which notations are tried.
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Notation:
    """Base class of notations."""

    form: ClassVar[str]

    def parse(self, cell: str) -> float | None:
        """Returns the number in a stripped cell, or None if the cell is not in this notation."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data, from which :func:`notation_of` restores the notation."""
        return {"form": self.form, **vars(self)}


@dataclass(frozen=True)
class Number(Notation):
    """Digits with decimal and thousands separators; all cells have the same unit."""

    form: ClassVar[str] = "number"
    decimal: str = "."
    thousands: str = ""
    unit: str = ""

    def parse(self, cell: str) -> float | None:
        """Returns the number without its unit: ``45%`` is 45."""
        match = _NUMBER.fullmatch(cell.translate(_SPACES))
        if match is None or _unit(match) != self.unit or _HOUR.fullmatch(cell):
            return None
        digits = match["digits"]
        if not _pattern(self.decimal, self.thousands).fullmatch(digits):
            return None
        plain = digits.replace(self.thousands, "").replace(self.decimal, ".")
        number = float(plain + (match["power"] or ""))
        is_negative = "-" in (match["sign"], match["minus"])
        return (-number if is_negative else number) if math.isfinite(number) else None

    def __str__(self) -> str:
        parts = ["with decimal commas"] if self.decimal == "," else []
        parts += [f"with {_name_of(self.thousands)} between thousands"] if self.thousands else []
        parts += [f"in '{self.unit}'"] if self.unit else []
        return " ".join(["numbers", *parts])


@dataclass(frozen=True)
class Truth(Notation):
    """A word for 0 and a word for 1."""

    form: ClassVar[str] = "truth"
    no: str
    yes: str

    def parse(self, cell: str) -> float | None:
        return {self.no: 0.0, self.yes: 1.0, "0": 0.0, "1": 1.0}.get(cell.lower())

    def __str__(self) -> str:
        return f"'{self.no}' and '{self.yes}', read as 0 and 1"


@dataclass(frozen=True)
class Clock(Notation):
    """Times of day, in minutes."""

    form: ClassVar[str] = "time"

    def parse(self, cell: str) -> float | None:
        match = _CLOCK.fullmatch(cell) or _HOUR.fullmatch(cell)
        if match is None:
            return None
        hour, am_pm = int(match[1]), (match[4] or "").lower()
        if hour not in (range(1, 13) if am_pm else range(24)):
            return None
        if am_pm:
            hour = hour % 12 + 12 * (am_pm == "p")
        return 60.0 * hour + int(match[2] or 0) + float(match[3] or 0) / 60

    def __str__(self) -> str:
        return "times of day, read as minutes"


@dataclass(frozen=True)
class Duration(Notation):
    """Lengths of time, in days. Each format has groups for days, hours, minutes and seconds."""

    form: ClassVar[str] = "duration"

    def parse(self, cell: str) -> float | None:
        match = _DURATION.fullmatch(cell)
        groups = () if match is None else match.groups()
        formats = (groups[i : i + 4] for i in range(0, len(groups), 4))
        if (parts := next(filter(any, formats), None)) is None:
            return None
        per_day = (1, 24, 1440, 86_400)
        try:
            return sum(float(part or 0) / units for part, units in zip(parts, per_day, strict=True))
        except ValueError:  # A part may have several dots.
            return None

    def __str__(self) -> str:
        return "durations, read as days"


@dataclass(frozen=True)
class Date(Notation):
    """Dates, months, quarters (``2024Q1``) or weeks (``2024-W05``), in days since 1970, in UTC."""

    form: ClassVar[str] = "date"
    written: str = "ISO 8601"
    since: float = 0.0  #: day since 1970 that counts as 0, if float32 is too coarse

    def parse(self, cell: str) -> float | None:
        cell = _WEEKDAY.sub("", cell) if cell[:1].isalpha() else cell
        try:
            if self.written == "period":
                if (match := _PERIOD.fullmatch(cell)) is None:
                    return None
                year, letter, number = match.group(*((1, 2, 3) if match[1] else (6, 4, 5)))
                if letter in "wW":
                    moment = datetime.fromisocalendar(int(year), int(number), 1)
                else:
                    moment = datetime(int(year), 3 * int(number) - 2, 1)
            elif self.written != "ISO 8601":
                # Data frames may append midnight to dates: 2024-01-31 00:00:00.
                day = cell if "%H" in self.written else cell.removesuffix(" 00:00:00")
                moment = datetime.strptime(day, self.written)
            elif _ISO.fullmatch(cell):
                moment = datetime.fromisoformat(re.sub(r"Z$", "+00:00", cell))
            else:
                return None
        except ValueError:
            return None
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
        return (moment - _EPOCH).total_seconds() / 86_400 - self.since

    def __str__(self) -> str:
        first = (_EPOCH + timedelta(self.since)).date()
        return f"dates ({self.written}), read as days since {first}"


PLAIN = Number()
_FORMS: dict[str, type[Notation]] = {c.form: c for c in (Number, Truth, Clock, Duration, Date)}


def notation_of(entry: Mapping[str, Any]) -> Notation:
    """Restores a notation from the result of :meth:`Notation.to_dict`. Data of another form raise
    any error.
    """
    options = dict(entry)
    notation = _FORMS[options.pop("form")](**options)
    for option in fields(notation):
        value = getattr(notation, option.name)
        if not isinstance(value, str if option.type == "str" else Real):
            raise TypeError(f"'{option.name}' of {type(value).__name__}")
    return notation


class AmbiguousError(ValueError):
    """Raised for cells that can be read in two ways."""


def find_notation(
    cells: Collection[str], decimal: str | None = None, delimiter: str | None = None
) -> Notation | None:
    """Returns the notation in which all cells of a column are numbers; None if there is none.
    Raises AmbiguousError if two notations disagree, unless a specified decimal separator decides,
    or the delimiter is a comma: commas within cells then separate thousands.
    """
    if decimal in (None, ".") and plain_numbers(cells) is not None:
        return PLAIN
    clocks = [match for match in map(_COLONS.fullmatch, cells) if match]
    if len(clocks) == len(cells):
        have_seconds = {match[2] is not None for match in clocks}
        is_long = max((int(match[1]) for match in clocks), default=0) > 23
        if False in have_seconds and (True in have_seconds or is_long):
            hint = "write them with both, as 00:03:45"
            raise AmbiguousError(f"hours and minutes, or minutes and seconds; {hint}")
    for notation in candidates(cells, decimal):
        if all(notation.parse(cell) is not None for cell in cells):
            _refuse_ambiguous(notation, cells, decimal, delimiter)
            return notation
    return None


def plain_numbers(cells: Collection[str]) -> list[float] | None:
    """Returns the numbers of all cells; None unless every cell is a plain, finite number."""
    try:
        numbers = list(map(float, cells))
    except ValueError:
        return None
    # Python's float also accepts infinity, 1_000, and digits of other scripts.
    text = "".join(cells)
    is_plain = text.isascii() and "_" not in text and all(map(math.isfinite, numbers))
    return numbers if is_plain else None


def candidates(cells: Iterable[str], decimal: str | None = None) -> Iterator[Notation]:
    """Yields notations in which some of the cells can be read, the most common first."""
    cells = list(cells)
    words = {cell.lower() for cell in cells}
    yield from (Truth(no, yes) for no, yes in TRUTHS if {no, yes} <= words)
    sample = [cell for cell in cells[:_SAMPLE] if len(cell) <= _LONGEST]
    sample = [cell for cell in sample if any(map(str.isdigit, cell))]
    characters = set("".join(cells).translate(_SPACES))
    matches = (_NUMBER.fullmatch(cell.translate(_SPACES)) for cell in sample)
    for unit in dict.fromkeys(_unit(match) for match in matches if match is not None):
        for point, thousands in _CONVENTIONS:
            has_point = point != "," or "," in characters or thousands == "."
            if decimal in (None, point) and has_point and set(thousands) <= characters:
                yield Number(point, thousands, unit)
    notations = (Clock(), Duration(), *map(Date, _DATES))
    yield from (form for form in notations if any(form.parse(c) is not None for c in sample))


def is_misspelled(cell: str) -> bool:
    """Whether only Python reads a cell as a number: ``1_000``, ``inf``, digits of other scripts."""
    try:
        float(cell)
    except ValueError:
        return False
    return Number().parse(cell) is None


def looks_like(cell: str) -> str:
    """Describes the apparent notation of a cell, for messages."""
    if not any(map(str.isdigit, cell)):
        return "text"
    notations = (notation for notation in candidates([cell]) if notation.parse(cell) is not None)
    notation = next(notations, None)
    if isinstance(notation, Number):
        if notation.unit:
            return "a percentage" if notation.unit == "%" else f"a number in '{notation.unit}'"
        if notation.thousands:
            separator = _name_of(notation.thousands)
            return f"a number with {separator} between thousands, or a decimal comma"
        return "a number with a decimal comma" if notation.decimal == "," else "a number"
    names = {"time": "a time of day", "duration": "a duration", "date": "a date"}
    return "text" if notation is None else names[notation.form]


def _refuse_ambiguous(
    notation: Notation, cells: Collection[str], decimal: str | None, delimiter: str | None
) -> None:
    if isinstance(notation, Date):
        are_spans = notation.written in ("%Y-%m", "%Y/%m") and all(
            (int(cell[2:4]) + 1) % 100 == int(cell[5:]) for cell in cells
        )
        if are_spans:
            hint = "write months as 2024-01-01"
            raise AmbiguousError(f"months, or spans from a year to the next; {hint}")
        for other in map(Date, _DATES):
            is_possible = all(other.parse(cell) is not None for cell in cells)
            if is_possible and any(other.parse(cell) != notation.parse(cell) for cell in cells):
                formats = f"'{notation.written}' or '{other.written}'"
                hint = "write them as 2024-01-31"
                raise AmbiguousError(f"dates that may be written as {formats}; {hint}")
    has_commas = isinstance(notation, Number) and notation.thousands == ","
    if isinstance(notation, Number) and has_commas and decimal is None and delimiter != ",":
        with_commas = Number(",", "", notation.unit)
        if all(with_commas.parse(cell) is not None for cell in cells):
            hint = f"pass {argument('decimal', ',')} or {argument('decimal', '.')}"
            readings = "commas that may stand before decimals or between thousands"
            raise AmbiguousError(f"{readings}; {hint}")


@cache
def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    groups = rf"[1-9][0-9]{{0,2}}(?:{re.escape(thousands)}[0-9]{{3}})+|" if thousands else ""
    point = re.escape(decimal)
    return re.compile(rf"(?:{groups}[0-9]+)(?:{point}[0-9]*)?|{point}[0-9]+")


def _unit(match: re.Match[str]) -> str:
    return " ".join(part.strip() for part in match.group("before", "after", "word") if part)


def _name_of(separator: str) -> str:
    return {",": "commas", ".": "dots", " ": "spaces", "'": "apostrophes"}[separator]
