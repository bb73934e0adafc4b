"""What happens between a data set and a model: splits."""

from __future__ import annotations

from tg_mlc.data.splits import Split, predefined_split, random_split, scaffold_split, stratified_split

__all__ = ["Split", "predefined_split", "random_split", "scaffold_split", "stratified_split"]
