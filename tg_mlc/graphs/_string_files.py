"""Readers of the STRING database's files, and of tables like them."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from tg_mlc._files import read_lines
from tg_mlc._numbers import parse_number

PathLike = str | os.PathLike[str]
Aliases = PathLike | Sequence[PathLike] | Mapping[str, str]

MAX_SCORE = 1000.0  # STRING writes probabilities as 0 to 1000
PREFERRED = 10**6  # the name that STRING prefers counts more than any number of aliases


@lru_cache(maxsize=2**18)  # a file of millions of links holds some ten thousand names
def protein_key(name: str) -> str:
    """The name without regard to case, and without the organism in front of it (:obj:`"9606."`)."""
    organism, _, rest = name.partition(".")
    return (rest if rest and organism.isdigit() else name).casefold()


def resolve_aliases(aliases: Aliases | None, names: Sequence[str]) -> dict[str, str]:
    """Tells the key under which the links know a protein for the key of every name; of several that share a name, the
    one to which most sources give it.
    """
    own = {protein_key(name): protein_key(name) for name in names}
    if aliases is None:
        return own
    if isinstance(aliases, Mapping):
        known = {protein_key(name): protein_key(protein) for name, protein in aliases.items()}
        return {key: known.get(key, key) for key in own}
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for path in [aliases] if isinstance(aliases, str | os.PathLike) else aliases:
        for protein, name, count in _alias_rows(path):
            if (key := protein_key(name)) in own:
                votes[key][protein_key(protein)] += count
    return own | {key: counts.most_common(1)[0][0] for key, counts in votes.items()}


def _alias_rows(path: PathLike) -> Iterator[tuple[str, str, int]]:
    preferred = False
    for number, line in read_lines(path):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) < 2 or not (cells[0] and cells[1]):
            expected = "a protein and its name between tabs"
            raise ValueError(f"Expected line {number} of '{path}' to hold {expected} (got {line[:80]!r})")
        if line.startswith("#"):
            preferred = cells[1] == "preferred_name"
            continue
        sources = len(cells[2].split()) if len(cells) > 2 else 1
        yield cells[0], cells[1], PREFERRED if preferred else max(sources, 1)


class Links(NamedTuple):
    """The links of the wanted proteins in a file."""

    scores: dict[tuple[int, int], float]  # from 0 to 1000, of pairs with the least score; the smaller index first
    seen: set[int]  # those that any link names, whatever its score
    scored: bool
    highest: float  # of the scores of their pairs, as the file writes them
    example: str  # a name as the file writes it


def read_links(path: PathLike, wanted: Mapping[str, int], score: str, min_score: float) -> Links:
    """Reads the links among wanted proteins, given by their keys, in memory that grows with these only."""
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        raise ValueError(f"Expected '{path}' to hold links of two proteins (got no line of text)")
    comma = "," if "," in first[1] else None
    column, has_header = _layout(first[1].split(comma), score, path)
    find = lru_cache(maxsize=2**18)(lambda name: wanted.get(protein_key(name.strip())))
    scores: dict[tuple[int, int], float] = {}
    seen: set[int] = set()
    example, highest = None, 0.0
    for number, line in lines if has_header else chain([first], lines):
        cells = line.split(comma)
        if len(cells) < max(2, column + 1):
            where = f"line {number} of '{path}'"
            raise ValueError(f"Expected {where} to hold two proteins and their score (got {line[:80]!r})")
        example = example or cells[0]
        found = [protein for protein in (find(cells[0]), find(cells[1])) if protein is not None]
        if not found:  # nearly all lines of a large file
            continue
        value = MAX_SCORE if column < 0 else _score(cells[column], number, path)
        seen.update(found)
        pair = (min(found), max(found))
        if pair[0] == pair[1]:
            continue
        highest = max(highest, value)
        if value >= min_score:
            scores[pair] = max(value, scores.get(pair, 0.0))
    if example is None:
        got = f"one line, {first[1][:80]!r}, which ends in no score and is taken for names of columns"
        raise ValueError(f"Expected '{path}' to hold links of two proteins and their score (got {got})")
    if column >= 0:
        _check_scale(path, highest, min_score)
    if highest <= 1.0:
        scores = {pair: MAX_SCORE * value for pair, value in scores.items()}
    return Links(scores, seen, column >= 0, highest, example)


def _check_scale(path: PathLike, highest: float, min_score: float) -> None:
    """Refuses a least score on another of the two scales, up to 1000 and up to 1, than the scores."""
    if 0.0 < highest <= 1.0 < min_score:
        hint = "multiply them, or choose a 'min_score' of 0 to 1"
        raise ValueError(f"Expected '{path}' to hold scores of 0 to {MAX_SCORE:g} (got none above {highest:g}); {hint}")
    if 0.0 < min_score <= 1.0 < highest:
        expected = f"'min_score' on the scale of '{path}', whose scores reach {highest:g}"
        hint = f"choose {min_score * MAX_SCORE:g} if it is a probability, or 0 to keep all links"
        raise ValueError(f"Expected {expected} (got {min_score:g}); {hint}")


def _layout(cells: list[str], score: str, path: PathLike) -> tuple[int, bool]:
    """The column of the score, or -1 without one, and whether the line names the columns."""
    names = [cell.strip() for cell in cells]
    if score in names:
        return names.index(score), True
    if len(names) == 2:  # a header is a link of two proteins that nobody wants
        return -1, False
    if len(names) == 3:
        return 2, parse_number(names[2]) is None
    raise ValueError(f"Expected '{path}' to name a column 'score={score}' in its first line (got {names[:12]})")


def _score(cell: str, number: int, path: PathLike) -> float:
    value = parse_number(cell.strip())
    if value is None or not 0.0 <= value <= MAX_SCORE:
        where = f"line {number} of '{path}'"
        raise ValueError(f"Expected {where} to hold a score of 0 to {MAX_SCORE:g} (got {cell[:20]!r})")
    return value
