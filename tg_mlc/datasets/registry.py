"""Published data sets by name, from a catalogue of classes, files and cards."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from torch_geometric.data import Dataset

from tg_mlc.datasets.card import DatasetCard
from tg_mlc.datasets.downloads import RawFile

CATALOGUE = Path(__file__).with_name("catalogue.json")


@dataclass(frozen=True, kw_only=True)
class RegistryEntry(DatasetCard):
    """The catalogue's entry of a data set: its card, its class and its files."""

    maker: str = ""  #: ``module:class`` of the data set; empty if it was not published
    options: Mapping[str, Any] = field(default_factory=dict)  #: further arguments of the class
    spelling: str = ""  #: folder name, if the class has several data sets
    files: tuple[tuple[RawFile, ...], ...] = ((),)  #: raw files of each published form
    optional_files: tuple[RawFile, ...] = ()  #: files that are fetched on demand
    label_names: tuple[str, ...] = ()
    in_memory: bool = False  #: whether the class stores no files

    def arguments(self, root: str | Path) -> dict[str, Any]:
        """Returns the arguments of the class, with a separate folder in :obj:`root`."""
        if self.spelling:
            return {"root": str(root), "name": self.name, **self.options}
        folder = {} if self.in_memory else {"root": str(Path(root) / self.name)}
        return {**folder, **self.options}


def names() -> list[str]:
    """Returns the names of all published data sets, in the order of the documentation."""
    return list(catalogue())


def published(name: str) -> RegistryEntry:
    """Returns the catalogue's entry of a data set. Raises ValueError for an unknown name."""
    entries = catalogue()
    if name not in entries:
        known = ", ".join(entries)
        raise ValueError(f"Expected the name of a data set, one of {known} (got '{name}')")
    return entries[name]


def load(
    name: str, root: str | Path, *, force_reload: bool = False, download: bool = True
) -> Dataset:
    """Downloads a data set if needed, and loads it.

    Args:
        name (str): One of :func:`names`.
        root (str or Path): The folder of all data sets; each has its own folder there, *e.g.*
            `data/sider`.
        force_reload (bool, optional): Whether to make the samples again. (default: :obj:`False`)
        download (bool, optional): If set to :obj:`False`, nothing is downloaded or made, and
            the samples must be in the folder. (default: :obj:`True`)

    Raises:
        ValueError: If the name is unknown, or the data set was not published.
        FileNotFoundError: If :obj:`download` is :obj:`False` and the samples are not there.
        DatasetUnavailableError, ChecksumError, RuntimeError: As in
        :class:`~tg_mlc.datasets.base.PublishedDataset`.
    """
    entry = published(name)
    if not entry.maker:
        notes = " ".join(entry.notes)
        raise ValueError(f"Expected a data set with published files (got '{name}'). {notes}")
    module, _, attribute = entry.maker.partition(":")
    dataset_class = getattr(import_module(module), attribute)

    def check_stored(dataset: Dataset) -> None:
        if missing := [path for path in dataset.processed_paths if not Path(path).exists()]:
            got = f"(got no '{missing[0]}'); get it with: {get_command(name, root)}"
            raise FileNotFoundError(f"Expected '{name}' to be in '{root}' {got}")

    if not download:  # This subclass only reads stored samples.
        stored_only = {"_download": lambda dataset: None, "_process": check_stored}
        dataset_class = type(dataset_class.__name__, (dataset_class,), stored_only)
    options = {"force_reload": True} if force_reload and not entry.in_memory else {}
    return dataset_class(**entry.arguments(root), **options)


def get_command(name: str, root: str | Path, *options: str) -> str:
    """Returns the command line that downloads a data set."""
    return shlex.join(["tg-mlc", "data", "get", name, "--root", str(root), *options])


def card(name: str) -> DatasetCard:
    """Returns the recorded card of a data set. Raises ValueError for an unknown name."""
    return published(name)


@cache
def catalogue() -> dict[str, RegistryEntry]:
    """Returns all entries by name."""
    entries = {}
    for name, entry in json.loads(CATALOGUE.read_text(encoding="utf-8")).items():
        values: dict[str, Any] = {**entry.pop("statistics"), **entry}
        values |= {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
        values["files"] = tuple(_files(**form) for form in entry.get("files", ({},)))
        values["optional_files"] = _files(**entry.get("optional_files", {}))
        hashed_files = [file for file in values["files"][0] if file.sha256]
        values["raw_sha256"] = {file.name: file.sha256[0] for file in hashed_files}
        if "maker" in entry:
            values["maker"] = f"tg_mlc.datasets.{entry['maker']}"
        entries[name] = RegistryEntry(name=name, **values)
    return entries


def _files(
    sha256: Mapping[str, Any] | None = None,
    urls: Sequence[str] = (),
    folder: str = "",
    inner: str = "raw",
    hint: str = "",
) -> tuple[RawFile, ...]:
    files = []
    for name, hashes in (sha256 or {}).items():
        digests = tuple([hashes] if isinstance(hashes, str) else hashes or ())
        addresses = tuple(url.format(name=Path(name).name) for url in urls)
        files.append(RawFile(name, digests, addresses, f"{folder}/{inner}", hint))
    return tuple(files)
