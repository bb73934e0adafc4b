"""Tables in the attribute-relation file format (ARFF), as Weka, Mulan, MEKA and mldr write them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tg_mlc._files import MAX_BYTES, read_unpacked
from tg_mlc._one_hot import MAX_VALUES
from tg_mlc.inputs.readers._arff_header import Attribute, read_header
from tg_mlc.inputs.readers._arff_rows import Columns, DenseRows, SparseRows

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse as sp

logger = logging.getLogger(__name__)

_BLOCK = 2**20  # bytes of text whose numbers are parsed at once


class Arff(NamedTuple):
    """The table of an ARFF file."""

    names: list[str]  #: of the attributes, one per column
    matrix: sp.csr_array | np.ndarray  #: float32, sparse if the rows of the file are; NaN where unknown
    relation: str  #: what the file says it is
    #: The values of each attribute that are numbered by their order, as their meaning is unknown.
    ordered: Mapping[str, list[str]] = MappingProxyType({})


def read_arff(
    source: str | Path | bytes,
    drop: Sequence[str] | Literal["text"] = (),
    name: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Arff:
    """Reads an ARFF file of numbers, with sparse rows (which stay sparse) or dense ones.

    Numeric attributes stay as they are. Nominal attributes with one or two values become 0 and 1: by their meaning if
    they are spelled as in ``{NO,YES}`` or ``{True,False}`` or ``{-1,1}`` or ``{pos,neg}``, by their order otherwise.
    Nominal attributes with three to 100 values become a column ``name=value`` of 0 and 1 for each. ``?`` becomes NaN,
    and 0 in all columns of a nominal attribute with more than two values. Attributes to leave out are named, or are
    :obj:`"text"`: all that are no numbers and have no such columns.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is damaged or no ARFF file, has no rows, or :obj:`drop` leaves no attribute, leaves one that
            is no number, or names one that is not there.
    """
    content = source if isinstance(source, bytes) else read_unpacked(source, max_bytes)
    called = name or ("ARFF content" if isinstance(source, bytes) else f"'{source}'")
    try:
        header = read_header(content)
        dropped = _dropped(header.attributes, drop)
        if all(dropped):
            raise ValueError(f"line {header.line}: Expected an attribute to be left (got {len(dropped)} to drop)")
        columns = Columns(header.attributes, dropped)
        names, matrix = columns.spread(_read_rows(content, header.start, header.line, columns))
        return Arff(names, matrix, header.relation, columns.ordered)
    except ValueError as error:
        raise ValueError(f"{called}, {error}") from None


def _dropped(attributes: Sequence[Attribute], drop: Sequence[str] | str) -> list[bool]:
    if drop == "text":
        for attribute in (one for one in attributes if one.text):
            logger.info("Left out attribute '%s', which is %s", attribute.name, attribute.text)
        return [bool(attribute.text) for attribute in attributes]
    unknown = set(drop) - {attribute.name for attribute in attributes}
    if isinstance(drop, str) or unknown:
        got = sorted(unknown) or repr(drop)
        raise ValueError(f"header: Expected 'drop' to be \"text\" or a list of attributes (got {got})")
    for attribute in attributes:
        if attribute.text and attribute.name not in drop:
            wanted = f"a number, or one of at most {MAX_VALUES} values,"
            expected = f"line {attribute.line}: Expected {wanted} for attribute '{attribute.name}'"
            hint = f"leave it out with drop=['{attribute.name}'], or all such with drop=\"text\""
            raise ValueError(f"{expected} (got one {attribute.text}); {hint}")
    return [attribute.name in drop for attribute in attributes]


def _read_rows(content: bytes, start: int, line: int, columns: Columns) -> sp.csr_array | np.ndarray:
    table: Any = None
    for first, block in _blocks(content, start, line):
        lines = enumerate(map(bytes.strip, block.split(b"\n")), first)
        rows = [(number, row) for number, row in lines if row and not row.startswith(b"%")]
        if not rows:
            continue
        if table is None:
            table = _located(rows[0][0], SparseRows if rows[0][1].startswith(b"{") else DenseRows, columns)
        if not table.add_plain([row for _, row in rows]):
            table.add([_located(number, table.parse, row) for number, row in rows])
    if table is None:
        raise ValueError(f"line {line}: Expected at least one row after '@data' (got none; is the file cut off?)")
    matrix: sp.csr_array | np.ndarray = table.matrix()
    return matrix


def _blocks(content: bytes, start: int, line: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines of about the same size together, and the number of the first one."""
    while start < len(content):
        end = content.find(b"\n", start + _BLOCK) + 1 or len(content)
        block = content[start:end]
        yield line, block
        line += block.count(b"\n")
        start = end


def _located(line: int, action: Any, argument: Any) -> Any:
    try:
        return action(argument)
    except ValueError as error:
        raise ValueError(f"line {line}: {error}") from None
