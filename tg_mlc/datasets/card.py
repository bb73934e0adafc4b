"""Cards of data sets: sources, licences and statistics, to be read before any score."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Dataset, InMemoryDataset
from torch_geometric.data.dataset import MISSING

from tg_mlc._files import file_sha256, sha256
from tg_mlc.inputs.fasta import LETTERS

_BLOCK = 1 << 24
#: what cannot be counted
FACTS = ("name", "title", "paper", "urls", "licence", "licence_note", "notes")


@dataclass(frozen=True, kw_only=True)
class DatasetCard:
    r"""The facts and statistics of a data set, where :obj:`None` is not known; :meth:`of` counts one,
    :func:`tg_mlc.datasets.registry.card` has the recorded ones.

    The imbalance of a label is :math:`\mathrm{IRLbl}(l) = \max_{l'} n_{l'} / n_l` with :math:`n_l` its positives, as in
    the `"Addressing Imbalance in Multilabel Classification: Measures and Random Resampling Algorithms"
    <https://doi.org/10.1016/j.neucom.2014.08.091>`_ paper; labels without positives are left out of its mean and
    maximum.
    """

    name: str  #: its name on the command line
    title: str  #: what it is, in one line
    paper: str = "not published"  #: whom to cite
    urls: tuple[str, ...] = ()  #: where it comes from
    licence: str = "not stated"
    licence_note: str = ""
    notes: tuple[str, ...] = ()  #: what surprises
    kind: str  #: what an input is
    samples: int
    labels: int
    #: words of the vocabulary, entries of a vector, or features of a node
    num_inputs: int | None = None
    #: sizes of the published training and test (or train, val, test) parts
    official: tuple[int, ...] | None = None
    cardinality: float | None = None  #: positive labels per sample
    density: float | None = None  #: share of positives among the known entries
    mean_ir: float | None = None  #: mean imbalance of a label
    max_ir: float | None = None  #: imbalance of the rarest label
    never_positive: int | None = None  #: labels without a positive
    missing: float | None = None  #: share of unknown entries
    #: of the raw files, without compression
    raw_sha256: Mapping[str, str] = field(default_factory=dict)
    content_sha256: str | None = None  #: of the samples as this package makes them
    origin: str = "reported"  #: "computed" from the files, or "reported" by the papers

    @classmethod
    def of(cls, dataset: Dataset, facts: DatasetCard | None = None) -> DatasetCard:
        """Counts a whole data set.

        Args:
            dataset (Dataset): The data set.
            facts (DatasetCard, optional): A card with :data:`FACTS`. (default: its class's name and licence)
        """
        if dataset._indices is not None:
            raise ValueError(f"Expected a whole data set (got {len(dataset)} samples of one)")
        name = type(dataset).__name__
        known: dict[str, Any] = {
            "name": name,
            "title": name,
            "licence": getattr(dataset, "license", "not stated"),
        }
        inputs, sparse = getattr(dataset, "num_inputs", None), getattr(dataset, "sparse_y", None)
        labels = dataset.y if sparse is None else sparse()
        in_memory = isinstance(dataset, InMemoryDataset)
        parts = getattr(dataset, "_official", None) if in_memory else dataset.official_split().parts
        return cls(
            **(known if facts is None else {fact: getattr(facts, fact) for fact in FACTS}),
            kind=getattr(dataset, "kind", None) or "graph",
            samples=labels.shape[0],
            num_inputs=inputs if inputs is not None else dataset.num_node_features,
            official=None if parts is None else tuple(map(len, parts)),
            raw_sha256=_raw_hashes(dataset),
            content_sha256=content_sha256(dataset),
            origin="computed",
            **label_statistics(labels),
        )

    @property
    def statistics(self) -> dict[str, Any]:
        """The fields that can be counted."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(DatasetCard)
            if each.name not in FACTS
        }

    def differences(self, recorded: DatasetCard) -> list[str]:
        """One line for each statistic that is not as recorded; raw files without a record do not count."""
        mine, theirs = self.statistics, recorded.statistics
        mine["raw_sha256"] = {name: mine["raw_sha256"].get(name) for name in theirs["raw_sha256"]}
        floats = {
            name
            for name, value in mine.items()
            if isinstance(value, float) and isinstance(theirs[name], float)
        }
        alike = {name for name in mine if mine[name] == theirs[name]}
        alike |= {name for name in floats if math.isclose(mine[name], theirs[name], rel_tol=1e-9)}
        return [
            f"{name}: {mine[name]} (recorded: {theirs[name]})" for name in mine if name not in alike
        ]

    def __str__(self) -> str:
        parts = " + ".join(f"{size:,}" for size in self.official or ())
        never = f" ({self.never_positive} without a positive sample)" if self.never_positive else ""
        # So few different entries of sequences are those of DNA: no vocabulary of words is as small.
        words = "letters" if (self.num_inputs or math.inf) <= len(LETTERS) else "words"
        entries = {
            "bag": "words",
            "sequence": words,
            "vector": "entries",
            "graph": "features of a node",
        }
        rows = [
            ("Kind", self.kind),
            ("Samples", _number(self.samples) + (f" ({parts} as published)" if parts else "")),
            ("Inputs", f"{_number(self.num_inputs)} {entries.get(self.kind, '')}".rstrip()),
            ("Labels", _number(self.labels) + never),
            ("Cardinality", _number(self.cardinality)),
            ("Density", _number(self.density)),
            (
                "Imbalance",
                f"mean {_number(self.mean_ir)}, largest {_number(self.max_ir)} (Charte et al. 2015)",
            ),
            ("Missing labels", "unknown" if self.missing is None else f"{self.missing:.2%}"),
            (
                "Statistics",
                "computed from the files"
                if self.origin == "computed"
                else "as the papers report them",
            ),
            ("Paper", self.paper),
            ("Source", "\n".join(self.urls)),
            ("Licence", self.licence + (f": {self.licence_note}" if self.licence_note else "")),
            ("Notes", "\n".join(self.notes)),
            (
                "Raw SHA-256",
                "\n".join(f"{digest}  {name}" for name, digest in self.raw_sha256.items()),
            ),
            ("SHA-256", self.content_sha256 or ""),
        ]
        texts = [f"  {head:<16}" + text.replace("\n", f"\n{'':<18}") for head, text in rows if text]
        return "\n".join([f"{self.name}: {self.title}", *texts])


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "unknown" if value is None else "undefined"
    return f"{value:,.0f}" if isinstance(value, int) or value >= 1000 else f"{value:.4g}"


