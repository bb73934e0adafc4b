"""The published data sets by their names: how to load them, and their cards."""

from __future__ import annotations

import json
import shlex
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tg_mlc.datasets._published import REGISTRY, RegistryEntry
from tg_mlc.datasets.card import DatasetCard, from_plain

if TYPE_CHECKING:
    from torch_geometric.data import Dataset

CARDS = Path(__file__).with_name("cards.json")


def names() -> list[str]:
    """The names of all published data sets, in the order of the documentation."""
    return list(REGISTRY)


def published(name: str) -> RegistryEntry:
    """What is known of a data set.

    Raises:
        ValueError: If there is none of this name.
    """
    if name not in REGISTRY:
        raise ValueError(f"Expected the name of a data set, one of {', '.join(REGISTRY)} (got '{name}')")
    return REGISTRY[name]


def load(name: str, root: str | Path, *, force_reload: bool = False, download: bool = True) -> Dataset:
    """Downloads a data set where needed, and loads it.

    .. code-block:: python

        dataset = load("sider", root="data")  # in data/sider

    Args:
        name (str): One of :func:`names`.
        root (str or Path): The folder of all data sets; this one gets a folder of its own in it.
        force_reload (bool, optional): Whether to make the samples again. (default: :obj:`False`)
        download (bool, optional): If set to :obj:`False`, nothing is downloaded or made: the samples have to be in the
            folder. (default: :obj:`True`)

    Raises:
        ValueError: If there is no data set of this name, or none that can be had.
        FileNotFoundError: If :obj:`download` is :obj:`False` and the samples are not there.
        DatasetUnavailableError: If no source can be reached; the message says how to place the files by hand.
        ChecksumError: If a file is not the one it should be.
        RuntimeError: If the stored samples are damaged.
    """
    entry = published(name)
    if not entry.maker:
        raise ValueError(f"Expected a data set that can be had as files (got '{name}'). {' '.join(entry.facts.notes)}")
    module, _, attribute = entry.maker.partition(":")
    make = getattr(import_module(module), attribute)
    options = dict(entry.options)
    if force_reload and entry.keeps != "nothing":
        options["force_reload"] = True
    return (make if download else _only_stored(make, name, root))(*entry.folder(root), **options)


def _only_stored(make: type[Dataset], name: str, root: str | Path) -> type[Dataset]:
    """The same class, which takes samples from where they are stored, and from nowhere else."""

    def get_nothing(dataset: Dataset) -> None:
        """Raw files are not needed."""

    def check_stored(dataset: Dataset) -> None:
        missing = [path for path in dataset.processed_paths if not Path(path).exists()]
        if missing:
            raise FileNotFoundError(
                f"Expected '{name}' to be in '{root}' (got no '{missing[0]}'); get it with: {get_command(name, root)}"
            )

    return type(make.__name__, (make,), {"_download": get_nothing, "_process": check_stored})


def get_command(name: str, root: str | Path, *options: str) -> str:
    """The command line that gets a data set."""
    return shlex.join(["tg-mlc", "data", "get", name, "--root", str(root), *options])


def card(name: str) -> DatasetCard:
    """The recorded card of a data set, without loading it.

    Raises:
        ValueError: If there is no data set of this name.
    """
    return DatasetCard.join(published(name).facts, from_plain(_recorded()[name]))


@cache
def _recorded() -> dict[str, dict[str, Any]]:
    return cast("dict[str, dict[str, Any]]", json.loads(CARDS.read_text(encoding="utf-8")))
