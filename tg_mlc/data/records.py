"""Inputs and labels of samples as whole arrays, before they become PyG samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc.data.samples import Samples


class Tokens(NamedTuple):
    """Sequences of ids or vectors: sample :obj:`i` is ``ids[ptr[i]:ptr[i + 1]]``."""

    ids: np.ndarray
    ptr: np.ndarray

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> Tokens:
        """Concatenates sequences."""
        ptr = np.cumsum([0, *map(len, sequences)]).astype(np.int64)
        arrays = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
        return cls(np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int64), ptr)


class Records(NamedTuple):
    """The samples that a reader of tables returns, as whole arrays."""

    #: Bags ``[N, num_words]``, vectors ``[N, F]``, sequences of ids or of vectors.
    x: sp.csr_array | np.ndarray | Tokens
    y: sp.csr_array | np.ndarray  #: Labels ``[N, L]``: 0, 1 or NaN.
    label_names: list[str]
    #: The words of the vocabulary, or the names of a vector's entries.
    feature_names: list[str] | None = None
    train: np.ndarray | None = None  #: Rows of the official training part.
    test: np.ndarray | None = None  #: Rows of the official test part.

    @property
    def kind(self) -> str:
        """The :obj:`kind` of the data set, by the type of :obj:`x`."""
        if isinstance(self.x, Tokens):
            return "sequence" if self.x.ids.ndim == 1 else "embeddings"
        return "bag" if sp.issparse(self.x) else "vector"

    def to_samples(self) -> Samples:
        """Returns the samples in PyG's collated format.

        A bag has its word ids as ``x`` of shape ``[n]``, with their values as ``weight`` unless
        all values of the data set are 1; a vector is ``x`` of shape ``[1, F]``; a sequence has its
        word ids in order as ``x`` of shape ``[n]``; embeddings are ``x`` of shape ``[n, F]``.
        """
        dense = sp.csr_array(self.y).toarray() if sp.issparse(self.y) else self.y
        y = torch.from_numpy(np.ascontiguousarray(dense, dtype=np.float32))
        row_ptr = torch.arange(len(y) + 1)
        weight, ptr = None, row_ptr
        if isinstance(self.x, Tokens):
            ptr = _int64(self.x.ptr)
            if self.x.ids.ndim == 2:
                x, size = np.asarray(self.x.ids, dtype=np.float32), self.x.ids.shape[1]
            else:
                x, names = np.asarray(self.x.ids, dtype=np.int64), self.feature_names
                size = x.max(initial=-1) + 1 if names is None else len(names)
        elif sp.issparse(self.x):
            bags = sp.csr_array(self.x)
            bags.sort_indices()
            x, ptr, size = bags.indices.astype(np.int64), _int64(bags.indptr), bags.shape[1]
            weight = bags.data.astype(np.float32) if (bags.data != 1).any() else None
        else:
            x, size = np.ascontiguousarray(self.x, dtype=np.float32), self.x.shape[1]
        attributes = {"x": x} if weight is None else {"x": x, "weight": weight}
        data = Data(**{name: torch.from_numpy(values) for name, values in attributes.items()}, y=y)
        slices = {**dict.fromkeys(attributes, ptr), "y": row_ptr}
        inputs = self.kind, self.feature_names, int(size)
        train, test = (None if rows is None else _int64(rows) for rows in (self.train, self.test))
        return Samples(data, slices, list(self.label_names), None, *inputs, train, test)


def _int64(values: np.ndarray) -> Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.int64))