def label_statistics(y: Tensor | csr_array) -> dict[str, Any]:
    """Counts labels ``[N, L]``: a tensor or a sparse matrix of 0, 1 and NaN."""
    num_samples, num_labels = y.shape
    positives = np.asarray((y == 1).sum(0)).ravel()
    unknown = int(y.isnan().sum() if isinstance(y, Tensor) else np.isnan(y.data).sum())
    known = num_samples * num_labels - unknown
    occurring = positives[positives > 0]
    imbalance = occurring.max() / occurring if occurring.size else np.full(1, np.nan)
    total = int(positives.sum())
    return {
        "labels": num_labels,
        "cardinality": total / max(num_samples, 1),
        "density": total / max(known, 1),
        "mean_ir": float(imbalance.mean()),
        "max_ir": float(imbalance.max()),
        "never_positive": int((positives == 0).sum()),
        "missing": 1 - known / max(num_samples * num_labels, 1),
    }


def content_sha256(dataset: Dataset) -> str:
    """The SHA-256 of inputs, labels and names of a whole data set, the same wherever and however it is stored."""
    if not isinstance(dataset, InMemoryDataset):  # then its files are plain arrays
        return sha256("".join(file_sha256(Path(path)) for path in dataset.processed_paths).encode())
    digest = hashlib.sha256()

    def update(name: str, value: Any) -> None:
        if not isinstance(value, Tensor):
            digest.update(f"{name} {value!r}".encode())
            return
        digest.update(f"{name} {value.dtype} {list(value.shape)}".encode())
        flat = value.detach().cpu().contiguous().flatten().numpy()
        for start in range(0, flat.size, _BLOCK):
            array = flat[start : start + _BLOCK]
            if array.dtype.kind == "f":
                # of many bit patterns
                array = np.where(np.isnan(array), np.array(np.nan, dtype=array.dtype), array)
            digest.update(array.tobytes())

    data, slices = dataset._data, dataset.slices or {}
    for key in sorted(data.keys()):
        update(f"{key} {slices.get(key) is not None}", data[key])
        update("slices", slices.get(key))
    names = {
        "label_names": dataset.label_names,
        "feature_names": dataset.feature_names,
        "kind": dataset.kind,
    }
    digest.update(repr(names).encode())
    for part in getattr(dataset, "_official", None) or ():
        update("part", part)
    return digest.hexdigest()


def _raw_hashes(dataset: Dataset) -> dict[str, str]:
    files = [file for file in getattr(dataset, "files", ()) if file.sha256]
    if files and all(len(file.sha256) == 1 for file in files):
        return {file.name: file.sha256[0] for file in files}  # which was checked
    if dataset.root == MISSING:  # made in memory, of no file
        return {}
    raw = Path(dataset.raw_dir)
    paths = [
        path
        for path in sorted(raw.rglob("*"))
        if path.is_file() and path.suffix not in {".part", ".bad"}
    ]
    return {path.relative_to(raw).as_posix(): file_sha256(path) for path in paths}
