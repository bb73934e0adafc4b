"""Header of an ARFF file: its attributes, and where its rows begin."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import NamedTuple

from tg_mlc._one_hot import MAX_VALUES

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
# Every repeated part begins with a character that the part before cannot take, so that no text takes quadratic time.
_CELL = re.compile(rf"""\s*(?:({_QUOTED})\s*|([^\s,'"][^,]*)|)(,|\Z)""", re.DOTALL)
_ATTRIBUTE = re.compile(rf"""@\w+\s+({_QUOTED}|[^\s{{'"][^\s{{]*)\s*(.*)""", re.DOTALL)
_NOMINAL = re.compile(r"\{(.*)\}\s*(?:%.*)?", re.DOTALL)
_NUMERIC = frozenset({"numeric", "real", "integer"})
_TEXT = frozenset({"string", "date", "relational"})
_ONE = frozenset({"1", "1.0", "+1", "+1.0", "true", "t", "yes", "y", "on", "present", "pos", "positive", "relevant"})
_ZERO = frozenset({"0", "0.0", "-1", "-1.0", "false", "f", "no", "n", "off", "absent", "neg", "negative", "irrelevant"})


class Attribute(NamedTuple):
    """One column of an ARFF file."""

    name: str
    line: int
    values: dict[str, float] | None = None  #: the number of each value of a nominal attribute, in their order
    text: str = ""  #: what it is, if it is no number
    ordered: bool = False  #: whether its values, of unknown meaning, are numbered by their order

    @property
    def plain(self) -> bool:
        """Tells whether its values are written as the numbers they are."""
        return not self.text and (self.values is None or set(self.values) == {"0", "1"})


class Header(NamedTuple):
    """The part of an ARFF file before its rows."""

    relation: str
    attributes: list[Attribute]
    start: int  #: where the rows begin, in bytes
    line: int  #: and on which line


def read_header(content: bytes) -> Header:
    """Reads all lines up to ``@data``."""
    relation, attributes, line, start = "", dict[str, Attribute](), 0, 0
    for line, (text, next_start) in enumerate(_lines(content), start=1):
        keyword = re.split(r"[\s'\"]", text, maxsplit=1)[0].lower()
        try:
            if keyword == "@data":
                start = next_start
                break
            if keyword == "@relation":
                relation = unquote(text[len("@relation") :].strip())
            elif keyword == "@attribute":
                new = _attribute(text, line)
                if (first := attributes.setdefault(new.name, new)) is not new:
                    raise ValueError(f"Expected distinct names (got '{new.name}' as on line {first.line})")
            elif text and not text.startswith("%"):
                raise ValueError(f"Expected '@relation', '@attribute' or '@data' (got {shorten(text)})")
        except ValueError as error:
            raise ValueError(f"line {line}: {error}") from None
    else:
        raise ValueError(f"line {max(line, 1)}: Expected a line '@data' before the end of the file (it may be cut off)")
    if not attributes:
        raise ValueError(f"line {line}: Expected at least one '@attribute' before '@data' (got none)")
    return Header(relation, list(attributes.values()), start, line + 1)


def split_cells(text: str) -> list[str]:
    """Splits at the commas that are not within quotes, and takes the quotes off."""
    if "'" not in text and '"' not in text:
        return [cell.strip() for cell in text.split(",")]
    cells, position, comma = [], 0, ","
    while comma:
        match = _CELL.match(text, position)
        if match is None:
            raise ValueError(f"Expected values between commas, with closed quotes (got {shorten(text[position:])})")
        quoted, bare, comma = match.groups()
        cells.append(unquote(quoted) if quoted else (bare or "").strip())
        position = match.end()
    return cells


def unquote(text: str) -> str:
    """Takes the quotes and the escapes off a quoted text; other text stays as it is."""
    if len(text) < 2 or text[0] not in "'\"" or text[-1] != text[0]:
        return text
    # A name with a line break could not be kept in a list of lines.
    return re.sub(r"\\(.)", lambda match: " " if match[1] in "nrt" else match[1], text[1:-1], flags=re.DOTALL)


def decode_line(line: bytes) -> str:
    """The text of a line."""
    try:
        text = line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        hint = "convert the file, for example with 'iconv -f latin1 -t utf-8', or it is no text at all"
        raise ValueError(f"Expected text in UTF-8 (got the byte {line[error.start]:#04x}); {hint}") from None
    if "\0" in text:
        raise ValueError("Expected text (got a zero byte)")
    return text


def shorten(text: str, length: int = 40) -> str:
    """A text for a message."""
    return repr(text if len(text) <= length else f"{text[:length]}...")


def _lines(content: bytes) -> Iterator[tuple[str, int]]:
    """Each line and where the next one begins."""
    stream = io.BytesIO(content)
    stream.seek(3 if content.startswith(b"\xef\xbb\xbf") else 0)
    for number, line in enumerate(stream, start=1):
        try:
            yield decode_line(line), stream.tell()
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None


def _attribute(text: str, line: int) -> Attribute:
    match = _ATTRIBUTE.match(text)
    if match is None:
        raise ValueError(f"Expected '@attribute name type' (got {shorten(text)})")
    name, kind = " ".join(unquote(match[1]).splitlines()), match[2]
    if not name:
        raise ValueError("Expected the attribute to have a name (got an empty one)")
    word = (kind.split(maxsplit=1) or [""])[0].lower()
    if word in _NUMERIC:
        return Attribute(name, line)
    if word in _TEXT:
        return Attribute(name, line, text=f"of type '{word}'")
    nominal = _NOMINAL.fullmatch(kind)
    if nominal is None:
        raise ValueError(f"Expected a type of attribute '{name}', such as numeric or {{0,1}} (got {shorten(kind)})")
    return _nominal(name, line, split_cells(nominal[1]))


def _nominal(name: str, line: int, values: list[str]) -> Attribute:
    if "" in values:
        raise ValueError(f"Expected the values of attribute '{name}' between commas (got an empty one)")
    if len(values) > MAX_VALUES:
        return Attribute(name, line, text=f"nominal with {len(values)} values")
    if len(values) > 2:
        return Attribute(name, line, {value: float(number) for number, value in enumerate(values)})
    ones = [value.lower() in _ONE for value in values]
    known = all(one or value.lower() in _ZERO for one, value in zip(ones, values, strict=True))
    if known and len(set(ones)) == len(values):
        return Attribute(name, line, {value: float(one) for one, value in zip(ones, values, strict=True)})
    return Attribute(name, line, {value: float(number) for number, value in enumerate(values)}, ordered=True)
