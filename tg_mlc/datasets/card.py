"""Cards of data sets with sources, licences and statistics."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Dataset, InMemoryDataset
from torch_geometric.data.dataset import MISSING

from tg_mlc._files import file_sha256, sha256
from tg_mlc.inputs.dna_dataset import LETTERS

#: Fields that are not computed from the data.
FACTS = ("name", "title", "paper", "urls", "licence", "licence_note", "notes")


@dataclass(frozen=True, kw_only=True)
class DatasetCard:
    r"""Facts and statistics of a data set; unknown values are :obj:`None`. :meth:`of` computes
    statistics, and :func:`tg_mlc.datasets.registry.card` returns recorded cards.

    The imbalance of a label is :math:`\mathrm{IRLbl}(l) = \max_{l'} n_{l'} / n_l` with :math:`n_l`
    its positives, as in the `"Addressing Imbalance in Multilabel Classification: Measures and
    Random Resampling Algorithms" <https://doi.org/10.1016/j.neucom.2014.08.091>`_ paper; labels
    without positives are excluded from the mean and maximum.
    """

    name: str  #: name of the data set on the command line
    title: str  #: a description in one line
    paper: str = "not published"  #: the paper to cite
    urls: tuple[str, ...] = ()  #: sources
    licence: str = "not stated"
    licence_note: str = ""
    notes: tuple[str, ...] = ()  #: surprising properties
    kind: str  #: kind of input
    samples: int
    labels: int
    num_inputs: int | None = None  #: words of the vocabulary, entries, or features of a node
    official: tuple[int, ...] | None = None  #: sizes of the published parts
    cardinality: float | None = None  #: positive labels per sample
    density: float | None = None  #: fraction of positives among known entries
    mean_ir: float | None = None  #: mean imbalance of a label
    max_ir: float | None = None  #: imbalance of the rarest label
    never_positive: int | None = None  #: labels without a positive
    missing: float | None = None  #: fraction of unknown entries
    raw_sha256: Mapping[str, str] = field(default_factory=dict)  #: hashes of unpacked raw files
    content_sha256: str | None = None  #: hash of the samples as this package makes them
    origin: str = "reported"  #: "computed" from the files, or "reported" by the papers

    @classmethod
    def of(cls, dataset: Dataset, facts: DatasetCard | None = None) -> DatasetCard:
        """Computes the card of a whole data set.

        Args:
            dataset (Dataset): The data set.
            facts (DatasetCard, optional): A card with :data:`FACTS`. (default: the name of the
                class, and its licence)
        """
        if dataset._indices is not None:
            raise ValueError(f"Expected a whole data set (got a subset of {len(dataset)} samples)")
        values: dict[str, Any] = dict.fromkeys(("name", "title"), type(dataset).__name__)
        values["licence"] = getattr(dataset, "license", "not stated")
        if facts is not None:
            values = {fact: getattr(facts, fact) for fact in FACTS}
        inputs, sparse = getattr(dataset, "num_inputs", None), getattr(dataset, "sparse_y", None)
        labels = dataset.y if sparse is None else sparse()
        in_memory = isinstance(dataset, InMemoryDataset)
        parts = getattr(dataset, "_official", None) if in_memory else dataset.official_split().parts
        return cls(
            **values,
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
        """The fields that can be computed from the data."""
        names = [member.name for member in fields(DatasetCard) if member.name not in FACTS]
        return {name: getattr(self, name) for name in names}

    def differences(self, recorded: DatasetCard) -> list[str]:
        """Returns a line for each recorded statistic that differs."""
        mine, theirs = self.statistics, recorded.statistics
        mine["raw_sha256"] = {name: mine["raw_sha256"].get(name) for name in theirs["raw_sha256"]}

        def is_same(a: Any, b: Any) -> bool:
            are_floats = isinstance(a, float) and isinstance(b, float)
            return math.isclose(a, b, rel_tol=1e-9) if are_floats else bool(a == b)

        changed = [name for name in mine if not is_same(mine[name], theirs[name])]
        return [f"{name}: {mine[name]} (recorded: {theirs[name]})" for name in changed]

    def __str__(self) -> str:
        parts = " + ".join(f"{size:,}" for size in self.official or ())
        never = f" ({self.never_positive} without a positive sample)" if self.never_positive else ""
        # Only DNA has such a small vocabulary.
        words = "letters" if (self.num_inputs or math.inf) <= len(LETTERS) else "words"
        units = {"bag": "words", "sequence": words, "vector": "entries"}
        unit = {**units, "graph": "features of a node"}.get(self.kind, "")
        imbalance = f"mean {_number(self.mean_ir)}, largest {_number(self.max_ir)}"
        is_computed = self.origin == "computed"
        digests = [f"{digest}  {name}" for name, digest in self.raw_sha256.items()]
        rows = [
            ("Kind", self.kind),
            ("Samples", _number(self.samples) + (f" ({parts} as published)" if parts else "")),
            ("Inputs", f"{_number(self.num_inputs)} {unit}".rstrip()),
            ("Labels", _number(self.labels) + never),
            ("Cardinality", _number(self.cardinality)),
            ("Density", _number(self.density)),
            ("Imbalance", f"{imbalance} (Charte et al. 2015)"),
            ("Missing labels", "unknown" if self.missing is None else f"{self.missing:.2%}"),
            ("Statistics", "computed from the files" if is_computed else "reported by the papers"),
            ("Paper", self.paper),
            ("Source", "\n".join(self.urls)),
            ("Licence", self.licence + (f": {self.licence_note}" if self.licence_note else "")),
            ("Notes", "\n".join(self.notes)),
            ("Raw SHA-256", "\n".join(digests)),
            ("SHA-256", self.content_sha256 or ""),
        ]
        texts = [f"  {head:<16}" + text.replace("\n", f"\n{'':<18}") for head, text in rows if text]
        return "\n".join([f"{self.name}: {self.title}", *texts])


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "unknown" if value is None else "undefined"
    return f"{value:,.0f}" if isinstance(value, int) or value >= 1000 else f"{value:.4g}"


def label_statistics(y: Tensor | csr_array) -> dict[str, Any]:
    """Computes statistics of labels ``[N, L]``, a tensor or sparse matrix of 0, 1 and NaN."""
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
    """Returns the SHA-256 of inputs, labels and names of a whole data set."""
    if not isinstance(dataset, InMemoryDataset):  # Processed files hold only arrays.
        return sha256("".join(file_sha256(Path(path)) for path in dataset.processed_paths).encode())
    digest = hashlib.sha256()

    def update(name: str, value: Any) -> None:
        if not isinstance(value, Tensor):
            digest.update(f"{name} {value!r}".encode())
            return
        digest.update(f"{name} {value.dtype} {list(value.shape)}".encode())
        value = value.detach().cpu()
        if value.is_floating_point():  # NaN has many bit patterns.
            value = value.masked_fill(value.isnan(), torch.nan)
        digest.update(value.contiguous().numpy().data)

    data, slices = dataset._data, dataset.slices or {}
    for key in sorted(data.keys()):
        update(f"{key} {slices.get(key) is not None}", data[key])
        update("slices", slices.get(key))
    names = {key: getattr(dataset, key) for key in ("label_names", "feature_names", "kind")}
    digest.update(repr(names).encode())
    for part in getattr(dataset, "_official", None) or ():
        update("part", part)
    return digest.hexdigest()


def _raw_hashes(dataset: Dataset) -> dict[str, str]:
    files = [file for file in getattr(dataset, "files", ()) if file.sha256]
    if files and all(len(file.sha256) == 1 for file in files):
        return {file.name: file.sha256[0] for file in files}  # The data set has checked them.
    if dataset.root == MISSING:  # made in memory, without files
        return {}
    raw = Path(dataset.raw_dir)
    paths = [path for path in sorted(raw.rglob("*")) if path.suffix not in {".part", ".bad"}]
    return {path.relative_to(raw).as_posix(): file_sha256(path) for path in paths if path.is_file()}
