"""The published data sets by their names: how to load them, and their cards."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tg_mlc.datasets._published import PUBLISHED, Published
from tg_mlc.datasets.card import DatasetCard, from_plain

if TYPE_CHECKING:
    from torch_geometric.data import Dataset

CARDS = Path(__file__).with_name("cards.json")


def names() -> list[str]:
    """The names of all published data sets, in the order of the documentation."""
    return list(PUBLISHED)


def published(name: str) -> Published:
    """What is known of a data set.

    Raises:
        ValueError: If there is none of this name.
    """
    if name not in PUBLISHED:
        raise ValueError(f"Expected the name of a data set, one of {', '.join(PUBLISHED)} (got '{name}')")
    return PUBLISHED[name]


def load(name: str, root: str | Path) -> Dataset:
    """Downloads a data set where needed, and loads it.

    .. code-block:: python

        dataset = load("sider", root="data")  # in data/sider

    Args:
        name (str): One of :func:`names`.
        root (str or Path): The folder of all data sets; this one gets a folder of its own in it.

    Raises:
        ValueError: If there is no data set of this name, or none that can be had.
        DatasetUnavailableError: If no source can be reached; the message says how to place the files by hand.
        ChecksumError: If a file is not the one it should be.
    """
    entry = published(name)
    if not entry.maker:
        raise ValueError(f"Expected a data set that can be had as files (got '{name}'). {' '.join(entry.facts.notes)}")
    module, _, attribute = entry.maker.partition(":")
    make = getattr(import_module(module), attribute)
    return make(*entry.folder(root), **entry.options)


def card(name: str) -> DatasetCard:
    """The recorded card of a data set, without loading it.

    Raises:
        ValueError: If there is no data set of this name.
    """
    return DatasetCard.join(published(name).facts, from_plain(_recorded()[name]))


@cache
def _recorded() -> dict[str, dict[str, Any]]:
    return cast("dict[str, dict[str, Any]]", json.loads(CARDS.read_text(encoding="utf-8")))
