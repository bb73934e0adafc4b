"""Views: the same samples as matrices on the scales that linear, kernel and tree classifiers may need."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from typing_extensions import Self

from tg_mlc.data import MultiLabelDataset
from tg_mlc.data.bags import inputs_of
from tg_mlc.inputs.fasta import LETTERS
from tg_mlc.inputs.kinds import VECTORS
from tg_mlc.inputs.scalers import QuantileScaler, StandardScaler, molecule_scaler
from tg_mlc.inputs.tf_idf import TfIdf

#: Lengths of the pieces of DNA that are counted: so many letters tell binding sites apart (Ghandi et al. 2014,
#: doi:10.1371/journal.pcbi.1003711, use 10 with gaps), and all of them fit into 5,120 columns.
PIECES = (5, 6)

Scaling = Literal["standard", "quantile", "centred"]


class View(ABC):
    """Samples as a matrix, with what is learned from training samples."""

    @abstractmethod
    def fit(self, dataset: MultiLabelDataset) -> Self:
        """Learns from training samples."""

    @abstractmethod
    def matrix(self, dataset: MultiLabelDataset) -> Any:
        """Features :math:`(N, F)` of any samples, whose mean square length is about 1."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Returns what was learned, as arrays and plain data."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Takes what another one has learned."""


class Words(View):
    """Words with the weights that they have."""

    def fit(self, dataset: MultiLabelDataset) -> Self:
        """Learns from training samples."""
        return self

    def matrix(self, dataset: MultiLabelDataset) -> Any:
        """Features :math:`(N, F)` of any samples."""
        return inputs_of(dataset)

    def state_dict(self) -> dict[str, Any]:
        """Returns what was learned."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Takes what another one has learned."""
        return self


