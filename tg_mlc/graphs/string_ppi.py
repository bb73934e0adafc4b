"""Label graphs from interactions of the proteins of labels."""

from __future__ import annotations

import logging
import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch

from tg_mlc._files import read_lines
from tg_mlc._names import shorten
from tg_mlc._numbers import parse_number
from tg_mlc.graphs.builders import source_in_words
from tg_mlc.graphs.label_graph import MAX_SCORE, LabelGraph, as_names, check_keys, check_label_names
from tg_mlc.graphs.tables import Table, find_pair, is_index, read_table, role_of

logger = logging.getLogger(__name__)

MEDIUM_SCORE = 400  # STRING's "medium confidence"
PREFERRED = 10**6  # votes for the preferred name; they outweigh any number of aliases

PathLike = str | os.PathLike[str]
Aliases = PathLike | Sequence[PathLike] | Mapping[str, str]
Proteins = Sequence[str | None] | Mapping[str, str | None]


def string_ppi(
    links: PathLike,
    proteins: Proteins,
    label_names: Sequence[str] | None = None,
    aliases: Aliases | None = None,
    min_score: float | None = None,
    score: str = "combined_score",
    same_protein: bool = True,
    self_loops: bool = True,
) -> LabelGraph:
    """The label graph in which two labels attend to each other if their proteins interact, as in
    the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper, by the `"STRING database"
    <https://doi.org/10.1093/nar/gkw937>`_.

    The weight of an edge is the probability of the interaction: STRING's score divided by 1000, or
    the score of a table of probabilities. Without scores, edges have no weights. Proteins without
    links are in a warning and the attribute :obj:`unmatched`; their labels stay isolated.

    Args:
        links (str or Path): STRING's file of links (:obj:`protein1 protein2 combined_score`), or
            any table of two names and perhaps a score, also as :obj:`.gz`, :obj:`.xz` or
            :obj:`.bz2`; see :doc:`the page on label graphs </label_graphs>`.
        proteins (list of str or dict): The protein or gene of each label, or :obj:`None`; keys of a
            dictionary are label names. Case and organism prefixes of identifiers are ignored.
        label_names (list of str, optional): The labels in their order.
            (default: :obj:`None`, the keys of :obj:`proteins`, if it is a dictionary)
        aliases (str, list or dict, optional): STRING's alias file, its information file
            (:obj:`protein.info`), or both, or a dictionary; they map names in :obj:`proteins` to
            names in :obj:`links`. If several proteins share a name, the protein that prefers it is
            taken, else the one with most sources. (default: :obj:`None`)
        min_score (float, optional): The minimum score, from 0 to 1000, or to 1 in a table of
            probabilities. (default: :obj:`None`, 400, medium confidence, if there are scores)
        score (str, optional): The column of the score, *e.g.* :obj:`"experimental"`. In tables of
            three columns, it may have any name. (default: :obj:`"combined_score"`)
        same_protein (bool, optional): Whether labels of one protein attend to each other, with
            weight one. (default: :obj:`True`)
        self_loops (bool, optional): As in :func:`~tg_mlc.graphs.tree`. (default: :obj:`True`)

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a file is damaged or holds something else, no protein is found in it,
            :obj:`min_score` does not fit its scores, or :obj:`proteins` and :obj:`label_names`
            differ in size.
    """
    minimum = MEDIUM_SCORE if min_score is None else min_score
    if not 0 <= minimum <= MAX_SCORE:
        raise ValueError(f"Expected 'min_score' to be from 0 to {MAX_SCORE:g} (got {min_score!r})")
    names, label_names = _read_proteins(proteins, label_names)
    requested = list(dict.fromkeys(name for name in names if name))
    key_of = _resolve_aliases(aliases, requested)
    index = {key: i for i, key in enumerate(dict.fromkeys(key_of.values()))}
    links_read = _read_links(links, index, score, minimum)
    if min_score and not links_read.scored:
        got = f"min_score={min_score:g}, and two columns without a score"
        hint = "leave 'min_score' out to take all of its links"
        raise ValueError(f"Expected '{links}' to hold scores for 'min_score' (got {got}); {hint}")
    protein_of = {name: index[key_of[_protein_key(name)]] for name in requested}
    unmatched = [name for name in requested if protein_of[name] not in links_read.linked]
    if requested and len(unmatched) == len(requested):
        got = f"it writes names as {links_read.example!r}, and 'proteins' as {requested[0]!r}"
        hint = "translate them with 'aliases', STRING's info or alias file"
        raise ValueError(f"Expected '{links}' to hold at least one of the proteins ({got}); {hint}")
    if unmatched or not requested:
        logger.warning(
            "%d of %d proteins are not in '%s', their labels get no interactions: %s",
            len(unmatched), len(requested), links, ", ".join(unmatched) or "no label has a protein",
        )  # fmt: skip
    if links_read.highest and not links_read.scores:
        message = "No link among the proteins in '%s' has min_score=%g, the highest score is %g"
        logger.warning(message, links, minimum, links_read.highest)
    loops = {(protein, protein): MAX_SCORE for protein in protein_of.values() if same_protein}
    protein_indices = torch.tensor([protein_of.get(name or "", -1) for name in names])
    pairs, weights = [torch.empty(0, 2, dtype=torch.long)], [torch.empty(0)]
    for pair, value in {**links_read.scores, **loops}.items():
        labels = [(protein_indices == protein).nonzero().flatten() for protein in pair]
        label_pairs = torch.cartesian_prod(*labels)
        label_pairs = label_pairs[label_pairs[:, 0] != label_pairs[:, 1]]
        pairs += [label_pairs, label_pairs.flip(1)]
        weights += [torch.full((2 * len(label_pairs),), value / MAX_SCORE)]
    counts = f"{len(requested) - len(unmatched)} proteins of {len(names)} labels"
    counts += f", {len(links_read.scores)} interactions"
    scored = source_in_words(counts, min_score=minimum)
    graph = LabelGraph(
        torch.cat(pairs).t(),
        num_nodes=len(names),
        edge_weight=torch.cat(weights) if links_read.scored else None,
        label_names=label_names,
        kind="string_ppi",
        source=scored if links_read.scored else f"{counts} without scores",
        unmatched=unmatched,
    )
    return graph.add_self_loops(only_isolated=not self_loops)


