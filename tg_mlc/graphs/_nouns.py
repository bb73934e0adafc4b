"""Finds the synsets of names as people write them."""

from __future__ import annotations

from collections.abc import Iterator

from tg_mlc.graphs._wordnet_files import Nouns

# Those of WordNet's own morphy, with the one for "ves" that NLTK adds.
PLURALS = (
    ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"),
    ("ies", "y"),
)  # fmt: skip
SEPARATORS = str.maketrans("", "", " _-")


class NounFinder:
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