class Scaled(View):
    """Vectors of which each entry is standardised, replaced by its rank, or only centred; a missing entry counts as
    the mean of its column.

    Args:
        scaling (str): :obj:`"standard"`, :obj:`"quantile"`, or :obj:`"centred"`, by which entries keep their relative
            sizes.
    """

    scaler: StandardScaler | QuantileScaler
    fill: Tensor

    def __init__(self, scaling: Scaling) -> None:
        self.scaling = scaling

    def fit(self, dataset: MultiLabelDataset) -> Self:
        """Learns from training samples."""
        x = dataset.rows("x")
        self.fill = x.nanmean(dim=0).nan_to_num()
        self.scaler = self._scaler(x.size(1)).fit(self._whole(x))
        if self.scaling == "centred" and isinstance(self.scaler, StandardScaler):
            spread = self._whole(x).std(dim=0, correction=0).square().mean().sqrt()
            self.scaler.spread.fill_(float(spread) or 1.0)
        return self

    def matrix(self, dataset: MultiLabelDataset) -> np.ndarray:
        """Features :math:`(N, F)` of any samples."""
        x: Tensor = self.scaler(self._whole(dataset.rows("x")))
        scaled: np.ndarray = (x / math.sqrt(x.size(1)) if self.scaling == "quantile" else x).numpy()
        return scaled

    def state_dict(self) -> dict[str, Any]:
        """Returns what was learned."""
        return {"fill": self.fill, "scaler": self.scaler.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Takes what another one has learned."""
        self.fill = torch.as_tensor(state["fill"])
        self.scaler = self._scaler(len(self.fill))
        self.scaler.load_state_dict(state["scaler"])
        return self

    def _whole(self, x: Tensor) -> Tensor:
        return torch.where(x.isnan(), self.fill, x)

    def _scaler(self, size: int) -> StandardScaler | QuantileScaler:
        return QuantileScaler(size) if self.scaling == "quantile" else StandardScaler(size)


class MoleculeVectors(View):
    """All vectors of a molecule side by side, with equal weight and of unit length together.

    Args:
        keys (tuple, optional): The vectors to take, as far as samples have them. (default: all)
    """

    def __init__(self, keys: tuple[str, ...] = VECTORS) -> None:
        self.keys = keys
        self.scalers: dict[str, Any] = {}

    def fit(self, dataset: MultiLabelDataset) -> Self:
        """Learns from training samples."""
        vectors = {key: dataset.rows(key) for key in self.keys if key in dataset[0]}
        self.scalers = {key: molecule_scaler(key, x.size(1)).fit(x) for key, x in vectors.items()}
        return self

    def matrix(self, dataset: MultiLabelDataset) -> np.ndarray:
        """Features :math:`(N, F)` of any samples."""
        scaled = [scaler(dataset.rows(key)) for key, scaler in self.scalers.items()]
        unit = [torch.nn.functional.normalize(values, dim=1) for values in scaled]
        together: np.ndarray = (torch.cat(unit, dim=1) / len(unit) ** 0.5).numpy()
        return together

    def state_dict(self) -> dict[str, Any]:
        """Returns what was learned."""
        return {key: scaler.state_dict() for key, scaler in self.scalers.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Takes what another one has learned."""
        self.scalers = {}
        for key, tensors in state.items():
            self.scalers[key] = molecule_scaler(key, len(tensors.get("quantiles", ())))
            self.scalers[key].load_state_dict(tensors)
        return self


class Pieces(View):
    """DNA as the pieces of 5 and 6 letters on either strand, weighted as words are (:class:`TfIdf`)."""

    def __init__(self) -> None:
        self.weights = TfIdf()

    def fit(self, dataset: MultiLabelDataset) -> Self:
        """Learns from training samples."""
        self.weights.learn(self._counts(dataset))
        return self

    def matrix(self, dataset: MultiLabelDataset) -> sp.csr_array:
        """Features :math:`(N, F)` of any samples."""
        return self.weights.weigh(self._counts(dataset))

    def state_dict(self) -> dict[str, Any]:
        """Returns what was learned."""
        return self.weights.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Takes what another one has learned."""
        self.weights.load_state_dict(state)
        return self

    def _counts(self, dataset: MultiLabelDataset) -> sp.csr_array:
        rows = [_pieces(data.x.numpy()) for data in dataset]
        ptr = np.cumsum([0, *map(len, rows)])
        shape = (len(rows), sum(4**size for size in PIECES))
        counts = sp.csr_array((np.ones(ptr[-1], dtype=np.float32), np.concatenate(rows), ptr), shape=shape)
        counts.sum_duplicates()
        return counts


def _pieces(letters: np.ndarray) -> np.ndarray:
    """Numbers of the pieces of a sequence of codes, A, C, G, T and others, whose complements are 3 minus them."""
    found, first = [], 0
    for size in PIECES:
        for strand in (letters, 3 - letters[::-1]):
            if len(strand) >= size:
                windows = np.lib.stride_tricks.sliding_window_view(strand, size)
                known = ((windows >= 0) & (windows < 4)).all(axis=1)
                found.append(first + windows[known].astype(np.int64) @ 4 ** np.arange(size))
        first += 4**size
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


#: By name; the last of a kind is the one that keeps most of what samples say.
_VIEWS: dict[str, Callable[[], View]] = {
    "standard": partial(Scaled, "standard"),
    "quantile": partial(Scaled, "quantile"),
    "centred": partial(Scaled, "centred"),
    "words": Words,
    "substructures": partial(MoleculeVectors, ("morgan",)),
    "vectors": MoleculeVectors,
    "pieces": Pieces,
}


def make_view(name: str) -> View:
    """The view of a name, not fitted yet."""
    return _VIEWS[name]()


def views_of(dataset: MultiLabelDataset) -> dict[str, View]:
    """The views that samples of a kind have, not fitted yet.

    Raises:
        ValueError: If the samples are neither words, vectors, molecules nor DNA.
    """
    return {name: make_view(name) for name in _names(dataset)}


def _names(dataset: MultiLabelDataset) -> tuple[str, ...]:
    if dataset.kind == "vector":
        return "standard", "quantile", "centred"
    if dataset.kind == "bag":
        return ("words",)
    if dataset.feature_names == list(LETTERS):
        return ("pieces",)
    if "morgan" in dataset[0]:
        return "substructures", "vectors"
    raise ValueError(f"Expected samples of words, vectors, molecules with vectors, or DNA (got {dataset})")