def _read_proteins(
    proteins: Proteins, label_names: Sequence[str] | None
) -> tuple[list[str | None], Sequence[str] | None]:
    if isinstance(proteins, Mapping):
        label_names = list(proteins) if label_names is None else as_names(label_names)
        check_keys("proteins", proteins, label_names)
        names = [proteins.get(label) for label in label_names]
    elif isinstance(proteins, str):
        got = shorten(repr(proteins))
        raise ValueError(f"Expected 'proteins' to hold one name or None per label (got {got})")
    else:
        names = list(proteins)
    label_names = None if label_names is None else check_label_names(label_names, len(names))
    if invalid := [name for name in names if name is not None and not isinstance(name, str)]:
        raise ValueError(f"Expected 'proteins' to hold strings or None (got {invalid[0]!r})")
    return names, label_names


@lru_cache(maxsize=2**18)  # a file of millions of links has about ten thousand names
def _protein_key(name: str) -> str:
    """Returns the name in one case, without the organism in front of it (:obj:`"9606."`)."""
    organism, _, rest = name.partition(".")
    return (rest if rest and organism.isdigit() else name).casefold()


def _resolve_aliases(aliases: Aliases | None, names: Sequence[str]) -> dict[str, str]:
    """Maps the key of each name to the protein key with most votes in the alias files."""
    keys = {_protein_key(name): _protein_key(name) for name in names}
    if aliases is None:
        return keys
    if isinstance(aliases, Mapping):
        key_of = {_protein_key(name): _protein_key(protein) for name, protein in aliases.items()}
        return {key: key_of.get(key, key) for key in keys}
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for path in [aliases] if isinstance(aliases, str | os.PathLike) else aliases:
        preferred = False
        for number, line in read_lines(path):
            protein, name, sources = [*(cell.strip() for cell in line.split("\t")), "", "", ""][:3]
            if not (protein and name):
                expected = f"line {number} of '{path}' to hold a protein and its name between tabs"
                raise ValueError(f"Expected {expected} (got {line[:80]!r})")
            if line.startswith("#"):
                preferred = name == "preferred_name"
            elif (key := _protein_key(name)) in keys:
                weight = PREFERRED if preferred else max(len(sources.split()), 1)
                votes[key][_protein_key(protein)] += weight
    return keys | {key: counts.most_common(1)[0][0] for key, counts in votes.items()}


