"""Label graphs from the meaning of the labels' names."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch

from tg_mlc.graphs._select import check_selection, select, source_in_words
from tg_mlc.graphs.label_graph import LabelGraph, check_keys, check_label_names
from tg_mlc.graphs.wordnet_nouns import Folder, Nouns, find_folder, read_nouns, wu_palmer

logger = logging.getLogger(__name__)

Words = Mapping[str, str | None] | Callable[[str], str | None]
# Those of WordNet's own morphy, with the one for "ves" that NLTK adds.
PLURALS = (
    ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"),
    ("ies", "y"),
)  # fmt: skip
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
    r"""The label graph in which two labels attend to each other if their names mean something similar, the prior of
    MPED, the forerunner of the model of the `"Neural Message Passing for Multi-Label Classification"
    <https://arxiv.org/abs/1904.08049>`_ paper, for Reuters, Bibtex, Delicious and Bookmarks.

    Edges weigh the `"Wu-Palmer similarity" <https://aclanthology.org/P94-1019>`_ of two nouns in `WordNet
    <https://wordnet.princeton.edu>`_: with :math:`c` the lowest synset above both, :math:`\ell` the number of synsets
    on the way from the top, and :math:`d` the number of steps up,

    .. math::
        \textrm{sim}(a, b) = \max_{s \in S_a, \, t \in S_b} \frac{2 \, \ell_c}{2 \, \ell_c + d(s, c) + d(t, c)}

    where :math:`S_a` and :math:`S_b` are all synsets that the two names may mean. Names are taken in singular or
    plural, and of several words, with a space, :obj:`"_"`, :obj:`"-"`, or nothing in between. Names that are no noun in
    WordNet are reported by a warning and in the graph's attribute :obj:`unmatched`, which
    :meth:`~tg_mlc.graphs.LabelGraph.save` keeps; their labels stay, alone.

    Args:
        label_names (list of str): The names of the labels.
        threshold (float, optional): The least similarity of an edge, :obj:`None` for any. (default: :obj:`0.8`)
        top_k (int, optional): How many sources a label keeps, itself not counted; edges need not have an opposite
            then. (default: :obj:`None`, all)
        words (dict or callable, optional): What to look up instead of a name, *e.g.* :obj:`{"bop": "balance of
            payments"}` or :obj:`lambda name: name.removeprefix("TAG_")`; :obj:`None` for nothing. Names that a
            dictionary does not have stand for themselves. (default: :obj:`None`)
        heads (bool, optional): If set to :obj:`False`, a name of several words that as a whole is no noun is not
            taken by its last words, as :obj:`"soy-meal"` for meal. (default: :obj:`True`)
        folder (str or Path, optional): The folder with :obj:`index.noun`, :obj:`data.noun` and perhaps
            :obj:`noun.exc`. (default: :obj:`None`, that of the environment variable :obj:`WNSEARCHDIR`, else where
            Debian puts them, or NLTK)
        self_loops (bool, optional): If set to :obj:`False`, a label attends to itself only if it would receive
            nothing otherwise. (default: :obj:`True`)

    Raises:
        FileNotFoundError: If WordNet is not found; the message tells how to get it.
        ValueError: If a file of WordNet is damaged, or an option is out of range.
    """
    check_selection(threshold, top_k)
    if threshold is not None and threshold > 1:
        raise ValueError(f"Expected 'threshold' to be a similarity of 0 to 1 (got {threshold!r})")
    names = check_label_names(label_names)
    if isinstance(words, Mapping):
        check_keys("words", words, names)
    elif words is not None and not callable(words):
        raise ValueError(f"Expected 'words' to be a dictionary or a function (got {type(words).__name__})")
    nouns = read_nouns(find_folder(folder))
    finder = _NounFinder(nouns)
    synsets = [finder.synsets(word, heads) if (word := _word(name, words)) else [] for name in names]
    unmatched = [name for name, found in zip(names, synsets, strict=True) if not found]
    if unmatched:
        logger.warning(
            "%d of %d names are no noun in WordNet, their labels get no neighbour: %s",
            len(unmatched), len(names), ", ".join(unmatched),
        )  # fmt: skip
    similarity = wu_palmer(nouns.hypernyms, synsets)
    np.fill_diagonal(similarity, 0.0)
    target, source = np.nonzero(similarity)
    keep = select(source, target, similarity[target, source], threshold, top_k)
    nouns_of_names = f"{len(names) - len(unmatched)} nouns of {len(names)} names"
    graph = LabelGraph(
        torch.from_numpy(np.stack([source[keep], target[keep]])),
        edge_weight=torch.from_numpy(similarity[target[keep], source[keep]]).float(),
        label_names=names,
        kind="wordnet",
        source=source_in_words(nouns_of_names, threshold=threshold, top_k=top_k),
        unmatched=unmatched,
    )
    return graph.add_self_loops(only_isolated=not self_loops)


def _word(name: str, words: Words | None) -> str | None:
    if words is None:
        return name
    word = words(name) if callable(words) else words.get(name, name)
    if word is not None and not isinstance(word, str):
        raise ValueError(f"Expected 'words' to give a string or None for {name!r} (got {word!r})")
    return word


class _NounFinder:
    """Looks up names in WordNet, in singular or plural, of one word or more.

    :obj:`"data mining"`, :obj:`"data_mining"`, :obj:`"Data-Mining"` and :obj:`"datamining"` are all the same noun.
    """

    def __init__(self, nouns: Nouns) -> None:
        self.nouns = nouns
        self.joined: dict[str, list[str]] = {}
        for lemma in nouns.senses:
            if (key := lemma.translate(SEPARATORS)) != lemma:
                self.joined.setdefault(key, []).append(lemma)

    def synsets(self, name: str, heads: bool = False) -> list[int]:
        """The synsets of all nouns that a name may be, each once; with :obj:`heads`, else those of its longest ending
        that is a noun. None if there is none.
        """
        words = name.casefold().replace("_", " ").replace("-", " ").split()
        endings = ["_".join(words[first:]) for first in range(1, len(words))] if heads else []
        return next((found for form in (name.casefold(), *endings) if (found := self._whole(form))), [])

    def _whole(self, name: str) -> list[int]:
        form = "_".join(name.split())
        lemmas = self._lemmas(form) or self._lemmas(form.replace("-", "_")) or self._lemmas(form.replace("_", "-"))
        lemmas = lemmas or self._joined_lemmas(form.translate(SEPARATORS))
        return list(dict.fromkeys(synset for lemma in lemmas for synset in self.nouns.senses[lemma]))

    def _lemmas(self, form: str) -> list[str]:
        return [lemma for lemma in self._base_forms(form) if lemma in self.nouns.senses]

    def _joined_lemmas(self, form: str) -> list[str]:
        return self._lemmas(form) or [lemma for base in self._base_forms(form) for lemma in self.joined.get(base, [])]

    def _base_forms(self, form: str) -> Iterator[str]:
        yield form
        if form in self.nouns.exceptions:
            yield from self.nouns.exceptions[form]
            return
        yield from (form.removesuffix(plural) + base for plural, base in PLURALS if form.endswith(plural))
