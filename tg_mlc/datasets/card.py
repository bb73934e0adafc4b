"""Cards of data sets: sources, licences and statistics, to be read before any score."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from torch_geometric.data import Dataset

from tg_mlc.data.readers.fasta import LETTERS
from tg_mlc.datasets._statistics import Statistics


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts of a data set that cannot be counted."""

    name: str  #: its name on the command line
    title: str  #: what it is, in one line
    paper: str = "not published"  #: whom to cite
    urls: tuple[str, ...] = ()  #: where it comes from
    licence: str = "not stated"
    licence_note: str = ""
    notes: tuple[str, ...] = ()  #: what surprises


@dataclass(frozen=True, kw_only=True)
class DatasetCard(Facts, Statistics):
    """The facts and statistics of a data set; :meth:`of` counts one, :func:`tg_mlc.datasets.registry.card` has the
    recorded ones.

    .. code-block:: python

        print(DatasetCard.of(dataset))
    """

    @classmethod
    def of(cls, dataset: Dataset, facts: Facts | None = None) -> DatasetCard:
        """Counts a data set.

        Args:
            dataset (Dataset): The whole data set.
            facts (Facts, optional): What cannot be counted. (default: its class's name and licence)
        """
        if facts is None:
            name = type(dataset).__name__
            facts = Facts(name=name, title=name, licence=getattr(dataset, "license", "not stated"))
        return cls.join(facts, Statistics.of(dataset))

    @classmethod
    def join(cls, facts: Facts, statistics: Statistics) -> DatasetCard:
        """A card of facts and statistics."""
        return cls(**{**values(facts, Facts), **values(statistics, Statistics)})

    @property
    def statistics(self) -> Statistics:
        """The statistics alone."""
        return Statistics(**values(self, Statistics))

    def differences(self, recorded: DatasetCard) -> list[str]:
        """One line for each statistic that is not as recorded; raw files of which nothing is recorded do not count."""
        mine, theirs = values(self, Statistics), values(recorded, Statistics)
        mine["raw_sha256"] = {name: mine["raw_sha256"].get(name) for name in theirs["raw_sha256"]}
        differing = [name for name, value in mine.items() if not _same(value, theirs[name])]
        return [f"{name}: {mine[name]} (recorded: {theirs[name]})" for name in differing]

    def __str__(self) -> str:
        parts = " + ".join(f"{size:,}" for size in self.official or ())
        never = f" ({self.never_positive} without a positive sample)" if self.never_positive else ""
        rows = [
            ("Kind", self.kind),
            ("Samples", _count(self.samples) + (f" ({parts} as published)" if parts else "")),
            ("Inputs", _inputs(self)),
            ("Labels", _count(self.labels) + never),
            ("Cardinality", _number(self.cardinality)),
            ("Density", _number(self.density)),
            ("Imbalance", f"mean {_number(self.mean_ir)}, largest {_number(self.max_ir)} (Charte et al. 2015)"),
            ("Missing labels", "unknown" if self.missing is None else f"{self.missing:.2%}"),
            ("Statistics", "computed from the files" if self.origin == "computed" else "as the papers report them"),
            ("Paper", self.paper),
            ("Source", "\n".join(self.urls)),
            ("Licence", self.licence + (f": {self.licence_note}" if self.licence_note else "")),
            ("Notes", "\n".join(self.notes)),
            ("Raw SHA-256", "\n".join(f"{digest}  {name}" for name, digest in self.raw_sha256.items())),
            ("SHA-256", self.content_sha256 or ""),
        ]
        texts = [f"  {head:<16}" + text.replace("\n", f"\n{'':<18}") for head, text in rows if text]
        return "\n".join([f"{self.name}: {self.title}", *texts])


def values(card: Any, of: type[Any]) -> dict[str, Any]:
    """The fields of a class that an object has."""
    return {field.name: getattr(card, field.name) for field in fields(of)}


def to_plain(statistics: Statistics) -> dict[str, Any]:
    """Statistics as JSON can hold them, without what is not known."""
    return {name: value for name, value in asdict(statistics).items() if value is not None and value != {}}


def from_plain(plain: dict[str, Any]) -> Statistics:
    """The inverse of :func:`to_plain`."""
    official = plain.get("official")
    return Statistics(**{**plain, "official": None if official is None else tuple(official)})


def _same(a: Any, b: Any) -> bool:
    both_floats = isinstance(a, float) and isinstance(b, float)
    return math.isclose(a, b, rel_tol=1e-9) if both_floats else bool(a == b)


def _count(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _number(value: float | None) -> str:
    if value is None:
        return "unknown"
    if math.isnan(value):
        return "undefined"
    return f"{value:.4g}" if value < 1000 else f"{value:,.0f}"


def _inputs(card: DatasetCard) -> str:
    what = {"bag": "words", "vector": "entries", "sequence": "words", "graph": "features of a node"}
    # So few different things in sequences are those of DNA: no vocabulary of words is as small.
    is_dna = card.kind == "sequence" and card.num_inputs is not None and card.num_inputs <= len(LETTERS)
    return f"{_count(card.num_inputs)} {'letters' if is_dna else what.get(card.kind, '')}".rstrip()