class _Links(NamedTuple):
    """The links among the proteins of labels in a file."""

    scores: dict[tuple[int, int], float]  #: scores from 0 to 1000 of pairs that reach the minimum
    linked: set[int]  #: proteins with links of any score
    scored: bool  #: whether the file has scores
    highest: float  #: highest score of a pair, on the file's scale
    example: str  #: a name as the file writes it


def _read_links(path: PathLike, index: Mapping[str, int], score: str, min_score: float) -> _Links:
    """Reads the links among the proteins in ``index``. Other links are not kept in memory."""
    table = read_table(f"'{path}'", read_lines(path), "links of two proteins", spaces=True)
    first, second, score_column, has_header = _layout(table, score)
    width = max(first, second, score_column) + 1
    lookup = lru_cache(maxsize=2**18)(lambda name: index.get(_protein_key(name)))
    scores: dict[tuple[int, int], float] = {}
    linked: set[int] = set()
    example = None
    for number, cells in table.rows if has_header else table.all_rows():
        if len(cells) < width:
            expected = f"line {number} of '{path}' to hold two proteins and their score"
            raise ValueError(f"Expected {expected} (got {cells[:5]})")
        example = example or cells[first]
        proteins = [hit for name in (first, second) if (hit := lookup(cells[name])) is not None]
        if not proteins:  # Nearly all lines of a large file are skipped here.
            continue
        value = MAX_SCORE if score_column < 0 else parse_number(cells[score_column])
        if value is None or not 0.0 <= value <= MAX_SCORE:
            expected = f"line {number} of '{path}' to hold a score of 0 to {MAX_SCORE:g}"
            raise ValueError(f"Expected {expected} (got {cells[score_column][:20]!r})")
        linked.update(proteins)
        pair = (min(proteins), max(proteins))
        if pair[0] != pair[1]:
            scores[pair] = max(value, scores.get(pair, 0.0))
    if example is None:
        got = f"only the line {table.header[:5]}, which has no score and was read as a header"
        expected = f"'{path}' to hold two proteins and a score in a line"
        raise ValueError(f"Expected {expected} (got {got})")
    highest = max(scores.values(), default=0.0)
    # Scores and the minimum score must be on the same scale, up to 1000 or up to 1.
    if score_column >= 0 and 0.0 < highest <= 1.0 < min_score:
        got = f"(got none above {highest:g}); choose a 'min_score' of 0 to 1"
        raise ValueError(f"Expected '{path}' to hold scores of 0 to {MAX_SCORE:g} {got}")
    if score_column >= 0 and 0.0 < min_score <= 1.0 < highest:
        expected = f"'min_score' on the scale of '{path}', whose scores reach {highest:g}"
        hint = f"choose {min_score * MAX_SCORE:g} if it is a probability, or 0 to keep all links"
        raise ValueError(f"Expected {expected} (got {min_score:g}); {hint}")
    factor = MAX_SCORE if highest <= 1.0 else 1.0
    scores = {pair: factor * value for pair, value in scores.items() if value >= min_score}
    return _Links(scores, linked, score_column >= 0, highest, example)


def _layout(table: Table, score: str) -> tuple[int, int, int, bool]:
    """Returns the columns of both names and of the score (or -1), and whether there is a header."""
    names = table.header
    lower = [name.lower() for name in names]
    if "protein1" in lower and "protein2" in lower:
        pair: tuple[int, int] | None = lower.index("protein1"), lower.index("protein2")
    else:
        pair = find_pair(names)
    used = {i for i, name in enumerate(names) if is_index(name) or name == score} | {*(pair or ())}
    unused = [i for i in range(len(names)) if i not in used]
    score_columns = [names.index(score)] if score in names else []
    if pair is not None:
        weights = [i for i in unused if role_of(names[i]) == "weight"]
        single = [columns for columns in (score_columns, weights, unused) if len(columns) == 1]
        if single or not unused:
            return *pair, single[0][0] if single else -1, True
    elif score_columns and len(unused) > 1:
        return unused[0], unused[1], score_columns[0], True
    elif len(names) == 2:  # A header is read as a link of unknown proteins, and skipped.
        return 0, 1, -1, False
    elif len(names) == 3 and not score_columns:
        return 0, 1, 2, parse_number(names[2]) is None
    expected = f"{table.name} to name a column 'score={score}' in its first line"
    raise ValueError(f"Expected {expected} (got {names[:12]})")
