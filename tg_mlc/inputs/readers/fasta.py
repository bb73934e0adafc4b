"""Reader of FASTA files, sequence by sequence; its errors name the line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tg_mlc._files import FilePath, byte_lines, decode

#: The letters in the order of their codes; N stands for every letter that is not known.
LETTERS = "ACGTN"
UNKNOWN_LETTER = LETTERS.index("N")
# What IUPAC (https://doi.org/10.1093/nar/13.9.3021) has for two or more letters, and X for a masked one.
AMBIGUOUS = "NRYSWKMBDHVX"
_LETTERS_IN_WORDS = f"{', '.join(LETTERS)} or another of IUPAC"
MAX_LETTERS = 1 << 28  # the longest human chromosome has 248 million
_STRANGE = 255
_SPACES = b" \t\r\n\v\f"


_KNOWN = {**dict.fromkeys(AMBIGUOUS, UNKNOWN_LETTER), "A": 0, "C": 1, "G": 2, "T": 3, "U": 3}
_CODES = bytes(_KNOWN.get(chr(byte).upper(), _STRANGE) if byte < 128 else _STRANGE for byte in range(256))


def letter_codes(text: str) -> np.ndarray:
    """The codes of the letters of DNA, as :func:`read_fasta` gives them."""
    codes = np.frombuffer(text.encode().translate(_CODES, _SPACES), dtype=np.uint8)
    if not codes.size or (codes == _STRANGE).any():
        raise ValueError(f"Expected letters of DNA ({_LETTERS_IN_WORDS}; got {text[:40]!r})")
    return codes


class FastaRecord(NamedTuple):
    """One sequence of a FASTA file."""

    header: str  #: the line of its name, without the ``>``
    letters: np.ndarray  #: the codes of its letters, uint8
    line: int  #: the number of the line of its name, from 1


def read_fasta(path: FilePath) -> Iterator[FastaRecord]:
    """Reads a FASTA file (as it is, or compressed as ``.gz``, ``.bz2`` or ``.xz``), one sequence at a time.

    The letters A, C, G and T, in upper or lower case, become 0 to 3, and U becomes 3 as T; the others of IUPAC, among
    them N, mean that a letter is not known, and become 4.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is damaged or no FASTA file, has no sequences, or one has no letters or strange ones.
    """
    path = os.fsdecode(path)
    header: str | None = None
    codes, begun = bytearray(), 0
    for number, line in byte_lines(path, MAX_LETTERS):
        if line.startswith(b">"):
            if header is not None:
                yield _record(header, codes, begun, path)
            header, codes, begun = decode(line[1:], path, number).strip(), bytearray(), number
        elif header is not None:
            codes += _codes_of(line, f" in line {number} of '{path}'")
        elif line.strip():
            raise ValueError(f"Expected a name that begins with '>' in line {number} of '{path}' (got {line[:40]!r})")
    if header is None:
        raise ValueError(f"Expected at least one sequence in '{path}' (got none)")
    yield _record(header, codes, begun, path)


def _codes_of(line: bytes, where: str) -> bytes:
    codes = line.translate(_CODES, _SPACES)
    if _STRANGE in codes:
        strange = bytes([line.translate(None, _SPACES)[codes.index(_STRANGE)]])
        raise ValueError(f"Expected letters of DNA ({_LETTERS_IN_WORDS}){where} (got {strange!r})")
    return codes


def _record(header: str, codes: bytearray, line: int, path: str) -> FastaRecord:
    if not codes:
        raise ValueError(f"Expected letters after the name in line {line} of '{path}' (got none for '{header}')")
    return FastaRecord(header, np.frombuffer(codes, dtype=np.uint8), line)
