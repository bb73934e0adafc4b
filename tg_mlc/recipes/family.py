"""Models of the family, as any data set's recipe trains them: ``RECIPES["bibtex"].as_member(FAMILY["lamp"])``."""

from __future__ import annotations

from tg_mlc.recipes.recipe import Member

#: By the names under which benchmarks and the command line know them.
FAMILY: dict[str, Member] = {}
